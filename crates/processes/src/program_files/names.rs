//! Finds the words of a command that name files it runs. Pure: no file is read here.

use std::path::{Path, PathBuf};

use toolpost_command::{Analysis, CommandDirectory, RedirectAccess, SimpleCommand};

use super::interpreter::{self, OperandKind, ScriptInterpreter};

/// The start of a command.
pub struct CommandStart<'a> {
    /// The working directory, absolute.
    pub directory: &'a Path,
    /// The search path of programs.
    pub search_path: &'a str,
}

/// Names that are tried in order until a file exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramLookup {
    /// Each with its text for messages and its path.
    pub(super) alternatives: Vec<(String, PathBuf)>,
    pub(super) if_absent: IfAbsent,
}

/// The treatment of a name without a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfAbsent {
    /// Listed as absent: creating the file would change the code that runs.
    Told,
    /// Not listed, because the word may have another meaning.
    LeftOut,
}

/// A possible working directory of a command: its text before a name in messages, and its path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RunDirectory {
    told: String,
    path: PathBuf,
}

impl RunDirectory {
    fn start(start: &CommandStart<'_>) -> Self {
        Self {
            told: String::new(),
            path: start.directory.to_owned(),
        }
    }

    fn enter(&self, target: &str) -> Self {
        Self {
            told: self.named(target),
            path: self.path.join(target),
        }
    }

    fn named(&self, name: &str) -> String {
        match self.told.is_empty() || name.starts_with('/') {
            true => name.to_owned(),
            false => format!("{}/{name}", self.told.trim_end_matches('/')),
        }
    }

    fn look_for<'n>(
        &self,
        names: impl IntoIterator<Item = &'n str>,
        if_absent: IfAbsent,
    ) -> ProgramLookup {
        let alternatives = names
            .into_iter()
            .map(|name| (self.named(name), self.path.join(name)));
        ProgramLookup {
            alternatives: alternatives.collect(),
            if_absent,
        }
    }
}

/// The words of a command that name files it runs.
#[derive(Default)]
struct NamedFiles<'w> {
    /// Files that are run in any case.
    files: Vec<String>,
    /// Files that it runs if nothing else is named, in its order.
    implied: &'static [&'static str],
    /// Directories that it enters before, one after the other.
    directories: Vec<&'w str>,
    /// Whether it runs its standard input.
    reads_input: bool,
}

/// The files that the commands of a text name.
pub(super) fn in_text(analysis: &Analysis, start: &CommandStart<'_>) -> Vec<ProgramLookup> {
    let visited = visited(analysis, start);
    let mut lookups = Vec::new();
    let mut reads_input = false;
    let is_certain = !analysis.commands.iter().any(moves_unseen);
    for command in &analysis.commands {
        let search_path = search_path(command).unwrap_or(start.search_path);
        let directory = if is_certain {
            &command.directory
        } else {
            &CommandDirectory::Unknown
        };
        for place in places(directory, start, &visited) {
            reads_input |= look_at(&command.words, search_path, &place, &mut lookups);
        }
    }
    if reads_input {
        lookups.extend(input_files(analysis, start, &visited));
    }
    lookups
}

/// Whether commands of the text may run in another directory than the analysis shows. `pushd` does not count as `cd`
/// there, and `CDPATH` redirects a `cd`.
fn moves_unseen(command: &SimpleCommand) -> bool {
    let program = command.words.first().map(String::as_str);
    matches!(program, Some("pushd" | "popd"))
        || command
            .assignments
            .iter()
            .any(|assignment| assignment.name == "CDPATH")
        || command
            .words
            .iter()
            .any(|word| word == "-execdir" || word == "-okdir")
}

/// A `PATH` that is set for one command.
fn search_path(command: &SimpleCommand) -> Option<&str> {
    let set = command
        .assignments
        .iter()
        .rev()
        .find(|assignment| assignment.name == "PATH");
    set.and_then(|assignment| assignment.value.as_deref())
}

