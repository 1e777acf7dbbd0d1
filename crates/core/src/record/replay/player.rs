//! Finds the recorded answer of a call, and counts the calls.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};
use toolpost_model::{InvocationId, ModelInput, Timings, ToolId, ToolResult};

use super::{
    CallDifference, Cassette, CassetteCall, CassetteError, CassetteEvent, ReplayMatching,
    ReplayOptions, ReplayPace, difference, ids, input,
};

/// The number of recorded calls of a tool to compare with a call that was not recorded.
const LOOKED_AT: usize = 500;
/// The number of recorded tools that a message names.
const NAMES_TOLD: usize = 8;

pub(crate) struct CassettePlayer {
    options: ReplayOptions,
    calls: Vec<RecordedAnswer>,
    /// The tools by the names in their requests.
    names: HashMap<String, ToolId>,
    by_tool: HashMap<String, Vec<usize>>,
    by_input: HashMap<ReplayCallKey, Vec<usize>>,
    /// Calls with redacted arguments.
    with_gaps: HashMap<String, Vec<usize>>,
    state: Mutex<PlayerState>,
}

struct RecordedAnswer {
    /// The tool's id, or the requested name if there was no such tool.
    tool: String,
    arguments: Option<Value>,
    key: ReplayCallKey,
    has_gaps: bool,
    took: Duration,
    progress: Vec<CassetteEvent>,
    result: ToolResult,
    /// The answer's text, if it contains ids of calls.
    marked: Option<String>,
}

/// The key that equal calls share.
#[derive(Clone, PartialEq, Eq, Hash)]
enum ReplayCallKey {
    /// The tool, and its arguments in their one spelling.
    Read(String, String),
    /// The tool, and the size of arguments that were not read.
    Unread(String, usize),
}

#[derive(Default)]
struct PlayerState {
    used: Vec<bool>,
    /// The number of calls with equal input that were used or skipped.
    passed: HashMap<ReplayCallKey, usize>,
    /// The first unused call.
    next: usize,
    /// The recorded call behind each call of this host.
    places: HashMap<InvocationId, usize>,
    ids: HashMap<usize, InvocationId>,
    answered: usize,
    refused: usize,
}

pub(crate) struct GivenCall<'a> {
    pub(crate) id: InvocationId,
    /// The tool's name in the request.
    pub(crate) name: &'a str,
    pub(crate) tool: Option<&'a ToolId>,
    /// The observable arguments, if they were read.
    pub(crate) shown: Option<&'a Value>,
    pub(crate) sent: &'a ModelInput,
}

pub(crate) struct ReplayedAnswer {
    pub(crate) result: ToolResult,
    /// The events before the answer.
    pub(crate) progress: Vec<CassetteEvent>,
    pub(crate) took: Duration,
    pub(crate) pace: ReplayPace,
}

/// Why a call has no recorded answer.
pub(crate) struct ReplayMiss {
    pub(crate) message: String,
    pub(crate) hint: &'static str,
    pub(crate) details: Value,
}

/// The result of a replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayReport {
    /// Calls that were answered as recorded.
    pub answered: usize,
    /// Calls that were not recorded, and failed.
    pub refused: usize,
    /// Recorded calls that were not replayed.
    pub left: Vec<LeftOver>,
}

/// A recorded call that was not replayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOver {
    /// Its place in the recording, from 1.
    pub call: usize,
    /// The tool's name in the request.
    pub tool: String,
}

/// Reads an answer as the result of a call.
pub(super) fn result_of(answer: &str, id: InvocationId) -> Result<ToolResult, serde_json::Error> {
    let mut answer: Value = serde_json::from_str(answer)?;
    answer["invocation_id"] = json!(id);
    answer["timings"] = json!(Timings::default());
    serde_json::from_value(answer)
}

