//! The text of a question for an operator. All of it comes from an agent, so invisible characters must show: see
//! [`spelled_out`].

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::Value;
use toolpost_model::{
    Decision, Effects, PermissionRequest, ProgramFile, ResourceAccess, RuleRef, SandboxPlan,
    SourceReadOffer,
};

use super::ids::short;
use crate::terminal::{BOLD, DIM, YELLOW, spelled_out, styled};

/// How much of long arguments is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuestionDetailLevel {
    /// All of it at any length.
    Whole,
    /// As much as fits a screen; the rest is counted.
    ForPrompt,
}

/// Lines of one argument that a prompt shows.
const PROMPT_LINES: usize = 40;
/// Characters of one line that a prompt shows.
const PROMPT_WIDTH: usize = 2_000;
/// Characters of the summary in a list.
const LIST_WIDTH: usize = 100;

/// One line in a list: id, time left, caller, tool, summary.
pub(crate) fn row(question: &PermissionRequest, now: Timestamp) -> String {
    let summary = cut(&spelled_out(&question.summary), LIST_WIDTH);
    let waiting = match question.waiting {
        0 => ", no caller waits".to_owned(),
        1 => String::new(),
        calls => format!(", {calls} calls"),
    };
    format!(
        "{}  {}  {}  {summary}",
        styled(BOLD, short(question.ask_id)),
        styled(DIM, format!("{:>6} left{waiting}", left(question, now))),
        spelled_out(question.principal.name.as_str()),
    )
}

/// The facts that an operator needs for the answer.
pub(crate) fn card(
    question: &PermissionRequest,
    now: Timestamp,
    shown: QuestionDetailLevel,
) -> String {
    let mut page = QuestionCard {
        text: String::new(),
        shown,
    };
    page.line(
        "question",
        &format!(
            "{} {}",
            styled(BOLD, short(question.ask_id)),
            styled(DIM, question.ask_id)
        ),
    );
    let name = spelled_out(question.principal.name.as_str());
    let role = question.principal.role.as_str();
    page.line(
        "from",
        &format!(
            "{name} ({role}), session {}",
            spelled_out(question.session_id.as_str())
        ),
    );
    let tool = spelled_out(&question.tool);
    let id = question.tool_id.as_str();
    page.line(
        "tool",
        &if id == tool {
            tool
        } else {
            format!("{tool} ({id})")
        },
    );
    page.line("summary", &spelled_out(&question.summary));
    for command in &question.commands {
        page.block("runs", command);
    }
    page.arguments(&question.arguments, question.redacted);
    page.programs(question);
    page.effects(&question.effects);
    page.sandbox(question.sandbox.as_ref(), &question.effects);
    page.decision(&question.decision, &question.commands);
    for (place, rule) in question.suggestions.iter().enumerate() {
        page.line(
            if place == 0 { "rules" } else { "" },
            &format!("{}  {}", place + 1, spelled_out(rule)),
        );
    }
    if let Some(remark) = &question.rule_remark {
        page.line("", &styled(YELLOW, spelled_out(remark)));
    }
    if let Some(offer) = &question.source_offer {
        page.source_offer(offer);
    }
    match question.waiting {
        0 => page.line(
            "waiting",
            "no caller; the answer is kept for one identical call",
        ),
        1 => {}
        calls => page.line("waiting", &format!("{calls} calls, one answer for all")),
    }
    page.line(
        "expires",
        &format!("in {}; the call is then rejected", left(question, now)),
    );
    page.text
}

struct QuestionCard {
    text: String,
    shown: QuestionDetailLevel,
}

