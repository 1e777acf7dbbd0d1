//! Reads a command's words with the table entries of its program.

use super::{
    CommandOptionMeaning, EmbeddedLanguage, HiddenStart, LaunchedCommand, LaunchedStart,
    LaunchedWrite, LaunchingProgram, OperandMeaning, ProgramLaunch, SettingMeaning, SettingTable,
    languages, name_fits,
};

/// Letters after one dash beyond this number are not read.
const MOST_LETTERS: usize = 32;

pub(super) fn read(entries: &[&'static LaunchingProgram], words: &[String]) -> ProgramLaunch {
    let mut reading = LaunchedProgramFinder {
        words,
        launch: ProgramLaunch::default(),
    };
    let general = entries.iter().find(|entry| entry.subcommands.is_empty());
    let subcommand = match general {
        Some(entry) => reading.entry(entry, 1),
        None => SubcommandPosition {
            at: reading.first_operand(1),
            is_sure: false,
        },
    };
    for entry in entries.iter().filter(|entry| !entry.subcommands.is_empty()) {
        if let Some(behind) = reading.behind_subcommand(entry, &subcommand) {
            reading.entry(entry, behind);
        }
    }
    reading.launch
}

struct LaunchedProgramFinder<'a> {
    words: &'a [String],
    launch: ProgramLaunch,
}

/// A possible position of the subcommand.
struct SubcommandPosition {
    at: usize,
    /// Whether all options before it are known. Otherwise the word may be the value of the option before it.
    is_sure: bool,
}

struct WrittenOption<'a> {
    meaning: CommandOptionMeaning,
    /// The table's spelling.
    name: &'static str,
    /// The value, if it is in the same word.
    value: Option<&'a str>,
}

impl<'a> LaunchedProgramFinder<'a> {
    fn first_operand(&self, from: usize) -> usize {
        let options = self
            .words
            .iter()
            .skip(from)
            .take_while(|word| word.starts_with('-'));
        from + options.count()
    }

    /// The index of the word after the entry's subcommand, if the words have it.
    fn behind_subcommand(
        &self,
        entry: &LaunchingProgram,
        subcommand: &SubcommandPosition,
    ) -> Option<usize> {
        let behind = |from: usize| {
            let first = self.words.get(from)?;
            entry
                .subcommands
                .iter()
                .filter(|written| written.starts_with(first))
                .find_map(|written| {
                    let mut at = from;
                    for (place, name) in written.split(' ').enumerate() {
                        at = if place == 0 {
                            at
                        } else {
                            self.first_operand(at)
                        };
                        self.words.get(at).filter(|word| *word == name)?;
                        at += 1;
                    }
                    Some(at)
                })
        };
        behind(subcommand.at).or_else(|| {
            if subcommand.is_sure {
                None
            } else {
                behind(subcommand.at + 1)
            }
        })
    }

    /// Reads the words from this index on as the entry describes.
    fn entry(&mut self, entry: &'static LaunchingProgram, from: usize) -> SubcommandPosition {
        let mut state = LaunchReaderState {
            operands: Vec::new(),
            is_sure: true,
            has_code: false,
            is_over: false,
        };
        let mut at = from;
        while let Some(word) = self.words.get(at).filter(|_| !state.is_over) {
            if word == "--" {
                state.operands.extend(at + 1..self.words.len());
                self.behind_dashes(entry, at + 1);
                break;
            }
            let is_option = word.len() > 1 && (word.starts_with('-') || entry.has_plus(word));
            if is_option {
                at = self.option(entry, at, &mut state);
            } else if entry.is_complete(state.operands.len()) {
                break;
            } else {
                if !matches!(entry.operands, OperandMeaning::Ignored) {
                    state.operands.push(at);
                }
                at += 1;
                if entry.has_file_first() {
                    break;
                }
            }
        }
        // The command, the script or the subcommand begins here.
        if let Some(before) = entry.operands_before() {
            at = state.operands.get(before).copied().unwrap_or(at);
        }
        self.operands(entry, at, &state);
        SubcommandPosition {
            at,
            is_sure: state.is_sure,
        }
    }

