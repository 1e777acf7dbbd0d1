//! Selectors: the part of a rule that matches calls.

use std::{fmt, str::FromStr};

use serde_json::Value;

use super::RuleError;
use crate::{Declaration, EffectClass, Provenance, ToolId};

/// The calls that a rule applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// Calls of tools: all of them, or the ones with a matching subject and arguments.
    Tool {
        /// The tools.
        tools: ToolPattern,
        /// The subject of the call in terms of the tool's own arguments: a command, a path, a request.
        matcher: Option<String>,
        /// Conditions on the arguments; all must hold.
        conditions: Vec<ArgumentCondition>,
    },
    /// Calls by class.
    Class(EffectClass),
    /// Calls of any tool that read such a path: `fs.read(**/.env)`.
    Reads(String),
    /// Calls of any tool that write such a path: `fs.write(src/**)`.
    Writes(String),
    /// Calls of any tool that request such a URL: `net(POST https://api.example.com/*)`.
    Reaches(String),
}

impl Selector {
    /// Every call of the tools that `pattern` names.
    pub fn tool(pattern: &str) -> Result<Self, RuleError> {
        Ok(Self::Tool {
            tools: pattern.parse()?,
            matcher: None,
            conditions: Vec::new(),
        })
    }
}

/// Tools by name, alias or id; `*` stands for any characters.
///
/// A pattern is read in two ways. [`matches`](Self::matches) is generous, for rules and settings that deny, ask or
/// restrict. [`names_exactly`](Self::names_exactly) is for rules and settings that allow or loosen: outside authors
/// choose the names of their tools, so a name alone must not gain anything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ToolPattern(String);

impl ToolPattern {
    /// `*.*`: every tool there is, by its id.
    pub fn every_id() -> Self {
        Self("*.*".to_owned())
    }

    /// The pattern's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the pattern matches this tool: by id, by name, by the wire form of either, or by an alias.
    pub fn matches(&self, id: &ToolId, aliases: &[String]) -> bool {
        let fits = |name: &str| self.matches_name(name);
        fits(id.as_str())
            || fits(id.name())
            || fits(&id.wire_form())
            || aliases.iter().any(|alias| fits(alias))
    }

    /// Whether a rule that allows, or a setting that loosens, applies to this tool.
    ///
    /// Compiled-in tools and declared commands match by every name they have. Any other tool matches by its id only
    /// (`source.tool`, or `source__tool` as agents see it), so the pattern must contain a `.` or a `__`: `allow shell`
    /// never applies to the `shell` of an MCP server, and neither does `allow *`.
    pub fn names_exactly(&self, tool: &Declaration) -> bool {
        self.names_tool_exactly(&tool.tool_id, &tool.aliases, tool.provenance)
    }

    /// [`names_exactly`](Self::names_exactly) for code that has the id and the aliases instead of the declaration.
    pub fn names_tool_exactly(
        &self,
        id: &ToolId,
        aliases: &[String],
        provenance: Provenance,
    ) -> bool {
        match provenance {
            Provenance::CompiledIn => self.matches(id, aliases),
            Provenance::MountPlan | Provenance::Outside if !self.is_qualified() => false,
            Provenance::MountPlan | Provenance::Outside => {
                // In `a__b__c` the namespace ends at the first `__`; a namespace that has one itself would make the
                // form ambiguous.
                let namespace = id.namespace();
                let has_plain_form = !namespace.contains("__") && !namespace.ends_with('_');
                self.matches_name(id.as_str())
                    || (has_plain_form && self.matches_name(&id.wire_form()))
            }
        }
    }

    /// Whether the pattern has a `.` or `__`, and so matches ids rather than bare names.
    pub fn is_qualified(&self) -> bool {
        self.0.contains('.') || self.0.contains("__")
    }

    /// Whether the pattern matches one name.
    pub fn matches_name(&self, name: &str) -> bool {
        matches_any(&self.0, name)
    }
}

