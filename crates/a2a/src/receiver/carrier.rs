//! Finds events in JSON objects: an event alone, in a part, or in any object that A2A puts around parts, in either
//! dialect. The dialects differ in `kind`, which 1.0 leaves out, so this walk ignores `kind` and decides by the other
//! members.

use super::{
    CallPartChange, ReceiverOptions,
    event::{ReceivedEvent, ReceivedEventKind},
    object::{ContainerMember, ReceivedObject, ValueMember},
    scope::ResponseStreamScope,
    table::ReceivedCallTable,
};

/// Walks one object and hands the events in it to the table.
pub(super) struct EventCarrierWalk<'t> {
    pub(super) table: &'t mut ReceivedCallTable,
    pub(super) options: &'t ReceiverOptions,
    pub(super) changes: &'t mut Vec<CallPartChange>,
}

impl EventCarrierWalk<'_> {
    /// Walks a whole JSON text.
    pub(super) fn text(&mut self, object: &ReceivedObject<'_>) {
        if object.child(ContainerMember::Item).is_none() {
            return self.answer(object);
        }
        for item in object.children(ContainerMember::Item) {
            self.answer(item);
        }
    }

    /// Walks a top-level object, which may be the answer of a JSON-RPC server. Nested objects are never such answers.
    fn answer(&mut self, object: &ReceivedObject<'_>) {
        let is_payload = object.has(ValueMember::Type) || object.has(ValueMember::ToolCallId);
        match object.raw(ValueMember::Result) {
            Some(result) if object.has(ValueMember::Jsonrpc) || !is_payload => {
                let Ok(inner) = ReceivedObject::read(result.get()) else {
                    return;
                };
                self.table.tally.beyond_bounds += u64::from(inner.is_cut);
                let request = object
                    .said(ValueMember::Id)
                    .map(|id| ResponseStreamScope::Request(id.get()));
                self.body(&inner, request.unwrap_or(ResponseStreamScope::Bare));
            }
            Some(_) | None if object.has(ValueMember::Jsonrpc) => {}
            Some(_) | None => self.body(object, ResponseStreamScope::Bare),
        }
    }

    /// Walks a payload, a part, a message, a task, an update, or an object that holds one of them under its name.
    /// `around` is the response stream of objects that name none themselves.
    fn body(&mut self, object: &ReceivedObject<'_>, around: ResponseStreamScope<'_>) {
        if self.payload(object, around) {
            return;
        }
        object
            .children(ContainerMember::Item)
            .for_each(|item| self.body(item, around));
        for child in [ContainerMember::Task, ContainerMember::Tasks] {
            object
                .children(child)
                .for_each(|task| self.task(task, around));
        }
        for child in [
            ContainerMember::StatusUpdate,
            ContainerMember::ArtifactUpdate,
        ] {
            object
                .children(child)
                .for_each(|update| self.update(update, around));
        }
        object
            .children(ContainerMember::Message)
            .for_each(|message| self.message(message, None, around));
        let is_update =
            object.has(ValueMember::TaskId) || object.child(ContainerMember::Artifact).is_some();
        let is_task = [
            ContainerMember::Status,
            ContainerMember::History,
            ContainerMember::Artifacts,
        ];
        if is_update
            && object.child(ContainerMember::Parts).is_none()
            && object.child(ContainerMember::History).is_none()
        {
            self.update(object, around);
        } else if is_task
            .into_iter()
            .any(|child| object.child(child).is_some())
        {
            self.task(object, around);
        } else if object.child(ContainerMember::Parts).is_some() {
            self.message(object, None, around);
        } else {
            self.part(object, around);
        }
    }

    /// Walks the snapshot of a task in the order in which its events happened: history, status, artifacts.
    fn task(&mut self, task: &ReceivedObject<'_>, around: ResponseStreamScope<'_>) {
        let id = task
            .text(ValueMember::Id)
            .or_else(|| task.text(ValueMember::TaskId));
        let own = id.as_deref().map(ResponseStreamScope::Task);
        for message in task.children(ContainerMember::History) {
            self.message(message, own, around);
        }
        self.status(task, own, around);
        for artifact in task.children(ContainerMember::Artifacts) {
            self.parts(artifact, own.unwrap_or(around));
        }
    }

    fn update(&mut self, update: &ReceivedObject<'_>, around: ResponseStreamScope<'_>) {
        let id = update.text(ValueMember::TaskId);
        let own = id.as_deref().map(ResponseStreamScope::Task);
        self.status(update, own, around);
        for artifact in update.children(ContainerMember::Artifact) {
            self.parts(artifact, own.unwrap_or(around));
        }
    }

    fn status(
        &mut self,
        object: &ReceivedObject<'_>,
        own: Option<ResponseStreamScope<'_>>,
        around: ResponseStreamScope<'_>,
    ) {
        for message in object
            .children(ContainerMember::Status)
            .flat_map(|status| status.children(ContainerMember::Message))
        {
            self.message(message, own, around);
        }
    }

    /// Walks a message of the agent. Messages of the user are skipped: one may hold a call that the user asks for,
    /// which is no event of a call.
    fn message(
        &mut self,
        message: &ReceivedObject<'_>,
        own: Option<ResponseStreamScope<'_>>,
        around: ResponseStreamScope<'_>,
    ) {
        let role = message.text(ValueMember::Role);
        if !matches!(
            role.as_deref(),
            None | Some("agent" | "ROLE_AGENT" | "ROLE_UNSPECIFIED")
        ) {
            return;
        }
        let task = message.text(ValueMember::TaskId);
        let id = message.text(ValueMember::MessageId);
        let named = own.or_else(|| task.as_deref().map(ResponseStreamScope::Task));
        let named = named.or_else(|| id.as_deref().map(ResponseStreamScope::Message));
        self.parts(message, named.unwrap_or(around));
    }

    fn parts(&mut self, holder: &ReceivedObject<'_>, scope: ResponseStreamScope<'_>) {
        for part in holder.children(ContainerMember::Parts) {
            self.part(part, scope);
        }
    }

    fn part(&mut self, part: &ReceivedObject<'_>, scope: ResponseStreamScope<'_>) {
        let metadata = part.child(ContainerMember::Metadata);
        if let Some(data) = part.child(ContainerMember::Data) {
            if self.payload(data, scope) || !self.options.adk_parts {
                return;
            }
            let adk_type = metadata.and_then(|metadata| metadata.text(ValueMember::AdkType));
            if let Some(event) =
                adk_type.and_then(|adk_type| ReceivedEvent::of_adk(&adk_type, data))
            {
                self.table.apply(scope, &event, self.changes);
            }
        } else if let Some(metadata) = metadata
            && self.options.sidecars
            && part.has(ValueMember::Text)
            && !self.payload(metadata, scope)
        {
            for event in metadata.children(ContainerMember::Sidecar) {
                self.payload(event, scope);
            }
        }
    }

    /// Applies a payload if it is an event or one of the two notes about steps. Returns whether it was one.
    fn payload(&mut self, payload: &ReceivedObject<'_>, scope: ResponseStreamScope<'_>) -> bool {
        let Some(name) = payload.text(ValueMember::Type) else {
            return false;
        };
        if let Some(said) = ReceivedEventKind::of(&name) {
            self.table
                .apply(scope, &ReceivedEvent::new(said, payload), self.changes);
            return true;
        }
        match name.as_ref() {
            "start-step" => self.table.start_step(scope),
            "reset-step" => self.table.reset_step(scope, self.changes),
            // `data` belongs to the module that emitted the event, and could look like an event of a call.
            "module-event" | "data-module-event" => {}
            _ => return false,
        }
        true
    }
}