/// The directories that `cd`s of the text may enter. If the way is not certain, a later command may run in any of them:
/// `cd sub; ./run.sh` runs in `sub`, unless `sub` cannot be entered.
fn visited(analysis: &Analysis, start: &CommandStart<'_>) -> Vec<RunDirectory> {
    let mut visited = vec![RunDirectory::start(start)];
    for command in &analysis.commands {
        let [program, .., target] = command.words.as_slice() else {
            continue;
        };
        if !matches!(program.as_str(), "cd" | "pushd") || target.starts_with('-') {
            continue;
        }
        let from = match &command.directory {
            CommandDirectory::Unknown => visited.clone(),
            CommandDirectory::Start | CommandDirectory::Beneath(_) => {
                places(&command.directory, start, &[])
            }
        };
        for place in from.iter().map(|place| place.enter(target)) {
            if !visited.contains(&place) && visited.len() < MOST_PLACES {
                visited.push(place);
            }
        }
    }
    visited
}

/// The most directories that are tried for a command with an uncertain directory.
const MOST_PLACES: usize = 8;

fn places(
    directory: &CommandDirectory,
    start: &CommandStart<'_>,
    visited: &[RunDirectory],
) -> Vec<RunDirectory> {
    match directory {
        CommandDirectory::Start => vec![RunDirectory::start(start)],
        CommandDirectory::Beneath(target) => vec![RunDirectory::start(start).enter(target)],
        CommandDirectory::Unknown => visited.to_vec(),
    }
}

/// Adds the files of a command. Returns whether it runs its standard input.
fn look_at(
    words: &[String],
    search_path: &str,
    place: &RunDirectory,
    lookups: &mut Vec<ProgramLookup>,
) -> bool {
    let Some((program, rest)) = words.split_first() else {
        return false;
    };
    if program.contains('/') {
        lookups.push(place.look_for([program.as_str()], IfAbsent::Told));
    } else {
        let found: Vec<String> = search_path
            .split(':')
            .map(|entry| beneath(entry, program))
            .collect();
        lookups.push(place.look_for(found.iter().map(String::as_str), IfAbsent::Told));
    }
    let Some(interpreter) = interpreter::of(program) else {
        return false;
    };
    let named = named(interpreter, rest);
    let place = named
        .directories
        .iter()
        .fold(place.clone(), |place, directory| place.enter(directory));
    lookups.extend(
        named
            .files
            .iter()
            .map(|file| place.look_for([file.as_str()], IfAbsent::Told)),
    );
    if !named.implied.is_empty() {
        lookups.push(place.look_for(named.implied.iter().copied(), IfAbsent::Told));
    }
    // Interpreters have many options, and a word that was misread would hide the script. So every later word that is a
    // file counts, too; the worst result is a question more after a file has changed.
    let words = rest.iter().flat_map(|word| possible_files(word));
    lookups.extend(words.map(|word| place.look_for([word], IfAbsent::LeftOut)));
    named.reads_input
}

/// The parts of a word after an interpreter that may be a file: the word itself, the value attached to a short option,
/// and the text after a `=`.
fn possible_files(word: &str) -> impl Iterator<Item = &str> {
    let attached = word
        .strip_prefix('-')
        .and_then(|letters| letters.get(1..))
        .filter(|rest| !rest.is_empty());
    let behind = word
        .split_once('=')
        .map(|(_, value)| value)
        .filter(|value| !value.is_empty());
    let itself = (!word.is_empty() && !word.starts_with('-')).then_some(word);
    itself.into_iter().chain(attached).chain(behind)
}

/// A program in an entry of `PATH`. An empty entry means the working directory.
fn beneath(entry: &str, program: &str) -> String {
    match entry {
        "" => format!("./{program}"),
        entry => format!("{}/{program}", entry.trim_end_matches('/')),
    }
}

/// The files on the standard input of an interpreter: redirected, or written by other commands of the text.
fn input_files(
    analysis: &Analysis,
    start: &CommandStart<'_>,
    visited: &[RunDirectory],
) -> Vec<ProgramLookup> {
    let redirected = analysis
        .redirects
        .iter()
        .filter(|redirect| redirect.access == RedirectAccess::Read);
    let redirected = redirected.filter_map(|redirect| {
        Some((
            redirect.target.as_deref()?,
            &redirect.directory,
            IfAbsent::Told,
        ))
    });
    let words = analysis.commands.iter().flat_map(|command| {
        let words = command
            .words
            .iter()
            .skip(1)
            .filter(|word| !word.starts_with('-'));
        words.map(|word| (word.as_str(), &command.directory, IfAbsent::LeftOut))
    });
    redirected
        .chain(words)
        .flat_map(|(name, directory, if_absent)| {
            let places = places(directory, start, visited);
            places
                .into_iter()
                .map(move |place| place.look_for([name], if_absent))
        })
        .collect()
}

