//! `plugins`: the tools that an A2E host serves. Each plugin names a class: a Python class that brings tools, or the
//! built-in tools.

use crate::{
    LocatedValue, NativeToolsChoice, is_reserved_name, nearest::nearest, snippet::shown,
    yaml::tree::YamlValue,
};

use crate::reading::{ConfigTable, ConfigTreeReader};

/// The class of the built-in tools, and its short name.
const NATIVE: [&str; 2] = ["toolpost.native", "native"];

/// The capability of plugins with tools.
const TOOLS: &str = "tools";

/// An enabled entry of `plugins`.
#[derive(Clone, Debug, PartialEq)]
pub struct A2ePlugin {
    /// Its name in the file.
    pub name: String,
    /// Its capability, as the file spells it.
    pub capability: String,
    /// The higher comes first.
    pub priority: i64,
    /// Whether it hides the others of its capability.
    pub exclusive: bool,
    /// Its class.
    pub class: A2ePluginClass,
}

/// The class of a plugin.
#[derive(Clone, Debug, PartialEq)]
pub enum A2ePluginClass {
    /// The built-in tools.
    Native,
    /// A Python class.
    Python {
        /// The class with its module: `package.module.Class`.
        path: String,
        /// Its settings: the content of `metadata`.
        settings: serde_json::Map<String, serde_json::Value>,
    },
}

/// The enabled entries, in the order of the file, and their effect on the host's own tools.
pub(super) fn read(
    root: &mut ConfigTable,
    reading: &mut ConfigTreeReader<'_>,
) -> (Vec<A2ePlugin>, NativeToolsChoice) {
    let items = reading.list(root, "plugins");
    let brings_tools = items.iter().any(|item| names_tools_plugin(&item.value));
    let mut plugins: Vec<A2ePlugin> = Vec::new();
    for (index, item) in items.into_iter().enumerate() {
        let at = item.at;
        let Some(mut plugin) = plugin(index, item, reading) else {
            continue;
        };
        if plugin.class != A2ePluginClass::Native && is_reserved_name(&plugin.name) {
            let name = format!("{}_plugin", plugin.name);
            let message = format!(
                "the plugin `{}` is renamed to `{name}`: its name is reserved, and rules for the host's own tools would \
                 match its tools",
                plugin.name
            );
            reading.notice(at, format!("plugins.{}", plugin.name), message);
            plugin.name = name;
        }
        // From here on the entry's name identifies a Python class, also in the ids of its tools.
        if plugin.class != A2ePluginClass::Native
            && plugins.iter().any(|other| other.name == plugin.name)
        {
            let message = format!("an earlier plugin has the name `{}`", shown(&plugin.name));
            reading.complain(at, message, "give each plugin a name of its own".to_owned());
        } else {
            plugins.push(plugin);
        }
    }
    let native = plugins
        .iter()
        .find(|plugin| plugin.class == A2ePluginClass::Native);
    let choice = match native {
        Some(A2ePlugin {
            name,
            priority,
            exclusive,
            ..
        }) => NativeToolsChoice::Entry {
            name: name.clone(),
            priority: *priority,
            exclusive: *exclusive,
        },
        None if brings_tools => NativeToolsChoice::LeftOut,
        None => NativeToolsChoice::Served,
    };
    (plugins, choice)
}

/// Whether an entry is for a plugin that brings tools, enabled or not: a file with one lists its tools completely.
fn names_tools_plugin(entry: &YamlValue) -> bool {
    let YamlValue::Table(entries) = entry else {
        return false;
    };
    let text = |key: &str| {
        entries
            .iter()
            .find(|entry| entry.key.value == key)
            .map(|entry| &entry.value.value)
    };
    let is_native =
        matches!(text("cls"), Some(YamlValue::Text(class)) if NATIVE.contains(&class.as_str()));
    matches!(text("type"), Some(YamlValue::Text(word)) if word == TOOLS) && !is_native
}

