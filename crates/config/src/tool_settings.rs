//! One row for each setting of a tool. The merging of several files and patterns, and the restrictions of untrusted
//! files, both follow from it.

use toolpost_model::{SandboxProfile, ToolSettings};

use crate::HostConfig;

/// Passes each setting with a single value to a macro: its path, and the stricter of two values.
/// `sensitive`, `defaults` and `arguments` add up instead and have no row.
macro_rules! each_tool_setting {
    ($rows:ident) => {
        $rows! {
            surface.enabled: StricterFlag { strict: false, usual: Some(true) };
            surface.hidden: StricterFlag { strict: true, usual: Some(false) };
            surface.deferred: StricterFlag { strict: true, usual: None };
            execution.timeout: LowerLimit(|host: &HostConfig| host.limits.deadline);
            execution.ceiling: LowerLimit(|host: &HostConfig| host.limits.deadline_ceiling);
            execution.idempotent: StricterFlag { strict: false, usual: None };
            permission.approval_required: StricterFlag { strict: true, usual: None };
            execution.sandbox: StricterProfile;
            execution.concurrency: LowerLimit(|host: &HostConfig| host.limits.concurrency);
            execution.exclusive: StricterFlag { strict: true, usual: None };
            persistence.max_inline_chars: LowerLimit(|host: &HostConfig| host.limits.inline_chars);
            input.argument_bytes: LowerLimit(|host: &HostConfig| host.limits.argument_bytes);
            surface.name: TrustedOnly;
            // Even a more powerful class is no restriction: a rule may allow exactly that class.
            permission.class: TrustedOnly;
            execution.interrupt: TrustedOnly;
            // Showing more is no restriction, and keeping less would hide results of a tool.
            persistence.keep: TrustedOnly;
            // It would replace the tool's own requirements, which may be stricter.
            surface.requires: TrustedOnly;
        }
    };
}
pub(crate) use each_tool_setting;

/// The stricter of two values of a setting.
pub(crate) trait SettingDirection<T> {
    /// The value if nothing sets it, if that is the same for every tool.
    fn usual(&self) -> Option<T> {
        None
    }

    /// The value within a bound of a file that may only restrict.
    fn within(&self, own: Option<T>, bound: Option<T>) -> Option<T>;

    /// Whether a new value is stricter than the current one.
    fn restricts(&self, host: &HostConfig, now: Option<&T>, new: &T) -> bool;
}

/// One of the two answers is the strict one.
pub(crate) struct StricterFlag {
    pub(crate) strict: bool,
    pub(crate) usual: Option<bool>,
}

impl SettingDirection<bool> for StricterFlag {
    fn usual(&self) -> Option<bool> {
        self.usual
    }

    fn within(&self, own: Option<bool>, bound: Option<bool>) -> Option<bool> {
        if bound == Some(self.strict) {
            bound
        } else {
            own
        }
    }

    fn restricts(&self, _: &HostConfig, _: Option<&bool>, new: &bool) -> bool {
        *new == self.strict
    }
}

/// Less is stricter, also compared with the limit of the whole host.
pub(crate) struct LowerLimit<T>(pub(crate) fn(&HostConfig) -> T);

impl<T: Ord> SettingDirection<T> for LowerLimit<T> {
    fn within(&self, own: Option<T>, bound: Option<T>) -> Option<T> {
        lower(own, bound)
    }

    fn restricts(&self, host: &HostConfig, now: Option<&T>, new: &T) -> bool {
        *new < *now.unwrap_or(&self.0(host))
    }
}

/// Profiles have an order of their own.
pub(crate) struct StricterProfile;

impl SettingDirection<SandboxProfile> for StricterProfile {
    fn within(
        &self,
        own: Option<SandboxProfile>,
        bound: Option<SandboxProfile>,
    ) -> Option<SandboxProfile> {
        match (own, bound) {
            (Some(own), Some(bound)) => Some(own.stricter(bound)),
            (own, bound) => own.or(bound),
        }
    }

    fn restricts(
        &self,
        host: &HostConfig,
        now: Option<&SandboxProfile>,
        new: &SandboxProfile,
    ) -> bool {
        let now = *now.unwrap_or(&host.sandbox.profile);
        now != *new && now.stricter(*new) == *new
    }
}

/// Neither is stricter, so only a trusted file sets it.
pub(crate) struct TrustedOnly;

impl<T> SettingDirection<T> for TrustedOnly {
    fn within(&self, own: Option<T>, _: Option<T>) -> Option<T> {
        own
    }

    fn restricts(&self, _: &HostConfig, _: Option<&T>, _: &T) -> bool {
        false
    }
}

/// These settings, with missing ones taken from a less exact entry.
pub(crate) fn filled_from(mut settings: ToolSettings, wider: &ToolSettings) -> ToolSettings {
    let wider = wider.clone();
    macro_rules! fill {
        ($($group:ident.$setting:ident: $direction:expr;)*) => {
            $(settings.$group.$setting = settings.$group.$setting.or(wider.$group.$setting);)*
        };
    }
    each_tool_setting!(fill);
    keep_sensitive(&mut settings, wider.input.sensitive);
    let mut defaults = wider.input.defaults;
    defaults.extend(settings.input.defaults);
    settings.input.defaults = defaults;
    let meanings = &mut settings.permission.arguments;
    let known: Vec<String> = meanings
        .iter()
        .map(|meaning| meaning.pointer.clone())
        .collect();
    let further = wider.permission.arguments.into_iter();
    meanings.extend(further.filter(|meaning| !known.contains(&meaning.pointer)));
    settings
}

/// These settings within the bounds of files that may only restrict. The bounds set nothing else.
pub(crate) fn within(mut settings: ToolSettings, bounds: &ToolSettings) -> ToolSettings {
    let own = settings.execution.clone();
    let bounds = bounds.clone();
    // A tool's default deadline may be lower than any of these, so a bound never becomes its deadline.
    let longest = lower(bounds.execution.timeout, bounds.execution.ceiling);
    macro_rules! bound {
        ($($group:ident.$setting:ident: $direction:expr;)*) => {
            $(settings.$group.$setting =
                $direction.within(settings.$group.$setting, bounds.$group.$setting);)*
        };
    }
    each_tool_setting!(bound);
    settings.execution.timeout = own
        .timeout
        .map(|time| longest.map_or(time, |longest| time.min(longest)));
    settings.execution.ceiling = match longest {
        Some(_) => lower(own.ceiling.or(own.timeout), longest),
        None => own.ceiling,
    };
    settings
}

/// Applies the restrictions in `settings` to `found`, for a key that matches a tool only by chance.
pub(crate) fn restrict(settings: &ToolSettings, found: ToolSettings) -> ToolSettings {
    let mut bounds = settings.clone();
    // These numbers may be larger than the tool's own or the host's, which are unknown here.
    bounds.persistence.max_inline_chars = None;
    bounds.input.argument_bytes = None;
    let mut restricted = within(found, &bounds);
    keep_sensitive(&mut restricted, bounds.input.sensitive);
    restricted
}

/// Whether any of it requires a key that names the tool exactly.
pub(crate) fn loosens(settings: &ToolSettings) -> bool {
    restrict(settings, ToolSettings::default()) != *settings
}

fn keep_sensitive(settings: &mut ToolSettings, further: Vec<String>) {
    let pointers = &mut settings.input.sensitive;
    pointers.extend(further);
    pointers.sort();
    pointers.dedup();
}

/// The lower of two limits, with `None` as no limit. (`Option`'s own order puts `None` first.)
fn lower<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
