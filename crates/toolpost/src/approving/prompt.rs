//! Prompts on the terminal, one question at a time. A question that is answered elsewhere disappears. The prompt never
//! blocks the host.

use std::{collections::HashSet, io};

use anyhow::Context;
use tokio::task::JoinHandle;
use toolpost_config::ApprovalsConfig;
use toolpost_core::Host;
use toolpost_model::{ApprovalScope, InvocationId, PermissionRequest, Principal, Verdict};

use super::{
    desk::{ApprovalDesk, VerdictRefusal, VerdictRefusalKind},
    editing::{self, ArgumentEditOutcome},
    ids::short,
    question::{QuestionDetailLevel, card},
    receipt::saved_rules,
};
use crate::{
    environment::{self, ControllingTerminal, TerminalInput},
    terminal::{BOLD, DIM, GREEN, RED, YELLOW, for_terminal, printable, spelled_out, styled},
};

const HELP: &str = "\
  y            allow it this once
  s [NUMBER]   allow it, and similar calls by that rule until the session ends
  r [NUMBER]   the same, and remember the rule for this workspace
  t            allow it this once, and from now on the tools of its server marked `+`
  e            edit the arguments, then allow it this once
  n [TEXT]     deny it; the agent reads the text
  v            view everything
  l            later: leave it for `toolpost approvals`
";

/// Notifies other writers on the terminal when a question is shown there.
pub(crate) type PromptPhaseListener = Box<dyn Fn(PromptPhase) + Send>;

/// The phase of a prompt, for other writers on the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PromptPhase {
    /// A question is about to be shown.
    Begins,
    /// The question disappeared.
    Ends,
}

/// The terminal for prompts, if there is one and the configuration permits it.
pub(crate) fn terminal(config: &ApprovalsConfig) -> Option<ControllingTerminal> {
    if config.prompt {
        ControllingTerminal::open()
    } else {
        None
    }
}

/// Prompts on the terminal of a serving host until it is stopped.
pub(crate) fn spawn(host: &Host, tty: ControllingTerminal) -> JoinHandle<()> {
    let desk = ApprovalDesk::of(host, Principal::operator("terminal"));
    tokio::spawn(async move {
        if let Err(error) = run(desk, tty, Box::new(|_| {})).await {
            tracing::warn!("approval prompts on the terminal have stopped: {error:#}");
        }
    })
}

/// Prompts until the host or the terminal is gone.
pub(crate) async fn run(
    mut desk: ApprovalDesk,
    mut tty: ControllingTerminal,
    quiet: PromptPhaseListener,
) -> anyhow::Result<()> {
    let mut later: HashSet<InvocationId> = HashSet::new();
    loop {
        let pending = desk.pending();
        later.retain(|id| pending.iter().any(|question| question.ask_id == *id));
        let next = pending
            .iter()
            .position(|question| !later.contains(&question.ask_id));
        let Some(place) = next else {
            desk.wait_for_change().await?;
            continue;
        };
        let question = &pending[place];
        let more = pending.len() - later.len() - 1;
        quiet(PromptPhase::Begins);
        let settled = QuestionPrompt {
            desk: &mut desk,
            tty: &mut tty,
            question,
        }
        .run_prompt(more)
        .await;
        quiet(PromptPhase::Ends);
        match settled? {
            PromptOutcome::Answered => {}
            PromptOutcome::Later => {
                later.insert(question.ask_id);
            }
        }
    }
}

enum PromptOutcome {
    Answered,
    Later,
}

enum PromptReply {
    Line(String),
    /// The terminal was closed, or its user gave up.
    End,
    /// The question was answered elsewhere.
    Gone,
}

struct QuestionPrompt<'a> {
    desk: &'a mut ApprovalDesk,
    tty: &'a mut ControllingTerminal,
    question: &'a PermissionRequest,
}

