//! Parameters: kinds, the keys that fit each kind, and defaults of that kind.

use std::collections::BTreeSet;

use serde_json::{Number, Value};

use crate::{
    ConfigScalar, FilePosition, LocatedValue, ParameterConfig, ParameterEntry, ParameterKind,
    ParameterType, error::ConfigComplaint, nearest::nearest, snippet::shown,
};

use super::is_name;

/// The longest pattern. A class of letters takes a thousand times the memory of its text.
const LONGEST_PATTERN: usize = 1000;

pub(super) fn check(
    prefix: &str,
    name: &str,
    entry: &LocatedValue<ParameterEntry>,
    complaints: &mut Vec<ConfigComplaint>,
) -> ParameterConfig {
    let LocatedValue { value: entry, at } = entry;
    if !is_name(name) {
        let message = format!("`{}` is not a name for a parameter", shown(name));
        let hint = "use up to 64 letters, digits and `_`, beginning with a letter".to_owned();
        complaints.push(ConfigComplaint::new(*at, message).hint(Some(hint)));
    }
    let mut checking = ParameterEntryCheck {
        key: format!("{prefix}.{}", shown(name)),
        entry,
        at: *at,
        complaints,
    };
    checking.foreign_keys();
    let kind = checking.kind();
    checking.default(&kind);
    let default = entry
        .default
        .as_ref()
        .map(|default| Value::from(default.value.clone()));
    if let (Some(LocatedValue { value: true, at }), Some(_)) = (entry.required, &default) {
        let message = format!(
            "`{}` is required, so its default would never be used",
            checking.key
        );
        checking.complain(at, message, Some("remove one of the two".to_owned()));
    }
    ParameterConfig {
        name: name.to_owned(),
        description: entry
            .description
            .as_ref()
            .map(|text| text.value.trim().to_owned()),
        kind,
        required: entry
            .required
            .map_or(default.is_none(), |required| required.value),
        allow_dash: entry.allow_dash.is_some_and(|allow| allow.value),
        default,
    }
}

/// A parameter during its check.
struct ParameterEntryCheck<'a> {
    key: String,
    entry: &'a ParameterEntry,
    at: FilePosition,
    complaints: &'a mut Vec<ConfigComplaint>,
}

