//! Takes values out of a tree: values of the expected kind, complaints about others, and a notice about each remaining
//! key.

use crate::{
    ConfigErrors, ConfigNotice, FilePosition, LocatedValue,
    error::{ConfigComplaint, ConfigSourceText},
    nearest::nearest,
    snippet::shown,
    yaml::tree::{ConfigTreeEntry, YamlValue},
};

/// A table with keys that are taken out one by one.
pub(crate) struct ConfigTable {
    path: String,
    pub(crate) at: FilePosition,
    entries: Vec<ConfigTreeEntry>,
}

impl ConfigTable {
    pub(crate) fn new(path: String, at: FilePosition, entries: Vec<ConfigTreeEntry>) -> Self {
        Self { path, at, entries }
    }

    /// The full name of one of its keys, such as `server.port`.
    pub(crate) fn path_of(&self, key: &str) -> String {
        let key = shown(key);
        if self.path.is_empty() {
            key
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// All remaining entries, as JSON.
    pub(crate) fn to_json(&self) -> serde_json::Map<String, serde_json::Value> {
        let entries = self.entries.iter().cloned();
        entries
            .map(|entry| (entry.key.value, entry.value.value.into_json()))
            .collect()
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Whether a key exists and is not null.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries
            .iter()
            .any(|entry| entry.key.value == key && !matches!(entry.value.value, YamlValue::Null))
    }

    pub(crate) fn take_entry(&mut self, key: &str) -> Option<ConfigTreeEntry> {
        let index = self
            .entries
            .iter()
            .position(|entry| entry.key.value == key)?;
        Some(self.entries.remove(index))
    }

    /// All remaining entries.
    pub(crate) fn into_entries(self) -> Vec<ConfigTreeEntry> {
        self.entries
    }

    /// The value of a key; null counts as missing.
    pub(crate) fn take(&mut self, key: &str) -> Option<LocatedValue<YamlValue>> {
        let value = self.take_entry(key)?.value;
        (!matches!(value.value, YamlValue::Null)).then_some(value)
    }
}

/// The findings so far.
pub(crate) struct ConfigTreeReader<'a> {
    source: ConfigSourceText<'a>,
    pub(crate) complaints: Vec<ConfigComplaint>,
    notices: Vec<(FilePosition, ConfigNotice)>,
}

impl<'a> ConfigTreeReader<'a> {
    pub(crate) fn new(source: ConfigSourceText<'a>) -> Self {
        Self {
            source,
            complaints: Vec::new(),
            notices: Vec::new(),
        }
    }

    /// The notices in the order of the file, or all errors.
    pub(crate) fn finish(self) -> Result<Vec<ConfigNotice>, ConfigErrors> {
        if !self.complaints.is_empty() {
            return Err(ConfigErrors::of_source(
                Vec::new(),
                self.complaints,
                self.source,
            ));
        }
        let mut notices = self.notices;
        notices.sort_by_key(|(at, _)| *at);
        Ok(notices.into_iter().map(|(_, notice)| notice).collect())
    }

    pub(crate) fn complain(
        &mut self,
        at: FilePosition,
        message: String,
        hint: impl Into<Option<String>>,
    ) {
        self.complaints
            .push(ConfigComplaint::new(at, message).hint(hint));
    }

    /// Whether there is no error.
    pub(crate) fn complain_if(&mut self, complaint: Option<ConfigComplaint>) -> bool {
        let fine = complaint.is_none();
        self.complaints.extend(complaint);
        fine
    }

    pub(crate) fn notice(&mut self, at: FilePosition, key: String, message: String) {
        let place = self.source.place(at);
        self.notices.push((
            at,
            ConfigNotice {
                key,
                place,
                message,
            },
        ));
    }

    pub(crate) fn ignored(&mut self, at: FilePosition, key: String, why: &str) {
        let message = format!("`{key}` is ignored: {why}");
        self.notice(at, key, message);
    }

    /// Reports every remaining key as ignored, in a table where other programs may add any.
    pub(crate) fn ignore_the_rest(&mut self, table: &ConfigTable, why: &str) {
        for ConfigTreeEntry { key, .. } in &table.entries {
            self.ignored(key.at, table.path_of(&key.value), why);
        }
    }

    /// Reports every remaining key as unknown to `whose` protocol or program.
    pub(crate) fn name_the_rest(&mut self, table: &ConfigTable, whose: &str, known: &[&str]) {
        for ConfigTreeEntry { key, .. } in &table.entries {
            let near = nearest(&key.value, known.iter().copied()).filter(|near| *near != key.value);
            let near = near
                .map(|near| format!("; did you mean `{near}`?"))
                .unwrap_or_default();
            self.ignored(
                key.at,
                table.path_of(&key.value),
                &format!("{whose} has no such key{near}"),
            );
        }
    }

