//! The path of a call through the layers, drawn: when it reached each stage, how long each took, and the events there.

use std::cell::RefCell;

use toolpost_model::{Stage, Transition};

use crate::terminal::{BOLD, CYAN, DIM, say, styled};

/// The width of the whole call, in characters.
const WIDTH: u64 = 30;

pub(super) struct CallTimeline {
    transitions: Vec<Transition>,
    notes: RefCell<Vec<TimelineNote>>,
}

/// An event at a stage.
struct TimelineNote {
    stage: Stage,
    name: String,
    text: String,
}

impl CallTimeline {
    pub(super) fn of(transitions: Option<Vec<Transition>>) -> Self {
        Self {
            transitions: transitions.unwrap_or_default(),
            notes: RefCell::default(),
        }
    }

    pub(super) fn note(&self, stage: Stage, name: &str, text: String) {
        self.notes.borrow_mut().push(TimelineNote {
            stage,
            name: name.to_owned(),
            text,
        });
    }

    /// A writer for lines beneath a stage.
    pub(super) fn at(&self, stage: Stage) -> impl Fn(&str, String) {
        move |name, text| self.note(stage, name, text)
    }

    pub(super) fn draw(&self) {
        let whole = self.transitions.last().map_or(0, |last| last.at_us);
        say!("{}", styled(BOLD, "timeline"));
        let mut layer = "";
        for (place, reached) in self.transitions.iter().enumerate() {
            let next = self.transitions.get(place + 1).map(|next| next.at_us);
            let of = layer_of(reached.stage);
            let shown = if of == layer { "" } else { of };
            layer = of;
            let took = next.map(|next| next.saturating_sub(reached.at_us));
            let took = took
                .map(|took| format!("{:>10.3} ms", milliseconds(took)))
                .unwrap_or_default();
            let bar = bar(reached.at_us, next.unwrap_or(whole), whole);
            say!(
                "  {} {:<14} {:>10.3} ms  {}  {}",
                styled(BOLD, format!("{shown:<11}")),
                reached.stage.as_str(),
                milliseconds(reached.at_us),
                styled(CYAN, format!("|{bar}|")),
                styled(DIM, took)
            );
            let again = self.transitions[place + 1..]
                .iter()
                .any(|later| later.stage == reached.stage);
            if !again {
                self.notes_at(|stage| stage == reached.stage);
            }
        }
        // A call that was resumed after a restart has only its later stages.
        let reached = |stage: Stage| self.transitions.iter().any(|one| one.stage == stage);
        self.notes_at(|stage| !reached(stage));
    }

    fn notes_at(&self, wanted: impl Fn(Stage) -> bool) {
        for TimelineNote { name, text, .. } in
            self.notes.borrow().iter().filter(|note| wanted(note.stage))
        {
            say!("{:16}{}  {text}", "", styled(BOLD, format!("{name:<9}")));
        }
    }
}

/// The position of a period within the whole.
fn bar(from: u64, to: u64, whole: u64) -> String {
    let place = |at: u64| usize::try_from(at * WIDTH / whole.max(1)).unwrap_or_default();
    let width = usize::try_from(WIDTH).unwrap_or_default();
    // Even the shortest period is visible.
    let begin = place(from).min(width - 1);
    let end = place(to).clamp(begin + 1, width);
    format!(
        "{}{}{}",
        " ".repeat(begin),
        "#".repeat(end - begin),
        " ".repeat(width - end)
    )
}

fn milliseconds(micros: u64) -> f64 {
    micros as f64 / 1_000.0
}

fn layer_of(stage: Stage) -> &'static str {
    match stage {
        Stage::Resolve => "surface",
        Stage::Parse | Stage::Validate | Stage::Observe => "invocation",
        Stage::PreHooks | Stage::Decide | Stage::AwaitApproval => "permission",
        Stage::Admit => "scheduling",
        Stage::Execute => "execution",
        Stage::Map | Stage::PostHooks => "result",
        Stage::Persist | Stage::Emit => "record",
    }
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn bars_lie_where_their_time_does_and_always_show() {
        for (from, to, whole, expected) in [
            (0, 30, 30, "##############################"),
            (0, 15, 30, "###############               "),
            (15, 16, 30, "               #              "),
            (30, 30, 30, "                             #"),
            (0, 0, 0, "#                             "),
            (29, 29, 3_000_000, "#                             "),
        ] {
            assert_eq!(bar(from, to, whole), expected, "{from}..{to} of {whole}");
        }
    }
}
