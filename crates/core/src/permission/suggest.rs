//! Rules that would allow an equal call without a question. Each is tried before it is offered.

use toolpost_model::{
    ArgumentKind, Behavior, ReasonType, RememberOffer, ResourceAccess, Rule, RuleOrigin,
};

use super::{
    PermissionFacts,
    evaluation::{Judgement, JudgementGround, JudgementReport, RuleEvaluation},
    parts::{PartSubject, PermissionPart, PermissionParts},
    places::{PathBaseFolders, PlainPath},
    policy::Policy,
    url_pattern::PlannedUrlRequest,
};

/// The limit of parts that a rule is suggested for. A call with more of them gets no suggestions.
const MAX_NEEDY: usize = 8;

/// Rules, from narrow to wide, each of which would allow this call without a question.
pub(super) fn rules(policy: &Policy, facts: &PermissionFacts<'_>) -> Vec<Rule> {
    let parts = PermissionParts::of(facts, &policy.places);
    let hearing = RuleEvaluation::open(policy, facts, &parts);
    let verdict = hearing.judge();
    let never =
        |rule: &&Rule| rule.effect == Behavior::Ask && rule.remember == RememberOffer::Never;
    let about_the_call = match &verdict.decided.ground {
        // A rule that names the path answers a caution about it.
        JudgementGround::Said(reason) => match reason.kind {
            ReasonType::Caution => facts.effects.caution.is_some(),
            ReasonType::SafetyCheck => !hearing.can_waive_request(),
            ReasonType::Rule
            | ReasonType::Mode
            | ReasonType::Hook
            | ReasonType::Delegate
            | ReasonType::Classifier
            | ReasonType::Opaque
            | ReasonType::Approval => true,
        },
        // The authority votes on each call anew, so a remembered rule cannot replace its vote.
        JudgementGround::Opaque { .. } | JudgementGround::Delegated { .. } => true,
        JudgementGround::Rule(_) | JudgementGround::Mode => false,
    };
    if verdict.decided.behavior == Behavior::Allow
        || about_the_call
        || !hearing.parts.opaque.is_empty()
        || verdict.matched.iter().any(never)
    {
        return Vec::new();
    }
    let Some(candidates) = candidates(policy, &hearing, &verdict) else {
        return Vec::new();
    };
    let mut offered: Vec<Rule> = Vec::new();
    for line in candidates
        .iter()
        .flatten()
        .chain(&together(policy, &hearing, &verdict))
    {
        if let Some(rule) = read_back(line)
            && !offered.contains(&rule)
            && lets_through(policy, &hearing, std::slice::from_ref(&rule))
        {
            offered.push(rule);
        }
    }
    offered
}

/// The `--allow` flags that together would allow the call, with the narrowest rule for each part.
pub(super) fn flags(
    policy: &Policy,
    hearing: &RuleEvaluation<'_>,
    verdict: &JudgementReport<'_>,
) -> Option<String> {
    let named = || {
        vec![format!(
            "allow {}",
            hearing.facts.declaration.tool_id.rule_form()
        )]
    };
    let mut lines = match candidates(policy, hearing, verdict) {
        Some(found)
            if found.iter().all(|one| !one.is_empty()) && hearing.parts.opaque.is_empty() =>
        {
            found
                .into_iter()
                .filter_map(|mut one| (!one.is_empty()).then(|| one.swap_remove(0)))
                .collect()
        }
        Some(_) | None => named(),
    };
    lines.sort_unstable();
    lines.dedup();
    let flags = |lines: &[String]| {
        let rules: Option<Vec<Rule>> = lines.iter().map(|line| read_back(line)).collect();
        let rules = rules.filter(|rules| lets_through(policy, hearing, rules))?;
        let flag = |rule: &Rule| format!("--allow {}", quoted(&rule.selector.to_string()));
        Some(rules.iter().map(flag).collect::<Vec<_>>().join(" "))
    };
    flags(&lines).or_else(|| flags(&named()))
}

/// The narrowest rule for each part that is not allowed. `None` if there are too many parts, or no rule would allow
/// one.
pub(super) fn narrowest(
    policy: &Policy,
    hearing: &RuleEvaluation<'_>,
    verdict: &JudgementReport<'_>,
) -> Option<Vec<String>> {
    let found = candidates(policy, hearing, verdict)?;
    let narrow: Option<Vec<String>> = found
        .into_iter()
        .map(|lines| lines.into_iter().next())
        .collect();
    narrow.filter(|lines| !lines.is_empty())
}

/// For each part that is not allowed, the rules that would allow it, narrow ones first. `None` if there are too many
/// parts.
fn candidates(
    policy: &Policy,
    hearing: &RuleEvaluation<'_>,
    verdict: &JudgementReport<'_>,
) -> Option<Vec<Vec<String>>> {
    let needy: Vec<&PermissionPart> = needy(hearing, verdict).take(MAX_NEEDY + 1).collect();
    let name = hearing.facts.declaration.tool_id.rule_form();
    let of_part = |part: &&PermissionPart| of_part(part, &name, &policy.places);
    let mut lines: Vec<Vec<String>> =
        (needy.len() <= MAX_NEEDY).then(|| needy.iter().map(of_part).collect())?;
    let named = hearing
        .open_path_cautions()
        .filter_map(|caution| PermissionPart::of_change(&caution.key));
    lines.extend(
        named
            .take(MAX_NEEDY)
            .map(|part| self::of_part(&part, &name, &policy.places)),
    );
    Some(lines)
}

