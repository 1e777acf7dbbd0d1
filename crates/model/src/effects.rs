//! The effects of a call: the facts for the permission decision and the scheduler.

use std::{fmt, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SandboxProfile;

/// The class of a call's effects. Rules and modes refer to these classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    /// Changes nothing and stays on this machine.
    Read,
    /// Changes files of the workspace.
    Write,
    /// Connects to another machine.
    Network,
    /// Runs code or commands.
    Execute,
    /// No trusted origin stated the effects. Treated as able to do anything.
    Unknown,
}

impl EffectClass {
    /// Every class, in the order of growing power.
    pub const ALL: [Self; 5] = [
        Self::Read,
        Self::Write,
        Self::Network,
        Self::Execute,
        Self::Unknown,
    ];

    /// The name in rules, records and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Network => "network",
            Self::Execute => "execute",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for EffectClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The origin of a statement about effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectOrigin {
    /// Code compiled into this host.
    HostCode,
    /// The operator's configuration.
    Operator,
    /// The tool itself, from outside. Its claim may tighten the treatment, never loosen it.
    Claimed,
}

/// Whether a resource is looked at or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Access")]
pub enum ResourceAccess {
    /// May be shared with other readers.
    Read,
    /// Needs the resource, and all beneath it, alone.
    Write,
}

/// A hierarchical name of a resource that two calls could compete for: `path:/w/src` covers `path:/w/src/a.rs`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ResourceKey(Arc<str>);

impl ResourceKey {
    /// A key of any kind; `/` separates the levels of `name`.
    pub fn new(kind: &str, name: &str) -> Self {
        Self(format!("{kind}:{}", name.trim_end_matches('/')).into())
    }

    /// A file or folder, by resolved absolute path.
    pub fn path(path: &str) -> Self {
        Self::new("path", path)
    }

    /// The key's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The keys above this one, nearest first: `path:/w/src` and `path:/w` and `path:` for `path:/w/src/a`.
    pub fn ancestors(&self) -> impl Iterator<Item = &str> {
        let mut rest: &str = &self.0;
        std::iter::from_fn(move || {
            rest = &rest[..rest.rfind('/')?];
            Some(rest)
        })
    }
}

/// One resource and how it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceUse {
    /// The resource.
    pub key: ResourceKey,
    /// The kind of use.
    pub access: ResourceAccess,
}

/// A path that the call changes and that steers agents, such as a file of instructions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathCaution {
    /// The path.
    pub key: ResourceKey,
    /// Why a person should look at it.
    pub reason: String,
}

/// The effects of one call with its input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Effects {
    /// The kind of effect.
    pub class: EffectClass,
    /// The resources it touches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<ResourceUse>,
    /// It can be run again without doing more than once.
    pub idempotent: bool,
    /// It reaches things that the host cannot list in advance.
    pub open_world: bool,
    /// It may run beside other calls of its session.
    pub concurrency_safe: bool,
    /// It needs no slot: it only looks at other calls of its caller or cancels them, and must not wait for the call
    /// that it is to cancel. Accepted from host code only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unscheduled: bool,
    /// Why a person should look at this call even when a rule or mode allows its class: it writes a protected path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caution: Option<String>,
    /// Paths that steer agents. A person decides about them, unless a rule allows the path itself or the mode is
    /// `bypass`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path_cautions: Vec<PathCaution>,
    /// The profile that confines the call, when this host starts it as a process and enforces that profile in full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confined: Option<SandboxProfile>,
}

impl Effects {
    /// The fail-closed facts: any effect, not repeatable, alone.
    pub fn unknown() -> Self {
        Self::of(EffectClass::Unknown)
    }

    /// The safest facts for a class when nothing else is known.
    pub fn of(class: EffectClass) -> Self {
        let read = class == EffectClass::Read;
        let local = matches!(class, EffectClass::Read | EffectClass::Write);
        Self {
            class,
            uses: Vec::new(),
            idempotent: read,
            open_world: !local,
            concurrency_safe: local,
            unscheduled: false,
            caution: None,
            path_cautions: Vec::new(),
            confined: None,
        }
    }

    /// Adds a resource.
    #[must_use]
    pub fn using(mut self, key: ResourceKey, access: ResourceAccess) -> Self {
        self.uses.push(ResourceUse { key, access });
        self
    }

    /// Marks that running it twice equals running it once.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Adds the reason why a person should look at this call.
    #[must_use]
    pub fn with_caution(mut self, reason: impl Into<String>) -> Self {
        self.caution = Some(reason.into());
        self
    }

    /// Adds the reason why a person should look before this path is changed, unless a rule allows the path.
    #[must_use]
    pub fn with_path_caution(mut self, key: ResourceKey, reason: impl Into<String>) -> Self {
        if !self.path_cautions.iter().any(|known| known.key == key) {
            self.path_cautions.push(PathCaution {
                key,
                reason: reason.into(),
            });
        }
        self
    }

    /// Sets the profile that confines the call.
    #[must_use]
    pub fn confined_by(mut self, profile: SandboxProfile) -> Self {
        self.confined = Some(profile);
        self
    }

    /// These facts as the host accepts them from `origin`: a claim cannot make a call look harmless.
    #[must_use]
    pub fn as_stated_by(self, origin: EffectOrigin) -> Self {
        match origin {
            EffectOrigin::HostCode | EffectOrigin::Operator => self,
            EffectOrigin::Claimed => Self {
                class: if self.class == EffectClass::Execute {
                    EffectClass::Execute
                } else {
                    EffectClass::Unknown
                },
                uses: self.uses,
                caution: self.caution,
                path_cautions: self.path_cautions,
                ..Self::unknown()
            },
        }
    }

    /// Whether a call that was cut off may be run again. Reads are idempotent unless their tool states otherwise, as a
    /// tool that only calls other tools does.
    pub fn may_run_again(&self) -> bool {
        self.idempotent
    }

    /// Whether it leaves nothing behind, so that its start need not be recorded.
    pub fn is_harmless(&self) -> bool {
        self.class == EffectClass::Read && self.idempotent
    }
}

#[cfg(test)]
mod tests {
    use super::{EffectClass, EffectOrigin, Effects, ResourceKey};

    #[test]
    fn ancestors_go_up_to_the_kind() {
        let key = ResourceKey::path("/w/src/a.rs");
        assert_eq!(
            key.ancestors().collect::<Vec<_>>(),
            ["path:/w/src", "path:/w", "path:"]
        );
    }

    #[test]
    fn a_claim_never_makes_a_call_look_harmless() {
        for class in EffectClass::ALL {
            let claimed = Effects {
                unscheduled: true,
                ..Effects::of(class).idempotent()
            };
            let stated = claimed.as_stated_by(EffectOrigin::Claimed);
            assert!(matches!(
                stated.class,
                EffectClass::Unknown | EffectClass::Execute
            ));
            assert!(!stated.may_run_again() && stated.open_world && !stated.concurrency_safe);
            assert!(!stated.unscheduled);
        }
    }
}
