//! The parts of a call: its commands, paths and URLs, and the rest of the call.
//!
//! Each part is decided separately, and the strictest decision counts. A decision about the whole text would let
//! `ls && rm -rf x` pass under a rule for `ls`.

use std::collections::HashSet;

use serde_json::Value;
use toolpost_command::{
    Analysis, CommandDirectory, RedirectAccess, ShellRedirect, SimpleCommand, SpelledIn,
    analyze_with, command_text, shortened,
};
use toolpost_model::{
    ArgumentKind, ArgumentMeaning, EffectClass, ExecutionKind, ResourceAccess, ResourceKey,
    SandboxProfile,
};

use super::{
    PermissionFacts,
    places::{PathBaseFolders, PlainPath},
    url_pattern::PlannedUrlRequest,
};

/// The limit of paths or URLs that are examined one by one. The rest of the call is then opaque.
const MAX_PARTS: usize = 4096;
/// The longest URL that is parsed. Longer ones are opaque.
const URL_BYTES: usize = 64 * 1024;
/// The number of reasons for opacity that are kept.
const TOLD_REASONS: usize = 16;

/// One effect of a call.
#[derive(Debug)]
pub(super) struct PermissionPart {
    /// The effect class.
    pub(super) class: EffectClass,
    pub(super) subject: PartSubject,
    /// Why the part cannot be analysed, if it cannot.
    pub(super) opaque: Option<String>,
    /// Why the part starts commands that are not parts of the call, if it does.
    pub(super) hides: Option<String>,
    /// The command line that contains this part. A rule that allows the line allows the part.
    pub(super) spelled_in: Option<SpelledIn>,
}

/// The subject of a part.
#[derive(Debug)]
pub(super) enum PartSubject {
    Command(Box<SimpleCommand>),
    Path {
        path: PlainPath,
        access: ResourceAccess,
        /// Whether the shell opens the path for a command. The tool's own rules are then about the command, not the
        /// path.
        redirect: bool,
    },
    Request(Box<PlannedUrlRequest>),
    /// An argument of which only the kind is known, with its text for display.
    Unread(ArgumentKind, String),
    /// The rest of the call.
    Whole,
}

impl PermissionPart {
    fn of(class: EffectClass, subject: PartSubject) -> Self {
        Self {
            class,
            subject,
            opaque: None,
            hides: None,
            spelled_in: None,
        }
    }

    /// A change of the file with this key. `None` if the key is not a path.
    pub(super) fn of_change(key: &ResourceKey) -> Option<Self> {
        let path = PlainPath::of(key.as_str().strip_prefix("path:")?)?;
        let subject = PartSubject::Path {
            path,
            access: ResourceAccess::Write,
            redirect: false,
        };
        Some(Self::of(EffectClass::Write, subject))
    }

    /// The part in a few words. `None` for the whole call.
    pub(super) fn text(&self) -> Option<String> {
        match &self.subject {
            PartSubject::Command(command) => Some(command.text.clone()),
            PartSubject::Path {
                path,
                access: ResourceAccess::Read,
                ..
            } => Some(format!("read {}", path.as_str())),
            PartSubject::Path {
                path,
                access: ResourceAccess::Write,
                ..
            } => Some(format!("write {}", path.as_str())),
            PartSubject::Request(request) => Some(request.to_string()),
            PartSubject::Unread(_, shown) => Some(shown.clone()),
            PartSubject::Whole => None,
        }
    }
}

/// The parts of a call.
#[derive(Debug, Default)]
pub(super) struct PermissionParts {
    pub(super) all: Vec<PermissionPart>,
    /// The commands that the call would run, in order.
    pub(super) commands: Vec<String>,
    /// The reasons why parts cannot be analysed.
    pub(super) opaque: Vec<String>,
}

impl PermissionParts {
    pub(super) fn of(facts: &PermissionFacts<'_>, places: &PathBaseFolders) -> Self {
        let Some(input) = facts.input else {
            let whole = PermissionPart::of(facts.effects.class, PartSubject::Whole);
            return Self {
                all: vec![whole],
                ..Self::default()
            };
        };
        let mut gathering = PermissionPartCollector {
            facts,
            places,
            arguments: input.arguments().value(),
            directory: None,
            environment: Vec::new(),
            starts_programs: false,
            parts: Self::default(),
        };
        gathering.gather();
        gathering.parts
    }
}

