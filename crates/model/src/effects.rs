//! What a call will touch: the facts that permission and scheduling are decided on.

use std::{fmt, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SandboxProfile;

/// The kind of effect a call has. Rules and modes speak of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    /// Changes nothing and stays on this machine.
    Read,
    /// Changes files of the workspace.
    Write,
    /// Talks to another machine.
    Network,
    /// Runs code or commands.
    Execute,
    /// Nobody the host trusts has said. Treated as able to do anything.
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

    /// The word used in rules, records and messages.
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

/// Who says what the effects are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectOrigin {
    /// Code compiled into this host.
    HostCode,
    /// The operator's configuration.
    Operator,
    /// The tool itself, from outside. May tighten, never loosen.
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

/// A hierarchical name of something two calls could fight over: `path:/w/src` covers `path:/w/src/a.rs`.
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
    /// What is used.
    pub key: ResourceKey,
    /// How.
    pub access: ResourceAccess,
}

/// A path that the call changes and that tells agents what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathCaution {
    /// The path.
    pub key: ResourceKey,
    /// Why a person should look at it.
    pub reason: String,
}

/// What one call will do, given its input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Effects {
    /// The kind of effect.
    pub class: EffectClass,
    /// The resources it touches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<ResourceUse>,
    /// It can be run again without doing more than once.
    pub idempotent: bool,
    /// It reaches things the host cannot list beforehand.
    pub open_world: bool,
    /// It may be run beside other calls of its session.
    pub concurrency_safe: bool,
    /// It needs no turn: it only looks at other calls of its caller, or stops them, and must not wait for what it is
    /// to stop. Believed of host code alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unscheduled: bool,
    /// Why a person should look at this very call, whatever allows its class: it writes a protected path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caution: Option<String>,
    /// Paths that steer agents, for a person to look at unless a rule allows the path itself or the mode runs everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path_cautions: Vec<PathCaution>,
    /// The profile that confines it, where this host starts it as a process and really enforces that profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confined: Option<SandboxProfile>,
}

impl Effects {
    /// Fail closed: may do anything, once, alone.
    pub fn unknown() -> Self {
        Self::of(EffectClass::Unknown)
    }

    /// The safest facts that can be assumed of a class when nothing else is known.
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

    /// Says that running it twice equals running it once.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Says why a person should look at this call.
    #[must_use]
    pub fn with_caution(mut self, reason: impl Into<String>) -> Self {
        self.caution = Some(reason.into());
        self
    }

    /// Says why a person should look before this path is changed, unless a rule allows the path.
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

    /// Says what confines it.
    #[must_use]
    pub fn confined_by(mut self, profile: SandboxProfile) -> Self {
        self.confined = Some(profile);
        self
    }

    /// What remains of these facts when `origin` is the one who states them: a claim cannot make a call
    /// look harmless.
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

    /// Whether a call that was cut off may be run again. Reads are idempotent unless their tool says otherwise, as
    /// one does that only calls other tools.
    pub fn may_run_again(&self) -> bool {
        self.idempotent
    }

    /// Whether it leaves nothing behind, so that its beginning need not be on record.
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
