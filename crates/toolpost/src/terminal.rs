//! Output for people: errors, colors, progress. Only results go to stdout.

mod redaction;
mod steps;
mod text;

use std::io::{IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use toolpost_model::{ApprovalStatus, EventBody};
use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

use crate::{approving::ids, environment};

pub(crate) use redaction::{clean, set_host_redactor};
pub(crate) use steps::ProgressSteps;
pub(crate) use text::{counted, moment, printable, spelled_out};

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();

/// A line on stdout, without colors if stdout is no terminal.
pub(crate) fn print_line(line: std::fmt::Arguments<'_>) {
    write_all(anstream::stdout().lock(), format_args!("{line}\n"));
}

/// Whether cards can be drawn on stdout: a terminal with cursor movement.
pub(crate) fn draws() -> bool {
    let is_dumb =
        environment::variable("TERM").is_none_or(|kind| kind.is_empty() || kind == "dumb");
    std::io::stdout().is_terminal() && !is_dumb
}

/// Whether colors show on stdout.
pub(crate) fn has_colours() -> bool {
    !matches!(
        anstream::AutoStream::choice(&std::io::stdout()),
        anstream::ColorChoice::Never
    )
}

/// Columns and lines of the terminal behind stdout.
pub(crate) fn size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    let known = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    known.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()))
}

/// Writes text to stdout unchanged.
pub(crate) fn print_text(text: std::fmt::Arguments<'_>) {
    write_all(std::io::stdout().lock(), text);
}

/// If the reader has closed the pipe, the command ends silently. Any other write error, such as a full disk, is a
/// failure.
fn write_all(mut to: impl Write, text: std::fmt::Arguments<'_>) {
    match to.write_fmt(text).and_then(|()| to.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            anstream::eprintln!(
                "{} the output cannot be written: {error}",
                styled(RED, "error:")
            );
            std::process::exit(1);
        }
    }
}

/// `println!` for results.
macro_rules! say {
    ($($text:tt)*) => { $crate::terminal::print_line(format_args!($($text)*)) };
}

pub(crate) use say;

/// Text in a style; `anstream` removes the style where it cannot be shown.
pub(crate) fn styled(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Text for the terminal itself: its colors stay if stderr would show them.
pub(crate) fn for_terminal(text: &str) -> std::borrow::Cow<'_, str> {
    match anstream::AutoStream::choice(&std::io::stderr()) {
        anstream::ColorChoice::Never => anstream::adapter::strip_str(text).to_string().into(),
        _ => text.into(),
    }
}

/// Sends logs to stderr; `TOOLPOST_LOG` filters them.
pub(crate) fn start_logging() {
    log_to(std::io::stderr);
    std::panic::set_hook(Box::new(|panic| {
        anstream::eprintln!("{}", clean(&panic.to_string()));
    }));
}

/// The same for a host with a stderr that may be a pipe without a reader. A write to a full pipe blocks, and with it
/// each task that logs, so the host would stop serving. So a thread of its own writes, and lines are dropped when its
/// queue is full.
pub(crate) fn start_logging_aside() {
    let (lines, to_write) = std::sync::mpsc::sync_channel::<Vec<u8>>(LOG_LINES);
    std::thread::spawn(move || {
        while let Ok(line) = to_write.recv() {
            if std::io::stderr().write_all(&line).is_err() {
                return;
            }
        }
    });
    log_to(move || BackgroundLogWriter(lines.clone()));
    std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
}

/// The most log lines that wait to be written.
const LOG_LINES: usize = 256;

struct BackgroundLogWriter(std::sync::mpsc::SyncSender<Vec<u8>>);

impl Write for BackgroundLogWriter {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        let _ = self.0.try_send(text.to_vec());
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn log_to<W: for<'a> MakeWriter<'a> + Send + Sync + 'static>(writer: W) {
    let filter = environment::log_filter().unwrap_or_else(|| "warn".to_owned());
    // The shell's parser logs every word of a command, secrets among them.
    let without_commands = |filter: &str| format!("{filter},tokenize=off,parse=off,expansion=off");
    let filter = EnvFilter::try_new(without_commands(&filter))
        .unwrap_or_else(|_| EnvFilter::new(without_commands("warn")));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(redaction::RedactingWriter(writer))
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
}