fn plugin(
    index: usize,
    item: LocatedValue<YamlValue>,
    reading: &mut ConfigTreeReader<'_>,
) -> Option<A2ePlugin> {
    let LocatedValue { value, at } = item;
    let entries = match value {
        YamlValue::Table(entries) => entries,
        other => {
            return reading.wrong_kind(
                at,
                &format!("plugins[{index}]"),
                "a table of keys and values",
                &other,
            );
        }
    };
    let name = entries
        .iter()
        .find(|entry| entry.key.value == "name")
        .map(|entry| &entry.value.value);
    let path = match name {
        Some(YamlValue::Text(name)) => format!("plugins.{}", shown(name)),
        _ => format!("plugins[{index}]"),
    };
    let mut plugin = ConfigTable::new(path, at, entries);
    let mut metadata = reading.table(&mut plugin, "metadata");
    let enabled = metadata
        .as_mut()
        .and_then(|metadata| reading.flag(metadata, "enabled"));
    if enabled.is_some_and(|enabled| !enabled.value) {
        return None;
    }
    let name = required("name", &mut plugin, reading);
    let capability = required("type", &mut plugin, reading);
    let cls = required("cls", &mut plugin, reading)?;
    let is_native = is_native(&cls, reading)?;
    let given = metadata
        .as_ref()
        .map(ConfigTable::to_json)
        .unwrap_or_default();
    let (priority, exclusive) = settings(plugin, metadata, is_native, reading);
    let class = match is_native {
        true => A2ePluginClass::Native,
        false => A2ePluginClass::Python {
            path: cls.value,
            settings: given,
        },
    };
    let capability = capability?;
    if is_native && capability.value != TOOLS {
        let message = format!(
            "the host's own tools require `type: {TOOLS}`, not `{}`",
            shown(&capability.value)
        );
        reading.complain(capability.at, message, format!("write `type: {TOOLS}`"));
        return None;
    }
    Some(A2ePlugin {
        name: name?.value,
        capability: capability.value,
        priority,
        exclusive,
        class,
    })
}

fn required(
    key: &str,
    plugin: &mut ConfigTable,
    reading: &mut ConfigTreeReader<'_>,
) -> Option<LocatedValue<String>> {
    let there = plugin.has(key);
    let text = reading.text(plugin, key);
    if !there {
        let message = format!("the key `{key}` is missing in `{}`", plugin.path());
        reading.complain(plugin.at, message, None);
    }
    text
}

/// Whether the class stands for the built-in tools. `None`, with a complaint, if it is neither that nor a Python
/// class.
fn is_native(cls: &LocatedValue<String>, reading: &mut ConfigTreeReader<'_>) -> Option<bool> {
    let class = cls.value.as_str();
    if NATIVE.contains(&class) {
        return Some(true);
    }
    let nearly = nearest(class, NATIVE).or(class.starts_with("toolpost").then_some(NATIVE[0]));
    let (message, hint) = if let Some(near) = nearly {
        (
            format!("`{}` is not a class of this host", shown(class)),
            format!("did you mean `{near}`?"),
        )
    } else if is_path(class) {
        return Some(false);
    } else {
        let hint =
            "write `cls: toolpost.native` for the built-in tools, or `cls: package.module.Class`"
                .to_owned();
        (format!("`{}` is not a class", shown(class)), hint)
    };
    reading.complain(cls.at, message, hint);
    None
}

/// Whether a text is a class with the Python module it is in.
fn is_path(class: &str) -> bool {
    let is_name = |part: &str| {
        let mut chars = part.chars();
        chars
            .next()
            .is_some_and(|first| first == '_' || first.is_alphabetic())
            && chars.all(|c| c == '_' || c.is_alphanumeric())
    };
    class.contains(['.', ':']) && class.split(['.', ':']).all(is_name)
}

/// Priority and exclusiveness. Other keys without a meaning here are reported; a Python class gets all of them.
fn settings(
    mut plugin: ConfigTable,
    metadata: Option<ConfigTable>,
    is_native: bool,
    reading: &mut ConfigTreeReader<'_>,
) -> (i64, bool) {
    if let Some(entry) = plugin.take_entry("config") {
        let key = plugin.path_of("config");
        reading.ignored(
            entry.key.at,
            key,
            "the settings of a plugin belong under `metadata`",
        );
    }
    reading.name_the_rest(&plugin, "A2E", &["name", "type", "cls", "metadata"]);
    let Some(mut metadata) = metadata else {
        return (0, false);
    };
    let priority = reading.whole(&mut metadata, "priority");
    let exclusive = reading.flag(&mut metadata, "exclusive");
    if is_native {
        reading.ignore_the_rest(&metadata, "the built-in tools have no such setting");
    }
    (
        priority.map_or(0, |priority| priority.value),
        exclusive.is_some_and(|exclusive| exclusive.value),
    )
}
