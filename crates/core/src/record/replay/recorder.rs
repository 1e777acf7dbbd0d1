//! The recorder: it makes a cassette from journal records.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};
use toolpost_model::{
    HiddenReason, InvocationId, SessionId, Stage, SurfaceId, SurfaceRequest, ToolId, ToolResult,
};

use super::{Cassette, CassetteCall, CassetteEvent, CassetteSession, CassetteTool, FORMAT, ids};
use crate::{
    invocation::Milestone,
    record::{
        body::{
            CallRecordBody, CatalogBody, HostStartBody, RecordBodyMember, RecordedCallRequest,
            SessionOpenedBody, SurfaceRecordBody,
        },
        declared::DeclaredTool,
        journal::{Record, RecordKind, StoredRecord},
    },
};

/// Makes a cassette from records in their order. It needs all records of the journal from the first on, because the
/// catalog is recorded before the sessions that use it.
pub struct Recorder {
    /// `None`: every session.
    wanted: Option<SessionId>,
    version: String,
    catalog: LatestRecordedCatalog,
    /// The catalog at the end of the last call, if it has changed since.
    last_used: Option<Vec<DeclaredTool>>,
    /// Whether a call used the catalog in its present state.
    in_use: bool,
    surfaces: HashMap<SurfaceId, SurfaceRecordBody>,
    /// Tools that a rule or the mode denied to the callers.
    denied: HashSet<ToolId>,
    /// Tools that some caller saw. Empty if the record does not contain that.
    shown: HashSet<ToolId>,
    sessions: Vec<(SessionId, CassetteSession)>,
    calls: BTreeMap<InvocationId, CassetteCallDraft>,
}

#[derive(Default)]
struct CassetteCallDraft {
    call: Option<RecordedCallRequest<'static>>,
    is_resolved: bool,
    progress: Vec<Milestone>,
    result: Option<RecordBodyMember<'static, ToolResult>>,
}

impl Recorder {
    /// Of one session.
    pub fn of_session(session: SessionId) -> Self {
        Self {
            wanted: Some(session),
            ..Self::of_all()
        }
    }

    /// Of every session.
    pub fn of_all() -> Self {
        Self {
            wanted: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            catalog: LatestRecordedCatalog::default(),
            last_used: None,
            in_use: false,
            surfaces: HashMap::new(),
            denied: HashSet::new(),
            shown: HashSet::new(),
            sessions: Vec::new(),
            calls: BTreeMap::new(),
        }
    }

    /// Adds the next record.
    pub fn take(&mut self, row: &StoredRecord) {
        let record = &row.record;
        match record.kind {
            RecordKind::Catalog => self.take_catalog(record),
            RecordKind::Surface => self.take_surface(record),
            RecordKind::HostStarted => {
                if let Ok(started) = record.read_body::<HostStartBody>() {
                    self.version = started.version;
                }
            }
            RecordKind::SessionOpened => {
                if let (Some(session), Ok(body)) =
                    (&record.session_id, record.read_body::<SessionOpenedBody>())
                {
                    let SessionOpenedBody {
                        principal,
                        role,
                        surface,
                        ..
                    } = body;
                    self.take_session(session, || CassetteSession {
                        principal,
                        role,
                        surface,
                    });
                }
            }
            RecordKind::Accepted | RecordKind::Asked | RecordKind::Started | RecordKind::Ended => {
                if let (Some(session), Some(id)) = (&record.session_id, record.invocation_id) {
                    self.take_call(session, id, record);
                }
            }
            RecordKind::Decided
            | RecordKind::SessionClosed
            | RecordKind::Discovered
            | RecordKind::Pruned => {}
        }
    }