/// Whether `text` fits a pattern in which `*` stands for any characters.
pub fn matches_any(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(first) = pieces.next() else {
        return text.is_empty();
    };
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut last = None;
    for piece in pieces {
        // Only the last piece is bound to the end; the ones before it take the first place they fit.
        if let Some(earlier) = last.replace(piece) {
            match rest.find(earlier) {
                Some(at) => rest = &rest[at + str::len(earlier)..],
                None => return false,
            }
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

/// A condition on one argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentCondition {
    /// The argument, as a JSON pointer.
    pub pointer: String,
    /// The comparison and its value. `None`: the argument must be present, and be neither `null` nor `false`.
    pub compared: Option<(ArgumentComparison, Value)>,
}

/// How an argument is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentComparison {
    /// Equal; in texts `*` stands for any characters.
    Equal,
    /// Not equal.
    Different,
    /// Less than a number.
    Less,
    /// At most.
    AtMost,
    /// More than a number.
    More,
    /// At least.
    AtLeast,
}

impl ArgumentComparison {
    /// Longer signs first, so that `<=` is not read as `<`.
    const ALL: [Self; 6] = [
        Self::Different,
        Self::AtMost,
        Self::AtLeast,
        Self::Equal,
        Self::Less,
        Self::More,
    ];

    fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::Different => "!=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::More => ">",
            Self::AtLeast => ">=",
        }
    }
}

impl ArgumentCondition {
    /// Whether the arguments meet the condition.
    pub fn holds(&self, arguments: &Value) -> bool {
        let found = arguments.pointer(&self.pointer);
        let Some((comparison, wanted)) = &self.compared else {
            return found.is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)));
        };
        let same = |value: &Value| match (value, wanted) {
            (Value::String(text), Value::String(pattern)) => matches_any(pattern, text),
            (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
            (value, wanted) => value == wanted,
        };
        let ordered = || Some((found?.as_f64()?, wanted.as_f64()?));
        match comparison {
            ArgumentComparison::Equal => found.is_some_and(same),
            ArgumentComparison::Different => !found.is_some_and(same),
            ArgumentComparison::Less => ordered().is_some_and(|(a, b)| a < b),
            ArgumentComparison::AtMost => ordered().is_some_and(|(a, b)| a <= b),
            ArgumentComparison::More => ordered().is_some_and(|(a, b)| a > b),
            ArgumentComparison::AtLeast => ordered().is_some_and(|(a, b)| a >= b),
        }
    }
}

