//! The progress of fetching and installing modules: drawn on a terminal, silent elsewhere.

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use toolpost_amplifier::ModuleId;
use toolpost_modules::ModuleSetupProgress;
use toolpost_serve::ModulesHandover;

use super::printable;

/// Work of several steps. When it is dropped, its display is removed from the terminal.
pub(crate) struct ProgressSteps {
    bar: ProgressBar,
}

impl ProgressSteps {
    pub(crate) fn begin(what: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{spinner} {prefix} {elapsed} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.set_prefix(printable(what));
        bar.enable_steady_tick(std::time::Duration::from_millis(120));
        Self { bar }
    }

    pub(crate) fn show(&self, progress: &ModuleSetupProgress) {
        match progress {
            ModuleSetupProgress::Step(text) | ModuleSetupProgress::Line(text) => {
                self.bar.set_message(printable(text));
            }
            ModuleSetupProgress::Bytes { done, total } => {
                let total = total
                    .map(|total| format!(" of {}", HumanBytes(total)))
                    .unwrap_or_default();
                self.bar
                    .set_message(format!("{}{total}", HumanBytes(*done)));
            }
        }
    }

    /// The progress of a starting host's modules, drawn from the first event on.
    pub(crate) fn of_modules() -> ModulesHandover {
        let mut steps: Option<Self> = None;
        let show = move |module: &ModuleId, progress: ModuleSetupProgress| {
            let steps = steps.get_or_insert_with(|| Self::begin(module.as_str()));
            steps.bar.set_prefix(printable(module.as_str()));
            steps.show(&progress);
        };
        ModulesHandover {
            progress: Some(Box::new(show)),
        }
    }
}

impl Drop for ProgressSteps {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
