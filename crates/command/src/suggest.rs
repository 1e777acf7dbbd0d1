//! Finds the patterns that are offered to an operator who wants to allow similar commands.
//!
//! Operators click on the offered patterns without much thought, so no pattern may allow more than it seems to at a
//! glance: no shell, no interpreter, and no program that starts, removes, sends or fetches things of its arguments'
//! choice.

use crate::analysis::SimpleCommand;
use crate::pattern::CommandPattern;
use crate::reads;

/// Operators do not read a pattern that is longer than a line or two.
const LONGEST: usize = 300;

/// Patterns that cover the command, from narrow to wide, at most three. Empty if no pattern should be offered.
pub fn suggestions(command: &SimpleCommand) -> Vec<CommandPattern> {
    let Some((program, arguments)) = command.words.split_first() else {
        return Vec::new();
    };
    if command.opaque || runs_inline_code(program, arguments) {
        return Vec::new();
    }
    let Some(prefix) = assignments(command) else {
        return Vec::new();
    };
    let exact: Vec<String> = command.words.iter().map(|word| quoted(word)).collect();
    let mut texts = vec![exact.join(" ")];
    if let Some(subcommand) = arguments
        .first()
        .filter(|word| has_harmless_subcommand(program, word))
    {
        texts.push(format!("{program} {subcommand} *"));
    }
    if reads::always_only_reads(program) || program == "mkdir" {
        texts.push(format!("{program} *"));
    }
    let patterns = texts
        .iter()
        .map(|text| format!("{prefix}{text}"))
        .filter(|text| text.len() <= LONGEST);
    let patterns = patterns.filter_map(|text| text.parse::<CommandPattern>().ok());
    patterns.filter(|pattern| pattern.covers(command)).collect()
}

/// The variables as the pattern has to spell them; `None` if one is not literal.
fn assignments(command: &SimpleCommand) -> Option<String> {
    let mut prefix = String::new();
    for assignment in &command.assignments {
        let value = assignment.value.as_ref()?;
        let value = if value.is_empty() {
            String::new()
        } else {
            quoted(value)
        };
        prefix.push_str(&format!("{}={value} ", assignment.name));
    }
    Some(prefix)
}

/// Subcommands that, with any arguments, do not start, send or remove things that the operator did not look at.
fn has_harmless_subcommand(program: &str, subcommand: &str) -> bool {
    match program {
        "cargo" => matches!(
            subcommand,
            "build"
                | "b"
                | "check"
                | "c"
                | "clippy"
                | "test"
                | "t"
                | "nextest"
                | "fmt"
                | "doc"
                | "bench"
                | "tree"
                | "metadata"
                | "update"
        ),
        "git" => matches!(
            subcommand,
            "add"
                | "blame"
                | "branch"
                | "cat-file"
                | "checkout"
                | "commit"
                | "describe"
                | "diff"
                | "log"
                | "ls-files"
                | "ls-tree"
                | "merge-base"
                | "mv"
                | "restore"
                | "rev-list"
                | "rev-parse"
                | "shortlog"
                | "show"
                | "stash"
                | "status"
                | "switch"
                | "tag"
        ),
        "npm" | "pnpm" | "yarn" => {
            matches!(
                subcommand,
                "test" | "ls" | "list" | "outdated" | "view" | "why" | "audit"
            )
        }
        "docker" | "podman" => {
            matches!(
                subcommand,
                "ps" | "images" | "inspect" | "logs" | "version" | "info" | "stats"
            )
        }
        "kubectl" => matches!(
            subcommand,
            "get" | "describe" | "logs" | "explain" | "top" | "version"
        ),
        "go" => matches!(
            subcommand,
            "build" | "test" | "vet" | "fmt" | "doc" | "list" | "version"
        ),
        "pip" | "pip3" => matches!(subcommand, "list" | "show" | "freeze" | "check"),
        "uv" => matches!(subcommand, "lock" | "sync" | "tree" | "version"),
        "gh" => matches!(subcommand, "status" | "search"),
        "systemctl" => matches!(
            subcommand,
            "status" | "is-active" | "is-enabled" | "list-units"
        ),
        "dotnet" => matches!(subcommand, "build" | "test" | "restore" | "format"),
        "mvn" | "gradle" => matches!(
            subcommand,
            "test" | "compile" | "build" | "check" | "verify"
        ),
        _ => false,
    }
}

/// Shells and interpreters that get their program in a word or on their input.
fn runs_inline_code(program: &str, arguments: &[String]) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let inline: &[char] = match name {
        "sh" | "bash" | "dash" | "zsh" | "ksh" | "mksh" | "ash" | "rbash" | "fish" | "csh"
        | "tcsh" => &['c', 's'],
        "python" | "pypy" => &['c'],
        "perl" | "ruby" | "lua" | "luajit" | "julia" | "Rscript" | "osascript" | "elixir"
        | "tclsh" => &['e', 'E'],
        "node" | "nodejs" | "deno" | "bun" => &['e', 'p'],
        "php" => &['r', 'B', 'R', 'E'],
        "awk" | "gawk" | "mawk" => return !arguments.iter().any(|word| word == "-f"),
        _ => return false,
    };
    let spelled_out = |word: &str| {
        matches!(word, "eval" | "repl" | "-")
            || word.starts_with("--eval")
            || word.starts_with("--print")
    };
    let inline_option =
        |word: &str| word.starts_with('-') && !word.starts_with("--") && word.contains(inline);
    let asks_about_itself = arguments
        .iter()
        .any(|word| matches!(word.as_str(), "--version" | "--help" | "-V"));
    let has_script = arguments.iter().any(|word| !word.starts_with('-'));
    arguments
        .iter()
        .any(|word| spelled_out(word) || inline_option(word))
        || (!has_script && !asks_about_itself)
}

/// A word in the syntax of patterns.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| {
        byte.is_ascii_alphanumeric() || b"_-./:,@%+^[]~!?#".contains(&byte) || byte >= 0x80
    };
    if !word.is_empty()
        && word.bytes().all(|byte| plain(byte) || byte == b'=')
        && !word.starts_with('=')
    {
        let looks_like_assignment = crate::variable::split_assignment(word).is_some();
        return if looks_like_assignment {
            format!("'{word}'")
        } else {
            word.to_owned()
        };
    }
    if word.contains('\'') {
        let escaped = word.replace('\\', r"\\").replace('"', "\\\"");
        return format!("\"{escaped}\"");
    }
    format!("'{word}'")
}
