//! The four inputs of an invocation, each by the name of the first of them that has its value.

use serde_json::{Value, json};

use super::story::CallEvidence;

/// The number of changes between the model input and each of the other inputs.
pub(super) struct FourInputs<'a> {
    story: &'a CallEvidence,
    observable: usize,
    /// `None`: there was no decision.
    permission: Option<usize>,
    /// `None`: the tool did not run.
    call: Option<usize>,
}

impl<'a> FourInputs<'a> {
    pub(super) fn of(story: &'a CallEvidence) -> Self {
        let changes = &story.inputs.changes;
        // The operator's defaults are filled in before hooks, events and records see the arguments.
        let observable = changes
            .iter()
            .take_while(|(change, _)| change.source_type == "runtime")
            .count();
        // An operator's edit answers the decision that asked, so the decision was about the arguments before the edit.
        let decided = story
            .asked
            .last()
            .map_or(changes.len(), |asked| asked.changes);
        let permission = story.decision.as_ref().map(|_| decided);
        let call = story.has_run().then_some(changes.len());
        Self {
            story,
            observable,
            permission,
            call,
        }
    }

    /// The name of the arguments after `changes` changes. `None` if the records do not have them.
    pub(super) fn reference(&self, changes: usize) -> Option<String> {
        self.story.inputs.state(changes)?;
        Some(format!("{}/{}", self.story.id, self.field(changes)))
    }

    /// The field with the arguments after `changes` changes: of the invocation, or of the change that made them.
    fn field(&self, changes: usize) -> String {
        match changes {
            0 => "model_input".to_owned(),
            _ if changes == self.observable => "observable_input".to_owned(),
            _ if Some(changes) == self.permission => "permission_input".to_owned(),
            _ if Some(changes) == self.call => "call_input".to_owned(),
            _ => format!("mutation/{changes}/to_input"),
        }
    }

    /// The arguments after a change, if they are none of the four inputs.
    pub(super) fn between(&self, changes: usize) -> Option<&Value> {
        let is_between = self.field(changes).starts_with("mutation/");
        self.story.inputs.state(changes).filter(|_| is_between)
    }

    /// The inputs and their names, as fields of an invocation. The last two have a value only if it differs from the
    /// earlier inputs.
    pub(super) fn fields(&self) -> Value {
        let value = |changes: usize| self.story.inputs.state(changes);
        let own = |changes: Option<usize>, field: &str| {
            changes
                .filter(|changes| self.field(*changes) == field)
                .and_then(value)
        };
        json!({
            "model_input": value(0),
            "model_input_ref": self.reference(0),
            "observable_input": value(self.observable),
            "observable_input_ref": self.reference(self.observable),
            "permission_input": own(self.permission, "permission_input"),
            "permission_input_ref": self.permission.and_then(|changes| self.reference(changes)),
            "call_input": own(self.call, "call_input"),
            "call_input_ref": self.call.and_then(|changes| self.reference(changes)),
        })
    }
}