struct PermissionPartCollector<'a> {
    facts: &'a PermissionFacts<'a>,
    places: &'a PathBaseFolders,
    arguments: &'a Value,
    /// The base of relative paths in arguments. `Err` if it cannot be known.
    directory: Option<Result<PlainPath, String>>,
    /// The environment variables of all commands.
    environment: Vec<(&'a str, &'a str)>,
    /// Whether the current command runs without a shell.
    starts_programs: bool,
    parts: PermissionParts,
}

impl<'a> PermissionPartCollector<'a> {
    fn gather(&mut self) {
        self.directory = self.find_directory();
        self.used_paths();
        let meanings = &self.facts.declaration.interface.permission.arguments;
        // The environment first, because the analysis of commands uses the variables, wherever they are among the
        // arguments.
        for meaning in meanings
            .iter()
            .filter(|meaning| meaning.kind == ArgumentKind::Environment)
        {
            self.find_environment(&meaning.pointer);
        }
        for meaning in meanings {
            self.argument(meaning);
        }
        if !self.is_everything() {
            self.push(self.facts.effects.class, PartSubject::Whole, None);
        }
    }

    /// Whether the parts cover all known effects of the call.
    fn is_everything(&self) -> bool {
        let parts = &self.parts.all;
        let has = |wanted: fn(&PartSubject) -> bool| parts.iter().any(|part| wanted(&part.subject));
        let meanings = &self.facts.declaration.interface.permission.arguments;
        let takes = |kind: ArgumentKind| meanings.iter().any(|meaning| meaning.kind == kind);
        let reads = |subject: &PartSubject| matches!(subject, PartSubject::Path { .. });
        let writes = |subject: &PartSubject| {
            matches!(
                subject,
                PartSubject::Path {
                    access: ResourceAccess::Write,
                    ..
                }
            )
        };
        let effects = self.facts.effects;
        if takes(ArgumentKind::Command) || takes(ArgumentKind::Words) {
            return has(|subject| {
                matches!(
                    subject,
                    PartSubject::Command(_) | PartSubject::Unread(ArgumentKind::Command, _)
                )
            });
        }
        match effects.class {
            EffectClass::Read => !effects.open_world && has(reads),
            EffectClass::Write => !effects.open_world && has(writes),
            EffectClass::Network => has(|subject| matches!(subject, PartSubject::Request(_))),
            EffectClass::Execute | EffectClass::Unknown => false,
        }
    }

    fn push(&mut self, class: EffectClass, subject: PartSubject, opaque: Option<String>) {
        if let Some(why) = &opaque
            && self.parts.opaque.len() < TOLD_REASONS
            && !self.parts.opaque.contains(why)
        {
            self.parts.opaque.push(why.clone());
        }
        self.parts.all.push(PermissionPart {
            opaque,
            ..PermissionPart::of(class, subject)
        });
    }

    /// Adds the paths of the tool's own effects. They are resolved, and as reliable as the origin of the effects.
    fn used_paths(&mut self) {
        let uses = &self.facts.effects.uses;
        let paths = uses
            .iter()
            .filter_map(|one| Some((one.key.as_str().strip_prefix("path:")?, one.access)));
        let mut read = Vec::new();
        let mut above = HashSet::new();
        for (seen, (path, access)) in paths.enumerate() {
            if seen >= MAX_PARTS {
                self.too_many(kind_of(access));
                break;
            }
            match PlainPath::of(if path.is_empty() { "/" } else { path }) {
                Some(path) => {
                    if access == ResourceAccess::Write {
                        above.extend(path.and_above().skip(1).map(str::to_owned));
                    }
                    read.push((path, access));
                }
                None => self.unread(kind_of(access), path, "is not absolute"),
            }
        }
        for (path, access) in read {
            // Folders that are created on the way to a file are left out: a rule that denies the folder denies the
            // file, and a rule that allows the file allows its folders.
            if access == ResourceAccess::Read || !above.contains(path.as_str()) {
                self.path(path, access, false);
            }
        }
    }

