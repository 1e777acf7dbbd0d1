//! Which calls a hook is for.

use toolpost_model::{
    Behavior, Effects, PermissionInput, PermissionMode, ReasonType, Rule, RuleOrigin, Selector,
    ToolPattern,
};

use super::HookCall;
use crate::permission::{PathBaseFolders, PermissionFacts, Policy, PolicyEngine as _, PolicySpec};

/// Which calls a hook is for: those of any of its tools that a selector fits. The selector is read as in a rule that
/// denies, on the arguments that the tool would get and not on what hooks are shown of them; and where nobody can tell
/// whether it fits, such as with a command that is put together at run time, the hook is asked.
#[derive(Clone, Debug, Default)]
pub struct HookScope {
    tools: Vec<ToolPattern>,
    /// Everything is allowed but what the selector fits.
    when: Option<Policy>,
}

/// A selector that means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{selector}`: {message}")]
pub struct ConcernError {
    /// As written.
    pub selector: String,
    /// What is wrong with it.
    pub message: String,
}

impl HookScope {
    /// Calls of these tools, and of no others. None: of every tool.
    pub fn with_tools(tools: Vec<ToolPattern>) -> Self {
        Self { tools, when: None }
    }

    /// Of those only the ones that a selector fits. Its paths begin in `places`.
    pub fn when(
        mut self,
        selector: Selector,
        places: PathBaseFolders,
    ) -> Result<Self, ConcernError> {
        let written = selector.to_string();
        let rules = vec![Rule::new(Behavior::Deny, selector, RuleOrigin::Cli, "when")];
        let spec = PolicySpec {
            mode: PermissionMode::Bypass,
            rules,
            places,
            ..PolicySpec::default()
        };
        let policy = Policy::compile(spec).map_err(|problems| ConcernError {
            selector: written,
            message: problems
                .into_iter()
                .map(|problem| problem.message)
                .collect::<Vec<_>>()
                .join("; "),
        })?;
        self.when = Some(policy);
        Ok(self)
    }

    /// Whether it is for this call.
    pub fn fits(&self, call: &HookCall<'_>) -> bool {
        let named = |pattern: &ToolPattern| {
            pattern.matches(&call.declaration.tool_id, &call.declaration.aliases)
        };
        let of_tools = self.tools.is_empty() || self.tools.iter().any(named);
        of_tools
            && self
                .when
                .as_ref()
                .is_none_or(|policy| is_caught(policy, call))
    }
}

fn is_caught(policy: &Policy, call: &HookCall<'_>) -> bool {
    // That a call deserves caution is said of every call like it, and not by the selector.
    let effects = Effects {
        caution: None,
        path_cautions: Vec::new(),
        ..call.known.effects()
    };
    let input = PermissionInput::new(call.known.input.arguments().clone());
    let decision = policy.decide(&PermissionFacts {
        declaration: call.declaration,
        input: Some(&input),
        effects: &effects,
        principal: call.principal,
        opinions: &[],
        delegated: &[],
        at: crate::port::now(),
    });
    match decision.reason.kind {
        ReasonType::Rule | ReasonType::Opaque => true,
        // The tool asks about every call, which says nothing of this one.
        ReasonType::SafetyCheck => !decision.opaque.is_empty(),
        ReasonType::Mode
        | ReasonType::Classifier
        | ReasonType::Caution
        | ReasonType::Hook
        | ReasonType::Delegate
        | ReasonType::Approval => false,
    }
}
