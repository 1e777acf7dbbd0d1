//! The requirements of modules, and the local files that an installer may open for them. The build code of packages
//! has the network, so a requirement must not open more to it than the module's own files and the folders that the
//! operator opened.

use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use url::Url;

/// The endings of package archives.
const ARCHIVES: [&str; 3] = [".whl", ".tar.gz", ".zip"];
/// The URL schemes that requirements may use.
const FETCHED: [&str; 4] = ["https", "http", "git+https", "git+ssh"];

/// Why a requirement is not passed to an installer.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequirementError {
    #[error("the dependency `{0}` does not name a package")]
    NoName(String),
    #[error("the dependency `{0}` is not of the form `name`, `name >= 1` or `name @ https://…`")]
    Form(String),
    #[error(
        "the dependency `{0}` has an address that modules may not use\n\
         hint: write `name @ file:///…`, with the path of a wheel or source archive in the module's own folder"
    )]
    Address(String),
    #[error(
        "the dependency `{0}` is not a wheel or a source archive; other local files cannot be installed"
    )]
    NoArchive(String),
    #[error(
        "the dependency `{0}` is outside of the module's own folder\n\
         hint: add its folder to `amplifier.readable`"
    )]
    Outside(String),
}

/// A requirement with one possible reading: the name of a package with either versions or an address.
pub(super) fn checked(text: &str) -> Result<String, RequirementError> {
    let text = text.trim();
    let told = || text.escape_debug().to_string();
    if text.chars().any(char::is_control) || !text.starts_with(|c: char| c.is_ascii_alphanumeric())
    {
        return Err(RequirementError::NoName(told()));
    }
    let rest = text.trim_start_matches(is_of_name).trim_start();
    let rest = match rest.strip_prefix('[') {
        Some(extras) => {
            let (extras, rest) = extras
                .split_once(']')
                .ok_or_else(|| RequirementError::Form(told()))?;
            if !extras
                .chars()
                .all(|c| is_of_name(c) || matches!(c, ',' | ' '))
            {
                return Err(RequirementError::Form(told()));
            }
            rest.trim_start()
        }
        None => rest,
    };
    if rest.starts_with('@') {
        address(text)?;
        return Ok(text.to_owned());
    }
    let versions = rest.split(';').next().unwrap_or_default();
    let legal = |c: char| c.is_ascii_alphanumeric() || "._-+*<>=!~(), ".contains(c);
    let begins = versions.is_empty() || versions.starts_with(['<', '>', '=', '!', '~', '(']);
    // An installer takes a path that begins like a name for a folder to build.
    if begins && versions.chars().all(legal) {
        Ok(text.to_owned())
    } else {
        Err(RequirementError::Form(told()))
    }
}

