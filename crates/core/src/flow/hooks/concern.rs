//! Which calls a hook is for.

use toolpost_model::{Condition, Selector, ToolPattern};

use super::HookCall;

/// Which calls a hook is for: those of any of its tools that meet its conditions. Looked at on the arguments that the
/// tool would get, which a hook itself is not shown.
#[derive(Clone, Debug, Default)]
pub struct Concern {
    tools: Vec<ToolPattern>,
    when: Option<(ToolPattern, Vec<Condition>)>,
}

/// A selector that says more than a hook can be chosen by.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "hooks are chosen by tool and arguments, such as `shell` or `mcp.**[/repo = \"prod-*\"]`; `{0}` is for rules"
)]
pub struct ConcernError(pub String);

impl Concern {
    /// Calls of these tools, and of no others. None: of every tool.
    pub fn with_tools(tools: Vec<ToolPattern>) -> Self {
        Self { tools, when: None }
    }

    /// Of those only the ones that a selector fits.
    pub fn when(mut self, selector: &Selector) -> Result<Self, ConcernError> {
        match selector {
            Selector::Tool { tools, matcher: None, conditions } => {
                self.when = Some((tools.clone(), conditions.clone()));
                Ok(self)
            }
            Selector::Tool { matcher: Some(_), .. }
            | Selector::Class(_)
            | Selector::Reads(_)
            | Selector::Writes(_)
            | Selector::Reaches(_) => Err(ConcernError(selector.to_string())),
        }
    }

    /// Whether it is for this call.
    pub fn fits(&self, call: &HookCall<'_>) -> bool {
        let named =
            |pattern: &ToolPattern| pattern.matches(&call.declaration.tool_id, &call.declaration.aliases);
        let of_tools = self.tools.is_empty() || self.tools.iter().any(named);
        let fits = |(tools, conditions): &(ToolPattern, Vec<Condition>)| {
            named(tools) && conditions.iter().all(|condition| condition.holds(call.real.value()))
        };
        of_tools && self.when.as_ref().is_none_or(fits)
    }
}
