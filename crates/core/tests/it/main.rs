//! The host from outside: what callers, tool authors and operators rely on.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod acknowledging;
mod agreement;
mod approvals;
mod artifacts;
mod background;
mod batches;
mod companions;
mod consulting;
mod credentials;
mod delegating;
mod discovery;
mod evidence;
mod explaining;
mod failing_journal;
mod finding;
mod honesty;
mod hooks;
mod names;
mod nested;
mod patience;
mod pipeline;
mod recovery;
mod redaction;
mod repeats;
mod replay;
mod rules;
mod settings;
mod stopping;
mod witnesses;
