//! Tables of liberal matching: which options take a value, and which options are two spellings of one.

/// Whether the word after this option belongs to it; `None` if the table does not list it. `before_subcommand`: only
/// options have come so far.
pub(super) fn takes_value(program: &str, option: &str, before_subcommand: bool) -> Option<bool> {
    if option.contains('=') {
        return Some(false);
    }
    if !before_subcommand {
        return None;
    }
    match program {
        "git" => Some(matches!(
            option,
            "-C" | "-c"
                | "--git-dir"
                | "--work-tree"
                | "--namespace"
                | "--config-env"
                | "--attr-source"
                | "--super-prefix"
                | "--exec-path"
        )),
        "docker" | "podman" => known(
            option,
            &[
                "-H",
                "--host",
                "-c",
                "--context",
                "--config",
                "-l",
                "--log-level",
            ],
        ),
        "kubectl" => known(
            option,
            &[
                "-n",
                "--namespace",
                "--context",
                "--kubeconfig",
                "-s",
                "--server",
                "--cluster",
                "--user",
                "--token",
                "--as",
            ],
        ),
        "npm" => known(
            option,
            &[
                "--prefix",
                "-C",
                "-w",
                "--workspace",
                "--registry",
                "--userconfig",
            ],
        ),
        "pnpm" => known(option, &["-C", "--dir", "-F", "--filter"]),
        "yarn" => known(option, &["--cwd"]),
        "cargo" => known(
            option,
            &["--config", "-Z", "-C", "--color", "--manifest-path"],
        ),
        "make" => known(
            option,
            &["-C", "--directory", "-f", "--file", "-I", "-o", "-W"],
        ),
        "go" => known(option, &["-C"]),
        "gh" => known(option, &["-R", "--repo"]),
        _ => None,
    }
}

fn known(option: &str, valued: &[&str]) -> Option<bool> {
    valued.contains(&option).then_some(true)
}

/// The canonical spelling of an option.
pub(super) fn canonical<'a>(program: &str, subcommand: Option<&str>, option: &'a str) -> &'a str {
    let same: &[(&str, &str)] = match (program, subcommand) {
        ("rm", _) => &[
            ("-r", "--recursive"),
            ("-R", "--recursive"),
            ("-f", "--force"),
            ("-d", "--dir"),
        ],
        ("git", Some("push")) => &[("-f", "--force"), ("-d", "--delete")],
        ("chmod" | "chown" | "chgrp", _) => &[("-R", "--recursive")],
        ("cp", _) => &[
            ("-r", "--recursive"),
            ("-R", "--recursive"),
            ("-f", "--force"),
            ("-a", "--archive"),
        ],
        ("mv", _) => &[("-f", "--force"), ("-n", "--no-clobber")],
        ("ln", _) => &[("-f", "--force"), ("-s", "--symbolic")],
        _ => &[],
    };
    for (short, long) in same {
        // GNU programs accept any unambiguous beginning of a long option.
        let shortened = option.len() > 3 && option.starts_with("--") && long.starts_with(option);
        if option == *short || shortened {
            return long;
        }
    }
    option
}

/// Programs with long options after a single dash.
pub(super) fn has_long_words(program: &str) -> bool {
    matches!(
        program,
        "find"
            | "go"
            | "java"
            | "javac"
            | "openssl"
            | "terraform"
            | "ffmpeg"
            | "gcc"
            | "cc"
            | "clang"
    )
}
