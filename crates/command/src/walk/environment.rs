//! Variables that are set for every command from outside of the text.

use super::ScriptWalker;
use crate::analysis::VariableAssignment;
use crate::opaque::OpaqueReason;
use crate::variable;

/// Every command carries a copy of the variables, so both limits bound the memory of an analysis.
const MOST_VARIABLES: usize = 64;
const LONGEST_ENVIRONMENT: usize = 8 * 1024;

impl ScriptWalker {
    /// Adds the variables that a rule has to mention. Beyond the limits the environment is opaque.
    pub(crate) fn set_environment<'a>(
        &mut self,
        environment: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) {
        let mut bytes = 0;
        for (name, value) in environment {
            if variable::is_free(name) {
                continue;
            }
            bytes += name.len() + value.len();
            if self.inherited.len() == MOST_VARIABLES || bytes > LONGEST_ENVIRONMENT {
                self.opaque(name, OpaqueReason::LargeEnvironment);
                break;
            }
            if !variable::is_name(name) {
                // For example `BASH_FUNC_ls%%`, which a shell reads as a function.
                self.opaque(name, OpaqueReason::Ambiguous);
            } else if variable::is_number(name) {
                self.opaque(name, OpaqueReason::Evaluated);
            }
            self.inherited.push(VariableAssignment {
                name: name.to_owned(),
                value: Some(value.to_owned()),
            });
        }
        self.found.environment = self.inherited.clone();
    }
}