    fn option(
        &mut self,
        entry: &'static LaunchingProgram,
        at: usize,
        state: &mut LaunchReaderState,
    ) -> usize {
        let word = &self.words[at];
        let mut next = at + 1;
        if let Some(option) = entry.whole_option(word) {
            return self.apply(entry, &option, at, state);
        }
        if word.starts_with("--") || word.starts_with('+') {
            state.is_sure &= word.contains('=');
            return next;
        }
        for (count, (place, letter)) in word.char_indices().skip(1).enumerate() {
            if count == MOST_LETTERS {
                self.hide(at, entry.reason);
                break;
            }
            let rest = &word[place + letter.len_utf8()..];
            let value = (!rest.is_empty()).then_some(rest);
            let Some((meaning, name)) = entry.letter(letter) else {
                state.is_sure = false;
                continue;
            };
            let option = WrittenOption {
                meaning,
                name,
                value,
            };
            next = next.max(self.apply(entry, &option, at, state));
            if !matches!(
                meaning,
                CommandOptionMeaning::Flag | CommandOptionMeaning::HidesAlone
            ) {
                break;
            }
        }
        next
    }

    /// Notes the commands that an option starts. Returns the index after it and its value.
    fn apply(
        &mut self,
        entry: &'static LaunchingProgram,
        option: &WrittenOption<'a>,
        at: usize,
        state: &mut LaunchReaderState,
    ) -> usize {
        let (through, value) = match option.value {
            Some(value) => (at, Some(value)),
            None => (at + 1, self.words.get(at + 1).map(String::as_str)),
        };
        let label = || format!("{} {}", entry.label(self.words), option.name);
        match option.meaning {
            CommandOptionMeaning::Flag | CommandOptionMeaning::Attached => return at + 1,
            CommandOptionMeaning::Ends => {
                state.is_over = true;
                return at + 1;
            }
            CommandOptionMeaning::HidesAlone => {
                self.hide(at, entry.reason);
                return at + 1;
            }
            CommandOptionMeaning::AttachedScript => {
                if let Some(value) = option.value {
                    self.script(label(), at, value);
                }
                return at + 1;
            }
            CommandOptionMeaning::HidesAttached => {
                if option.value.is_some() {
                    self.hide(at, entry.reason);
                }
                return at + 1;
            }
            CommandOptionMeaning::Command => {
                return self.command_to_semicolon(label(), option.value, at + 1);
            }
            CommandOptionMeaning::Value => {}
            CommandOptionMeaning::Script => {
                if let Some(value) = value {
                    self.script(label(), through, value);
                }
            }
            CommandOptionMeaning::CommaCommand => {
                let words: Vec<String> = value
                    .unwrap_or_default()
                    .split(',')
                    .map(str::to_owned)
                    .collect();
                self.start(label(), through, LaunchedCommand::Words(words, true));
            }
            CommandOptionMeaning::Writes => self.launch.writes.extend(
                value
                    .filter(|path| {
                        !matches!(*path, "-" | "/dev/null" | "/dev/stdout" | "/dev/stderr")
                    })
                    .map(|path| LaunchedWrite {
                        path: path.to_owned(),
                        through,
                    }),
            ),
            CommandOptionMeaning::Hides => {
                state.has_code = true;
                self.hide(through, entry.reason);
            }
            CommandOptionMeaning::HidesIf(texts) => {
                if value.is_some_and(|value| texts.iter().any(|text| value.contains(text))) {
                    self.hide(through, entry.reason);
                }
            }
            CommandOptionMeaning::Setting(table) => {
                let (name, value) = split_setting(value.unwrap_or_default());
                self.setting(table, (name, value), (label(), through), entry.reason);
            }
            CommandOptionMeaning::Code(language) => {
                state.has_code = true;
                self.code(language, value.unwrap_or_default(), through, entry.reason);
            }
        }
        through + 1
    }

