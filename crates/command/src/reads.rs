//! Commands that change nothing, regardless of the content of the files that they read.
//!
//! Left out on purpose: `git` runs commands from a repository's settings, `sed` and `awk` can write and start programs,
//! pagers and `man` offer a shell, and `env` and `xargs` start other commands. The listed programs run in a read-only
//! sandbox, which contains a mistake in this table. It would still be a mistake: such a command runs without a
//! question.

use crate::analysis::SimpleCommand;

/// Whether this command only reads.
pub(crate) fn only_reads(command: &SimpleCommand) -> bool {
    if command.opaque || command.hides.is_some() || !command.assignments.is_empty() {
        return false;
    }
    let Some((program, arguments)) = command.words.split_first() else {
        return false;
    };
    let name = match program.rsplit_once('/') {
        None => program.as_str(),
        Some(("/bin" | "/usr/bin", name)) => name,
        Some(_) => return false,
    };
    program_only_reads(name, &ProgramArguments(arguments))
}

/// Builtins and programs that affect only the shell itself and its output.
const ONLY_THE_SHELL: [&str; 14] = [
    ":", "true", "false", "cd", "pwd", "exit", "return", "break", "continue", "wait", "test", "[",
    "echo", "printf",
];

impl SimpleCommand {
    /// Whether it only steers the shell or prints: `cd x`, `true`, `echo done`. Such a command is harmless without a
    /// sandbox, so that a rule for `cargo test` need not mention the `cd` before it.
    pub fn only_steers(&self) -> bool {
        let by_the_shell = self
            .words
            .first()
            .is_some_and(|word| ONLY_THE_SHELL.contains(&word.as_str()));
        by_the_shell && self.within.is_empty() && only_reads(self)
    }
}

/// Whether the program only reads, with any arguments.
pub(crate) fn always_only_reads(name: &str) -> bool {
    matches!(
        name,
        "ls" | "cat"
            | "head"
            | "tail"
            | "wc"
            | "stat"
            | "du"
            | "df"
            | "pwd"
            | "echo"
            | "true"
            | "false"
            | "grep"
            | "egrep"
            | "fgrep"
            | "cut"
            | "tr"
            | "nl"
            | "tac"
            | "rev"
            | "fold"
            | "paste"
            | "join"
            | "comm"
            | "cmp"
            | "basename"
            | "dirname"
            | "realpath"
            | "readlink"
            | "uname"
            | "whoami"
            | "id"
            | "groups"
            | "nproc"
            | "arch"
            | "md5sum"
            | "sha1sum"
            | "sha224sum"
            | "sha256sum"
            | "sha384sum"
            | "sha512sum"
            | "b2sum"
            | "cksum"
            | "sum"
            | "od"
            | "strings"
            | "column"
            | "seq"
            | "sleep"
            | "which"
            | "hexdump"
            | "type"
            | "expr"
            | "tsort"
            | "factor"
            | "numfmt"
            | "expand"
            | "unexpand"
    )
}

fn program_only_reads(name: &str, arguments: &ProgramArguments<'_>) -> bool {
    match name {
        ":" | "cd" | "exit" | "return" | "break" | "continue" | "wait" | "test" | "[" => true,
        // `-v` sets a variable.
        "printf" => !arguments.has_short('v'),
        "command" => arguments.0.iter().any(|word| word == "-v" || word == "-V"),
        "file" => !arguments.has_any_short("Cz") && !arguments.has_long("compile"),
        "rg" => {
            !arguments.has_any_long(&["pre", "hostname-bin", "search-zip"])
                && !arguments.has_short('z')
        }
        "sort" => {
            !arguments.has_any_short("oT")
                && !arguments.has_any_long(&["output", "compress-program", "temporary-directory"])
        }
        "uniq" => arguments.operands_after(&["-f", "-s", "-w"]) <= 1,
        "diff" => {
            !arguments.has_long("output")
                && !arguments.has_short('l')
                && !arguments.has_long("paginate")
        }
        "date" => !arguments.has_long("set") && arguments.only_formats(),
        "hostname" => arguments
            .0
            .iter()
            .all(|word| matches!(word.as_str(), "-f" | "-s" | "-i" | "-I" | "-d")),
        "xxd" => {
            !arguments.has_short('r')
                && arguments.operands_after(&["-l", "-s", "-c", "-g", "-o", "-n", "-R"]) <= 1
        }
        "tree" => !arguments.has_any_short("oR"),
        "find" => !arguments.0.iter().any(|word| is_find_action(word)),
        "jq" => !arguments.has_short('i') && !arguments.has_long("in-place"),
        name => always_only_reads(name),
    }
}

fn is_find_action(word: &str) -> bool {
    ["-exec", "-ok", "-delete", "-fprint", "-fls"]
        .iter()
        .any(|action| word.starts_with(action))
}

/// A program's arguments. Options are searched in every word, also after `--`: a wrong match only costs a question.
struct ProgramArguments<'a>(&'a [String]);

impl ProgramArguments<'_> {
    fn has_short(&self, letter: char) -> bool {
        self.0
            .iter()
            .any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
    }

    fn has_any_short(&self, letters: &str) -> bool {
        letters.chars().any(|letter| self.has_short(letter))
    }

    /// Long options may be shortened, so any beginning of the name matches.
    fn has_long(&self, name: &str) -> bool {
        let options = self.0.iter().filter_map(|word| word.strip_prefix("--"));
        let mut names = options.map(|option| option.split('=').next().unwrap_or(option));
        names.any(|option| !option.is_empty() && name.starts_with(option))
    }

    fn has_any_long(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.has_long(name))
    }

    /// The number of operands if these options take the word after them.
    fn operands_after(&self, valued: &[&str]) -> usize {
        let mut count = 0;
        let mut words = self.0.iter();
        while let Some(word) = words.next() {
            if valued.contains(&word.as_str()) {
                words.next();
            } else if word == "-" || !word.starts_with('-') {
                count += 1;
            }
        }
        count
    }

    /// `date 0102030405` and `date -s` set the clock; an operand that only formats begins with `+`.
    fn only_formats(&self) -> bool {
        let mut words = self.0.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "-d" | "--date" | "-r" | "--reference" | "-f" | "--file" => {
                    words.next();
                }
                word if word.starts_with("--")
                    || word.starts_with("-I")
                    || word.starts_with('+') => {}
                word if word.starts_with('-') && !word.contains('s') => {}
                _ => return false,
            }
        }
        true
    }
}