    fn path(&mut self, path: PlainPath, access: ResourceAccess, redirect: bool) {
        let known = |part: &PermissionPart| {
            matches!(&part.subject, PartSubject::Path { path: other, access: how, .. }
                if *other == path && *how == access && part.spelled_in.is_none())
        };
        // Most calls have few parts. With many, evaluating a duplicate costs less than searching for it.
        if self.parts.all.len() <= 64 && self.parts.all.iter().any(known) {
            return;
        }
        let class = match access {
            ResourceAccess::Read => EffectClass::Read,
            ResourceAccess::Write => self.class_of_write(self.places.hold(&path)),
        };
        self.push(
            class,
            PartSubject::Path {
                path,
                access,
                redirect,
            },
            None,
        );
    }

    /// The class of a write. Outside of the workspace it is the class of the call, because a file there is not one that
    /// an allow for workspace edits is about.
    fn class_of_write(&self, inside: bool) -> EffectClass {
        match self.facts.effects.class {
            EffectClass::Read | EffectClass::Write => EffectClass::Write,
            EffectClass::Network | EffectClass::Execute | EffectClass::Unknown if inside => {
                EffectClass::Write
            }
            class @ (EffectClass::Network | EffectClass::Execute | EffectClass::Unknown) => class,
        }
    }

    fn unread(&mut self, kind: ArgumentKind, given: &str, why: &str) {
        let shown = shortened(given);
        let class = match kind {
            ArgumentKind::ReadPath => EffectClass::Read,
            ArgumentKind::WritePath => self.class_of_write(false),
            ArgumentKind::Url | ArgumentKind::Method => EffectClass::Network,
            ArgumentKind::Command
            | ArgumentKind::Words
            | ArgumentKind::Directory
            | ArgumentKind::Environment => self.class_of_commands(),
        };
        let why = format!("`{shown}` {why}");
        self.push(class, PartSubject::Unread(kind, shown), Some(why));
    }

    fn too_many(&mut self, kind: ArgumentKind) {
        self.unread(
            kind,
            "…",
            &format!("has more than {MAX_PARTS} parts, which is the limit"),
        );
    }

    /// Adds the variables of an argument: an object of names and values, or an array of `NAME=value`.
    fn find_environment(&mut self, pointer: &str) {
        let arguments: &'a Value = self.arguments;
        let Some(value) = arguments.pointer(pointer) else {
            return;
        };
        let read = |element: &'a Value| element.as_str().and_then(|text| text.split_once('='));
        let found: Option<Vec<(&'a str, &'a str)>> = match value {
            Value::Null => return,
            Value::Object(fields) => fields
                .iter()
                .map(|(name, value)| Some((name.as_str(), value.as_str()?)))
                .collect(),
            Value::Array(elements) => elements.iter().map(read).collect(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        };
        match found {
            Some(variables) => self.environment.extend(variables),
            None => self.unread(
                ArgumentKind::Environment,
                pointer,
                "does not hold variables with texts as values",
            ),
        }
    }

    fn argument(&mut self, meaning: &ArgumentMeaning) {
        if meaning.kind == ArgumentKind::Environment {
            return;
        }
        let Some(value) = self.arguments.pointer(&meaning.pointer) else {
            return;
        };
        if let (ArgumentKind::Words, Value::Array(words)) = (meaning.kind, value) {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            return match words {
                Some(words) => {
                    self.starts_programs = true;
                    self.command(&command_text(&words));
                    self.starts_programs = false;
                }
                None => self.unread(
                    ArgumentKind::Command,
                    &meaning.pointer,
                    "does not hold only texts",
                ),
            };
        }
        let one = std::slice::from_ref(value);
        let elements = value.as_array().map_or(one, Vec::as_slice);
        for (seen, element) in elements.iter().enumerate() {
            if seen >= MAX_PARTS {
                self.too_many(meaning.kind);
                return;
            }
            match element {
                Value::Null => {}
                Value::String(text) => self.text(meaning.kind, text),
                Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    self.unread(meaning.kind, &meaning.pointer, "does not hold a text");
                }
            }
        }
    }