impl RecordedAnswer {
    fn of(call: &CassetteCall, place: usize) -> Result<Self, CassetteError> {
        let tool = call
            .tool_id()
            .map_or_else(|| call.tool.clone(), |id| id.to_string());
        let (key, has_gaps) = match &call.arguments {
            Some(arguments) => {
                let spelled = input::spelled(arguments);
                let has_gaps = input::has_gaps(&spelled);
                (ReplayCallKey::Read(tool.clone(), spelled), has_gaps)
            }
            None => (
                ReplayCallKey::Unread(tool.clone(), call.unread_bytes.unwrap_or_default()),
                false,
            ),
        };
        let text = Value::Object(call.answer.clone()).to_string();
        Ok(Self {
            tool,
            arguments: call.arguments.clone(),
            key,
            has_gaps,
            took: Duration::from_millis(call.took_ms),
            progress: call.progress.clone(),
            result: call.result(place)?,
            marked: ids::has_marks(&text).then_some(text),
        })
    }
}

impl CassettePlayer {
    pub(crate) fn new(cassette: &Cassette, options: ReplayOptions) -> Result<Self, CassetteError> {
        let mut player = Self {
            options,
            calls: Vec::with_capacity(cassette.calls.len()),
            names: HashMap::new(),
            by_tool: HashMap::new(),
            by_input: HashMap::new(),
            with_gaps: HashMap::new(),
            state: Mutex::new(PlayerState {
                used: vec![false; cassette.calls.len()],
                ..PlayerState::default()
            }),
        };
        for (place, call) in cassette.calls.iter().enumerate() {
            let recorded = RecordedAnswer::of(call, place + 1)?;
            if let Some(id) = call.tool_id() {
                player.names.insert(call.tool.clone(), id);
            }
            player
                .by_tool
                .entry(recorded.tool.clone())
                .or_default()
                .push(place);
            if recorded.has_gaps {
                player
                    .with_gaps
                    .entry(recorded.tool.clone())
                    .or_default()
                    .push(place);
            } else {
                player
                    .by_input
                    .entry(recorded.key.clone())
                    .or_default()
                    .push(place);
            }
            player.calls.push(recorded);
        }
        Ok(player)
    }

    /// The answer of a recorded call. It answers no other call after that.
    pub(crate) fn answer(&self, call: &GivenCall<'_>) -> Result<ReplayedAnswer, ReplayMiss> {
        let mut state = self.state.lock();
        let given = ReplayedCall::of(call, &self.names, &state);
        let found = match self.options.matching {
            ReplayMatching::Strict => self.any(&given, &mut state),
            ReplayMatching::Ordered => {
                Some(state.next).filter(|&place| self.is_next(place, &given))
            }
        };
        let Some(place) = found else {
            state.refused += 1;
            return Err(self.unrecorded(call, &given, &state));
        };
        state.used[place] = true;
        state.answered += 1;
        while state.used.get(state.next) == Some(&true) {
            state.next += 1;
        }
        state.places.insert(call.id, place + 1);
        state.ids.insert(place + 1, call.id);
        let recorded = &self.calls[place];
        let mut result = recorded.result.clone();
        if let Some(marked) = &recorded.marked {
            let id_of = |place: usize| {
                state
                    .ids
                    .get(&place)
                    .copied()
                    .unwrap_or_else(|| ids::stand_in(place))
            };
            // Cannot fail: the same text was read before with other ids.
            if let Ok(read) = result_of(&ids::unmarked(marked, id_of), call.id) {
                result = read;
            }
        }
        result.invocation_id = call.id;
        let progress = recorded.progress.clone();
        let took = recorded.took;
        Ok(ReplayedAnswer {
            result,
            progress,
            took,
            pace: self.options.pace,
        })
    }