    fn operands(&mut self, entry: &'static LaunchingProgram, at: usize, state: &LaunchReaderState) {
        if state.is_over {
            return;
        }
        let first = state.operands.first().copied();
        let last = self.words.len() - 1;
        match entry.operands {
            OperandMeaning::Ignored
            | OperandMeaning::Subcommand
            | OperandMeaning::CommandBehindDashes => {}
            OperandMeaning::Command(_) if at > last => {}
            OperandMeaning::Command(_) => {
                if !state.is_sure {
                    self.hide(last, entry.reason);
                }
                let words = self.words[at..].to_vec();
                self.start(
                    entry.label(self.words),
                    last,
                    LaunchedCommand::Words(words, false),
                );
            }
            // Without a command the program starts a shell, which reads its input.
            OperandMeaning::Script(_) if at > last => self.hide(last, entry.reason),
            OperandMeaning::Script(_) => {
                if !state.is_sure {
                    self.hide(last, entry.reason);
                }
                self.script(entry.label(self.words), last, &self.words[at..].join(" "));
            }
            OperandMeaning::Scripts => {
                for at in &state.operands {
                    self.script(entry.label(self.words), *at, &self.words[*at]);
                }
            }
            OperandMeaning::ScriptFile => self.hide(first.unwrap_or(last), entry.reason),
            OperandMeaning::CodeFromInput => {
                if !state.has_code && first.is_none_or(|at| self.words[at] == "-") {
                    self.hide(last, "reads its code from its input");
                }
            }
            OperandMeaning::Code(language) => {
                if let Some(at) = first.filter(|_| !state.has_code) {
                    self.code(language, &self.words[at], at, entry.reason);
                }
            }
            OperandMeaning::Settings(table) => {
                for at in &state.operands {
                    if let Some(setting) = self.words[*at].split_once('=') {
                        self.setting(table, setting, (entry.label(self.words), *at), entry.reason);
                    }
                }
            }
            OperandMeaning::SettingPair(table) => {
                if let [name, value, ..] = state.operands.as_slice() {
                    let setting = (self.words[*name].as_str(), self.words[*value].as_str());
                    self.setting(
                        table,
                        setting,
                        (entry.label(self.words), *value),
                        entry.reason,
                    );
                }
            }
            OperandMeaning::OldOptions(letters) => {
                if first == Some(1) && self.words[1].contains(|letter| letters.contains(letter)) {
                    self.hide(last, entry.reason);
                }
            }
            OperandMeaning::HidesIf(texts) => {
                for at in &state.operands {
                    let operand = self.words[*at].to_ascii_lowercase();
                    if texts.iter().any(|text| operand.contains(text)) {
                        self.hide(*at, entry.reason);
                    }
                }
            }
            OperandMeaning::Hides => self.hide(last, entry.reason),
        }
    }

    fn behind_dashes(&mut self, entry: &'static LaunchingProgram, at: usize) {
        if matches!(entry.operands, OperandMeaning::CommandBehindDashes) && at < self.words.len() {
            let words = self.words[at..].to_vec();
            let last = self.words.len() - 1;
            self.start(
                entry.label(self.words),
                last,
                LaunchedCommand::Words(words, false),
            );
        }
    }

    /// A command after an option, which is run with the names of files.
    fn command_to_semicolon(
        &mut self,
        label: String,
        attached: Option<&str>,
        from: usize,
    ) -> usize {
        let behind = self.words.get(from..).unwrap_or_default();
        let length = behind
            .iter()
            .position(|word| word == ";")
            .unwrap_or(behind.len());
        let words = attached
            .into_iter()
            .chain(behind[..length].iter().map(String::as_str));
        let known: Vec<String> = words
            .take_while(|word| !word.contains('{'))
            .map(str::to_owned)
            .collect();
        if !known.is_empty() {
            self.start(
                label,
                from + length - 1,
                LaunchedCommand::Words(known, true),
            );
        }
        from + length + 1
    }

    fn setting(
        &mut self,
        table: &SettingTable,
        (name, value): (&str, &str),
        (label, through): (String, usize),
        reason: &'static str,
    ) {
        let known = table
            .known
            .iter()
            .find(|(pattern, _)| name_fits(pattern, name));
        match known.map_or(table.other, |(_, meaning)| *meaning) {
            SettingMeaning::Free => {}
            SettingMeaning::FreeUnlessExpanded if value.contains('$') => self.hide(through, reason),
            SettingMeaning::FreeUnlessExpanded => {}
            SettingMeaning::Script => self.script(label, through, value.trim_start_matches('!')),
            SettingMeaning::GitAlias => match value.strip_prefix('!') {
                Some(script) => self.script(label, through, script),
                None => self.script(label, through, &format!("git {value}")),
            },
            SettingMeaning::Hides => self.hide(through, reason),
        }
    }

    fn code(
        &mut self,
        language: EmbeddedLanguage,
        text: &str,
        through: usize,
        reason: &'static str,
    ) {
        match languages::read(language, text) {
            Some(written) => {
                self.launch.writes.extend(
                    written
                        .into_iter()
                        .map(|path| LaunchedWrite { path, through }),
                );
            }
            None => self.hide(through, reason),
        }
    }

    fn script(&mut self, label: String, through: usize, text: &str) {
        self.start(label, through, LaunchedCommand::Script(text.to_owned()));
    }

