//! The type of a component, from the names that it exports.

use super::ModuleType;

/// The interfaces of Amplifier's modules, without a version, and the module type of each.
const INTERFACES: &[(&str, ModuleType)] = &[
    ("amplifier:modules/tool", ModuleType::Tool),
    ("amplifier:modules/hook-handler", ModuleType::Hook),
    ("amplifier:modules/context-manager", ModuleType::Context),
    ("amplifier:modules/approval-provider", ModuleType::Approval),
    ("amplifier:modules/provider", ModuleType::Provider),
    ("amplifier:modules/orchestrator", ModuleType::Orchestrator),
];

/// The functions of a tool, for components that export them without an interface around.
const TOOL_FUNCTIONS: [&str; 2] = ["get-spec", "execute"];

/// A component without a single known type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComponentError {
    /// None of its exports is known.
    #[error("the component has no Amplifier interface; {}", exported(.exports))]
    Unknown {
        /// Its exports.
        exports: Vec<String>,
    },
    /// It exports several types.
    #[error("the component has several Amplifier interfaces ({}), but must have one", types(.found))]
    Ambiguous {
        /// The types.
        found: Vec<ModuleType>,
    },
}

fn exported(exports: &[String]) -> String {
    /// How many exports a message lists.
    const SHOWN: usize = 8;
    if exports.is_empty() {
        return "it exports nothing".to_owned();
    }
    let mut names: Vec<String> = exports
        .iter()
        .take(SHOWN)
        .map(|name| format!("`{name}`"))
        .collect();
    if exports.len() > SHOWN {
        names.push(format!("{} more", exports.len() - SHOWN));
    }
    format!("it exports {}", names.join(", "))
}

fn types(found: &[ModuleType]) -> String {
    let words: Vec<&str> = found.iter().map(|found| found.as_str()).collect();
    words.join(", ")
}

/// The type of a component with these exports. Any version of an interface counts.
pub fn component_type<'a>(
    exports: impl IntoIterator<Item = &'a str>,
) -> Result<ModuleType, ComponentError> {
    let exports: Vec<&str> = exports.into_iter().collect();
    let offers = |interface: &str| {
        exports
            .iter()
            .any(|name| name.split_once('@').map_or(*name, |(bare, _)| bare) == interface)
    };
    let mut found: Vec<ModuleType> = INTERFACES
        .iter()
        .filter(|(name, _)| offers(name))
        .map(|(_, known)| *known)
        .collect();
    if found.is_empty()
        && TOOL_FUNCTIONS
            .iter()
            .all(|function| exports.contains(function))
    {
        found.push(ModuleType::Tool);
    }
    match found.as_slice() {
        [one] => Ok(*one),
        [] => Err(ComponentError::Unknown {
            exports: exports.into_iter().map(str::to_owned).collect(),
        }),
        _ => Err(ComponentError::Ambiguous { found }),
    }
}
