//! Loads a module from its file: reads, checks and compiles the component, and reads its tools.

use std::{path::Path, time::Instant};

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use toolpost_amplifier::{LoadFailure, LoadReason, ModuleId, ModuleSource, PlannedModule};
use wasmtime::component::Component;

use crate::{
    component::{ComponentOffer, HookFunctions, check_preamble},
    disk,
    engine::WasmModules,
    failure::InstanceFault,
    guest::GuestStopCondition,
    hook::WasmHook,
    live::{ComponentInstance, EventSubscription, InstanceTemplate},
    module::WasmModule,
    settings::WasmSettings,
    spec::ComponentSpecs,
};

impl WasmModules {
    /// Loads a module from its file. `sha256` is the expected digest of the file in hex, if the plan pins one.
    pub async fn load(
        &self,
        planned: &PlannedModule,
        artifact: &Path,
        sha256: Option<&str>,
        settings: WasmSettings,
    ) -> Result<WasmModule, LoadFailure> {
        let fail =
            |(reason, message): ComponentLoadFailure| failure(planned, artifact, reason, &message);
        let component = self.compile_file(artifact, sha256).await.map_err(fail)?;
        let offer = ComponentOffer::tools(&component)
            .map_err(|message| fail((LoadReason::InvalidEntryPoint, message)))?;
        let prepared = self
            .prepare(&component, offer, &planned.config, settings)
            .map_err(fail)?;
        let mut specs = look(&prepared, &planned.id).await.map_err(fail)?;
        if prepared.config.is_none() && !planned.config.is_empty() {
            let message =
                "its `config` in the plan is ignored: the component exports no `configure`";
            specs.problem("config_ignored", message.to_owned());
        }
        for problem in &mut specs.problems {
            problem.origin = origin(planned);
        }
        Ok(WasmModule::new(&planned.id, prepared, specs))
    }

    /// Loads a hook from its file, as [`load`](Self::load) does a module with tools.
    pub async fn load_hook(
        &self,
        planned: &PlannedModule,
        artifact: &Path,
        sha256: Option<&str>,
        settings: WasmSettings,
    ) -> Result<WasmHook, LoadFailure> {
        let fail =
            |(reason, message): ComponentLoadFailure| failure(planned, artifact, reason, &message);
        let component = self.compile_file(artifact, sha256).await.map_err(fail)?;
        let offer = ComponentOffer::hook(&component)
            .map_err(|message| fail((LoadReason::InvalidEntryPoint, message)))?;
        let prepared = self
            .prepare(&component, offer, &planned.config, settings)
            .map_err(fail)?;
        let config = Value::Object(planned.config.clone()).to_string();
        let subscriptions = look_at_hook(&prepared, config.as_bytes())
            .await
            .map_err(fail)?;
        WasmHook::new(prepared, subscriptions)
            .map_err(|message| fail((LoadReason::ValidationFailed, message)))
    }

    async fn compile_file(
        &self,
        artifact: &Path,
        sha256: Option<&str>,
    ) -> Result<Component, ComponentLoadFailure> {
        let modules = self.clone();
        let path = artifact.to_owned();
        let expected = sha256.map(str::to_owned);
        let compiling =
            tokio::task::spawn_blocking(move || compile(&modules, &path, expected.as_deref()));
        match compiling.await {
            Ok(compiled) => compiled,
            Err(error) => Err((LoadReason::Unknown, format!("compiling it failed: {error}"))),
        }
    }

    fn prepare<F>(
        &self,
        component: &Component,
        offer: ComponentOffer<F>,
        config: &Map<String, Value>,
        settings: WasmSettings,
    ) -> Result<InstanceTemplate<F>, ComponentLoadFailure> {
        let settings = real_folders(settings)?;
        let pre = self.link(component).map_err(|error| {
            let message = format!(
                "it requires imports that this host does not offer: {:#}",
                error
            );
            (LoadReason::ValidationFailed, message)
        })?;
        let config = offer
            .configure
            .is_some()
            .then(|| Value::Object(config.clone()).to_string().into_bytes());
        Ok(InstanceTemplate {
            modules: self.clone(),
            pre,
            offer,
            settings,
            config,
        })
    }
}

type ComponentLoadFailure = (LoadReason, String);