impl QuestionPrompt<'_> {
    async fn run_prompt(&mut self, more: usize) -> anyhow::Result<PromptOutcome> {
        let now = environment::now();
        let heading = styled(YELLOW, "approval needed");
        let more = match more {
            0 => String::new(),
            more => styled(DIM, format!(" ({more} more after this)")),
        };
        self.write_prompt_text(&format!(
            "\n{heading}{more}\n{}",
            card(self.question, now, QuestionDetailLevel::ForPrompt)
        ))
        .await?;
        self.tty.discard_typed_input();
        loop {
            let choices = choices(self.question);
            let typed = match self
                .ask(&format!("{} [{choices}] ", styled(BOLD, "allow?")))
                .await?
            {
                PromptReply::Line(line) => line,
                PromptReply::End => "later".to_owned(),
                PromptReply::Gone => return Ok(PromptOutcome::Answered),
            };
            if let Some(settled) = self.run_typed_command(&typed).await? {
                return Ok(settled);
            }
        }
    }

    /// Runs a typed command. `None`: prompt again.
    async fn run_typed_command(&mut self, typed: &str) -> anyhow::Result<Option<PromptOutcome>> {
        let (word, rest) = typed.split_once(' ').unwrap_or((typed, ""));
        let rest = rest.trim();
        match word.to_ascii_lowercase().as_str() {
            "y" | "yes" => self.allow(ApprovalScope::Once, None).await,
            "s" | "session" => self.allow_more(ApprovalScope::Session, rest).await,
            "r" | "remember" => self.allow_more(ApprovalScope::Remember, rest).await,
            "t" | "tools" => self.allow_source_reads().await,
            "e" | "edit" => self.edit().await,
            "n" | "no" => self.deny(rest).await,
            "l" | "later" => {
                let how = format!("`toolpost approvals show {}`", short(self.question.ask_id));
                self.write_prompt_text(&format!("the question stays open; {how} shows it again\n"))
                    .await?;
                Ok(Some(PromptOutcome::Later))
            }
            "v" | "view" => {
                self.write_prompt_text(&card(
                    self.question,
                    environment::now(),
                    QuestionDetailLevel::Whole,
                ))
                .await?;
                Ok(None)
            }
            _ => {
                self.write_prompt_text(HELP).await?;
                Ok(None)
            }
        }
    }

    async fn allow(
        &mut self,
        scope: ApprovalScope,
        rule: Option<String>,
    ) -> anyhow::Result<Option<PromptOutcome>> {
        let what = match (scope, &rule) {
            (ApprovalScope::Once | ApprovalScope::SourceReads, _) | (_, None) => {
                "allowed once".to_owned()
            }
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

    /// Allows similar calls too, by one of the suggested rules.
    async fn allow_more(
        &mut self,
        scope: ApprovalScope,
        number: &str,
    ) -> anyhow::Result<Option<PromptOutcome>> {
        let rules = &self.question.suggestions;
        let number = match (rules.len(), number) {
            (0, _) => {
                self.write_prompt_text(
                    "no rule can be offered for this call; it can only be allowed once\n",
                )
                .await?;
                return Ok(None);
            }
            (1, "") => "1".to_owned(),
            (_, "") => {
                let prompt = format!("which rule? [1-{}, Enter to go back] ", rules.len());
                match self.ask(&prompt).await? {
                    PromptReply::Line(line) if line.is_empty() => return Ok(None),
                    PromptReply::Line(line) => line,
                    PromptReply::End => return Ok(None),
                    PromptReply::Gone => return Ok(Some(PromptOutcome::Answered)),
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
                self.write_prompt_text(&format!("there is no rule `{}`\n", spelled_out(&number)))
                    .await?;
                Ok(None)
            }
        }
    }

    /// Allows the call once, and from now on the tools of its source that the question offers.
    async fn allow_source_reads(&mut self) -> anyhow::Result<Option<PromptOutcome>> {
        if self.question.source_offer.is_none() {
            self.write_prompt_text("this question offers no further tools\n")
                .await?;
            return Ok(None);
        }
        let verdict = Verdict::Allow {
            scope: ApprovalScope::SourceReads,
            rule: None,
            valid_for_seconds: None,
            arguments: None,
        };
        match self.desk.decide(self.question.ask_id, verdict).await {
            Ok(decided) => {
                let saved = saved_rules(&decided);
                let heading = styled(GREEN, "allowed once, and remembered from now on:");
                self.write_prompt_text(&format!("{heading}\n")).await?;
                for rule in saved {
                    self.write_prompt_text(&format!("  {rule}\n")).await?;
                }
                Ok(Some(PromptOutcome::Answered))
            }
            Err(error) => self.report_refusal(error).await,
        }
    }

    async fn edit(&mut self) -> anyhow::Result<Option<PromptOutcome>> {
        match editing::edit(self.desk, Some(self.tty), self.question).await {
            Ok(ArgumentEditOutcome::Allowed(decided)) => {
                self.write_prompt_text(&format!(
                    "{}\n",
                    styled(GREEN, "allowed once, with the edited arguments")
                ))
                .await?;
                for change in editing::changes(&decided) {
                    self.write_prompt_text(&format!("  {change}\n")).await?;
                }
                Ok(Some(PromptOutcome::Answered))
            }
            Ok(ArgumentEditOutcome::Kept) => {
                self.write_prompt_text("no changes; the question stays open\n")
                    .await?;
                Ok(None)
            }
            Err(error) => self.report_refusal(error).await,
        }
    }

    async fn deny(&mut self, feedback: &str) -> anyhow::Result<Option<PromptOutcome>> {
        let feedback = match feedback {
            "" => match self.ask("reason for the agent? [none] ").await? {
                PromptReply::Line(line) => line,
                PromptReply::End => return Ok(None),
                PromptReply::Gone => return Ok(Some(PromptOutcome::Answered)),
            },
            given => given.to_owned(),
        };
        let feedback = Some(feedback).filter(|text| !text.is_empty());
        self.decide(Verdict::Deny { feedback }, &styled(RED, "denied"))
            .await
    }

    async fn decide(
        &mut self,
        verdict: Verdict,
        done: &str,
    ) -> anyhow::Result<Option<PromptOutcome>> {
        match self.desk.decide(self.question.ask_id, verdict).await {
            Ok(_) => {
                self.write_prompt_text(&format!("{done}\n")).await?;
                Ok(Some(PromptOutcome::Answered))
            }
            Err(error) => self.report_refusal(error).await,
        }
    }

    /// Reports an answer that the host refused. Any other failure ends the prompts.
    async fn report_refusal(
        &mut self,
        error: anyhow::Error,
    ) -> anyhow::Result<Option<PromptOutcome>> {
        if error.is::<io::Error>() {
            return Err(error);
        }
        self.write_prompt_text(&format!(
            "{} {}\n",
            styled(RED, "error:"),
            printable(&format!("{error:#}"))
        ))
        .await?;
        let gone = error
            .downcast_ref::<VerdictRefusal>()
            .is_some_and(|refusal| refusal.kind == VerdictRefusalKind::Gone);
        Ok(gone.then_some(PromptOutcome::Answered))
    }

    /// Waits for a line, at most until the question ends.
    async fn ask(&mut self, prompt: &str) -> anyhow::Result<PromptReply> {
        self.write_prompt_text(prompt).await?;
        let id = self.question.ask_id;
        let typed = tokio::select! {
            typed = self.tty.read_line() => typed.context("the terminal is closed")?,
            gone = wait_until_closed(self.desk, id) => {
                gone?;
                self.write_prompt_text(&format!("\n{}\n", styled(DIM, "the question is closed: answered elsewhere, withdrawn or expired"))).await?;
                return Ok(PromptReply::Gone);
            }
        };
        match typed {
            TerminalInput::Line(line) => Ok(PromptReply::Line(line)),
            TerminalInput::Nothing => {
                self.write_prompt_text("\n").await?;
                Ok(PromptReply::End)
            }
        }
    }

    async fn write_prompt_text(&self, text: &str) -> anyhow::Result<()> {
        Ok(self.tty.write_text(&for_terminal(text)).await?)
    }
}

/// The answers that the question takes, with their keys.
fn choices(question: &PermissionRequest) -> String {
    let mut choices = vec!["y once"];
    if !question.suggestions.is_empty() {
        choices.extend(["s session", "r remember"]);
    }
    if question.source_offer.is_some() {
        choices.push("t once and the tools marked +");
    }
    if !question.redacted {
        choices.push("e edit");
    }
    choices.extend(["n deny", "l later", "? help"]);
    choices.join(", ")
}

async fn wait_until_closed(desk: &mut ApprovalDesk, id: InvocationId) -> anyhow::Result<()> {
    loop {
        if !desk.pending().iter().any(|question| question.ask_id == id) {
            return Ok(());
        }
        desk.wait_for_change().await?;
    }
}