/// An error for people: the message, its causes, and the hint if there is one.
pub(crate) fn print_error(error: &anyhow::Error) {
    let mut causes = error.chain().map(ToString::to_string);
    let first = causes.next().unwrap_or_default();
    anstream::eprintln!("{} {}", styled(RED, "error:"), printable(&clean(&first)));
    let mut said = first;
    for cause in causes {
        // Transparent errors repeat their source.
        if !said.contains(&cause) {
            anstream::eprintln!("  {} {}", styled(DIM, "because"), printable(&clean(&cause)));
        }
        said = cause;
    }
}

pub(crate) fn warn(message: impl std::fmt::Display) {
    anstream::eprintln!(
        "{} {}",
        styled(YELLOW, "warning:"),
        clean(&message.to_string())
    );
}

/// A bar for work of known size, on a terminal only.
pub(crate) fn bar(total: u64, what: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} {eta}");
    bar.set_style(
        style
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> "),
    );
    bar.with_message(what)
}

/// A running call, live on a terminal.
#[derive(Clone)]
pub(crate) struct LiveCallDisplay {
    bar: ProgressBar,
    /// The patience for an approval in seconds, if it is shorter than the question's own time.
    patience: Option<f64>,
}

impl LiveCallDisplay {
    pub(crate) fn begin(tool: &str, patience: Option<f64>) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{spinner} {prefix} {elapsed} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.set_prefix(printable(tool));
        bar.enable_steady_tick(std::time::Duration::from_millis(120));
        Self { bar, patience }
    }

    pub(crate) fn show(&self, event: &EventBody) {
        match event {
            EventBody::Stage { .. } => {}
            EventBody::Progress(progress) => {
                let share = match (progress.percent, progress.done, progress.total) {
                    (Some(percent), _, _) => format!("{percent:.0} %"),
                    (None, Some(done), Some(total)) if total > 0 => {
                        format!("{} %", done.saturating_mul(100) / total)
                    }
                    (None, Some(done), _) => done.to_string(),
                    (None, None, _) => String::new(),
                };
                self.bar
                    .set_message(format!("{share} {}", printable(&progress.message)));
            }
            EventBody::Status { message } => self.bar.set_message(printable(message)),
            EventBody::Approval(ApprovalStatus::Pending { ask_id, expires_at }) => {
                let id = ids::short(*ask_id);
                let until = moment(&expires_at.to_string());
                let waits = match self.patience {
                    Some(seconds) => format!(
                        "waiting {seconds} s for an operator's approval (question {id}, open until {until})"
                    ),
                    None => {
                        format!("waiting until {until} for an operator's approval (question {id})")
                    }
                };
                let waits = format!(
                    "{waits}: `toolpost approvals show {id}`, `toolpost approvals allow {id}`"
                );
                // A hidden bar prints nothing, and this message must be seen.
                if self.bar.is_hidden() {
                    anstream::eprintln!("{waits}");
                } else {
                    self.bar.println(waits);
                }
            }
            EventBody::Approval(ApprovalStatus::Granted { .. }) => self.bar.set_message("approved"),
            EventBody::Log { message, .. } => self.bar.println(printable(message)),
            EventBody::Artifact { name, .. } => {
                self.bar.println(format!("artifact {}", printable(name)));
            }
            body @ EventBody::Custom { name, .. } => match body.as_module_event() {
                Some((event, data)) => self.bar.println(printable(&format!("{event} {data}"))),
                None => self.bar.set_message(printable(name)),
            },
            EventBody::Message { message } => {
                let kind = message
                    .get("type")
                    .and_then(serde_json::Value::as_str)
                    .unwrap_or("message");
                self.bar.println(printable(kind));
            }
            EventBody::Kept(piece) => {
                self.bar.println(format!(
                    "kept {} as {} ({} bytes)",
                    printable(&piece.name),
                    piece.id,
                    piece.size
                ));
            }
            EventBody::Output(chunk) => chunk
                .text
                .lines()
                .for_each(|line| self.bar.println(printable(line))),
        }
    }

    /// Hides the progress while a question is on the terminal.
    pub(crate) fn hide_progress(&self) {
        self.bar.set_draw_target(ProgressDrawTarget::hidden());
    }

    pub(crate) fn resume_progress(&self) {
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
    }

    pub(crate) fn end(self) {
        self.bar.finish_and_clear();
    }
}