pub(super) fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// The file of a requirement `name @ file:///…`, as its real path, if it is one of the files that `roots` open. A
/// missing file is left to the installer to report.
pub(super) fn local_file(
    requirement: &str,
    roots: &[PathBuf],
) -> Result<Option<PathBuf>, RequirementError> {
    let Some(path) = address(requirement)? else {
        return Ok(None);
    };
    let told = || requirement.escape_debug().to_string();
    let name = path.to_string_lossy().to_ascii_lowercase();
    if !ARCHIVES.iter().any(|end| name.ends_with(end)) {
        return Err(RequirementError::NoArchive(told()));
    }
    let opened = |path: &Path| {
        roots
            .iter()
            .any(|root| path.starts_with(root) || path.starts_with(real(root)))
    };
    if !opened(&path) {
        return Err(RequirementError::Outside(told()));
    }
    let Ok(found) = path.canonicalize() else {
        return Ok(None);
    };
    if !opened(&found) {
        return Err(RequirementError::Outside(told()));
    }
    let is_file =
        |found: rustix::fs::Stat| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    if rustix::fs::stat(&found).is_ok_and(is_file) {
        return Ok(Some(found));
    }
    Err(RequirementError::NoArchive(told()))
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The path behind `@`, if it is a file's address.
fn address(requirement: &str) -> Result<Option<PathBuf>, RequirementError> {
    let Some((_, rest)) = requirement
        .split(';')
        .next()
        .and_then(|before| before.split_once('@'))
    else {
        return Ok(None);
    };
    let told = || RequirementError::Address(requirement.escape_debug().to_string());
    let mut words = rest.split_whitespace();
    let (Some(written), None) = (words.next(), words.next()) else {
        return Err(told());
    };
    // Installers expand variables in addresses, and a module must not send their values anywhere. Installers also
    // disagree about the end of an address with a `;` in it.
    let ends = requirement.contains(&format!("{written};"));
    let parsed = Url::parse(written)
        .ok()
        .filter(|_| !written.contains(['$', '\\']) && !ends);
    let url = parsed.ok_or_else(told)?;
    match url.scheme() {
        "file" => url.to_file_path().map(Some).map_err(|()| told()),
        scheme if FETCHED.contains(&scheme) => Ok(None),
        _ => Err(told()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_versions_and_addresses_are_requirements() {
        for text in [
            "tiny",
            " tiny == 1 ",
            "tiny[a,b]>=1,<2",
            "tiny (>=1)",
            "tiny>=1 ; python_version > '3' and sys_platform == 'linux'",
            "tiny @ https://h/tiny.whl",
            "tiny@git+https://h/o/r@v1",
            "tiny @ git+ssh://git@h/o/r ; os_name == 'posix'",
            "tiny @ file:///w/tiny-1.whl",
        ] {
            assert_eq!(checked(text).ok().as_deref(), Some(text.trim()), "{text}");
        }
        for text in [
            "",
            "-e .",
            "-r other.txt",
            "--index-url http://x",
            "./x",
            "../x",
            "/etc",
            "a\nb",
            "venv/../../x",
            "file:///etc",
            "tiny @ ./x",
            "tiny @ ../x.whl",
            "tiny @ /etc/passwd",
            "tiny @ git+file:///home",
            "tiny @ hg+https://h/x",
            "tiny @ https://h/${TOKEN}",
            "tiny @ file:///w/a.whl;b",
            "tiny @ file:///w/a.whl b",
            "tiny @",
            "tiny[a/b]",
        ] {
            assert!(checked(text).is_err(), "{text}");
        }
    }

    #[test]
    fn files_of_this_machine_must_be_archives_in_an_open_folder() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let open = base.join("open");
        let closed = base.join("closed");
        let dir = cap_std::fs::Dir::open_ambient_dir(&base, cap_std::ambient_authority()).unwrap();
        for name in ["open", "closed", "open/folder.whl"] {
            dir.create_dir(name).unwrap();
        }
        for name in ["open/a b.whl", "open/a.txt", "closed/a.whl"] {
            dir.write(name, "").unwrap();
        }
        std::os::unix::fs::symlink(closed.join("a.whl"), open.join("link.whl")).unwrap();
        let found = |address: String| {
            local_file(
                &format!("tiny @ {address} ; a > 'b'"),
                std::slice::from_ref(&open),
            )
        };
        let of = |name: &str| found(format!("file://{}/{name}", base.display()));
        assert_eq!(of("open/a%20b.whl").unwrap(), Some(open.join("a b.whl")));
        assert_eq!(of("open/gone.whl").unwrap(), None);
        assert!(matches!(
            of("closed/a.whl"),
            Err(RequirementError::Outside(_))
        ));
        assert!(matches!(
            of("open/../closed/a.whl"),
            Err(RequirementError::Outside(_))
        ));
        assert!(matches!(
            of("open/%2e%2e/closed/a.whl"),
            Err(RequirementError::Outside(_))
        ));
        assert!(matches!(
            of("open/link.whl"),
            Err(RequirementError::Outside(_))
        ));
        assert!(matches!(
            of("open/a.txt"),
            Err(RequirementError::NoArchive(_))
        ));
        assert!(matches!(
            of("open/folder.whl"),
            Err(RequirementError::NoArchive(_))
        ));
        assert!(matches!(of("open"), Err(RequirementError::NoArchive(_))));
        assert!(matches!(
            found("file:///".into()),
            Err(RequirementError::NoArchive(_))
        ));
        assert!(matches!(
            found(format!("FILE:{}/closed/a.whl", base.display())),
            Err(RequirementError::Outside(_))
        ));
        assert_eq!(found("https://h/tiny.whl".into()).unwrap(), None);
    }
}