impl ParameterEntryCheck<'_> {
    fn complain(&mut self, at: FilePosition, message: String, hint: Option<String>) {
        self.complaints
            .push(ConfigComplaint::new(at, message).hint(hint));
    }

    /// Reports keys that the kind would ignore.
    fn foreign_keys(&mut self) {
        let entry = self.entry;
        let kind = entry.kind;
        let counts = matches!(kind, ParameterType::Integer | ParameterType::Number);
        let places = [
            (
                "values",
                entry.values.as_ref().map(|values| values.at),
                kind == ParameterType::Enum,
                "enum",
            ),
            (
                "pattern",
                entry.pattern.as_ref().map(|text| text.at),
                kind == ParameterType::String,
                "string",
            ),
            (
                "minimum",
                entry.minimum.as_ref().map(|number| number.at),
                counts,
                "integer` or `number",
            ),
            (
                "maximum",
                entry.maximum.as_ref().map(|number| number.at),
                counts,
                "integer` or `number",
            ),
        ];
        for (name, at, fits, wanted) in places {
            if let (Some(at), false) = (at, fits) {
                let message = format!(
                    "`{}.{name}` does not apply to the type `{}`",
                    self.key,
                    kind.as_str()
                );
                self.complain(
                    at,
                    message,
                    Some(format!("`{name}` is for the type `{wanted}`")),
                );
            }
        }
    }

    fn kind(&mut self) -> ParameterKind {
        let entry = self.entry;
        match entry.kind {
            ParameterType::String => ParameterKind::String {
                pattern: self.pattern(),
            },
            ParameterType::Integer => {
                let minimum = entry
                    .minimum
                    .as_ref()
                    .and_then(|number| self.whole("minimum", number));
                let maximum = entry
                    .maximum
                    .as_ref()
                    .and_then(|number| self.whole("maximum", number));
                self.in_order();
                ParameterKind::Integer { minimum, maximum }
            }
            ParameterType::Number => {
                self.in_order();
                let number = |number: &Option<LocatedValue<Number>>| {
                    number.as_ref().map(|number| number.value.clone())
                };
                ParameterKind::Number {
                    minimum: number(&entry.minimum),
                    maximum: number(&entry.maximum),
                }
            }
            ParameterType::Boolean => ParameterKind::Boolean,
            ParameterType::Path => ParameterKind::Path,
            ParameterType::Enum => ParameterKind::Enum(self.values()),
        }
    }

    fn pattern(&mut self) -> Option<String> {
        let pattern = self.entry.pattern.as_ref()?;
        if pattern.value.len() > LONGEST_PATTERN {
            let message = format!(
                "`{}.pattern` is longer than {LONGEST_PATTERN} bytes",
                self.key
            );
            self.complain(pattern.at, message, None);
        } else if let Err(error) = regex_syntax::parse(&pattern.value) {
            // Parsed but not compiled: a short pattern can take seconds to compile, and the file may be hostile. The
            // last line of the error has the reason; the lines before it draw the pattern, which the snippet shows
            // anyway.
            let told = error.to_string();
            let why = told.lines().last().unwrap_or_default();
            let why = shown(why.strip_prefix("error: ").unwrap_or(why));
            let message = format!("`{}.pattern` is not a regular expression: {why}", self.key);
            self.complain(pattern.at, message, None);
        }
        Some(pattern.value.clone())
    }

    fn whole(&mut self, name: &str, number: &LocatedValue<Number>) -> Option<i64> {
        let whole = number.value.as_i64();
        if whole.is_none() {
            let message = format!(
                "`{}.{name}` is {}, which is not a whole number",
                self.key, number.value
            );
            self.complain(number.at, message, None);
        }
        whole
    }

    fn in_order(&mut self) {
        let (Some(minimum), Some(maximum)) = (&self.entry.minimum, &self.entry.maximum) else {
            return;
        };
        if minimum.value.as_f64() > maximum.value.as_f64() {
            let message = format!(
                "`{}.minimum` is {}, more than its maximum, which is {}",
                self.key, minimum.value, maximum.value
            );
            self.complain(minimum.at, message, None);
        }
    }

    fn values(&mut self) -> Vec<String> {
        let values = self
            .entry
            .values
            .as_ref()
            .filter(|values| !values.value.is_empty());
        let Some(values) = values else {
            let at = self
                .entry
                .values
                .as_ref()
                .map_or(self.at, |values| values.at);
            let hint = "list the allowed texts under `values`".to_owned();
            self.complain(at, format!("`{}` has no `values`", self.key), Some(hint));
            return Vec::new();
        };
        let mut seen = BTreeSet::new();
        for value in &values.value {
            if !seen.insert(value.value.as_str()) {
                let message = format!(
                    "`{}.values` contains `{}` twice",
                    self.key,
                    shown(&value.value)
                );
                self.complain(value.at, message, None);
            }
        }
        values
            .value
            .iter()
            .map(|value| value.value.clone())
            .collect()
    }

    fn default(&mut self, kind: &ParameterKind) {
        let Some(LocatedValue { value, at }) = &self.entry.default else {
            return;
        };
        let (wanted, hint) = match (kind, value) {
            (ParameterKind::String { .. }, ConfigScalar::Text(_)) => return,
            (ParameterKind::Path, ConfigScalar::Text(text)) if !text.is_empty() => return,
            (ParameterKind::Boolean, ConfigScalar::Flag(_)) => return,
            (ParameterKind::Integer { .. }, ConfigScalar::Number(number))
                if number.as_i64().is_none() =>
            {
                ("a whole number", None)
            }
            (
                ParameterKind::Integer { .. } | ParameterKind::Number { .. },
                ConfigScalar::Number(number),
            ) => match self.is_within(number) {
                true => return,
                false => ("a number within its range", None),
            },
            (ParameterKind::Enum(values), ConfigScalar::Text(text)) => {
                if values.is_empty() || values.contains(text) {
                    return;
                }
                let near = nearest(text, values.iter().map(String::as_str));
                (
                    "one of its values",
                    near.map(|near| format!("did you mean `{near}`?")),
                )
            }
            (ParameterKind::String { .. } | ParameterKind::Path, _) => {
                ("a text", Some("put it in quotes".to_owned()))
            }
            (ParameterKind::Enum(_), _) => {
                ("one of its values", Some("put it in quotes".to_owned()))
            }
            (ParameterKind::Boolean, _) => ("true or false", None),
            (ParameterKind::Integer { .. }, _) => ("a whole number", None),
            (ParameterKind::Number { .. }, _) => ("a number", None),
        };
        let message = format!(
            "`{}.default` is {}; it must be {wanted}",
            self.key,
            described(value)
        );
        self.complain(*at, message, hint);
    }

    fn is_within(&self, number: &Number) -> bool {
        let number = number.as_f64();
        let minimum = self
            .entry
            .minimum
            .as_ref()
            .and_then(|minimum| minimum.value.as_f64());
        let maximum = self
            .entry
            .maximum
            .as_ref()
            .and_then(|maximum| maximum.value.as_f64());
        minimum.is_none_or(|minimum| number >= Some(minimum))
            && maximum.is_none_or(|maximum| number <= Some(maximum))
    }
}

fn described(value: &ConfigScalar) -> String {
    match value {
        ConfigScalar::Text(text) => format!("`{}`", shown(text)),
        ConfigScalar::Number(number) => number.to_string(),
        ConfigScalar::Flag(flag) => flag.to_string(),
    }
}
