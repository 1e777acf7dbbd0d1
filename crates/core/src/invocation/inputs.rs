//! The four inputs of a call on its way.

use toolpost_model::{Arguments, CallInput, ModelInput, ObservableInput, PermissionInput};

use crate::{hooks::InputMutation, record::redaction::SensitiveArgument};

/// The four inputs, each in its own type, and what was done to them.
pub(crate) struct CallInputs {
    pub(crate) model: ModelInput,
    /// What the model sent, as others may see it, of a call that an earlier host began: `model` then holds the
    /// arguments that the call had reached when that host ended.
    pub(crate) sent: Option<Arguments>,
    pub(crate) observable: Option<ObservableInput>,
    pub(crate) permission: Option<PermissionInput>,
    pub(crate) call: Option<CallInput>,
    pub(crate) mutations: Vec<InputMutation>,
    /// A sensitive value was taken out of the record, so the call cannot be run again from it.
    pub(crate) redacted: bool,
    /// What the record says of the sensitive ones.
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

    /// Notes a change, before the new arguments take their place. No record need have been written since the change
    /// before it, so this one keeps the arguments that lie between the two.
    pub(crate) fn note_change(&mut self, mut change: InputMutation) {
        if !self.mutations.is_empty() {
            let shown = self.observable.as_ref();
            change.arguments_before = shown.map(|shown| shown.arguments().value().clone());
        }
        self.mutations.push(change);
    }
}
