//! The scope of a hook: the calls that it applies to.

use toolpost_model::{
    Behavior, Effects, PermissionInput, PermissionMode, ReasonType, Rule, RuleOrigin, Selector,
    ToolPattern,
};

use super::HookCall;
use crate::permission::{PathBaseFolders, PermissionFacts, Policy, PolicyEngine as _, PolicySpec};

/// The calls that a hook applies to: calls of the listed tools that match a selector. The selector is matched as in a
/// deny rule, on the arguments that the tool would get and not on the redacted ones. If a match cannot be excluded,
/// such as for a command that is built at run time, the hook runs.
#[derive(Clone, Debug, Default)]
pub struct HookScope {
    tools: Vec<ToolPattern>,
    /// A policy that allows everything except the calls that match the selector.
    when: Option<Policy>,
}

/// An invalid selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{selector}`: {message}")]
pub struct ConcernError {
    /// The selector as written.
    pub selector: String,
    /// The problem.
    pub message: String,
}

impl HookScope {
    /// Applies to calls of these tools, or of all tools if the list is empty.
    pub fn with_tools(tools: Vec<ToolPattern>) -> Self {
        Self { tools, when: None }
    }

    /// Limits the scope to calls that match a selector. `places` are the base folders of its paths.
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

    /// Whether the hook applies to this call.
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
    // Cautions are left out: they apply to all calls of a kind, and the selector did not match because of them.
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
        // A tool that asks about every call is no match. A part that cannot be analysed is.
        ReasonType::SafetyCheck => !decision.opaque.is_empty(),
        ReasonType::Mode
        | ReasonType::Classifier
        | ReasonType::Caution
        | ReasonType::Hook
        | ReasonType::Delegate
        | ReasonType::Approval => false,
    }
}
