//! Layer 3: the tools that are visible on a surface, and the reasons for the others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::PrincipalRole;

/// A request for a surface: the caller and the purpose.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SurfaceRequest {
    /// The purpose of the surface.
    pub scope: SurfaceScope,
    /// The caller's role. Set by the face from the token, never by the caller.
    #[serde(skip)]
    pub role: PrincipalRole,
    /// The tenant that the caller belongs to. Set by the host from the token, never by the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub tenant: Option<String>,
    /// The task at hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Skills that are active.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
    /// The abilities of the model, such as `vision`. None: the abilities are not known, and tools that require one are
    /// hidden.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model_capabilities: Vec<String>,
    /// The largest text of a result to show whole, in characters. Can only lower the host's limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inline_chars: Option<usize>,
}

impl Default for SurfaceRequest {
    fn default() -> Self {
        Self {
            scope: SurfaceScope::Session,
            role: PrincipalRole::Agent,
            tenant: None,
            task: None,
            skills: Vec::new(),
            model_capabilities: Vec::new(),
            inline_chars: None,
        }
    }
}

/// The purpose of a surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Scope")]
pub enum SurfaceScope {
    /// One turn of a conversation.
    Turn,
    /// One task.
    Task,
    /// A session.
    Session,
    /// All sessions of one tenant. Only the host sets it, for callers with a token that names a tenant.
    Tenant,
    /// A skill.
    Skill,
    /// One request to a model.
    ModelRequest,
}

/// Whether a tool is visible on a surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Listed with its schema.
    Loaded,
    /// Found by search.
    Deferred,
    /// In no list, but callable by its id.
    Unlisted,
    /// Not shown and not callable.
    Blocked(HiddenReason),
}

/// Why a tool is not in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HiddenReason {
    /// A rule or the mode denies it outright.
    Policy,
    /// The model lacks an ability the tool needs.
    ModelCapability,
    /// The caller's role may not see it.
    Role,
    /// It belongs to another task or skill.
    TaskScope,
    /// Something must be set up first.
    Setup,
    /// The operator switched it off.
    Disabled,
    /// It is deferred and not yet discovered.
    Deferred,
    /// Only other tools of its source call it.
    Internal,
    /// Only faces call it, for a protocol operation of their own.
    Companion,
}

impl HiddenReason {
    /// The code in lists and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::ModelCapability => "model_capability",
            Self::Role => "role",
            Self::TaskScope => "task_scope",
            Self::Setup => "setup",
            Self::Disabled => "disabled",
            Self::Deferred => "deferred",
            Self::Internal => "internal",
            Self::Companion => "companion",
        }
    }

    /// The reason in one sentence, for a caller that looked for the tool.
    pub fn explain(self) -> &'static str {
        match self {
            Self::Policy => "a permission rule or the mode denies it outright",
            Self::ModelCapability => {
                "the session does not declare a model capability that this tool requires"
            }
            Self::Role => "the caller's role may not use it",
            Self::TaskScope => "it belongs to another task or skill",
            Self::Setup => "it must be set up first",
            Self::Disabled => "the operator switched it off",
            Self::Deferred => "it is deferred until a search shows it",
            Self::Internal => "only other tools of its source can call it",
            Self::Companion => "it is called by its id only",
        }
    }
}
