//! Where events sit: alone, in a part, and in everything that A2A puts around parts, in either dialect. The two differ in
//! a `kind` that one has and the other has not, so nothing here looks at it: the members decide.

use super::{
    Change, ReceiverOptions,
    event::{Event, Said},
    object::{Child, Member, Object},
    scope::Scope,
    table::Table,
};

/// Walks one object and gives the events in it to the table.
pub(super) struct Walk<'t> {
    pub(super) table: &'t mut Table,
    pub(super) options: &'t ReceiverOptions,
    pub(super) changes: &'t mut Vec<Change>,
}

impl Walk<'_> {
    /// A whole text.
    pub(super) fn text(&mut self, object: &Object<'_>) {
        if object.child(Child::Item).is_none() {
            return self.answer(object);
        }
        for item in object.children(Child::Item) {
            self.answer(item);
        }
    }

    /// What may be the answer of a JSON-RPC server; what it holds may not.
    fn answer(&mut self, object: &Object<'_>) {
        let is_payload = object.has(Member::Type) || object.has(Member::ToolCallId);
        match object.raw(Member::Result) {
            Some(result) if object.has(Member::Jsonrpc) || !is_payload => {
                let Ok(inner) = Object::read(result.get()) else {
                    return;
                };
                self.table.tally.beyond_bounds += u64::from(inner.is_cut);
                let request = object.said(Member::Id).map(|id| Scope::Request(id.get()));
                self.body(&inner, request.unwrap_or(Scope::Bare));
            }
            Some(_) | None if object.has(Member::Jsonrpc) => {}
            Some(_) | None => self.body(object, Scope::Bare),
        }
    }

    /// A payload, a part, a message, a task, an update, or an object that holds one of them under its name. `around` is
    /// the stream of what names none itself.
    fn body(&mut self, object: &Object<'_>, around: Scope<'_>) {
        if self.payload(object, around) {
            return;
        }
        object
            .children(Child::Item)
            .for_each(|item| self.body(item, around));
        for child in [Child::Task, Child::Tasks] {
            object
                .children(child)
                .for_each(|task| self.task(task, around));
        }
        for child in [Child::StatusUpdate, Child::ArtifactUpdate] {
            object
                .children(child)
                .for_each(|update| self.update(update, around));
        }
        object
            .children(Child::Message)
            .for_each(|message| self.message(message, None, around));
        let is_update = object.has(Member::TaskId) || object.child(Child::Artifact).is_some();
        let is_task = [Child::Status, Child::History, Child::Artifacts];
        if is_update
            && object.child(Child::Parts).is_none()
            && object.child(Child::History).is_none()
        {
            self.update(object, around);
        } else if is_task
            .into_iter()
            .any(|child| object.child(child).is_some())
        {
            self.task(object, around);
        } else if object.child(Child::Parts).is_some() {
            self.message(object, None, around);
        } else {
            self.part(object, around);
        }
    }

    /// A snapshot, in the order in which things happened: what was said, what is being said, what came of it.
    fn task(&mut self, task: &Object<'_>, around: Scope<'_>) {
        let id = task.text(Member::Id).or_else(|| task.text(Member::TaskId));
        let own = id.as_deref().map(Scope::Task);
        for message in task.children(Child::History) {
            self.message(message, own, around);
        }
        self.status(task, own, around);
        for artifact in task.children(Child::Artifacts) {
            self.parts(artifact, own.unwrap_or(around));
        }
    }

    fn update(&mut self, update: &Object<'_>, around: Scope<'_>) {
        let id = update.text(Member::TaskId);
        let own = id.as_deref().map(Scope::Task);
        self.status(update, own, around);
        for artifact in update.children(Child::Artifact) {
            self.parts(artifact, own.unwrap_or(around));
        }
    }

    fn status(&mut self, object: &Object<'_>, own: Option<Scope<'_>>, around: Scope<'_>) {
        for message in object
            .children(Child::Status)
            .flat_map(|status| status.children(Child::Message))
        {
            self.message(message, own, around);
        }
    }

    /// Only what the agent says is news; the user's own message may hold a call that it asks for.
    fn message(&mut self, message: &Object<'_>, own: Option<Scope<'_>>, around: Scope<'_>) {
        let role = message.text(Member::Role);
        if !matches!(
            role.as_deref(),
            None | Some("agent" | "ROLE_AGENT" | "ROLE_UNSPECIFIED")
        ) {
            return;
        }
        let (task, id) = (
            message.text(Member::TaskId),
            message.text(Member::MessageId),
        );
        let named = own.or_else(|| task.as_deref().map(Scope::Task));
        let named = named.or_else(|| id.as_deref().map(Scope::Message));
        self.parts(message, named.unwrap_or(around));
    }

    fn parts(&mut self, holder: &Object<'_>, scope: Scope<'_>) {
        for part in holder.children(Child::Parts) {
            self.part(part, scope);
        }
    }

    fn part(&mut self, part: &Object<'_>, scope: Scope<'_>) {
        let metadata = part.child(Child::Metadata);
        if let Some(data) = part.child(Child::Data) {
            if self.payload(data, scope) || !self.options.adk_parts {
                return;
            }
            let adk_type = metadata.and_then(|metadata| metadata.text(Member::AdkType));
            if let Some(event) = adk_type.and_then(|adk_type| Event::of_adk(&adk_type, data)) {
                self.table.apply(scope, &event, self.changes);
            }
        } else if let Some(metadata) = metadata
            && self.options.sidecars
            && part.has(Member::Text)
            && !self.payload(metadata, scope)
        {
            for event in metadata.children(Child::Sidecar) {
                self.payload(event, scope);
            }
        }
    }

    /// Takes an event in, or one of the two notes about steps. Says whether it was one.
    fn payload(&mut self, payload: &Object<'_>, scope: Scope<'_>) -> bool {
        let Some(name) = payload.text(Member::Type) else {
            return false;
        };
        if let Some(said) = Said::of(&name) {
            self.table
                .apply(scope, &Event::new(said, payload), self.changes);
            return true;
        }
        match name.as_ref() {
            "start-step" => self.table.start_step(scope),
            "reset-step" => self.table.reset_step(scope, self.changes),
            // The event of a module. Its `data` is the module's own and could look like an event of a call.
            "module-event" | "data-module-event" => {}
            _ => return false,
        }
        true
    }
}
