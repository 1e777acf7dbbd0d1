//! Asking on the terminal, one question at a time. A question that is answered elsewhere disappears; nothing here
//! holds up the host.

use std::{collections::HashSet, io};

use anyhow::Context;
use tokio::task::JoinHandle;
use toolpost_config::ApprovalsConfig;
use toolpost_core::Host;
use toolpost_model::{ApprovalScope, InvocationId, PermissionRequest, Principal, Verdict};

use super::{
    desk::{Desk, Refusal, RefusalKind},
    editing::{self, Edited},
    ids::short,
    question::{Shown, card},
};
use crate::{
    environment::{self, Tty, Typed},
    terminal::{BOLD, DIM, GREEN, RED, YELLOW, for_terminal, printable, spelled_out, styled},
};

const HELP: &str = "\
  y            allow it this once
  s [NUMBER]   allow it, and the like of it by the rule of that number, until the session ends
  r [NUMBER]   the same, and remember the rule for this workspace
  e            edit the arguments, then allow it this once
  n [TEXT]     deny it; the agent reads the text
  v            view everything
  l            later: leave it for `toolpost approvals`
";

/// Tells others who draw on the terminal when a question stands there.
pub(crate) type Quiet = Box<dyn Fn(Asking) + Send>;

/// Whether the terminal is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asking {
    /// A question is about to be shown.
    Begins,
    /// It is gone.
    Ends,
}

/// The terminal to ask on, where there is one and it may be used.
pub(crate) fn terminal(config: &ApprovalsConfig) -> Option<Tty> {
    if config.prompt { Tty::open() } else { None }
}

/// Asks on the terminal of a host that serves, until told to stop.
pub(crate) fn spawn(host: &Host, tty: Tty) -> JoinHandle<()> {
    let desk = Desk::of(host, Principal::operator("terminal"));
    tokio::spawn(async move {
        if let Err(error) = run(desk, tty, Box::new(|_| {})).await {
            tracing::warn!("questions are no longer asked on the terminal: {error:#}");
        }
    })
}

/// Asks until the host or the terminal is gone.
pub(crate) async fn run(mut desk: Desk, mut tty: Tty, quiet: Quiet) -> anyhow::Result<()> {
    let mut later: HashSet<InvocationId> = HashSet::new();
    loop {
        let pending = desk.pending();
        later.retain(|id| pending.iter().any(|question| question.ask_id == *id));
        let next = pending
            .iter()
            .position(|question| !later.contains(&question.ask_id));
        let Some(place) = next else {
            desk.changed().await?;
            continue;
        };
        let question = &pending[place];
        let more = pending.len() - later.len() - 1;
        quiet(Asking::Begins);
        let settled = Conversation {
            desk: &mut desk,
            tty: &mut tty,
            question,
        }
        .hold(more)
        .await;
        quiet(Asking::Ends);
        match settled? {
            Settled::Answered => {}
            Settled::Later => {
                later.insert(question.ask_id);
            }
        }
    }
}

enum Settled {
    Answered,
    Later,
}

/// What came of a prompt.
enum Heard {
    Line(String),
    /// Nobody wants to answer now.
    End,
    /// There is nothing left to answer.
    Gone,
}

struct Conversation<'a> {
    desk: &'a mut Desk,
    tty: &'a mut Tty,
    question: &'a PermissionRequest,
}

