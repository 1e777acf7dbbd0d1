//! `plugins`: what an A2E host serves. Each names a class: one in Python, or the one that stands for the built-in
//! tools here.

use serde_json::{Map, Value as Json};

use crate::{
    Located,
    nearest::{nearest, suggestion},
    snippet::shown,
    yaml::tree::Value,
};

use super::reading::{Reading, Table};

/// The class that stands for the built-in tools, and its short name.
const NATIVE: [&str; 2] = ["toolpost.native", "native"];

macro_rules! capabilities {
    ($($variant:ident $name:literal $about:literal),+ $(,)?) => {
        /// What an A2E host can have to offer, by the names that clients know.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum A2eCapability {
            $(#[doc = $about] $variant),+
        }

        impl A2eCapability {
            const NAMES: [&str; 12] = [$($name),+];

            /// The name on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }

            fn of_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

capabilities! {
    Skill "skill" "Instructions for the agent.",
    Tools "tools" "Tools to call.",
    Toolkits "toolkits" "Tools in groups.",
    Env "env" "Environments to step through.",
    Proc "proc" "Processes to start and watch.",
    Memory "memory" "What the agent remembers.",
    Learning "learning" "What the agent learns.",
    Chains "chains" "Calls in a row.",
    MultiAgent "multi_agent" "Agents that speak to one another.",
    Planning "planning" "Plans.",
    Mcp "mcp" "Servers of the Model Context Protocol.",
    Test "test" "For tests of clients.",
}

impl A2eCapability {
    /// The capability a file means. Files in use have three names that no client knows.
    fn meant(name: &str) -> Option<Self> {
        let name = match name {
            "procs" => "proc",
            "learn" => "learning",
            "skills" => "skill",
            other => other,
        };
        Self::of_name(name)
    }

    fn is_served(self) -> bool {
        self == Self::Tools
    }
}

/// A plugin that this host has.
#[derive(Clone, Debug, PartialEq)]
pub struct A2ePlugin {
    /// The name it has in the file.
    pub name: String,
    /// What it offers.
    pub capability: A2eCapability,
    /// The higher comes first.
    pub priority: i64,
    /// Whether it hides the others of its capability.
    pub exclusive: bool,
    /// What it is made of.
    pub class: A2ePluginClass,
}

/// What a plugin is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum A2ePluginClass {
    /// The built-in tools.
    Native,
    /// A class in Python.
    Python {
        /// Its name, with the module it is in: `package.module.Class`.
        class: String,
        /// What it is set up with: all of `metadata`.
        config: Map<String, Json>,
    },
}

pub(super) fn read(root: &mut Table, reading: &mut Reading<'_>) -> Vec<A2ePlugin> {
    let items = reading.list(root, "plugins");
    items.into_iter().enumerate().filter_map(|(index, item)| plugin(index, item, reading)).collect()
}

fn plugin(index: usize, item: Located<Value>, reading: &mut Reading<'_>) -> Option<A2ePlugin> {
    let Located { value, at } = item;
    let entries = match value {
        Value::Table(entries) => entries,
        other => {
            return reading.wrong_kind(
                at,
                &format!("plugins[{index}]"),
                "a table of keys and values",
                &other,
            );
        }
    };
    let name = entries.iter().find(|entry| entry.key.value == "name").map(|entry| &entry.value.value);
    let path = match name {
        Some(Value::Text(name)) => format!("plugins.{}", shown(name)),
        _ => format!("plugins[{index}]"),
    };
    let mut plugin = Table::new(path.clone(), at, entries);
    let mut metadata = reading.table(&mut plugin, "metadata");
    let enabled = metadata.as_mut().and_then(|metadata| reading.flag(metadata, "enabled"));
    if enabled.is_some_and(|enabled| !enabled.value) {
        return None;
    }
    let has_type = plugin.has("type");
    let capability = match &reading.text(&mut plugin, "type") {
        Some(word) => Some(capability(word, reading)?),
        None => None,
    };
    if let Some(capability) = capability.filter(|capability| !capability.is_served()) {
        let why = format!("this host does not serve the capability `{}`", capability.as_str());
        reading.ignored(at, path, &why);
        return None;
    }
    let name = required("name", &mut plugin, reading);
    let cls = required("cls", &mut plugin, reading)?;
    let class = class(&cls, reading)?;
    let (priority, exclusive, class) = settings(plugin, metadata, class, reading);
    if !has_type {
        let message = format!("the key `type` is missing in `{path}`");
        reading.complain(at, message, "write `type: tools`".to_owned());
    }
    Some(A2ePlugin { name: name?.value, capability: capability?, priority, exclusive, class })
}

fn required(key: &str, plugin: &mut Table, reading: &mut Reading<'_>) -> Option<Located<String>> {
    let there = plugin.has(key);
    let text = reading.text(plugin, key);
    if !there {
        let message = format!("the key `{key}` is missing in `{}`", plugin.path());
        reading.complain(plugin.at, message, None);
    }
    text
}

fn capability(written: &Located<String>, reading: &mut Reading<'_>) -> Option<A2eCapability> {
    let found = A2eCapability::meant(&written.value);
    if found.is_none() {
        let message = format!("`{}` is no capability of A2E", shown(&written.value));
        let hint = suggestion(&written.value, &A2eCapability::NAMES, "the capabilities are");
        reading.complain(written.at, message, hint);
    }
    found
}

/// `None`, and a complaint, where the class can be none of this host and none in Python.
fn class(cls: &Located<String>, reading: &mut Reading<'_>) -> Option<A2ePluginClass> {
    let class = cls.value.as_str();
    if NATIVE.contains(&class) {
        return Some(A2ePluginClass::Native);
    }
    let nearly = nearest(class, NATIVE).or(class.starts_with("toolpost").then_some(NATIVE[0]));
    let hint = if let Some(near) = nearly {
        format!("did you mean `{near}`?")
    } else if is_dotted(class) {
        return Some(A2ePluginClass::Python { class: class.to_owned(), config: Map::new() });
    } else {
        "write `cls: toolpost.native` for the built-in tools, or `package.module.Class` for one in Python"
            .to_owned()
    };
    reading.complain(cls.at, format!("`{}` is no class of this host", shown(class)), hint);
    None
}

/// `package.module.Class`, or with a colon before the class.
fn is_dotted(class: &str) -> bool {
    let is_name = |part: &str| {
        part.chars().all(|c| c.is_alphanumeric() || c == '_')
            && !part.starts_with(|c: char| c.is_ascii_digit())
    };
    let mut parts = class.split(['.', ':']);
    class.contains(['.', ':']) && parts.all(|part| !part.is_empty() && is_name(part))
}

/// Priority and exclusiveness. Everything else is the plugin's own where it is in Python, and else named.
fn settings(
    mut plugin: Table,
    metadata: Option<Table>,
    mut class: A2ePluginClass,
    reading: &mut Reading<'_>,
) -> (i64, bool, A2ePluginClass) {
    if let Some(entry) = plugin.take_entry("config") {
        let key = plugin.path_of("config");
        reading.ignored(entry.key.at, key, "what a plugin is given stands under `metadata`");
    }
    reading.name_the_rest(&plugin, &["name", "type", "cls", "metadata"]);
    let Some(mut metadata) = metadata else {
        return (0, false, class);
    };
    let priority = reading.whole(&mut metadata, "priority").map_or(0, |priority| priority.value);
    let exclusive = reading.flag(&mut metadata, "exclusive").is_some_and(|exclusive| exclusive.value);
    match &mut class {
        A2ePluginClass::Native => {
            reading.ignore_the_rest(&metadata, "the built-in tools have no such setting");
        }
        A2ePluginClass::Python { config, .. } => {
            config.insert("priority".to_owned(), priority.into());
            config.insert("exclusive".to_owned(), exclusive.into());
            config.extend(metadata.into_json());
        }
    }
    (priority, exclusive, class)
}