fn failure(
    planned: &PlannedModule,
    artifact: &Path,
    reason: LoadReason,
    message: &str,
) -> LoadFailure {
    let message = format!("`{}`: {message}", artifact.display());
    let PlannedModule { id, kind, .. } = planned;
    LoadFailure {
        module: id.clone(),
        kind: *kind,
        origin: origin(planned),
        reason,
        message,
    }
}

fn origin(planned: &PlannedModule) -> Option<String> {
    planned.source.as_ref().map(|source| match source {
        ModuleSource::Git { url, .. } | ModuleSource::Archive { url, .. } => url.clone(),
        ModuleSource::Path(path) => path.display().to_string(),
        ModuleSource::Package(name) | ModuleSource::Unspoken { text: name, .. } => name.clone(),
    })
}

/// The granted folders with their canonical names, because rules and locks use those.
fn real_folders(mut settings: WasmSettings) -> Result<WasmSettings, ComponentLoadFailure> {
    for grant in &mut settings.directories {
        grant.host = disk::folder(&grant.host).map_err(|error| {
            let message = format!(
                "its granted folder `{}` cannot be used: {error}",
                grant.host.display()
            );
            (LoadReason::Unknown, message)
        })?;
    }
    Ok(settings)
}

fn compile(
    modules: &WasmModules,
    path: &Path,
    expected: Option<&str>,
) -> Result<Component, ComponentLoadFailure> {
    let bytes = disk::read_component(path).map_err(|error| {
        (
            LoadReason::MissingSource,
            format!("it cannot be read: {error}"),
        )
    })?;
    let digest = const_hex::encode(Sha256::digest(&bytes));
    if let Some(expected) = expected.filter(|expected| !expected.eq_ignore_ascii_case(&digest)) {
        let message = format!("its sha256 is {digest}, but the manifest requires {expected}");
        return Err((LoadReason::InvalidModuleMetadata, message));
    }
    check_preamble(&bytes)
        .map_err(|message| (LoadReason::InvalidPackageLayout, message.to_owned()))?;
    modules.compile(&bytes, &digest).map_err(|error| {
        (
            LoadReason::InvalidPackageLayout,
            format!("it cannot be compiled: {}", error.root_cause()),
        )
    })
}

fn fail(fault: &InstanceFault) -> ComponentLoadFailure {
    let reason = match fault {
        InstanceFault::Misfit { .. } => LoadReason::InvalidEntryPoint,
        InstanceFault::Outside(_) => LoadReason::Unknown,
        InstanceFault::Stopped(_) | InstanceFault::Broken(_) | InstanceFault::Configuration(_) => {
            LoadReason::ValidationFailed
        }
    };
    (reason, fault.told())
}

/// A first instance of a component, and the deadline for all that is read from it.
async fn first_instance<F>(
    prepared: &InstanceTemplate<F>,
) -> Result<(ComponentInstance, GuestStopCondition), ComponentLoadFailure> {
    let watch = GuestStopCondition {
        deadline: Instant::now() + prepared.settings.load_time,
        context: None,
    };
    let Some(place) = prepared.modules.place().await else {
        return Err((LoadReason::Unknown, "the host is shutting down".to_owned()));
    };
    let live = ComponentInstance::start(prepared, &watch, place, None)
        .await
        .map_err(|fault| fail(&fault))?;
    Ok((live, watch))
}

/// Reads the hook's subscriptions from a first instance.
async fn look_at_hook(
    prepared: &InstanceTemplate<HookFunctions>,
    config: &[u8],
) -> Result<Vec<EventSubscription>, ComponentLoadFailure> {
    let (mut live, watch) = first_instance(prepared).await?;
    live.subscriptions(prepared, config, &watch)
        .await
        .map_err(|fault| fail(&fault))
}

/// Reads the component's tools from a first instance.
async fn look(
    prepared: &InstanceTemplate,
    id: &ModuleId,
) -> Result<ComponentSpecs, ComponentLoadFailure> {
    let (mut live, watch) = first_instance(prepared).await?;
    live.check(prepared).map_err(|fault| fail(&fault))?;
    let json = live
        .specs(prepared, &watch)
        .await
        .map_err(|fault| fail(&fault))?;
    ComponentSpecs::read(id, &json)
        .map_err(|error| (LoadReason::ValidationFailed, error.to_string()))
}
