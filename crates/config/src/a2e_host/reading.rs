//! Picking a tree apart: values of the kind that is asked for, complaints where they are of another, and a
//! notice for what nobody asked for.

use crate::{
    ConfigErrors, Located, Notice, Position,
    error::{Complaint, Source},
    nearest::nearest,
    snippet::shown,
    yaml::tree::{Entry, Value},
};

/// A table of which keys are taken one by one.
pub(super) struct Table {
    path: String,
    pub(super) at: Position,
    entries: Vec<Entry>,
}

impl Table {
    pub(super) fn new(path: String, at: Position, entries: Vec<Entry>) -> Self {
        Self { path, at, entries }
    }

    /// The whole name of one of its keys, such as `server.port`.
    pub(super) fn path_of(&self, key: &str) -> String {
        let key = shown(key);
        if self.path.is_empty() { key } else { format!("{}.{key}", self.path) }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Whether a key is there and is not null.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key.value == key && !matches!(entry.value.value, Value::Null))
    }

    pub(super) fn take_entry(&mut self, key: &str) -> Option<Entry> {
        let index = self.entries.iter().position(|entry| entry.key.value == key)?;
        Some(self.entries.remove(index))
    }

    /// What is left of it, as JSON.
    pub(super) fn into_json(self) -> serde_json::Map<String, serde_json::Value> {
        self.entries.into_iter().map(|entry| (entry.key.value, entry.value.value.into_json())).collect()
    }

    /// The value of a key; a null is as good as none.
    fn take(&mut self, key: &str) -> Option<Located<Value>> {
        let value = self.take_entry(key)?.value;
        (!matches!(value.value, Value::Null)).then_some(value)
    }
}

