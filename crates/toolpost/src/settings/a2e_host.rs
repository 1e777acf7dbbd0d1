//! The file of an A2E host in a layer's `include`: a layer of its own beneath, and the plugins.

use std::path::{Path, PathBuf};

use toolpost_config::{
    A2eHostFile, A2ePluginClass, ConfigLayer, ConfigNotice, HostConfig, LayerTrust,
    NativeToolsChoice, PluginConfig, read_config,
};

use super::{PlanReadResult, folder_of};
use crate::exit::UsageError;

/// Reads the file that trusted layers include, and puts its settings beneath them.
pub(super) fn read(
    layers: &mut Vec<ConfigLayer>,
    plans: &mut PlanReadResult,
) -> anyhow::Result<Option<(A2eHostFile, PathBuf)>> {
    let trusted = layers
        .iter()
        .filter(|layer| layer.standing == LayerTrust::Trusted);
    let mut found: Vec<_> = trusted
        .flat_map(|layer| layer.a2e_includes().map(|path| (path, layer.origin)))
        .collect();
    found.dedup_by(|one, other| one.0 == other.0);
    let (path, origin) = match found.as_slice() {
        [] => return Ok(None),
        [one] => one.clone(),
        [(first, _), (second, _), ..] => {
            let message = format!(
                "two files of A2E hosts are included, `{}` and `{}`\nhint: start a host for each, with a \
                 `--data-dir` of its own",
                first.display(),
                second.display()
            );
            return Err(UsageError(message).into());
        }
    };
    let text = read_config(&path)?;
    let file = A2eHostFile::parse(&text, &path.display().to_string())?;
    let layer = ConfigLayer::new(file.parsed.clone(), LayerTrust::Trusted, origin)
        .relative_to(folder_of(&path));
    layers.insert(0, layer);
    plans.files.push(path.clone());
    plans.a2e_notices.extend(file.notices.iter().cloned());
    plans.a2e_notices.extend(left_out(&file, &path));
    Ok(Some((file, path)))
}

/// A notice for operators who miss the host's own tools.
fn left_out(file: &A2eHostFile, path: &Path) -> Option<ConfigNotice> {
    let message = "the host's own tools are not served, because `plugins` names others\n\
                   hint: to have both, add `{name: toolpost, type: tools, cls: toolpost.native}` to `plugins`";
    (file.native_tools == NativeToolsChoice::LeftOut).then(|| ConfigNotice {
        key: "plugins".to_owned(),
        place: path.display().to_string(),
        message: message.to_owned(),
    })
}

/// Puts the plugins into the configuration. Their code is searched for beside the file.
pub(super) fn add_plugins(config: &mut HostConfig, file: &A2eHostFile, path: &Path) {
    let folder = folder_of(path);
    let python = file
        .plugins
        .iter()
        .filter_map(|plugin| match &plugin.class {
            A2ePluginClass::Native => None,
            A2ePluginClass::Python {
                path: class,
                settings,
            } => Some(PluginConfig {
                name: plugin.name.clone(),
                capability: plugin.capability.clone(),
                priority: plugin.priority,
                exclusive: plugin.exclusive,
                class: class.clone(),
                folder: folder.clone(),
                host_file: folder.join(path.file_name().unwrap_or_default()),
                settings: settings.clone(),
            }),
        });
    config.plugins = python.collect();
    config.native_tools = file.native_tools.clone();
}