/// Reads the words after an interpreter. A word after an unknown option may be its value or the script: it counts, and
/// so does the next one.
fn named<'w>(interpreter: &'static ScriptInterpreter, words: &'w [String]) -> NamedFiles<'w> {
    let mut named = NamedFiles {
        implied: interpreter.implied,
        ..NamedFiles::default()
    };
    let mut rest = words.iter().map(String::as_str).peekable();
    let mut after_option = false;
    while let Some(word) = rest.next() {
        if word == "--" {
            named.files.extend(
                rest.next()
                    .filter(|_| interpreter.takes != OperandKind::NoScript)
                    .map(str::to_owned),
            );
            return named;
        }
        if word.len() > 1 && word.starts_with(['-', '+']) {
            if interpreter
                .inline
                .iter()
                .any(|option| is_inline(option, word))
            {
                return NamedFiles {
                    implied: &[],
                    ..named
                };
            }
            if word == "-m" && interpreter.takes == OperandKind::ScriptOrModule {
                named
                    .files
                    .extend(rest.next().into_iter().flat_map(module_files));
                return named;
            }
            after_option = false;
            if let Some(value) = value_of(interpreter.files, word, &mut rest) {
                named.files.push(value.to_owned());
                named.implied = &[];
            } else if let Some(value) = value_of(interpreter.directories, word, &mut rest) {
                named.directories.push(value);
            } else if value_of(interpreter.values, word, &mut rest).is_none() {
                after_option = !word.contains('=');
            }
            continue;
        }
        if interpreter.takes == OperandKind::NoScript {
            continue;
        }
        if named.files.is_empty() && interpreter.subcommands.contains(&word) {
            continue;
        }
        if word == "-" {
            return NamedFiles {
                reads_input: true,
                ..named
            };
        }
        named.files.push(word.to_owned());
        if !after_option {
            return named;
        }
        after_option = false;
    }
    let takes_script = interpreter.takes != OperandKind::NoScript;
    NamedFiles {
        reads_input: takes_script && named.files.is_empty(),
        ..named
    }
}

/// The value of an option: in the next word, attached, or after `=`.
fn value_of<'w>(
    options: &[&str],
    word: &'w str,
    rest: &mut impl Iterator<Item = &'w str>,
) -> Option<&'w str> {
    for option in options {
        match word.strip_prefix(option) {
            Some("") => return rest.next(),
            Some(value) if value.starts_with('=') => return Some(&value[1..]),
            Some(value) if option.len() == 2 => return Some(value),
            Some(_) | None => {}
        }
    }
    None
}

/// `-c`, also as the last of several letters, or with the code attached.
fn is_inline(option: &str, word: &str) -> bool {
    let letter = option
        .strip_prefix('-')
        .filter(|letters| letters.len() == 1);
    let cluster = word
        .strip_prefix('-')
        .filter(|letters| !letters.starts_with('-'));
    match (letter, cluster) {
        (Some(letter), Some(cluster)) => cluster.ends_with(letter) || cluster.starts_with(letter),
        _ => {
            word == option
                || word
                    .strip_prefix(option)
                    .is_some_and(|value| value.starts_with('='))
        }
    }
}