/// What was found on the way.
pub(super) struct Reading<'a> {
    source: Source<'a>,
    pub(super) complaints: Vec<Complaint>,
    notices: Vec<(Position, Notice)>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(source: Source<'a>) -> Self {
        Self { source, complaints: Vec::new(), notices: Vec::new() }
    }

    /// The notices in the order of the file, or all that is wrong with it.
    pub(super) fn finish(self) -> Result<Vec<Notice>, ConfigErrors> {
        if !self.complaints.is_empty() {
            return Err(ConfigErrors::of_source(Vec::new(), self.complaints, self.source));
        }
        let mut notices = self.notices;
        notices.sort_by_key(|(at, _)| *at);
        Ok(notices.into_iter().map(|(_, notice)| notice).collect())
    }

    pub(super) fn complain(&mut self, at: Position, message: String, hint: impl Into<Option<String>>) {
        self.complaints.push(Complaint::new(at, message).hint(hint));
    }

    /// True where there is nothing to complain of.
    pub(super) fn complain_if(&mut self, complaint: Option<Complaint>) -> bool {
        let fine = complaint.is_none();
        self.complaints.extend(complaint);
        fine
    }

    pub(super) fn notice(&mut self, at: Position, key: String, message: String) {
        let place = self.source.place(at);
        self.notices.push((at, Notice { key, place, message }));
    }

    pub(super) fn ignored(&mut self, at: Position, key: String, why: &str) {
        let message = format!("`{key}` is ignored: {why}");
        self.notice(at, key, message);
    }

    /// Names every key that was not taken, where A2E allows any and this host knows none.
    pub(super) fn ignore_the_rest(&mut self, table: &Table, why: &str) {
        for Entry { key, .. } in &table.entries {
            self.ignored(key.at, table.path_of(&key.value), why);
        }
    }

    /// Names every key that was not taken, where A2E knows no others.
    pub(super) fn name_the_rest(&mut self, table: &Table, known: &[&str]) {
        for Entry { key, .. } in &table.entries {
            let near = nearest(&key.value, known.iter().copied()).filter(|near| *near != key.value);
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            self.ignored(key.at, table.path_of(&key.value), &format!("A2E knows no such key{near}"));
        }
    }

    /// The whole file as a table. One that is empty holds nothing wrong.
    pub(super) fn root(&mut self, value: Located<Value>) -> Table {
        let entries = match value.value {
            Value::Table(entries) => entries,
            Value::Null => Vec::new(),
            _ => {
                let hint = "begin with a line such as `host_id: workshop`".to_owned();
                self.complain(value.at, "the file must hold keys and values".to_owned(), hint);
                Vec::new()
            }
        };
        Table::new(String::new(), value.at, entries)
    }

    pub(super) fn table(&mut self, table: &mut Table, key: &str) -> Option<Table> {
        let Located { value, at } = table.take(key)?;
        match value {
            Value::Table(entries) => Some(Table::new(table.path_of(key), at, entries)),
            other => self.wrong_kind(at, &table.path_of(key), "a table of keys and values", &other),
        }
    }

    pub(super) fn list(&mut self, table: &mut Table, key: &str) -> Vec<Located<Value>> {
        let Some(Located { value, at }) = table.take(key) else {
            return Vec::new();
        };
        match value {
            Value::List(items) => items,
            other => self.wrong_kind(at, &table.path_of(key), "a list", &other).unwrap_or_default(),
        }
    }

    pub(super) fn text(&mut self, table: &mut Table, key: &str) -> Option<Located<String>> {
        let Located { value, at } = table.take(key)?;
        match value {
            Value::Text(value) => Some(Located { value, at }),
            Value::Flag(_) | Value::Whole(_) | Value::Fraction(_) => {
                let message =
                    format!("expected a text under `{}`, found {}", table.path_of(key), value.kind());
                self.complain(at, message, "put it in quotes".to_owned());
                None
            }
            other => self.wrong_kind(at, &table.path_of(key), "a text", &other),
        }
    }

    /// True or false, also in the words that Python's YAML reader takes for them.
    pub(super) fn flag(&mut self, table: &mut Table, key: &str) -> Option<Located<bool>> {
        let Located { value, at } = table.take(key)?;
        let flag = match &value {
            Value::Flag(flag) => Some(*flag),
            Value::Whole(1) => Some(true),
            Value::Whole(0) => Some(false),
            Value::Text(text) => match text.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" => Some(true),
                "false" | "no" | "off" => Some(false),
                _ => None,
            },
            _ => None,
        };
        match flag {
            Some(value) => Some(Located { value, at }),
            None => self.wrong_kind(at, &table.path_of(key), "true or false", &value),
        }
    }

    /// A whole number. Other hosts take one in quotes, too, and `2.0`.
    pub(super) fn whole<T: TryFrom<i128>>(&mut self, table: &mut Table, key: &str) -> Option<Located<T>> {
        let Located { value, at } = table.take(key)?;
        let number = match &value {
            Value::Whole(number) => Some(*number),
            Value::Text(text) => text.trim().parse().ok(),
            Value::Fraction(number) => as_whole(*number),
            _ => None,
        };
        let Some(number) = number else {
            return self.wrong_kind(at, &table.path_of(key), "a whole number", &value);
        };
        if let Ok(value) = T::try_from(number) {
            return Some(Located { value, at });
        }
        let reason = if number < 0 { "which is too small" } else { "which is too large" };
        self.complain(at, format!("`{}` is {number}, {reason}", table.path_of(key)), None);
        None
    }

    /// Says what was expected and what kind was found, without the value, which may be a token.
    pub(super) fn wrong_kind<T>(
        &mut self,
        at: Position,
        key: &str,
        expected: &str,
        found: &Value,
    ) -> Option<T> {
        let message = format!("expected {expected} under `{key}`, found {}", found.kind());
        self.complain(at, message, None);
        None
    }
}

/// A number without a fraction, of a size at which none is lost.
fn as_whole(number: f64) -> Option<i128> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let whole = number.fract() == 0.0 && number.abs() <= EXACT;
    // The text of such a number is its digits.
    if whole { format!("{number:.0}").parse().ok() } else { None }
}
