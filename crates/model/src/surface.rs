//! Layer 3: which tools are visible here and now, and why not the others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::PrincipalRole;

/// Who is asking for tools, and for what.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SurfaceRequest {
    /// What the surface is for.
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
    /// What the model can do, such as `vision`. None means nobody said, and tools that ask for one are hidden.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model_capabilities: Vec<String>,
    /// The largest text of a result that is to be shown whole, in characters. Only ever less than the host shows anyway.
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

/// What a surface is for.
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
    /// All sessions of one tenant. Only the host sets it, for callers whose token names one.
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
    /// In no list, but called by whoever knows its id.
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
    /// It waits to be discovered.
    Deferred,
    /// It is there for other tools of its source.
    Internal,
    /// It serves something that faces have words of their own for.
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

    /// One sentence for whoever looked for the tool.
    pub fn explain(self) -> &'static str {
        match self {
            Self::Policy => "a permission rule or the mode denies it outright",
            Self::ModelCapability => "the model was not said to have an ability this tool needs",
            Self::Role => "the caller's role may not use it",
            Self::TaskScope => "it belongs to another task or skill",
            Self::Setup => "it needs setting up first",
            Self::Disabled => "the operator switched it off",
            Self::Deferred => "it is deferred until a search shows it",
            Self::Internal => "only other tools of its source call it",
            Self::Companion => "it is called by its id only",
        }
    }
}