    /// The first unused recorded call with equal input.
    fn any(&self, given: &ReplayedCall, state: &mut PlayerState) -> Option<usize> {
        for key in &given.keys {
            let Some(equal) = self.by_input.get(key) else {
                continue;
            };
            let passed = state.passed.entry(key.clone()).or_default();
            while let Some(&place) = equal.get(*passed) {
                *passed += 1;
                if !state.used[place] {
                    return Some(place);
                }
            }
        }
        let with_gaps = self.with_gaps.get(&given.tool)?;
        let arguments = given.arguments()?;
        let fits = |place: usize| {
            self.calls[place]
                .arguments
                .as_ref()
                .is_some_and(|own| input::fits(own, &arguments))
        };
        with_gaps
            .iter()
            .copied()
            .find(|&place| !state.used[place] && fits(place))
    }

    fn is_next(&self, place: usize, given: &ReplayedCall) -> bool {
        let Some(recorded) = self.calls.get(place) else {
            return false;
        };
        given.keys.contains(&recorded.key)
            || recorded.has_gaps
                && recorded.tool == given.tool
                && match (&recorded.arguments, given.arguments()) {
                    (Some(own), Some(arguments)) => input::fits(own, &arguments),
                    _ => false,
                }
    }

    fn unrecorded(
        &self,
        call: &GivenCall<'_>,
        given: &ReplayedCall,
        state: &PlayerState,
    ) -> ReplayMiss {
        let name = call.name.escape_debug();
        if self.options.matching == ReplayMatching::Ordered {
            let Some(next) = self.calls.get(state.next) else {
                let message = format!(
                    "`{name}` was not recorded: all {} calls of the recording were answered",
                    self.calls.len()
                );
                return ReplayMiss {
                    message,
                    hint: RECORD_AGAIN,
                    details: json!({}),
                };
            };
            let place = state.next + 1;
            if next.tool != given.tool {
                let message = format!(
                    "`{name}` is not the next call of the recording: call {place} is a call of `{}`",
                    next.tool
                );
                return ReplayMiss {
                    message,
                    hint: IN_ANY_ORDER,
                    details: json!({ "nearest": { "call": place, "tool": next.tool } }),
                };
            }
            let begin = format!(
                "`{name}` with these arguments is not the next call of the recording, which is call {place}"
            );
            return self.different(&begin, state.next, given, IN_ANY_ORDER);
        }
        let Some(of_tool) = self.by_tool.get(&given.tool) else {
            let mut names: Vec<&str> = self.by_tool.keys().map(String::as_str).collect();
            names.sort_unstable();
            let more = names.len().saturating_sub(NAMES_TOLD);
            names.truncate(NAMES_TOLD);
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            let message = format!(
                "no call of `{name}` was recorded; the recording has calls of: {}{more}",
                names.join(", ")
            );
            return ReplayMiss {
                message,
                hint: RECORD_AGAIN,
                details: json!({}),
            };
        };
        if let Some(equal) = given.keys.first().and_then(|key| self.by_input.get(key)) {
            let times = if equal.len() == 1 {
                "once".to_owned()
            } else {
                format!("{} times", equal.len())
            };
            let message = format!(
                "`{name}` with these arguments was recorded {times}, and every recorded answer is used"
            );
            return ReplayMiss {
                message,
                hint: RECORD_AGAIN,
                details: json!({ "recorded": equal.len() }),
            };
        }
        let nearest = self.nearest(of_tool, given, state);
        let begin = format!(
            "no call of `{name}` with these arguments was recorded; the nearest is call {}",
            nearest + 1
        );
        self.different(&begin, nearest, given, RECORD_AGAIN)
    }

    /// The call with the fewest differences; among equals, an unused one.
    fn nearest(&self, of_tool: &[usize], given: &ReplayedCall, state: &PlayerState) -> usize {
        let shown = given.shown();
        let differences = |place: usize| match (&self.calls[place].arguments, &shown) {
            (Some(own), Some(arguments)) => difference::between(own, arguments).len(),
            _ => usize::MAX,
        };
        let nearest = of_tool
            .iter()
            .copied()
            .take(LOOKED_AT)
            .min_by_key(|&place| (differences(place), state.used[place]));
        nearest.unwrap_or_default()
    }