fn needy<'h>(
    hearing: &'h RuleEvaluation<'_>,
    verdict: &JudgementReport<'_>,
) -> impl Iterator<Item = &'h PermissionPart> {
    // The tool's own request for approval is answered by rules that name the tool for each part.
    let is_requested = hearing.can_waive_request() && verdict.waived.is_none();
    let is_settled = |one: &Judgement<'_>| one.behavior == Behavior::Allow && !is_requested;
    let allowed: Vec<bool> = verdict.of_parts.iter().map(is_settled).collect();
    hearing
        .parts
        .all
        .iter()
        .zip(allowed)
        .filter(|(_, allowed)| !allowed)
        .map(|(part, _)| part)
}

/// The rules that would allow one part, narrow ones first. `name` is the tool's [rule
/// form](toolpost_model::ToolId::rule_form), which is its id, so that the rule matches no other tool of the same name.
pub(super) fn of_part(part: &PermissionPart, name: &str, places: &PathBaseFolders) -> Vec<String> {
    match &part.subject {
        PartSubject::Command(command) => {
            let patterns = toolpost_command::suggestions(command);
            patterns
                .iter()
                .map(|pattern| format!("allow {name}({pattern})"))
                .collect()
        }
        PartSubject::Path {
            path,
            access,
            redirect,
        } => {
            let subject = match (redirect, access) {
                (false, _) => name,
                (true, ResourceAccess::Read) => "fs.read",
                (true, ResourceAccess::Write) => "fs.write",
            };
            let mut lines = vec![format!("allow {subject}({})", escaped(&places.named(path)))];
            lines.extend(parent(path).and_then(|folder| beneath(&folder, subject, places)));
            lines
        }
        PartSubject::Request(request) => of_request(request, name),
        PartSubject::Unread(..) => Vec::new(),
        PartSubject::Whole => vec![format!("allow {name}")],
    }
}

fn of_request(request: &PlannedUrlRequest, name: &str) -> Vec<String> {
    let (Some(origin), Some(method)) = (request.origin(), request.method()) else {
        return Vec::new();
    };
    let exact = request
        .path()
        .map(|path| format!("allow {name}({method} {origin}{path})"));
    exact
        .into_iter()
        .chain([format!("allow {name}({method} {origin}/*)")])
        .collect()
}

/// One rule for all paths or for the whole call, if several parts are not allowed.
fn together(
    policy: &Policy,
    hearing: &RuleEvaluation<'_>,
    verdict: &JudgementReport<'_>,
) -> Vec<String> {
    let declaration = hearing.facts.declaration;
    let name = declaration.tool_id.rule_form();
    let paths: Option<Vec<&PlainPath>> = needy(hearing, verdict)
        .map(|part| match &part.subject {
            PartSubject::Path { path, redirect, .. } => (!redirect).then_some(path),
            PartSubject::Command(_)
            | PartSubject::Request(_)
            | PartSubject::Unread(..)
            | PartSubject::Whole => None,
        })
        .collect();
    let shared = paths
        .filter(|paths| paths.len() > 1)
        .and_then(|paths| shared_folder(&paths));
    let mut lines: Vec<String> = shared
        .and_then(|folder| beneath(&folder, &name, &policy.places))
        .into_iter()
        .collect();
    // A tool that runs arbitrary commands is never suggested as a whole, because one click would allow all commands.
    let runs_commands = declaration
        .interface
        .permission
        .arguments
        .iter()
        .any(|one| one.kind == ArgumentKind::Command);
    if !runs_commands {
        lines.push(format!("allow {name}"));
    }
    lines
}

fn beneath(folder: &PlainPath, subject: &str, places: &PathBaseFolders) -> Option<String> {
    let workspace = places.workspace.as_deref().and_then(PlainPath::of_path);
    if workspace.as_ref() == Some(folder) {
        return Some(format!("allow {subject}(ws:**)"));
    }
    // `/**` or `/etc/**` is too wide for a suggestion.
    let deep = folder.components().count() > 1;
    let named = places.named(folder);
    // The prefix `ws:` is dropped, because a pattern with a slash is relative to the workspace anyway.
    let named = named
        .strip_prefix("ws:")
        .filter(|name| !name.starts_with("ws:"))
        .unwrap_or(&named);
    deep.then(|| format!("allow {subject}({}/**)", escaped(named)))
}

fn parent(path: &PlainPath) -> Option<PlainPath> {
    path.and_above().nth(1).and_then(PlainPath::of)
}

fn shared_folder(paths: &[&PlainPath]) -> Option<PlainPath> {
    let (first, others) = paths.split_first()?;
    let above: Vec<PlainPath> = first
        .and_above()
        .skip(1)
        .filter_map(PlainPath::of)
        .collect();
    above.into_iter().find(|folder| {
        others
            .iter()
            .all(|path| path.beneath(folder).is_some_and(|rest| !rest.is_empty()))
    })
}

/// Escapes the characters of a path that are special in a pattern.
fn escaped(path: &str) -> String {
    let mut escaped = String::with_capacity(path.len());
    for c in path.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// Parses a line as a rule, if the rule prints as the same line.
fn read_back(line: &str) -> Option<Rule> {
    let rule = Rule::parse(line, RuleOrigin::Session, "suggestion").ok()?;
    (rule.to_string() == line && !line.contains(char::is_control)).then_some(rule)
}

fn lets_through(policy: &Policy, hearing: &RuleEvaluation<'_>, rules: &[Rule]) -> bool {
    policy.with(rules).is_ok_and(|policy| {
        let again = RuleEvaluation::open(&policy, hearing.facts, hearing.parts);
        again.judge().decided.behavior == Behavior::Allow
    })
}

/// Quotes a text for a shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':');
    match text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}