impl QuestionCard {
    fn line(&mut self, name: &str, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            self.text,
            "  {}  {text}",
            styled(BOLD, format!("{name:<9}"))
        );
    }

    /// Text of several lines, each of them spelled out.
    fn block(&mut self, name: &str, text: &str) {
        let (most, width) = match self.shown {
            QuestionDetailLevel::Whole => (usize::MAX, usize::MAX),
            QuestionDetailLevel::ForPrompt => (PROMPT_LINES, PROMPT_WIDTH),
        };
        let lines: Vec<&str> = text.split('\n').collect();
        for (place, line) in lines.iter().take(most).enumerate() {
            self.line(
                if place == 0 { name } else { "" },
                &cut(&spelled_out(line), width),
            );
        }
        if lines.len() > most {
            let more = lines.len() - most;
            self.line(
                "",
                &styled(
                    YELLOW,
                    format!("… and {more} more lines; see `toolpost approvals show`"),
                ),
            );
        }
    }

    fn arguments(&mut self, arguments: &Value, redacted: bool) {
        let Some(object) = arguments.as_object() else {
            return self.block("arguments", &arguments.to_string());
        };
        for (name, value) in object {
            let name = spelled_out(name);
            match value {
                Value::String(text) if !text.contains('\n') => {
                    self.block("argument", &format!("{name} = {text}"));
                }
                Value::String(text) => self.block("argument", &format!("{name} =\n{text}")),
                Value::Array(_) | Value::Object(_) => {
                    let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
                    self.block("argument", &format!("{name} = {pretty}"));
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => {
                    self.block("argument", &format!("{name} = {value}"));
                }
            }
        }
        if redacted {
            self.line(
                "",
                &styled(
                    YELLOW,
                    "sensitive values are not shown, so the arguments cannot be edited",
                ),
            );
        }
    }

    fn effects(&mut self, effects: &Effects) {
        let beyond = if effects.open_world {
            ", and may touch more than is listed here"
        } else {
            ""
        };
        self.line("class", &format!("{}{beyond}", effects.class));
        for used in &effects.uses {
            let how = match used.access {
                ResourceAccess::Read => "reads",
                ResourceAccess::Write => "changes",
            };
            self.line(
                "touches",
                &format!("{} ({how})", spelled_out(used.key.as_str())),
            );
        }
        let cautions = effects.path_cautions.iter().map(|caution| &caution.reason);
        for caution in effects.caution.iter().chain(cautions) {
            self.line("careful", &styled(YELLOW, spelled_out(caution)));
        }
    }

    /// The actual confinement of its process, as far as the host can tell.
    fn sandbox(&mut self, plan: Option<&SandboxPlan>, effects: &Effects) {
        match (plan, effects.confined) {
            (Some(plan), _) if plan.missing.is_empty() && plan.lack.is_none() => {
                self.line("sandbox", &spelled_out(&plan.to_string()));
            }
            (Some(plan), _) => {
                self.line("sandbox", &styled(YELLOW, spelled_out(&plan.to_string())));
            }
            (None, Some(profile)) => self.line("sandbox", profile.as_str()),
            (None, None) if effects.open_world => {
                self.line("sandbox", &styled(YELLOW, "not confined"));
            }
            (None, None) => {}
        }
    }

    /// The files that the answer covers, and those that changed since an earlier question about the same call.
    fn programs(&mut self, question: &PermissionRequest) {
        for file in &question.programs {
            self.line("file", &placed_file(file));
        }
        for change in &question.changed_programs {
            self.line("changed", &styled(YELLOW, spelled_out(&change.to_string())));
        }
    }

    /// The tools of the call's source, with a mark at those that one answer allows. No offered tool is left out, at any
    /// detail level.
    fn source_offer(&mut self, offer: &SourceReadOffer) {
        let source = spelled_out(&offer.source);
        let count = offer.offered().count();
        self.line("offer", &offer_line(&source, count));
        if offer.reaches_network {
            let remark = "the server can reach other machines, so arguments of these calls can leave this one";
            self.line("", &styled(YELLOW, remark));
        }
        let most = match self.shown {
            QuestionDetailLevel::Whole => usize::MAX,
            QuestionDetailLevel::ForPrompt => count.max(PROMPT_LINES),
        };
        for tool in offer.tools.iter().take(most) {
            let mark = if tool.is_offered { "+" } else { " " };
            let about = match tool.about.as_str() {
                "" => String::new(),
                about => format!("  {}", styled(DIM, spelled_out(about))),
            };
            self.line("", &format!("{mark} {}{about}", tool.tool_id));
        }
        let more = offer.tools.len().saturating_sub(most) + offer.more;
        if more > 0 {
            self.line("", &format!("  and {more} more, which are not offered"));
        }
    }

    fn decision(&mut self, decision: &Decision, commands: &[String]) {
        let place = decision
            .reason
            .rule
            .as_ref()
            .map(|rule| format!(" {}", styled(DIM, placed(rule))));
        let reason = spelled_out(&decision.reason.text);
        self.line(
            "asked by",
            &format!("{reason}{}", place.unwrap_or_default()),
        );
        // For a single command the subject is obvious.
        if let Some(subject) = decision
            .subject
            .as_ref()
            .filter(|subject| commands != [(*subject).clone()])
        {
            self.block("part", subject);
        }
        for opaque in &decision.opaque {
            self.line("unclear", &styled(YELLOW, spelled_out(opaque)));
        }
        for rule in &decision.also_matched {
            self.line("also", &placed(rule));
        }
        for note in &decision.notes {
            self.line("note", &styled(YELLOW, spelled_out(note)));
        }
    }
}