impl Conversation<'_> {
    async fn hold(&mut self, more: usize) -> anyhow::Result<Settled> {
        let now = environment::now();
        let heading = styled(YELLOW, "approval needed");
        let more = match more {
            0 => String::new(),
            more => styled(DIM, format!(" ({more} more after this)")),
        };
        self.say(&format!(
            "\n{heading}{more}\n{}",
            card(self.question, now, Shown::ForPrompt)
        ))
        .await?;
        self.tty.forget_typed();
        loop {
            let choices = match (self.question.suggestions.is_empty(), self.question.redacted) {
                (false, false) => "y once, s session, r remember, e edit, n deny, l later, ? help",
                (true, false) => "y once, e edit, n deny, l later, ? help",
                (false, true) => "y once, s session, r remember, n deny, l later, ? help",
                (true, true) => "y once, n deny, l later, ? help",
            };
            let typed = match self
                .ask(&format!("{} [{choices}] ", styled(BOLD, "allow?")))
                .await?
            {
                Heard::Line(line) => line,
                Heard::End => "later".to_owned(),
                Heard::Gone => return Ok(Settled::Answered),
            };
            if let Some(settled) = self.take(&typed).await? {
                return Ok(settled);
            }
        }
    }

    /// Does what was typed. `None`: ask again.
    async fn take(&mut self, typed: &str) -> anyhow::Result<Option<Settled>> {
        let (word, rest) = typed.split_once(' ').unwrap_or((typed, ""));
        let rest = rest.trim();
        match word.to_ascii_lowercase().as_str() {
            "y" | "yes" => self.allow(ApprovalScope::Once, None).await,
            "s" | "session" => self.allow_more(ApprovalScope::Session, rest).await,
            "r" | "remember" => self.allow_more(ApprovalScope::Remember, rest).await,
            "e" | "edit" => self.edit().await,
            "n" | "no" => self.deny(rest).await,
            "l" | "later" => {
                let how = format!("`toolpost approvals show {}`", short(self.question.ask_id));
                self.say(&format!("it waits; {how} shows it again\n"))
                    .await?;
                Ok(Some(Settled::Later))
            }
            "v" | "view" => {
                self.say(&card(self.question, environment::now(), Shown::Whole))
                    .await?;
                Ok(None)
            }
            _ => {
                self.say(HELP).await?;
                Ok(None)
            }
        }
    }

    async fn allow(
        &mut self,
        scope: ApprovalScope,
        rule: Option<String>,
    ) -> anyhow::Result<Option<Settled>> {
        let what = match (scope, &rule) {
            (ApprovalScope::Once, _) | (_, None) => "allowed once".to_owned(),
            (ApprovalScope::Session, Some(rule)) => {
                format!("allowed, for this session by `{}`", spelled_out(rule))
            }
            (ApprovalScope::Remember, Some(rule)) => {
                format!("allowed, and remembered as `{}`", spelled_out(rule))
            }
        };
        let verdict = Verdict::Allow {
            scope,
            rule,
            valid_for_seconds: None,
            arguments: None,
        };
        self.decide(verdict, &styled(GREEN, what)).await
    }

    /// Allows the like of the call too, by one of the suggested rules.
    async fn allow_more(
        &mut self,
        scope: ApprovalScope,
        number: &str,
    ) -> anyhow::Result<Option<Settled>> {
        let rules = &self.question.suggestions;
        let number = match (rules.len(), number) {
            (0, _) => {
                self.say("no rule can be offered for this call; it can only be allowed once\n")
                    .await?;
                return Ok(None);
            }
            (1, "") => "1".to_owned(),
            (_, "") => {
                let prompt = format!("by which rule? [1-{}, nothing to go back] ", rules.len());
                match self.ask(&prompt).await? {
                    Heard::Line(line) if line.is_empty() => return Ok(None),
                    Heard::Line(line) => line,
                    Heard::End => return Ok(None),
                    Heard::Gone => return Ok(Some(Settled::Answered)),
                }
            }
            (_, number) => number.to_owned(),
        };
        let chosen = number
            .parse::<usize>()
            .ok()
            .and_then(|number| rules.get(number.checked_sub(1)?));
        match chosen.cloned() {
            Some(rule) => self.allow(scope, Some(rule)).await,
            None => {
                self.say(&format!("there is no rule `{}`\n", spelled_out(&number)))
                    .await?;
                Ok(None)
            }
        }
    }

    async fn edit(&mut self) -> anyhow::Result<Option<Settled>> {
        match editing::edit(self.desk, Some(self.tty), self.question).await {
            Ok(Edited::Allowed(decided)) => {
                self.say(&format!(
                    "{}\n",
                    styled(GREEN, "allowed once, with the arguments as edited")
                ))
                .await?;
                for change in editing::changes(&decided) {
                    self.say(&format!("  {change}\n")).await?;
                }
                Ok(Some(Settled::Answered))
            }
            Ok(Edited::Kept) => {
                self.say("nothing was changed; the question still waits\n")
                    .await?;
                Ok(None)
            }
            Err(error) => self.refused(error).await,
        }
    }

    async fn deny(&mut self, feedback: &str) -> anyhow::Result<Option<Settled>> {
        let feedback = match feedback {
            "" => match self
                .ask("what should the agent be told? [nothing] ")
                .await?
            {
                Heard::Line(line) => line,
                Heard::End => return Ok(None),
                Heard::Gone => return Ok(Some(Settled::Answered)),
            },
            given => given.to_owned(),
        };
        let feedback = Some(feedback).filter(|text| !text.is_empty());
        self.decide(Verdict::Deny { feedback }, &styled(RED, "denied"))
            .await
    }

    async fn decide(&mut self, verdict: Verdict, done: &str) -> anyhow::Result<Option<Settled>> {
        match self.desk.decide(self.question.ask_id, verdict).await {
            Ok(_) => {
                self.say(&format!("{done}\n")).await?;
                Ok(Some(Settled::Answered))
            }
            Err(error) => self.refused(error).await,
        }
    }

    /// An answer the host did not take; anything else than that ends the asking.
    async fn refused(&mut self, error: anyhow::Error) -> anyhow::Result<Option<Settled>> {
        if error.is::<io::Error>() {
            return Err(error);
        }
        self.say(&format!(
            "{} {}\n",
            styled(RED, "error:"),
            printable(&format!("{error:#}"))
        ))
        .await?;
        let gone = error
            .downcast_ref::<Refusal>()
            .is_some_and(|refusal| refusal.kind == RefusalKind::Gone);
        Ok(gone.then_some(Settled::Answered))
    }

    /// Waits for a line, but not past the end of the question.
    async fn ask(&mut self, prompt: &str) -> anyhow::Result<Heard> {
        self.say(prompt).await?;
        let id = self.question.ask_id;
        let typed = tokio::select! {
            typed = self.tty.line() => typed.context("the terminal is gone")?,
            gone = until_gone(self.desk, id) => {
                gone?;
                self.say(&format!("\n{}\n", styled(DIM, "it was answered elsewhere, withdrawn or has expired"))).await?;
                return Ok(Heard::Gone);
            }
        };
        match typed {
            Typed::Line(line) => Ok(Heard::Line(line)),
            Typed::Nothing => {
                self.say("\n").await?;
                Ok(Heard::End)
            }
        }
    }

    async fn say(&self, text: &str) -> anyhow::Result<()> {
        Ok(self.tty.say(&for_terminal(text)).await?)
    }
}

async fn until_gone(desk: &mut Desk, id: InvocationId) -> anyhow::Result<()> {
    loop {
        if !desk.pending().iter().any(|question| question.ask_id == id) {
            return Ok(());
        }
        desk.changed().await?;
    }
}