/// The files that Python looks for when a module is in the working directory.
fn module_files(module: &str) -> [String; 2] {
    let path = module.replace('.', "/");
    [format!("{path}.py"), format!("{path}/__main__.py")]
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{CommandStart, IfAbsent, in_text};

    /// The names found in a text. Names that are left out if they do not exist end with `?`.
    fn names(text: &str) -> Vec<String> {
        let start = CommandStart {
            directory: Path::new("/w"),
            search_path: "/usr/bin",
        };
        let lookups = in_text(&toolpost_command::analyze(text), &start);
        let inside = lookups.iter().map(|lookup| {
            let names = lookup
                .alternatives
                .iter()
                .filter(|(_, path)| path.starts_with("/w"));
            let names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
            match lookup.if_absent {
                IfAbsent::Told => names.join("|"),
                IfAbsent::LeftOut => format!("{}?", names.join("|")),
            }
        });
        inside.filter(|names| !names.is_empty()).collect()
    }

    /// The names that a question lists even if they do not exist.
    fn told(text: &str) -> Vec<String> {
        names(text)
            .into_iter()
            .filter(|name| !name.ends_with('?'))
            .collect()
    }

    #[test]
    fn programs_and_scripts_are_found_where_they_are_named() {
        for (text, expected) in [
            ("ls -l src", &[][..]),
            ("./run.sh a.txt", &["./run.sh"]),
            ("target/debug/x", &["target/debug/x"]),
            ("sh run.sh data", &["run.sh"]),
            ("bash -eu run.sh data more", &["run.sh", "data"]),
            ("bash -o pipefail run.sh data", &["run.sh"]),
            ("bash --rcfile x.rc run.sh", &["x.rc", "run.sh"]),
            (". env.sh && source ./b.sh", &["env.sh", "./b.sh"]),
            (
                "timeout 5 nice python3.12 -W ignore tool.py in.csv",
                &["tool.py"],
            ),
            (
                "python3 -m pkg.tool x",
                &["pkg/tool.py", "pkg/tool/__main__.py"],
            ),
            ("python3 -c 'print(1)' x", &[]),
            ("python3 -Ic 'print(1)' x", &[]),
            (
                "node --require ./hook.js main.js x",
                &["./hook.js", "main.js"],
            ),
            (
                "node --import=./hook.mjs main.js",
                &["./hook.mjs", "main.js"],
            ),
            ("deno run -A main.ts x", &["main.ts", "x"]),
            ("perl -Ilib tool.pl", &["tool.pl"]),
            ("awk -f prog.awk data", &["prog.awk"]),
            ("awk '{print}' data", &[]),
            ("sed -n -f prog.sed x", &["prog.sed"]),
            ("make -j4 all", &["GNUmakefile|makefile|Makefile"]),
            (
                "make -C sub all",
                &["sub/GNUmakefile|sub/makefile|sub/Makefile"],
            ),
            ("make -f other.mk", &["other.mk"]),
            ("npm run build", &["package.json"]),
            ("java -jar app.jar", &["app.jar"]),
            ("xargs ./each.sh < list", &["./each.sh"]),
            ("find . -exec ./each.sh {} +", &["./each.sh"]),
            ("sh -c './inner.sh; sh b.sh'", &["./inner.sh", "b.sh"]),
            ("PATH=/w/bin:/usr/bin tool x", &["/w/bin/tool"]),
            ("PATH=bin tool x", &["bin/tool"]),
            ("sh run.sh $X", &["run.sh"]),
        ] {
            assert_eq!(told(text), expected, "{text}");
        }
    }

    #[test]
    fn a_word_behind_an_interpreter_counts_where_it_is_a_file() {
        for (text, file) in [
            ("perl -Iinclude x.pl", "x.pl?"),
            ("ruby -rbundle x.rb", "x.rb?"),
            ("sed -nf x.sed data", "x.sed?"),
            ("sh -s arg < x.sh", "arg?"),
            ("gawk --exec=x.awk data", "x.awk?"),
            ("bash --init-file=x.rc", "x.rc?"),
            ("python3 -Bsm pkg data.csv", "data.csv?"),
        ] {
            assert!(
                names(text).contains(&file.to_owned()),
                "{text}: {:?}",
                names(text)
            );
        }
        assert!(names("ls -l src").is_empty(), "only behind interpreters");
    }

    #[test]
    fn names_are_looked_up_where_the_command_runs() {
        for (text, expected) in [
            ("cd sub && ./run.sh", &["sub/./run.sh"][..]),
            ("cd sub; ./run.sh", &["./run.sh", "sub/./run.sh"]),
            ("cd /w/a && sh b.sh", &["/w/a/b.sh"]),
            ("(cd sub && sh a.sh); sh b.sh", &["sub/a.sh", "b.sh"]),
            ("env -C sub sh a.sh", &["sub/a.sh"]),
            (
                "make -C a -C b",
                &["a/b/GNUmakefile|a/b/makefile|a/b/Makefile"],
            ),
            ("pushd a && ./x.sh", &["./x.sh", "a/./x.sh"]),
            ("CDPATH=a cd b && ./x.sh", &["./x.sh", "b/./x.sh"]),
            ("find a -execdir ./x.sh {} +", &["./x.sh"]),
        ] {
            assert_eq!(told(text), expected, "{text}");
        }
    }

    #[test]
    fn a_script_on_standard_input_is_looked_for_among_all_files_that_are_named() {
        assert_eq!(names("bash < run.sh"), ["run.sh"]);
        assert_eq!(names("cat a.sh b.sh | sh -x"), ["a.sh?", "b.sh?"]);
        assert_eq!(names("python3 - x < run.py"), ["x?", "run.py", "x?"]);
    }
}
