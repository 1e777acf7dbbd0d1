//! The text between the brackets of a rule. The rule does not state whether it is about commands, paths or requests;
//! the argument decides that. So the text is parsed in all three ways.

use toolpost_command::{CommandPattern, CommandPatternError, SimpleCommand};
use toolpost_model::{Behavior, ResourceAccess};

use super::{
    path_pattern::{PathPattern, PathPatternError},
    places::{PathBaseFolders, PlainPath},
    url_pattern::{PlannedUrlRequest, UrlPattern, UrlPatternError},
};

/// Why a text is no valid pattern.
#[derive(Debug, thiserror::Error)]
pub(super) enum MatcherError {
    #[error(transparent)]
    Command(#[from] CommandPatternError),
    #[error(transparent)]
    Path(#[from] PathPatternError),
    #[error(transparent)]
    Url(#[from] UrlPatternError),
}

/// The pattern of a rule.
#[derive(Clone, Debug)]
pub(super) enum Matcher {
    /// `*`, which matches everything.
    Anything,
    /// A text, parsed as commands, as paths and as requests.
    Text(Box<PatternReadings>),
}

/// The parsed forms of a text. A form is missing if the text is invalid in it.
#[derive(Clone, Debug, Default)]
pub(super) struct PatternReadings {
    pub(super) command: Option<CommandPattern>,
    pub(super) path: Option<PathPattern>,
    pub(super) url: Option<UrlPattern>,
}

impl Matcher {
    /// Parses a tool's pattern, which must be valid in at least one form.
    pub(super) fn parse(text: &str, places: &PathBaseFolders) -> Result<Self, MatcherError> {
        if matches!(text.trim(), "*" | "**") {
            return Ok(Self::Anything);
        }
        let command = text.parse::<CommandPattern>();
        let path = PathPattern::parse(text, places);
        let url = UrlPattern::parse(text).ok();
        match (command, path, url) {
            (Err(error), Err(_), None) => Err(error.into()),
            (command, path, url) => Ok(Self::Text(Box::new(PatternReadings {
                command: command.ok(),
                path: path.ok(),
                url,
            }))),
        }
    }

    /// The matcher of `fs.read` and `fs.write`.
    pub(super) fn of_paths(text: &str, places: &PathBaseFolders) -> Result<Self, MatcherError> {
        let path = PathPattern::parse(text, places)?;
        Ok(Self::Text(Box::new(PatternReadings {
            path: Some(path),
            ..PatternReadings::default()
        })))
    }

    /// The matcher of `net`.
    pub(super) fn of_requests(text: &str) -> Result<Self, MatcherError> {
        let url = UrlPattern::parse(text)?;
        Ok(Self::Text(Box::new(PatternReadings {
            url: Some(url),
            ..PatternReadings::default()
        })))
    }

    /// Whether a rule with this effect matches a command. A deny or an ask without a command form matches all commands,
    /// because a rule that matches nothing would let pass the commands that its author meant to stop.
    pub(super) fn takes_command(&self, effect: Behavior, command: &SimpleCommand) -> bool {
        match (self.readings().map(|readings| &readings.command), effect) {
            (None, Behavior::Allow) => !command.opaque,
            (None, Behavior::Ask | Behavior::Deny) => true,
            (Some(pattern), Behavior::Allow) => {
                pattern.as_ref().is_some_and(|one| one.covers(command))
            }
            (Some(pattern), Behavior::Ask | Behavior::Deny) => {
                pattern.as_ref().is_none_or(|one| one.catches(command))
            }
        }
    }

    /// Whether an allow names exactly the commands that this command starts, including those hidden in its arguments.
    pub(super) fn spells_command(&self, command: &SimpleCommand) -> bool {
        let pattern = self
            .readings()
            .and_then(|readings| readings.command.as_ref());
        pattern.is_some_and(|pattern| pattern.spells(command))
    }

    /// Whether an allow names each word of a command up to this one.
    pub(super) fn spells_words(&self, command: &SimpleCommand, through: usize) -> bool {
        let pattern = self
            .readings()
            .and_then(|readings| readings.command.as_ref());
        pattern.is_some_and(|pattern| pattern.spells_through(command, through))
    }

    /// Whether a rule with this effect matches a path.
    pub(super) fn takes_path(
        &self,
        effect: Behavior,
        path: &PlainPath,
        access: ResourceAccess,
    ) -> bool {
        match (self.readings().map(|readings| &readings.path), effect) {
            (None, _) => true,
            (Some(pattern), Behavior::Allow) => {
                pattern.as_ref().is_some_and(|one| one.covers(path, access))
            }
            (Some(pattern), Behavior::Ask | Behavior::Deny) => {
                pattern.as_ref().is_none_or(|one| one.catches(path, access))
            }
        }
    }

    /// Whether an allow for writing names this path, and does not merely cover all files beside it.
    pub(super) fn names_path(&self, path: &PlainPath) -> bool {
        let allows =
            |path: &PlainPath| self.takes_path(Behavior::Allow, path, ResourceAccess::Write);
        allows(path) && !allows(&path.sibling())
    }

    /// Whether a rule with this effect matches a request. Few texts are valid requests, so a text that is none was
    /// meant for commands or paths, and matches no request.
    pub(super) fn takes_request(&self, effect: Behavior, request: &PlannedUrlRequest) -> bool {
        match (self.readings().map(|readings| &readings.url), effect) {
            (None, _) => true,
            (Some(None), _) => false,
            (Some(Some(pattern)), Behavior::Allow) => pattern.covers(request),
            (Some(Some(pattern)), Behavior::Ask | Behavior::Deny) => pattern.catches(request),
        }
    }

    /// The folders that contain all paths of the pattern. The root, if the pattern can begin anywhere.
    pub(super) fn beginnings(&self) -> Vec<String> {
        let anywhere = || "/".to_owned();
        match self.readings().and_then(|readings| readings.path.as_ref()) {
            Some(pattern) => {
                let all = pattern.alternatives.iter();
                all.map(|one| one.beginning().unwrap_or_else(anywhere))
                    .collect()
            }
            None => vec![anywhere()],
        }
    }

    pub(super) fn readings(&self) -> Option<&PatternReadings> {
        match self {
            Self::Anything => None,
            Self::Text(readings) => Some(readings),
        }
    }
}