    fn text(&mut self, kind: ArgumentKind, text: &str) {
        match kind {
            ArgumentKind::Command | ArgumentKind::Words => self.command(text),
            ArgumentKind::ReadPath => self.path_argument(text, ResourceAccess::Read),
            ArgumentKind::WritePath => self.path_argument(text, ResourceAccess::Write),
            ArgumentKind::Url => self.url(text),
            // These kinds are examined together with the commands, paths and URLs that they belong to.
            ArgumentKind::Directory | ArgumentKind::Environment | ArgumentKind::Method => {}
        }
    }

    fn path_argument(&mut self, text: &str, access: ResourceAccess) {
        let base = match &self.directory {
            Some(Err(why)) if !text.starts_with('/') => {
                let why = why.clone();
                return self.unread(kind_of(access), text, &why);
            }
            Some(Ok(base)) => Some(base.clone()),
            Some(Err(_)) | None => None,
        };
        match self.places.resolve(text, base.as_ref()) {
            Ok(readings) => readings
                .into_iter()
                .for_each(|path| self.path(path, access, false)),
            Err(unclear) => self.unread(kind_of(access), text, unclear.explain()),
        }
    }

    /// The base of relative paths and commands.
    fn find_directory(&self) -> Option<Result<PlainPath, String>> {
        let meanings = &self.facts.declaration.interface.permission.arguments;
        let meaning = meanings
            .iter()
            .find(|meaning| meaning.kind == ArgumentKind::Directory)?;
        match self.arguments.pointer(&meaning.pointer)? {
            Value::Null => None,
            Value::String(text) => Some(match self.places.resolve(text, None).as_deref() {
                Ok([only]) => Ok(only.clone()),
                Ok(_) | Err(_) => Err(format!(
                    "starts in `{}`, which is not a known folder",
                    shortened(text)
                )),
            }),
            _ => Some(Err("starts in a folder that is not known".to_owned())),
        }
    }

    fn command(&mut self, text: &str) {
        let environment = self.environment.iter().copied();
        let Analysis {
            commands,
            redirects,
            opaque,
            ..
        } = analyze_with(text, environment);
        let class = self.class_of_commands();
        let first = self.parts.all.len();
        self.parts
            .commands
            .extend(commands.iter().map(|command| command.text.clone()));
        for command in commands {
            self.found_command(command, first, opaque.is_empty());
        }
        for redirect in redirects {
            self.redirect(redirect, first);
        }
        for piece in opaque {
            let why = format!("`{}` {}", piece.text, piece.reason);
            self.push(
                class,
                PartSubject::Unread(ArgumentKind::Command, piece.text),
                Some(why),
            );
        }
    }

    /// Adds a command of a text. `first` is the index of the text's first part. `tells` is false if opaque pieces of
    /// the text already give more exact reasons.
    fn found_command(&mut self, command: SimpleCommand, first: usize, tells: bool) {
        // Without a shell, `echo` is an ordinary program.
        let only_steers = command.only_steers() && !self.starts_programs;
        let class = if only_steers {
            EffectClass::Read
        } else {
            self.class_of_commands()
        };
        let spelled_in = command.spelled_in.map(|line| SpelledIn {
            command: first + line.command,
            ..line
        });
        // For a piece of a line, the line's own reason already covers its unknown words.
        let is_unclear = command.opaque && spelled_in.is_none();
        let opaque = is_unclear
            .then(|| format!("`{}` is known only when it runs", shortened(&command.text)));
        let hides = command
            .hides
            .map(|hidden| format!("`{}` {}", shortened(&command.text), hidden.why));
        let subject = PartSubject::Command(Box::new(command));
        if tells {
            self.push(class, subject, opaque);
        } else {
            self.parts.all.push(PermissionPart {
                opaque,
                ..PermissionPart::of(class, subject)
            });
        }
        if let Some(part) = self.parts.all.last_mut() {
            (part.hides, part.spelled_in) = (hides, spelled_in);
        }
    }

    fn redirect(&mut self, redirect: ShellRedirect, first: usize) {
        let access = match redirect.access {
            RedirectAccess::Read => ResourceAccess::Read,
            RedirectAccess::Write => ResourceAccess::Write,
        };
        // A redirect without a target is among the opaque pieces.
        let Some(target) = redirect.target else {
            return;
        };
        let before = self.parts.all.len();
        match self.redirected(&target, &redirect.directory) {
            Ok(path) => self.path(path, access, true),
            Err(why) => self.unread(kind_of(access), &target, &why),
        }
        if let Some(part) = self.parts.all.get_mut(before) {
            part.spelled_in = redirect.spelled_in.map(|line| SpelledIn {
                command: first + line.command,
                ..line
            });
        }
    }

