//! The answers that were seen, by face and status, and everything that should not have been.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Mutex, MutexGuard},
};

/// Failures beyond this are only counted: the first ones tell the story.
const MOST_COMPLAINTS: usize = 20;

#[derive(Default)]
pub(super) struct Ledger(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    /// How often a face answered with a status.
    answers: BTreeMap<(&'static str, u16), u64>,
    notes: Vec<String>,
    complaints: Vec<String>,
    more_complaints: u64,
}

impl Ledger {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap()
    }

    /// An answer. Status 0 stands for a connection that ended without one.
    pub(super) fn count(&self, face: &'static str, status: u16) {
        *self.entries().answers.entry((face, status)).or_default() += 1;
    }

    /// Something worth a line of the report.
    pub(super) fn note(&self, line: String) {
        self.entries().notes.push(line);
    }

    /// Something that must not happen.
    pub(super) fn complain(&self, text: String) {
        let mut entries = self.entries();
        if entries.complaints.len() < MOST_COMPLAINTS {
            entries.complaints.push(text);
        } else {
            entries.more_complaints += 1;
        }
    }

    pub(super) fn complaints(&self) -> Vec<String> {
        let entries = self.entries();
        let mut complaints = entries.complaints.clone();
        if entries.more_complaints > 0 {
            complaints.push(format!("and {} more", entries.more_complaints));
        }
        complaints
    }

    pub(super) fn report(&self) -> String {
        let entries = self.entries();
        let mut report = String::new();
        let mut last = "";
        for ((face, status), count) in &entries.answers {
            let head = if *face == last {
                String::new()
            } else {
                format!("\n{face:>12}:")
            };
            let _ = write!(report, "{head} {status}×{count}");
            last = face;
        }
        for note in &entries.notes {
            let _ = write!(report, "\n{note}");
        }
        report
    }
}
