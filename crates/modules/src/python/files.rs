//! The Python side, embedded in the binary. A process gets it over its channel, so no file of it lies on disk.

use std::collections::BTreeMap;

/// The program that the interpreter starts with.
pub(super) const BOOT: &str = include_str!("bridge/boot.py");

macro_rules! table {
    ($($name:literal = $file:literal),+ $(,)?) => { &[$(($name, include_str!(concat!("bridge/", $file)))),+] };
}

const FILES: &[(&str, &str)] = table! {
    "toolpost_bridge" = "package.py",
    "toolpost_bridge.a2e" = "a2e.py",
    "toolpost_bridge.calls" = "calls.py",
    "toolpost_bridge.channel" = "channel.py",
    "toolpost_bridge.children" = "children.py",
    "toolpost_bridge.coordinator" = "coordinator.py",
    "toolpost_bridge.core" = "core.py",
    "toolpost_bridge.current" = "current.py",
    "toolpost_bridge.hooks" = "hooks.py",
    "toolpost_bridge.inspection" = "inspection.py",
    "toolpost_bridge.loading" = "loading.py",
    "toolpost_bridge.main" = "main.py",
    "toolpost_bridge.mounts" = "mounts.py",
    "toolpost_bridge.output" = "output.py",
    "toolpost_bridge.plain" = "plain.py",
    "toolpost_bridge.plugin_tools" = "plugin_tools.py",
    "toolpost_bridge.results" = "results.py",
    "toolpost_bridge.units" = "units.py",
    "toolpost_bridge.work" = "work.py",
    "amplifier_core" = "core/__init__.py",
    "amplifier_core.approval" = "core/approval.py",
    "amplifier_core.cancellation" = "core/cancellation.py",
    "amplifier_core.capabilities" = "core/capabilities.py",
    "amplifier_core.content_models" = "core/content_models.py",
    "amplifier_core.coordinator" = "core/coordinator.py",
    "amplifier_core.display" = "core/display.py",
    "amplifier_core.events" = "core/events.py",
    "amplifier_core.hooks" = "core/hooks.py",
    "amplifier_core.interfaces" = "core/interfaces.py",
    "amplifier_core.message_models" = "core/message_models.py",
    "amplifier_core.models" = "core/models.py",
    "amplifier_core.records" = "core/records.py",
    "amplifier_core.testing" = "core/testing.py",
};

/// The modules of the bridge and of the stand-in, by name.
pub(super) fn files() -> BTreeMap<&'static str, &'static str> {
    FILES.iter().copied().collect()
}
