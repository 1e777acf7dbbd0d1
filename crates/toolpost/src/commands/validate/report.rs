//! The report of a validation: named checks in their order, with their severity.

use serde::Serialize;

use crate::terminal::{BOLD, GREEN, RED, YELLOW, clean, counted, printable, say, styled};

use super::check::CheckName;

/// The most of a module's message that is repeated.
const LONGEST_MESSAGE: usize = 600;

/// The severity of a failed check. Passed checks are only listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CheckSeverity {
    /// For information only.
    Info,
    /// It works here, but may fail elsewhere.
    Warning,
    /// It violates the contract.
    Error,
}

/// A completed check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ValidationCheck {
    /// The check.
    pub(crate) name: CheckName,
    /// Whether it passed.
    pub(crate) passed: bool,
    /// The observation.
    pub(crate) message: String,
    pub(crate) severity: CheckSeverity,
}

/// All findings about one module, as `--json` prints them.
#[derive(Debug, Serialize)]
pub(crate) struct ValidationReport {
    module_type: &'static str,
    module_path: String,
    passed: bool,
    checks: Vec<ValidationCheck>,
}

impl ValidationCheck {
    pub(crate) fn passed(name: CheckName, message: impl AsRef<str>) -> Self {
        Self {
            name,
            passed: true,
            message: sanitize_message(message.as_ref()),
            severity: CheckSeverity::Info,
        }
    }

    /// A failed check with its usual severity.
    pub(crate) fn failed(name: CheckName, message: impl AsRef<str>) -> Self {
        Self {
            name,
            passed: false,
            message: sanitize_message(message.as_ref()),
            severity: name.weight(),
        }
    }

    /// The same with another severity.
    pub(crate) fn weighing(self, severity: CheckSeverity) -> Self {
        Self { severity, ..self }
    }

    pub(crate) fn mildly(self) -> Self {
        self.weighing(CheckSeverity::Warning)
    }

    pub(crate) fn is_error(&self) -> bool {
        !self.passed && self.severity == CheckSeverity::Error
    }
}

/// Text from modules, made harmless and short.
fn sanitize_message(message: &str) -> String {
    let message = printable(&clean(message));
    match message.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message,
    }
}

impl ValidationReport {
    /// A report with its checks in order. Checks of one name stay in the order in which they ran.
    pub(crate) fn new(module_path: String, mut checks: Vec<ValidationCheck>) -> Self {
        checks.sort_by_key(|check| check.name);
        Self {
            module_type: "tool",
            module_path,
            passed: !checks.iter().any(ValidationCheck::is_error),
            checks,
        }
    }

    pub(crate) fn is_passed(&self) -> bool {
        self.passed
    }

    /// `PASSED: 18/18 checks passed (0 errors, 0 warnings)`
    fn summary(&self) -> String {
        let failed = |severity| {
            self.checks
                .iter()
                .filter(|c| !c.passed && c.severity == severity)
                .count()
        };
        format!(
            "{}: {}/{} checks passed ({}, {})",
            if self.passed { "PASSED" } else { "FAILED" },
            self.checks.iter().filter(|check| check.passed).count(),
            self.checks.len(),
            counted(failed(CheckSeverity::Error), "error"),
            counted(failed(CheckSeverity::Warning), "warning"),
        )
    }

    /// As plain text: the summary first, then a line for each check, and a hint below those that failed.
    pub(crate) fn print(&self) {
        say!("{}", styled(BOLD, self.summary()));
        let widest = self
            .checks
            .iter()
            .map(|check| check.name.as_str().len())
            .max()
            .unwrap_or_default();
        for check in &self.checks {
            let mark = match (check.passed, check.severity) {
                (true, _) => styled(GREEN, "ok     "),
                (false, CheckSeverity::Error) => styled(RED, "error  "),
                (false, CheckSeverity::Warning) => styled(YELLOW, "warning"),
                (false, CheckSeverity::Info) => styled(YELLOW, "note   "),
            };
            let mut lines = check.message.lines();
            say!(
                "{mark}  {:<widest$}  {}",
                check.name.as_str(),
                lines.next().unwrap_or_default()
            );
            lines.for_each(|line| say!("{:width$}{line}", "", width = widest + 11));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_failed_check_that_is_an_error_fails_the_module() {
        let ok = ValidationCheck::passed(CheckName::MountExists, "there");
        let warning = ValidationCheck::failed(CheckName::Logging, "none");
        let error = ValidationCheck::failed(CheckName::ToolExecute, "not async");
        let check = |checks: &[&ValidationCheck], passed: bool, summary: &str| {
            let report = ValidationReport::new(
                "m".to_owned(),
                checks.iter().map(|&check| check.clone()).collect(),
            );
            assert_eq!(
                (report.is_passed(), report.summary().as_str()),
                (passed, summary)
            );
        };
        check(
            &[],
            true,
            "PASSED: 0/0 checks passed (0 errors, 0 warnings)",
        );
        check(
            &[&warning, &ok],
            true,
            "PASSED: 1/2 checks passed (0 errors, 1 warning)",
        );
        check(
            &[&warning, &error, &ok],
            false,
            "FAILED: 1/3 checks passed (1 error, 1 warning)",
        );
    }

    #[test]
    fn what_a_module_says_is_short_and_harmless() {
        let check = ValidationCheck::failed(
            CheckName::ToolName,
            format!("\u{1b}[2J{}", "x".repeat(2000)),
        );
        assert!(check.message.starts_with("\\u{1b}[2Jxx") && check.message.ends_with('…'));
        assert_eq!(check.message.chars().count(), LONGEST_MESSAGE + 1);
    }
}
