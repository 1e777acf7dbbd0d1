//! The exports of a component: which of Amplifier's interfaces it implements, and where its functions are.

use wasmtime::component::{Component, ComponentExportIndex, types::ComponentItem};

const TOOL: &str = "amplifier:modules/tool";
const CONFIGURABLE: &str = "toolpost:modules/configurable";
const TOOLSET: &str = "toolpost:modules/toolset";
const HOOK: &str = "amplifier:modules/hook-handler";
/// The kinds of modules, by the interface that a component exports for them.
const KINDS: [&str; 6] = [
    "tool",
    "hook-handler",
    "context-manager",
    "approval-provider",
    "provider",
    "orchestrator",
];

pub(crate) struct ComponentOffer<F> {
    pub(crate) functions: F,
    pub(crate) configure: Option<ComponentExportIndex>,
}

/// The functions of a component that observes events.
pub(crate) struct HookFunctions {
    pub(crate) handle: ComponentExportIndex,
    pub(crate) get_subscriptions: ComponentExportIndex,
}

/// How a component names and runs its tools.
pub(crate) enum ToolExports {
    /// Amplifier's world: the component is one tool.
    One {
        get_spec: ComponentExportIndex,
        execute: ComponentExportIndex,
    },
    /// Toolpost's extension of that world: several tools in one component.
    Several {
        get_specs: ComponentExportIndex,
        execute_tool: ComponentExportIndex,
    },
}

/// Checks that the bytes are a component, and explains why if they are not.
pub(crate) fn check_preamble(bytes: &[u8]) -> Result<(), &'static str> {
    match bytes.get(..8) {
        Some(b"\0asm\x0d\x00\x01\x00") => Ok(()),
        Some(b"\0asm\x01\x00\x00\x00") => Err("it is a core module, not a component\n\
             hint: build it for `wasm32-wasip2`, or wrap it with `wasm-tools component new`"),
        Some([b'\0', b'a', b's', b'm', ..]) => {
            Err("its version of the WebAssembly format is unknown")
        }
        _ if bytes.trim_ascii_start().starts_with(b"(") => {
            Err("it is WebAssembly as text\nhint: turn it into a component with `wasm-tools parse`")
        }
        _ => Err("it is not WebAssembly"),
    }
}

impl ComponentOffer<HookFunctions> {
    /// Finds the hook's functions among the exports.
    pub(crate) fn hook(component: &Component) -> Result<Self, String> {
        let exports = ComponentExports::of(component);
        let handle = exports.function(&[HOOK], "handle");
        let get_subscriptions = exports.function(&[HOOK], "get-subscriptions");
        let configure = exports.function(&[CONFIGURABLE, HOOK], "configure");
        match (handle, get_subscriptions) {
            (Some(handle), Some(get_subscriptions)) => Ok(Self {
                functions: HookFunctions {
                    handle,
                    get_subscriptions,
                },
                configure,
            }),
            (None, _) | (_, None) => Err(match exports.kinds("hook-handler") {
                Some(kinds) => format!("it is a component of the kind {kinds}, not a hook"),
                None => format!("it is not a hook\nhint: a hook exports `{HOOK}@1.0.0`"),
            }),
        }
    }
}

impl ComponentOffer<ToolExports> {
    /// Finds the tools' functions among the exports.
    pub(crate) fn tools(component: &Component) -> Result<Self, String> {
        let exports = ComponentExports::of(component);
        let get_specs = exports.function(&[TOOLSET, TOOL], "get-specs");
        let execute_tool = exports.function(&[TOOLSET, TOOL], "execute-tool");
        let get_spec = exports.function(&[TOOL], "get-spec");
        let execute = exports.function(&[TOOL], "execute");
        let tools = match (get_specs, execute_tool, get_spec, execute) {
            (Some(get_specs), Some(execute_tool), _, _) => ToolExports::Several {
                get_specs,
                execute_tool,
            },
            (_, _, Some(get_spec), Some(execute)) => ToolExports::One { get_spec, execute },
            (specs, run, spec, one) => {
                let found = [
                    ("get-specs", specs),
                    ("execute-tool", run),
                    ("get-spec", spec),
                    ("execute", one),
                ];
                let found: Vec<&str> = found
                    .iter()
                    .filter(|(_, at)| at.is_some())
                    .map(|(name, _)| *name)
                    .collect();
                return Err(exports.what_it_is_instead(&found));
            }
        };
        Ok(Self {
            functions: tools,
            configure: exports.function(&[CONFIGURABLE, TOOL], "configure"),
        })
    }
}

struct ComponentExports<'a> {
    component: &'a Component,
    names: Vec<String>,
}

impl<'a> ComponentExports<'a> {
    fn of(component: &'a Component) -> Self {
        let exported = component.component_type();
        let names = exported
            .exports(component.engine())
            .map(|(name, _)| name.to_owned())
            .collect();
        Self { component, names }
    }

    /// A function at the root, or inside one of the interfaces.
    fn function(&self, interfaces: &[&str], name: &str) -> Option<ComponentExportIndex> {
        self.function_in(None, name).or_else(|| {
            interfaces.iter().find_map(|interface| {
                let of_version =
                    |export: &&String| version(export, interface).is_some_and(is_known);
                let export = self.names.iter().find(of_version)?;
                let inside = self.component.get_export_index(None, export.as_str())?;
                self.function_in(Some(&inside), name)
            })
        })
    }

    fn function_in(
        &self,
        inside: Option<&ComponentExportIndex>,
        name: &str,
    ) -> Option<ComponentExportIndex> {
        match self.component.get_export(inside, name)? {
            (ComponentItem::ComponentFunc(_), index) => Some(index),
            _ => None,
        }
    }

    /// The kinds that the component implements, without the wanted one.
    fn kinds(&self, wanted: &str) -> Option<String> {
        let other = |name: &String| {
            let others = KINDS.iter().filter(|kind| **kind != wanted);
            let kind = others
                .into_iter()
                .find(|kind| version(name, &format!("amplifier:modules/{kind}")).is_some());
            kind.map(|kind| format!("`{kind}`"))
        };
        let kinds: Vec<String> = self.names.iter().filter_map(other).collect();
        (!kinds.is_empty()).then(|| kinds.join(" and "))
    }

    fn what_it_is_instead(&self, found: &[&str]) -> String {
        if let Some(kinds) = self.kinds("tool") {
            return format!("it is a component of the kind {kinds}, not a tool");
        }
        if !found.is_empty() {
            return format!(
                "it exports only {} of the functions of a tool\n\
                 hint: export `get-spec` and `execute`, or `get-specs` and `execute-tool`",
                found.join(", ")
            );
        }
        if let Some(version) = self.names.iter().find_map(|name| version(name, TOOL)) {
            return format!("it exports version {version} of `{TOOL}`, but this host supports 1.x");
        }
        let names: Vec<String> = self
            .names
            .iter()
            .take(8)
            .map(|name| format!("`{name}`"))
            .collect();
        let exported = if names.is_empty() {
            "nothing".to_owned()
        } else {
            names.join(", ")
        };
        format!("it is not a tool: it exports {exported}\nhint: a tool exports `{TOOL}@1.0.0`")
    }
}

/// The version in the name of an export of this interface; empty if the export has none.
fn version<'a>(export: &'a str, interface: &str) -> Option<&'a str> {
    match export.strip_prefix(interface)? {
        "" => Some(""),
        rest => rest.strip_prefix('@'),
    }
}

fn is_known(version: &str) -> bool {
    version.is_empty() || version.starts_with("1.")
}
