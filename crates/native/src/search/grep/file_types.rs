//! The argument `type`: names of languages and formats, as in ripgrep.

use std::path::Path;

use ignore::types::{FileTypeDef, Types, TypesBuilder};
use toolpost_model::InputRefusal;
use toolpost_processes::shown;

/// Why a type was refused.
#[derive(Debug, thiserror::Error)]
pub(in crate::search) enum FileTypeError {
    #[error("`{}` is not a file type; {}", shown(.name), .advice)]
    Unknown { name: String, advice: String },
    #[error("the file type cannot be used: {0}")]
    Unusable(#[from] ignore::Error),
}

impl FileTypeError {
    pub(super) fn into_refusal(self) -> InputRefusal {
        InputRefusal::invalid("/type", self.to_string())
    }
}

/// The files of a type.
pub(super) struct FileType(Types);

impl FileType {
    pub(super) fn parse(name: &str) -> Result<Self, FileTypeError> {
        let mut builder = TypesBuilder::new();
        builder.add_defaults();
        let definitions = builder.definitions();
        if !definitions
            .iter()
            .any(|definition| definition.name() == name)
        {
            return Err(FileTypeError::Unknown {
                name: name.to_owned(),
                advice: advice(name, &definitions),
            });
        }
        builder.select(name);
        Ok(Self(builder.build()?))
    }

    pub(super) fn fits(&self, path: &Path) -> bool {
        self.0.matched(path, false).is_whitelist()
    }
}

/// The advice for an unknown type. Extensions are the usual mistake, so it names the types with that extension.
fn advice(name: &str, definitions: &[FileTypeDef]) -> String {
    let extension = name.trim_start_matches(['*', '.']).to_lowercase();
    let glob = format!("*.{extension}");
    let meant: Vec<String> = definitions
        .iter()
        .filter(|definition| definition.name() == extension || definition.globs().contains(&glob))
        .map(|definition| format!("`{}`", definition.name()))
        .take(3)
        .collect();
    match meant.as_slice() {
        [] => format!("use `glob`, such as `{}`", shown(&glob)),
        names => format!("did you mean {}?", names.join(" or ")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::FileType;

    #[test]
    fn types_are_known_by_name_and_guessed_by_extension() {
        let rust = FileType::parse("rust").unwrap();
        assert!(rust.fits(Path::new("a/b.rs")) && !rust.fits(Path::new("a/b.py")));
        let check = |name: &str, part: &str| {
            let message = FileType::parse(name).map(|_| ()).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        };
        check("rs", "`rs` is not a file type; did you mean `rust`?");
        check(".py", "did you mean `py` or `python`?");
        check("qqq", "use `glob`, such as `*.qqq`");
    }
}
