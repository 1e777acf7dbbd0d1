//! The four inputs of a call.

use toolpost_model::{Arguments, CallInput, ModelInput, ObservableInput, PermissionInput};

use crate::{hooks::InputMutation, record::redaction::SensitiveArgument};

/// The four inputs, each in its own type, and their mutations.
pub(crate) struct CallInputs {
    pub(crate) model: ModelInput,
    /// The model's arguments in observable form, for a call that an earlier host began. `model` then holds the
    /// arguments that the call had when that host stopped.
    pub(crate) sent: Option<Arguments>,
    pub(crate) observable: Option<ObservableInput>,
    pub(crate) permission: Option<PermissionInput>,
    pub(crate) call: Option<CallInput>,
    pub(crate) mutations: Vec<InputMutation>,
    /// A sensitive value was left out of the record, so the call cannot be resumed from it.
    pub(crate) redacted: bool,
    /// The recorded facts about sensitive arguments.
    pub(crate) sensitive: Vec<SensitiveArgument>,
}

impl CallInputs {
    pub(super) fn new(model: ModelInput) -> Self {
        Self {
            model,
            sent: None,
            observable: None,
            permission: None,
            call: None,
            mutations: Vec::new(),
            redacted: false,
            sensitive: Vec::new(),
        }
    }

    /// Records a mutation before the new arguments replace the old ones. From the second mutation on it keeps the
    /// arguments in between, because they may be in no record.
    pub(crate) fn note_change(&mut self, mut change: InputMutation) {
        if !self.mutations.is_empty() {
            let shown = self.observable.as_ref();
            change.arguments_before = shown.map(|shown| shown.arguments().value().clone());
        }
        self.mutations.push(change);
    }
}
