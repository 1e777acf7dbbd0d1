//! What goes on while modules are fetched and installed: drawn on a terminal, silent elsewhere.

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use toolpost_sources::Progress;

use super::printable;

/// Work of several steps.
#[derive(Clone)]
pub(crate) struct Steps {
    bar: ProgressBar,
}

impl Steps {
    pub(crate) fn begin(what: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{spinner} {prefix} {elapsed} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.set_prefix(printable(what));
        bar.enable_steady_tick(std::time::Duration::from_millis(120));
        Self { bar }
    }

    pub(crate) fn show(&self, progress: &Progress) {
        match progress {
            Progress::Step(text) | Progress::Line(text) => self.bar.set_message(printable(text)),
            Progress::Bytes { done, total } => {
                let total = total.map(|total| format!(" of {}", HumanBytes(total))).unwrap_or_default();
                self.bar.set_message(format!("{}{total}", HumanBytes(*done)));
            }
        }
    }

    pub(crate) fn end(self) {
        self.bar.finish_and_clear();
    }
}