    fn different(
        &self,
        begin: &str,
        place: usize,
        given: &ReplayedCall,
        hint: &'static str,
    ) -> ReplayMiss {
        let recorded = &self.calls[place];
        let differences: Vec<CallDifference> = match (&recorded.arguments, &given.shown()) {
            (Some(own), Some(arguments)) => difference::between(own, arguments),
            _ => Vec::new(),
        };
        let message = if differences.is_empty() {
            format!("{begin}; {}", not_comparable(recorded, given))
        } else {
            format!(
                "{begin} (`-` recorded, `+` asked):{}",
                difference::told(&differences)
            )
        };
        let nearest =
            json!({ "call": place + 1, "tool": recorded.tool, "differences": differences });
        ReplayMiss {
            message,
            hint,
            details: json!({ "nearest": nearest }),
        }
    }

    pub(crate) fn report(&self) -> ReplayReport {
        let state = self.state.lock();
        let unused = state.used.iter().enumerate().filter(|(_, used)| !**used);
        let left = unused.map(|(place, _)| LeftOver {
            call: place + 1,
            tool: self.calls[place].tool.clone(),
        });
        ReplayReport {
            answered: state.answered,
            refused: state.refused,
            left: left.collect(),
        }
    }
}

const RECORD_AGAIN: &str = "make the recorded call, or record the session again";
const IN_ANY_ORDER: &str =
    "make the calls in the recorded order, or use strict matching, which accepts any order";

fn not_comparable(recorded: &RecordedAnswer, given: &ReplayedCall) -> String {
    let unread = |size: usize| format!("arguments of {size} bytes that were not read");
    let recorded = match &recorded.key {
        ReplayCallKey::Unread(_, size) => unread(*size),
        ReplayCallKey::Read(..) => "arguments that were read".to_owned(),
    };
    let given = match given.keys.first() {
        Some(ReplayCallKey::Unread(_, size)) => unread(*size),
        Some(ReplayCallKey::Read(..)) | None => "arguments that were read".to_owned(),
    };
    format!("the recorded call had {recorded}, this call has {given}")
}

/// A call that needs an answer, in the terms of the recording.
struct ReplayedCall {
    tool: String,
    /// Its possible keys, the likeliest first.
    keys: Vec<ReplayCallKey>,
    /// Whether its arguments were read, so that they may be shown.
    is_read: bool,
}

impl ReplayedCall {
    fn of(call: &GivenCall<'_>, names: &HashMap<String, ToolId>, state: &PlayerState) -> Self {
        let tool = call.tool.or_else(|| names.get(call.name));
        let tool = tool.map_or_else(|| call.name.to_owned(), ToString::to_string);
        let read = |value: &Value| {
            let spelled = input::spelled(value);
            let marked = ids::marked(&spelled, |id| state.places.get(&id).copied());
            ReplayCallKey::Read(tool.clone(), marked.into_owned())
        };
        let keys = match call.shown {
            // Read arguments are not compared by size: a recorded call with unread arguments may have the same size.
            Some(value) => vec![read(value)],
            None => {
                // Blanks between tokens have no meaning, and another face may write them differently.
                let sizes = match call.sent {
                    ModelInput::Text(text) => [text.len(), call.sent.compact().len()],
                    ModelInput::Value(value) => [value.to_string().len(); 2],
                };
                let mut keys =
                    Vec::from(sizes.map(|size| ReplayCallKey::Unread(tool.clone(), size)));
                keys.extend(
                    call.sent
                        .parse()
                        .ok()
                        .map(|arguments| read(arguments.value())),
                );
                keys
            }
        };
        Self {
            tool,
            keys,
            is_read: call.shown.is_some(),
        }
    }

    fn arguments(&self) -> Option<Value> {
        self.keys.iter().find_map(|key| match key {
            ReplayCallKey::Read(_, text) => serde_json::from_str(text).ok(),
            ReplayCallKey::Unread(..) => None,
        })
    }

    /// The arguments, if they may be shown.
    fn shown(&self) -> Option<Value> {
        self.arguments().filter(|_| self.is_read)
    }
}