    fn redirected(&self, target: &str, directory: &CommandDirectory) -> Result<PlainPath, String> {
        if let Some(path) = PlainPath::of(target) {
            return Ok(path);
        }
        let unknown = || "is in a folder that is known only when it runs".to_owned();
        let started = match &self.directory {
            Some(Ok(base)) => Some(base.clone()),
            Some(Err(why)) => return Err(why.clone()),
            None => self
                .places
                .workspace
                .as_deref()
                .and_then(PlainPath::of_path),
        };
        let entered = match directory {
            CommandDirectory::Start => "",
            CommandDirectory::Beneath(path) if path.starts_with('/') => {
                return PlainPath::of(&format!("{path}/{target}")).ok_or_else(unknown);
            }
            CommandDirectory::Beneath(path) => path,
            CommandDirectory::Unknown => return Err(unknown()),
        };
        let started = started.ok_or_else(unknown)?;
        PlainPath::of(&format!("{}/{entered}/{target}", started.as_str())).ok_or_else(unknown)
    }

    /// The class of commands: `execute`, unless the host confines them to reading.
    fn class_of_commands(&self) -> EffectClass {
        let effects = self.facts.effects;
        let only_reads = effects.class == EffectClass::Read
            && effects.confined == Some(SandboxProfile::ReadOnly);
        if only_reads {
            EffectClass::Read
        } else {
            EffectClass::Execute
        }
    }

    fn url(&mut self, text: &str) {
        let method = match self.method() {
            Ok(method) => method,
            Err(why) => return self.unread(ArgumentKind::Url, text, why),
        };
        let request = (text.len() <= URL_BYTES)
            .then(|| PlannedUrlRequest::parse(text, method))
            .flatten();
        let Some(request) = request else {
            return self.unread(ArgumentKind::Url, text, "cannot be read as a URL");
        };
        if let Some(file) = request.file().map(str::to_owned) {
            self.path_argument(&file, ResourceAccess::Read);
        }
        self.push(
            EffectClass::Network,
            PartSubject::Request(Box::new(request)),
            None,
        );
    }

    /// The method of the call's requests: the argument, the default of the schema, or `GET` for an idempotent call.
    fn method(&self) -> Result<Option<String>, &'static str> {
        let declaration = self.facts.declaration;
        let meanings = &declaration.interface.permission.arguments;
        let pointer = meanings
            .iter()
            .find(|one| one.kind == ArgumentKind::Method)
            .map(|one| &one.pointer);
        let given = pointer.and_then(|pointer| self.arguments.pointer(pointer));
        let by_default = || {
            let name = pointer?.strip_prefix('/')?;
            declaration
                .input
                .schema
                .pointer(&format!("/properties/{name}/default"))?
                .as_str()
        };
        match given {
            Some(Value::String(method)) => Ok(Some(method.clone())),
            None | Some(Value::Null) => {
                let get = self.facts.effects.idempotent.then_some("GET");
                Ok(by_default().or(get).map(str::to_owned))
            }
            Some(_) => Err("has a method that is not a text"),
        }
    }
}

/// Whether a call starts processes that no sandbox keeps from denied paths.
pub(super) fn runs_unconfined(facts: &PermissionFacts<'_>) -> bool {
    let kind = facts.declaration.interface.execution.kind;
    let runs = match facts.effects.class {
        EffectClass::Execute => true,
        EffectClass::Unknown => matches!(kind, ExecutionKind::LocalProcess | ExecutionKind::Shell),
        EffectClass::Read | EffectClass::Write | EffectClass::Network => false,
    };
    runs && matches!(facts.effects.confined, None | Some(SandboxProfile::None))
}

fn kind_of(access: ResourceAccess) -> ArgumentKind {
    match access {
        ResourceAccess::Read => ArgumentKind::ReadPath,
        ResourceAccess::Write => ArgumentKind::WritePath,
    }
}