    fn start(&mut self, label: String, through: usize, what: LaunchedCommand) {
        self.launch.starts.push(LaunchedStart {
            label,
            through,
            what,
        });
    }

    fn hide(&mut self, through: usize, why: &'static str) {
        let before = self.launch.hidden.map_or(0, |hidden| hidden.through);
        let through = through.min(self.words.len() - 1).max(before);
        self.launch.hidden = Some(HiddenStart {
            through,
            by_variable: false,
            why,
        });
    }
}

struct LaunchReaderState {
    /// The indices of the operands.
    operands: Vec<usize>,
    /// Whether every option is known, so that no value is taken for an operand.
    is_sure: bool,
    /// An option gave the code, so the first operand is not code.
    has_code: bool,
    /// The remaining words do not matter.
    is_over: bool,
}

impl LaunchingProgram {
    /// How many operands come before the one that ends the program's own options.
    fn operands_before(&self) -> Option<usize> {
        match self.operands {
            OperandMeaning::Command(before) | OperandMeaning::Script(before) => Some(before),
            OperandMeaning::Subcommand => Some(0),
            OperandMeaning::Ignored
            | OperandMeaning::CommandBehindDashes
            | OperandMeaning::Scripts
            | OperandMeaning::ScriptFile
            | OperandMeaning::CodeFromInput
            | OperandMeaning::Code(_)
            | OperandMeaning::Settings(_)
            | OperandMeaning::SettingPair(_)
            | OperandMeaning::OldOptions(_)
            | OperandMeaning::HidesIf(_)
            | OperandMeaning::Hides => None,
        }
    }

    /// Whether, after this many operands, the next word ends the program's own options.
    fn is_complete(&self, operands: usize) -> bool {
        self.operands_before()
            .is_some_and(|before| operands >= before)
    }

    /// Whether the words after the first operand belong to the file that it names.
    fn has_file_first(&self) -> bool {
        matches!(
            self.operands,
            OperandMeaning::ScriptFile | OperandMeaning::CodeFromInput
        )
    }

    fn has_plus(&self, word: &str) -> bool {
        word.starts_with('+')
            && self
                .options
                .iter()
                .any(|(names, _)| names.split(' ').any(|name| name == "+"))
    }

    fn label(&self, words: &[String]) -> String {
        match self.subcommands.first().filter(|_| words.len() > 1) {
            Some(subcommand) => format!("{} {subcommand}", words[0]),
            None => words[0].clone(),
        }
    }

    fn names(&self) -> impl Iterator<Item = (&'static str, CommandOptionMeaning)> {
        self.options
            .iter()
            .flat_map(|(names, meaning)| names.split(' ').map(move |name| (name, *meaning)))
    }

    /// An option that is a whole word, with or without a value after `=`. Long options may be shortened.
    fn whole_option<'w>(&self, word: &'w str) -> Option<WrittenOption<'w>> {
        if let Some(value) = word.strip_prefix('+') {
            let (name, meaning) = self.names().find(|(name, _)| *name == "+")?;
            return Some(WrittenOption {
                meaning,
                name,
                value: Some(value),
            });
        }
        let (written, value) = match word.split_once('=') {
            Some((written, value)) => (written, Some(value)),
            None => (word, None),
        };
        // `-x=value` may also be the letter `x` with a value that begins with `=`.
        let is_letter = written.len() == 2 && value.is_some();
        let exact = self
            .names()
            .find(|(name, _)| *name == written && !is_letter);
        let shortened = || {
            let is_long = written.len() > 3 && written.starts_with("--");
            self.names()
                .find(|(name, _)| is_long && name.starts_with(written))
        };
        let (name, meaning) = exact.or_else(shortened)?;
        Some(WrittenOption {
            meaning,
            name,
            value,
        })
    }

    fn letter(&self, letter: char) -> Option<(CommandOptionMeaning, &'static str)> {
        let mut found = self
            .names()
            .filter(|(name, _)| name.len() == 1 + letter.len_utf8());
        found
            .find(|(name, _)| name.ends_with(letter))
            .map(|(name, meaning)| (meaning, name))
    }
}

/// A setting's name and value, separated by `=` or by blanks.
fn split_setting(text: &str) -> (&str, &str) {
    match text.split_once(['=', ' ', '\t']) {
        Some((name, value)) => (name.trim(), value.trim_start_matches(['=', ' ', '\t'])),
        None => (text, ""),
    }
}