    fn is_wanted(&self, session: &SessionId) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| wanted == session)
    }

    /// Whether any record belongs to the wanted session.
    pub fn found(&self) -> bool {
        !self.sessions.is_empty()
    }

    fn take_session(&mut self, id: &SessionId, session: impl FnOnce() -> CassetteSession) {
        if self.is_wanted(id) && !self.sessions.iter().any(|(known, _)| known == id) {
            self.sessions.push((id.clone(), session()));
            self.in_use = true;
        }
    }

    fn take_call(&mut self, session: &SessionId, id: InvocationId, record: &Record) {
        if !self.is_wanted(session) {
            return;
        }
        let Ok(way) = record.read_body::<CallRecordBody<'_>>() else {
            return;
        };
        self.in_use = true;
        if let Some(call) = &way.call {
            // A session that the caller brings itself has no `session_opened` record.
            self.take_session(session, || CassetteSession {
                principal: call.principal.clone(),
                role: call.role,
                surface: SurfaceRequest::default(),
            });
        }
        // Each surface is read once; later calls use it too.
        if let Some(surface) = way
            .surface
            .as_ref()
            .and_then(|surface| self.surfaces.remove(surface))
        {
            let denied = surface
                .blocked
                .into_iter()
                .filter(|tool| tool.reason == HiddenReason::Policy);
            self.denied.extend(denied.map(|tool| tool.tool_id));
            self.shown
                .extend(surface.loaded.into_iter().chain(surface.deferred));
        }
        let taken = self.calls.entry(id).or_default();
        taken.call = taken.call.take().or(way.call);
        taken.is_resolved |= way
            .transitions
            .iter()
            .any(|passed| passed.stage == Stage::Resolve);
        taken.progress.extend(way.progress);
        taken.result = taken.result.take().or(way.result);
    }

    fn take_catalog(&mut self, record: &Record) {
        let Ok(body) = record.read_body::<CatalogBody>() else {
            return;
        };
        if self.in_use {
            self.last_used = Some(self.catalog.tools.clone());
            self.in_use = false;
        }
        self.catalog.take(body);
    }

    fn take_surface(&mut self, record: &Record) {
        let Ok(body) = record.read_body::<SurfaceRecordBody>() else {
            return;
        };
        self.surfaces.insert(body.surface_id.clone(), body);
    }

    /// The cassette. Calls without an end are left out, because they had no answer, and nested calls, because only
    /// their parents saw the answers.
    pub fn finish(self) -> Cassette {
        let mut tools = match self.last_used {
            Some(tools) if !self.in_use => tools,
            Some(_) | None => self.catalog.tools,
        };
        let by_agents = |taken: &CassetteCallDraft| {
            let is_own = taken
                .call
                .as_ref()
                .is_some_and(|call| call.parent.is_none());
            is_own && taken.is_resolved && taken.result.is_some()
        };
        let calls: Vec<(InvocationId, CassetteCallDraft)> = self
            .calls
            .into_iter()
            .filter(|(_, taken)| by_agents(taken))
            .collect();
        let places: HashMap<InvocationId, usize> = calls
            .iter()
            .enumerate()
            .map(|(place, (id, ..))| (*id, place + 1))
            .collect();
        let calls: Vec<CassetteCall> = calls
            .iter()
            .filter_map(|(_, taken)| on_tape(taken, &places))
            .collect();
        if !self.shown.is_empty() {
            // Callers saw no other tools, and a cassette should stay readable.
            let called: HashSet<ToolId> = calls.iter().filter_map(CassetteCall::tool_id).collect();
            let matters = |id: &ToolId| self.shown.contains(id) || called.contains(id);
            tools.retain(|tool| matters(&tool.declaration.tool_id));
        }
        Cassette {
            format: FORMAT,
            toolpost: self.version,
            sessions: self
                .sessions
                .into_iter()
                .map(|(_, session)| session)
                .collect(),
            tools: tools
                .into_iter()
                .map(|tool| tool_on_tape(tool, &self.denied))
                .collect(),
            calls,
        }
    }
}

fn on_tape(
    taken: &CassetteCallDraft,
    places: &HashMap<InvocationId, usize>,
) -> Option<CassetteCall> {
    let call = taken.call.as_ref()?;
    let result = taken.result.as_ref()?;
    let place_of = |id: InvocationId| places.get(&id).copied();
    let mut answer: Map<String, Value> =
        serde_json::from_str(&ids::marked(result.text(), place_of)).ok()?;
    answer.remove("invocation_id");
    let timings = answer.remove("timings");
    let took_us = timings
        .and_then(|timings| timings.get("total_us")?.as_u64())
        .unwrap_or_default();
    // The model input, if a setting or a hook changed it.
    let arguments = call.model_arguments.as_ref().or(call.arguments.as_ref());
    Some(CassetteCall {
        tool: call.tool.to_string(),
        arguments: match arguments {
            Some(arguments) => {
                Some(serde_json::from_str(&ids::marked(arguments.text(), place_of)).ok()?)
            }
            None => None,
        },
        unread_bytes: call.unread_bytes.filter(|_| arguments.is_none()),
        took_ms: took_us / 1_000,
        progress: taken.progress.iter().map(heard).collect(),
        answer,
    })
}

fn heard(milestone: &Milestone) -> CassetteEvent {
    CassetteEvent {
        after_ms: milestone.at_us / 1_000,
        body: milestone.body.clone(),
    }
}

#[derive(Default)]
struct LatestRecordedCatalog {
    tools: Vec<DeclaredTool>,
    /// Parts of a catalog that is not complete yet.
    begun: Vec<DeclaredTool>,
}

impl LatestRecordedCatalog {
    fn take(&mut self, body: CatalogBody) {
        // A host may have died between two parts; its incomplete catalog is dropped.
        if body.part <= 1 {
            self.begun.clear();
        }
        self.begun.extend(body.declared);
        if body.part < body.parts {
            return;
        }
        let declared = std::mem::take(&mut self.begun);
        if body.whole {
            self.tools = declared;
            return;
        }
        self.tools
            .retain(|tool| !body.removed.contains(&tool.declaration.tool_id));
        let mut places: HashMap<ToolId, usize> = self
            .tools
            .iter()
            .enumerate()
            .map(|(place, tool)| (tool.declaration.tool_id.clone(), place))
            .collect();
        for tool in declared {
            let id = tool.declaration.tool_id.clone();
            match places.get(&id) {
                Some(&place) => self.tools[place] = tool,
                None => {
                    places.insert(id, self.tools.len());
                    self.tools.push(tool);
                }
            }
        }
    }
}

fn tool_on_tape(tool: DeclaredTool, denied: &HashSet<ToolId>) -> CassetteTool {
    CassetteTool {
        denied: denied.contains(&tool.declaration.tool_id),
        name: tool.name,
        sensitive: tool.settings.sensitive,
        declaration: tool.declaration,
    }
}