    /// The whole file as a table. An empty file is an empty table.
    pub(crate) fn root(&mut self, value: LocatedValue<YamlValue>) -> ConfigTable {
        let entries = match value.value {
            YamlValue::Table(entries) => entries,
            YamlValue::Null => Vec::new(),
            _ => {
                let hint = "begin with a line such as `host_id: workshop`".to_owned();
                self.complain(
                    value.at,
                    "the file must hold keys and values".to_owned(),
                    hint,
                );
                Vec::new()
            }
        };
        ConfigTable::new(String::new(), value.at, entries)
    }

    pub(crate) fn table(&mut self, table: &mut ConfigTable, key: &str) -> Option<ConfigTable> {
        let LocatedValue { value, at } = table.take(key)?;
        match value {
            YamlValue::Table(entries) => Some(ConfigTable::new(table.path_of(key), at, entries)),
            other => self.wrong_kind(
                at,
                &table.path_of(key),
                "a table of keys and values",
                &other,
            ),
        }
    }

    pub(crate) fn list(
        &mut self,
        table: &mut ConfigTable,
        key: &str,
    ) -> Vec<LocatedValue<YamlValue>> {
        let Some(LocatedValue { value, at }) = table.take(key) else {
            return Vec::new();
        };
        match value {
            YamlValue::List(items) => items,
            other => self
                .wrong_kind(at, &table.path_of(key), "a list", &other)
                .unwrap_or_default(),
        }
    }

    pub(crate) fn text(
        &mut self,
        table: &mut ConfigTable,
        key: &str,
    ) -> Option<LocatedValue<String>> {
        let LocatedValue { value, at } = table.take(key)?;
        match value {
            YamlValue::Text(value) => Some(LocatedValue { value, at }),
            YamlValue::Flag(_) | YamlValue::Whole(_) | YamlValue::Fraction(_) => {
                let message = format!(
                    "expected a text under `{}`, found {}",
                    table.path_of(key),
                    value.kind()
                );
                self.complain(at, message, "put it in quotes".to_owned());
                None
            }
            other => self.wrong_kind(at, &table.path_of(key), "a text", &other),
        }
    }

    /// True or false, including Python's YAML words for them.
    pub(crate) fn flag(
        &mut self,
        table: &mut ConfigTable,
        key: &str,
    ) -> Option<LocatedValue<bool>> {
        let LocatedValue { value, at } = table.take(key)?;
        let flag = match &value {
            YamlValue::Flag(flag) => Some(*flag),
            YamlValue::Whole(1) => Some(true),
            YamlValue::Whole(0) => Some(false),
            YamlValue::Text(text) => match text.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" => Some(true),
                "false" | "no" | "off" => Some(false),
                _ => None,
            },
            _ => None,
        };
        match flag {
            Some(value) => Some(LocatedValue { value, at }),
            None => self.wrong_kind(at, &table.path_of(key), "true or false", &value),
        }
    }

    /// The same, but another value is only reported and does not refuse the file.
    pub(crate) fn lenient_flag(&mut self, table: &mut ConfigTable, key: &str) -> Option<bool> {
        let LocatedValue { value, at } = table.take(key)?;
        match value {
            YamlValue::Flag(flag) => Some(flag),
            _ => {
                self.ignored(at, table.path_of(key), "it is neither true nor false");
                None
            }
        }
    }

    /// A whole number. Other hosts also accept a quoted one, and `2.0`.
    pub(crate) fn whole<T: TryFrom<i128>>(
        &mut self,
        table: &mut ConfigTable,
        key: &str,
    ) -> Option<LocatedValue<T>> {
        let LocatedValue { value, at } = table.take(key)?;
        let number = match &value {
            YamlValue::Whole(number) => Some(*number),
            YamlValue::Text(text) => text.trim().parse().ok(),
            YamlValue::Fraction(number) => as_whole(*number),
            _ => None,
        };
        let Some(number) = number else {
            return self.wrong_kind(at, &table.path_of(key), "a whole number", &value);
        };
        if let Ok(value) = T::try_from(number) {
            return Some(LocatedValue { value, at });
        }
        let reason = if number < 0 {
            "which is too small"
        } else {
            "which is too large"
        };
        self.complain(
            at,
            format!("`{}` is {number}, {reason}", table.path_of(key)),
            None,
        );
        None
    }

    /// Reports the expected and the found kind, without the value, which may be a token.
    pub(crate) fn wrong_kind<T>(
        &mut self,
        at: FilePosition,
        key: &str,
        expected: &str,
        found: &YamlValue,
    ) -> Option<T> {
        let message = format!("expected {expected} under `{key}`, found {}", found.kind());
        self.complain(at, message, None);
        None
    }
}

/// A number without a fraction, small enough to be exact.
fn as_whole(number: f64) -> Option<i128> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let whole = number.fract() == 0.0 && number.abs() <= EXACT;
    // The text of such a number consists of its digits.
    if whole {
        format!("{number:.0}").parse().ok()
    } else {
        None
    }
}
