//! A loaded component as a source of tools.

use std::{collections::HashMap, sync::Arc};

use toolpost_amplifier::{ModuleId, ToolSpec};
use toolpost_model::{
    AccessKind, BoxFuture, CancelSupport, ClassFact, Declaration, EffectClass, EffectOrigin,
    Effects, Interrupt, Provenance, ResourceAccess, ResourceKey, RiskLevel, SessionScope, Source,
    SourceError, SourceProblem, SourceSession, ToolId, WireNaming,
};

use crate::{
    live::InstanceTemplate,
    session::OpenModule,
    settings::{DirectoryAccess, InstanceUse, WasmSettings},
    spec::ComponentSpecs,
};

/// A loaded component: one source with one or several tools.
pub struct WasmModule(Arc<LoadedComponent>);

/// The part of a module that its sessions share.
pub(crate) struct LoadedComponent {
    id: ModuleId,
    pub(crate) prepared: InstanceTemplate,
    declarations: Vec<Declaration>,
    /// The component's own names of its tools.
    pub(crate) names: HashMap<ToolId, String>,
    problems: Vec<SourceProblem>,
    pub(crate) instances: InstanceUse,
    pub(crate) effects: Effects,
}

impl WasmModule {
    pub(crate) fn new(id: &ModuleId, prepared: InstanceTemplate, specs: ComponentSpecs) -> Self {
        let effects = effects(&prepared.settings);
        let ComponentSpecs {
            mut tools,
            problems,
            instances,
            ..
        } = specs;
        let instances = prepared
            .settings
            .instances
            .or(instances)
            .unwrap_or(InstanceUse::PerCall);
        let mut names = HashMap::new();
        for tool in &mut tools {
            describe(tool, &effects, &prepared.settings);
            names.insert(tool.tool_id.clone(), ToolSpec::native_name(tool).to_owned());
        }
        Self(Arc::new(LoadedComponent {
            id: id.clone(),
            prepared,
            declarations: tools,
            names,
            problems,
            instances,
            effects,
        }))
    }

    /// The declarations of its tools.
    pub fn declarations(&self) -> &[Declaration] {
        &self.0.declarations
    }

    /// The lifetime of its instances.
    pub fn instances(&self) -> InstanceUse {
        self.0.instances
    }
}

impl Source for WasmModule {
    fn name(&self) -> &str {
        self.0.id.as_str()
    }

    /// The host's settings limit a component's effects, whatever the component claims.
    fn origin(&self) -> EffectOrigin {
        EffectOrigin::HostCode
    }

    fn naming(&self) -> WireNaming {
        WireNaming::Bare
    }

    fn provenance(&self) -> Provenance {
        Provenance::MountPlan
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>> {
        Box::pin(std::future::ready(Ok(self.0.declarations.clone())))
    }

    fn problems(&self) -> Vec<SourceProblem> {
        self.0.problems.clone()
    }

    fn open<'a>(
        &'a self,
        _scope: &'a SessionScope,
    ) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>> {
        let opened: Arc<dyn SourceSession> = Arc::new(OpenModule::new(Arc::clone(&self.0)));
        Box::pin(std::future::ready(Ok(opened)))
    }
}

/// The effects of any call of a component. Without a grant it can only compute, which changes nothing.
fn effects(settings: &WasmSettings) -> Effects {
    let writes = settings
        .directories
        .iter()
        .any(|grant| grant.access == DirectoryAccess::ReadWrite);
    let class = match (settings.network, writes) {
        (true, _) => EffectClass::Network,
        (false, true) => EffectClass::Write,
        (false, false) => EffectClass::Read,
    };
    let mut effects = Effects::of(class);
    for grant in &settings.directories {
        let access = match grant.access {
            DirectoryAccess::ReadOnly => ResourceAccess::Read,
            DirectoryAccess::ReadWrite => ResourceAccess::Write,
        };
        effects = effects.using(ResourceKey::path(&grant.host.to_string_lossy()), access);
    }
    effects
}

fn describe(declaration: &mut Declaration, effects: &Effects, settings: &WasmSettings) {
    let interface = &mut declaration.interface;
    interface.safety.class = ClassFact::Always(effects.class);
    interface.permission.risk = match effects.class {
        EffectClass::Read => RiskLevel::Low,
        EffectClass::Write => RiskLevel::Medium,
        EffectClass::Network | EffectClass::Execute | EffectClass::Unknown => RiskLevel::High,
    };
    let access = &mut interface.permission.access;
    if !settings.directories.is_empty() {
        access.push(AccessKind::FileRead);
    }
    if effects.class == EffectClass::Write {
        access.push(AccessKind::FileWrite);
    }
    if settings.network {
        access.push(AccessKind::Network);
    }
    interface.execution.streaming = true;
    interface.execution.cancel = CancelSupport::Cooperative;
    interface.execution.interrupt = Interrupt::Cancel;
    interface.execution.idempotent = effects.idempotent;
}