fn offer_line(source: &str, count: usize) -> String {
    let which = match count {
        1 => "tool marked `+`, which only reads",
        _ => "tools marked `+`, which only read",
    };
    format!(
        "`t` or `--source-reads` allows this call once, and from now on the {which}, as `{source}` claims"
    )
}

/// A file as the command names it, with its real path if that differs.
fn placed_file(file: &ProgramFile) -> String {
    let name = spelled_out(&file.name);
    let path = spelled_out(&file.path);
    let is_plain = path.ends_with(name.trim_start_matches("./"));
    let place = if is_plain {
        String::new()
    } else {
        format!(", which is {path}")
    };
    format!("{name}{place} ({})", spelled_out(&file.content.to_string()))
}

/// A rule with its place.
pub(crate) fn placed(rule: &RuleRef) -> String {
    format!(
        "`{}` ({})",
        spelled_out(&rule.rule),
        spelled_out(&rule.place)
    )
}

/// The time left for the answer, in words.
pub(crate) fn left(question: &PermissionRequest, now: Timestamp) -> String {
    let seconds = question.expires_at.duration_since(now).as_secs().max(0);
    match seconds {
        ..=99 => format!("{seconds} s"),
        100..=5_999 => format!("{} min", seconds / 60),
        6_000..=172_799 => format!("{} h", seconds / 3_600),
        172_800.. => format!("{} d", seconds / 86_400),
    }
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((place, _)) => format!(
            "{}… ({} characters in all)",
            &text[..place],
            text.chars().count()
        ),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use toolpost_model::PermissionRequest;

    use super::{QuestionDetailLevel, card, row};

    fn question(change: impl FnOnce(&mut Value)) -> PermissionRequest {
        let mut question = json!({
            "ask_id": "01a1e16e-9fc2-777b-a5e6-92c590cac3fc",
            "call_hash": "ab".repeat(32),
            "tool_id": "shell.shell", "tool": "shell",
            "principal": { "name": "agent", "role": "agent" },
            "session_id": "s-1",
            "summary": "git push origin mian",
            "arguments": { "command": "git push origin mian", "background": false },
            "commands": ["git push origin mian"],
            "effects": { "class": "execute", "idempotent": false, "open_world": true, "concurrency_safe": false,
                "confined": "workspace-write",
                "uses": [{ "key": "path:/w", "access": "write" }] },
            "decision": { "behavior": "ask", "class": "execute", "mode": "default",
                "reason": { "type": "rule", "text": "pushes are looked at",
                    "rule": { "rule": "ask shell(git push *)", "origin": "project", "place": "toolpost.yaml:3" } } },
            "suggestions": ["allow shell(git push origin mian)", "allow shell(git push *)"],
            "asked_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-01T00:10:00Z", "waiting": 1
        });
        change(&mut question);
        serde_json::from_value(question).unwrap()
    }

    fn told(question: &PermissionRequest, shown: QuestionDetailLevel) -> String {
        let now = "2026-01-01T00:00:30Z".parse().unwrap();
        anstream::adapter::strip_str(&card(question, now, shown)).to_string()
    }

    #[test]
    fn a_card_holds_what_a_person_needs() {
        insta::assert_snapshot!(told(&question(|_| {}), QuestionDetailLevel::Whole), @r"
        question   90cac3fc 01a1e16e-9fc2-777b-a5e6-92c590cac3fc
        from       agent (agent), session s-1
        tool       shell (shell.shell)
        summary    git push origin mian
        runs       git push origin mian
        argument   command = git push origin mian
        argument   background = false
        class      execute, and may touch more than is listed here
        touches    path:/w (changes)
        sandbox    workspace-write
        asked by   pushes are looked at `ask shell(git push *)` (toolpost.yaml:3)
        rules      1  allow shell(git push origin mian)
                   2  allow shell(git push *)
        expires    in 9 min; the call is then rejected
        ");
    }

    #[test]
    fn a_card_tells_the_files_their_changes_and_the_confinement_really_in_force() {
        let file = |digit: &str| {
            let content = json!({ "form": "digest", "sha256": digit.repeat(64), "bytes": 34 });
            json!({ "name": "./run.sh", "path": "/w/run.sh", "content": content })
        };
        let asked = question(|question| {
            question["programs"] = json!([file("a"),
                { "name": "ma\u{202e}ke", "path": "/w/bin/make", "content": { "form": "absent" } }]);
            question["changed_programs"] =
                json!([{ "name": "./run.sh", "before": file("b"), "now": file("a") }]);
            question["sandbox"] = json!({ "profile": "workspace-write", "tier": "B", "network": false,
                "required": false, "missing": ["protected paths can be written"] });
            question["rule_remark"] = json!("a remembered rule covers any content of `./run.sh`");
        });
        let told = told(&asked, QuestionDetailLevel::Whole);
        for line in [
            "  file       ./run.sh (sha256 aaaaaaaaaaaa, 34 bytes)",
            r"  file       ma\u{202e}ke, which is /w/bin/make (not there)",
            "  changed    `./run.sh`: sha256 bbbbbbbbbbbb, 34 bytes -> sha256 aaaaaaaaaaaa, 34 bytes",
            "  sandbox    workspace-write on tier B (Landlock and a system call filter, without namespaces), without \
             network; missing: protected paths can be written",
            "             a remembered rule covers any content of `./run.sh`",
        ] {
            assert!(
                told.lines().any(|found| found == line),
                "`{line}` is missing in\n{told}"
            );
        }
    }

    #[test]
    fn a_card_marks_every_tool_that_one_answer_allows() {
        let tool = |place: usize, is_offered: bool| {
            json!({ "tool_id": format!("notes.t{place}"), "about": format!("Tool\u{202e} {place}."),
                "definition": "ab".repeat(32), "offered": is_offered })
        };
        let asked = question(|question| {
            let tools: Vec<Value> = (0..60).map(|place| tool(place, place < 50)).collect();
            question["source_offer"] =
                json!({ "source": "no\u{202e}tes", "tools": tools, "more": 3 });
        });
        for (shown, listed, more) in [
            (QuestionDetailLevel::Whole, 60, 3),
            (QuestionDetailLevel::ForPrompt, 50, 13),
        ] {
            let told = told(&asked, shown);
            let marked = |mark: &str| told.matches(&format!("{mark} notes.t")).count();
            assert_eq!((marked("+"), marked(" ")), (50, listed - 50), "{told}");
            for line in [
                r"             + notes.t7  Tool\u{202e} 7.",
                r"  offer      `t` or `--source-reads` allows this call once, and from now on the tools marked `+`, which only read, as `no\u{202e}tes` claims",
                &format!("               and {more} more, which are not offered"),
            ] {
                assert!(
                    told.lines().any(|found| found == line),
                    "`{line}` is missing in\n{told}"
                );
            }
        }
    }

    #[test]
    fn nothing_of_an_agent_can_forge_or_hide_a_line() {
        let forged = question(|question| {
            question["summary"] = json!("ls\u{1b}[2K\n  expires    never");
            question["arguments"] = json!({ "x\rclass": "a\u{202e}b", "y": "one\n\u{200b}two" });
            question["commands"] = json!(["echo \u{2028}hi"]);
            question["principal"]["name"] = json!("ann\nb");
        });
        let told = told(&forged, QuestionDetailLevel::Whole);
        assert_eq!(
            told.lines()
                .filter(|line| line.starts_with("  expires"))
                .count(),
            1,
            "{told}"
        );
        let hidden =
            |c: char| c != '\n' && (c.is_control() || ('\u{200b}'..='\u{202e}').contains(&c));
        assert!(!told.contains(hidden), "{told:?}");
        assert!(
            told.contains(r"y =") && told.contains(r"\u{200b}two"),
            "{told}"
        );
        assert!(!row(&forged, "2026-01-01T00:00:30Z".parse().unwrap()).contains('\n'));
    }

    #[test]
    fn a_question_without_a_caller_says_that_its_answer_is_kept() {
        let left = question(|question| question["waiting"] = json!(0));
        let line = "  waiting    no caller; the answer is kept for one identical call\n";
        assert!(told(&left, QuestionDetailLevel::Whole).contains(line));
        assert!(row(&left, "2026-01-01T00:00:30Z".parse().unwrap()).contains("no caller waits"));
    }

    #[test]
    fn a_prompt_says_how_much_it_leaves_out() {
        let long = question(|question| question["arguments"]["content"] = json!("x\n".repeat(500)));
        assert!(told(&long, QuestionDetailLevel::ForPrompt).contains("… and 462 more lines"));
        assert!(!told(&long, QuestionDetailLevel::Whole).contains("more lines"));
        assert!(told(&long, QuestionDetailLevel::Whole).lines().count() > 500);
    }
}