impl FromStr for ToolPattern {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let legal =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | '*');
        if text.is_empty() || !text.chars().all(legal) || text.starts_with("class:") {
            return Err(RuleError::Tool(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl FromStr for Selector {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(name) = text.strip_prefix("class:") {
            let found = EffectClass::ALL
                .into_iter()
                .find(|class| class.as_str() == name);
            return found
                .map(Self::Class)
                .ok_or_else(|| RuleError::Class(name.to_owned()));
        }
        let unclosed = || RuleError::Matcher(text.to_owned());
        let (head, conditions) = match text.find('[') {
            // A bracket inside of the matcher belongs to the matcher.
            Some(at) if text.find('(').is_none_or(|open| at < open) => text.split_at(at),
            _ => match text.rfind(")[") {
                Some(at) => text.split_at(at + 1),
                None => (text, ""),
            },
        };
        let (tools, matcher) = match head.split_once('(') {
            None => (head, None),
            Some((tools, rest)) => {
                let matcher = rest.strip_suffix(')').ok_or_else(unclosed)?.trim();
                if matcher.is_empty() {
                    return Err(unclosed());
                }
                (tools, Some(matcher.to_owned()))
            }
        };
        let conditions = conditions_of(conditions)?;
        let of_path = |make: fn(String) -> Self, matcher: Option<String>| match matcher {
            Some(matcher) if conditions.is_empty() => Ok(make(matcher)),
            Some(_) | None => Err(unclosed()),
        };
        match tools {
            "fs.read" => of_path(Self::Reads, matcher),
            "fs.write" => of_path(Self::Writes, matcher),
            "net" => of_path(Self::Reaches, matcher),
            tools if tools.starts_with("fs.") => Err(RuleError::Tool(tools.to_owned())),
            tools => Ok(Self::Tool {
                tools: tools.parse()?,
                matcher,
                conditions,
            }),
        }
    }
}

fn conditions_of(text: &str) -> Result<Vec<ArgumentCondition>, RuleError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let bad = || RuleError::Condition(text.to_owned());
    let inner = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .ok_or_else(bad)?;
    split_outside_quotes(inner)
        .into_iter()
        .map(condition_of)
        .collect()
}

/// Splits at commas outside of quoted text.
fn split_outside_quotes(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut quoted = false;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' if !escaped => quoted = !quoted,
            ',' if !quoted => {
                pieces.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        escaped = c == '\\' && !escaped;
    }
    pieces.push(&text[start..]);
    pieces
}

fn condition_of(text: &str) -> Result<ArgumentCondition, RuleError> {
    let text = text.trim();
    let bad = || RuleError::Condition(text.to_owned());
    let end = text.find([' ', '=', '!', '<', '>']).unwrap_or(text.len());
    let (pointer, rest) = text.split_at(end);
    if !pointer.starts_with('/') {
        return Err(bad());
    }
    let rest = rest.trim();
    if rest.is_empty() {
        return Ok(ArgumentCondition {
            pointer: pointer.to_owned(),
            compared: None,
        });
    }
    let comparison = ArgumentComparison::ALL
        .into_iter()
        .find(|one| rest.starts_with(one.sign()))
        .ok_or_else(bad)?;
    let written = rest[comparison.sign().len()..].trim();
    let value = match serde_json::from_str::<Value>(written) {
        Ok(value) if !value.is_object() && !value.is_array() => value,
        Ok(_) => return Err(bad()),
        // A word without quotes is a text.
        Err(_) if !written.is_empty() && !written.contains(['"', ' ']) => {
            Value::String(written.to_owned())
        }
        Err(_) => return Err(bad()),
    };
    Ok(ArgumentCondition {
        pointer: pointer.to_owned(),
        compared: Some((comparison, value)),
    })
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for ArgumentCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.compared {
            None => f.write_str(&self.pointer),
            Some((comparison, value)) => {
                write!(f, "{} {} {value}", self.pointer, comparison.sign())
            }
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool {
                tools,
                matcher,
                conditions,
            } => {
                write!(f, "{tools}")?;
                if let Some(matcher) = matcher {
                    write!(f, "({matcher})")?;
                }
                for (place, condition) in conditions.iter().enumerate() {
                    write!(f, "{}{condition}", if place == 0 { "[" } else { ", " })?;
                }
                if conditions.is_empty() {
                    Ok(())
                } else {
                    f.write_str("]")
                }
            }
            Self::Class(class) => write!(f, "class:{class}"),
            Self::Reads(pattern) => write!(f, "fs.read({pattern})"),
            Self::Writes(pattern) => write!(f, "fs.write({pattern})"),
            Self::Reaches(pattern) => write!(f, "net({pattern})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Selector, matches_any};
    use crate::ToolId;

    fn names(pattern: &str, tool: &str) -> bool {
        let id: ToolId = tool.parse().unwrap();
        let Ok(Selector::Tool { tools, .. }) = pattern.parse() else {
            panic!("{pattern}")
        };
        tools.matches(&id, &["cat".to_owned()])
    }

    #[test]
    fn tools_are_named_by_name_id_alias_and_pattern() {
        for (pattern, tool, expected) in [
            ("read_file", "files.read_file", true),
            ("files.read_file", "files.read_file", true),
            ("read_file", "files.read_files", false),
            ("files.*", "files.write_file", true),
            ("*", "a.b", true),
            ("cat", "files.read_file", true),
            ("mcp.*.get_*", "mcp.github.get_issue", true),
            ("mcp.**", "mcp.github.get_issue", true),
            ("mcp.*.get_*", "mcp.github.put_issue", false),
            ("github__get_issue", "github.get_issue", true),
            ("github__*", "github.get_issue", true),
            ("git__*", "github.get_issue", false),
            ("Read_File", "files.read_file", false),
        ] {
            assert_eq!(names(pattern, tool), expected, "{pattern} on {tool}");
        }
    }

    #[test]
    fn bare_names_mean_compiled_in_tools_only_where_something_is_loosened() {
        use crate::Provenance::{CompiledIn, MountPlan, Outside};
        for (pattern, tool, from, expected) in [
            ("shell", "shell.shell", CompiledIn, true),
            ("sh", "shell.shell", CompiledIn, true),
            ("*", "shell.shell", CompiledIn, true),
            ("shell.*", "shell.shell", CompiledIn, true),
            ("shell", "evil.shell", Outside, false),
            ("shell", "evil.shell", MountPlan, false),
            ("sh", "evil.shell", Outside, false),
            ("sh*", "evil.shell", Outside, false),
            ("*", "evil.shell", Outside, false),
            ("evil.shell", "evil.shell", Outside, true),
            ("evil.*", "evil.shell", MountPlan, true),
            ("*.shell", "evil.shell", Outside, true),
            ("evil__shell", "evil.shell", Outside, true),
            ("evil__*", "evil.shell", Outside, true),
            ("files.read_file", "evil.files.read_file", Outside, false),
            ("a__b__c", "a.b__c", Outside, true),
            ("a__b__c", "a__b.c", Outside, false),
            ("a___b", "a._b", Outside, true),
            ("a___b", "a_.b", Outside, false),
        ] {
            let mut declaration = crate::Declaration::new(tool.parse().unwrap(), "");
            declaration.aliases = vec!["sh".to_owned()];
            declaration.provenance = from;
            let pattern: super::ToolPattern = pattern.parse().unwrap();
            assert_eq!(
                pattern.names_exactly(&declaration),
                expected,
                "{pattern} on {tool} ({from:?})"
            );
        }
    }

    #[test]
    fn stars_stand_for_any_characters() {
        for (pattern, text, expected) in [
            ("a*", "a", true),
            ("a*c", "abc", true),
            ("a*c", "acd", false),
            ("*b*", "abc", true),
            ("a*b*c", "axxbyyc", true),
            ("a*a", "a", false),
            ("**", "", true),
            ("", "x", false),
        ] {
            assert_eq!(matches_any(pattern, text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn conditions_look_at_arguments() {
        let arguments =
            json!({"repo": "prod-eu", "amount": 100, "force": true, "quiet": false, "a/b": "x,y"});
        for (selector, expected) in [
            ("t[/repo = \"prod-*\"]", true),
            ("t[/repo = prod-eu]", true),
            ("t[/repo != \"prod-*\"]", false),
            ("t[/missing != 1]", true),
            ("t[/missing = 1]", false),
            ("t[/amount >= 100]", true),
            ("t[/amount > 100]", false),
            ("t[/amount = 100.0]", true),
            ("t[/repo < 3]", false),
            ("t[/force]", true),
            ("t[/quiet]", false),
            ("t[/force = true, /amount < 200]", true),
            ("t[/force = true, /amount < 20]", false),
            ("t[/a~1b = \"x,y\"]", true),
        ] {
            let Ok(Selector::Tool { conditions, .. }) = selector.parse() else {
                panic!("{selector}")
            };
            assert_eq!(
                conditions.iter().all(|one| one.holds(&arguments)),
                expected,
                "{selector}"
            );
        }
    }
}
