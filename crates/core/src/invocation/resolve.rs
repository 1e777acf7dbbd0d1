//! The stages from the request to observable arguments: resolve, parse, observe.

use std::sync::Arc;

use toolpost_model::{
    Arguments, CallInput, EffectClass, Effects, HiddenReason, Lifecycle, ModelInput,
    ObservableInput, Redactions, Stage, Visibility,
};

use super::{
    AcknowledgementTiming, OnRecord, PipelineCall, ResolvedTool, micros, patience::patiently,
    validate::ArgumentLimit,
};
use crate::{
    call::{CallRunKind, StageExit, lost_its_way},
    catalog::CatalogEntry,
    hooks::InputMutation,
    host::HostInner,
    permission::PermissionFacts,
    port::SourceIndex,
    record::{
        journal::{AppendStrength, RecordKind},
        redaction::{self, RedactedArguments},
        rendering,
    },
    result::{self, CallEnding},
};

/// Finds the tool and checks that the session may call it.
pub(crate) async fn resolve(
    host: &HostInner,
    call: &mut PipelineCall,
    way: CallRunKind,
) -> StageExit {
    let surface = host.surface(&call.session);
    if way != CallRunKind::Dry
        && let Err(error) = host.tell_surface(&surface).await
    {
        return StageExit::End(result::journal_refuses(&error));
    }
    call.findings.surface = Some(surface.id().clone());
    let Some((entry, visibility)) = surface.find(&call.live.tool) else {
        let similar = surface.catalog().similar(&call.live.tool);
        return StageExit::End(result::unknown_tool(
            &call.live.tool,
            &similar,
            surface.catalog().unavailable(),
        ));
    };
    let opening = call
        .session
        .open(entry.source, &*host.sources.list[entry.source.0]);
    let source = match patiently(host, call, opening).await {
        Ok(Ok(source)) => source,
        Ok(Err(error)) => return StageExit::End(result::source_unavailable(&error)),
        Err(ending) => return StageExit::End(ending),
    };
    call.live.found(entry);
    call.findings.resolved = Some(ResolvedTool {
        entry: Arc::clone(entry),
        source,
    });
    // A call of an earlier host passed the check for deferred tools there. The discoveries of its session are lost.
    let passed_before = way == CallRunKind::Recovered || call.asking.earlier.is_some();
    match visibility {
        Visibility::Loaded | Visibility::Unlisted => StageExit::Next(Stage::Parse),
        Visibility::Deferred if passed_before || host.is_shown(&call.session, entry) => {
            call.progress.met.deferred = true;
            StageExit::Next(Stage::Parse)
        }
        Visibility::Deferred => StageExit::End(result::schema_not_loaded(entry.name())),
        Visibility::Blocked(HiddenReason::Internal)
            if is_of_its_parents_source(call, entry.source) =>
        {
            StageExit::Next(Stage::Parse)
        }
        Visibility::Blocked(HiddenReason::Policy) => StageExit::End(denied_outright(host, call)),
        Visibility::Blocked(reason) => {
            let setup = match &entry.declaration().lifecycle {
                Lifecycle::RequiresSetup(what) if reason == HiddenReason::Setup => {
                    Some(what.as_str())
                }
                _ => None,
            };
            StageExit::End(result::blocked(entry.label(), reason, setup))
        }
    }
}

/// Whether the parent call is a tool of the same source.
fn is_of_its_parents_source(call: &PipelineCall, source: SourceIndex) -> bool {
    call.lineage
        .parent
        .as_ref()
        .is_some_and(|parent| parent.source == Some(source))
}

/// The ending for a tool that the policy hides, with the policy's reason.
fn denied_outright(host: &HostInner, call: &mut PipelineCall) -> CallEnding {
    let Some(resolved) = &call.findings.resolved else {
        return result::internal("a hidden tool that was not found");
    };
    let effects = Effects::of(resolved.entry.fixed_class().unwrap_or(EffectClass::Unknown));
    let declaration = resolved.entry.declaration();
    let decision = host.engine(&call.session).decide(&PermissionFacts {
        declaration,
        input: None,
        effects: &effects,
        principal: call.session.principal(),
        opinions: &[],
        delegated: &[],
        at: crate::port::now(),
    });
    let ending = result::policy_blocked(resolved.entry.label(), &decision);
    call.findings.effects = Some(effects);
    call.findings.decision = Some(decision);
    ending
}

/// Parses the arguments. The model's input stays unchanged.
pub(crate) fn parse(host: &HostInner, call: &mut PipelineCall) -> StageExit {
    let Some(entry) = call
        .findings
        .resolved
        .as_ref()
        .map(|resolved| Arc::clone(&resolved.entry))
    else {
        return lost_its_way();
    };
    let limit = ArgumentLimit::of(host, &entry);
    let size = match &call.inputs.model {
        ModelInput::Text(text) => text.len(),
        // A value was created in this process, so its size counts only against a limit of the tool.
        ModelInput::Value(_) if limit.is_own => call.inputs.model.compact().len(),
        ModelInput::Value(_) => 0,
    };
    if size > limit.bytes {
        let setting = limit.setting(&entry);
        return StageExit::End(result::arguments_too_large(size, limit.bytes, &setting));
    }
    match call.inputs.model.parse() {
        Ok(arguments) => {
            let at_us = micros(call.live.began.elapsed());
            let filled = filled(&entry, arguments, at_us, &mut call.inputs.mutations);
            call.inputs.call = Some(CallInput::new(filled));
            StageExit::Next(Stage::Validate)
        }
        Err(error) => StageExit::End(result::unreadable(error.to_string())),
    }
}

/// Fills in the operator's default arguments.
fn filled(
    entry: &CatalogEntry,
    arguments: Arguments,
    at_us: u64,
    mutations: &mut Vec<InputMutation>,
) -> Arguments {
    let given = arguments.value().as_object();
    let left_out = |name: &&String| given.is_some_and(|given| !given.contains_key(*name));
    let missing: Vec<&String> = entry
        .settings
        .input
        .defaults
        .keys()
        .filter(left_out)
        .collect();
    if missing.is_empty() {
        return arguments;
    }
    let mut value = arguments.value().clone();
    for &name in &missing {
        value[name.as_str()] = entry.settings.input.defaults[name].clone();
    }
    mutations.push(InputMutation {
        source_type: "runtime".into(),
        source: entry.id().setting_key("defaults"),
        changed_fields: missing.into_iter().cloned().collect(),
        reason: "defaults from the operator's settings".to_owned(),
        at_us,
        arguments_before: None,
    });
    Arguments::from_value(value)
}

/// Prepares the observable input, and records the call if its caller is told of it before its end.
pub(crate) async fn observe(
    host: &HostInner,
    call: &mut PipelineCall,
    way: CallRunKind,
) -> StageExit {
    show(call);
    let early = match way {
        CallRunKind::Live(AcknowledgementTiming::Early) => true,
        // A hook may take long.
        CallRunKind::Live(AcknowledgementTiming::OnceOnRecord) => {
            !host.hooks.is_empty() || host.journal_failing()
        }
        CallRunKind::Live(AcknowledgementTiming::AtTheEnd) => host.journal_failing(),
        CallRunKind::Recovered | CallRunKind::Resumed | CallRunKind::Dry => false,
    };
    if early && let Err(ending) = accept(host, call).await {
        return StageExit::End(ending);
    }
    if way != CallRunKind::Dry
        && call.live.is_witnessed()
        && let Some(observable) = &call.inputs.observable
    {
        let sent = rendering::sent_arguments(call);
        call.live
            .tell_begun(sent.as_ref().unwrap_or(observable.arguments()).value());
    }
    StageExit::Next(Stage::PreHooks)
}

/// Records the call, so that it can be acknowledged.
pub(crate) async fn accept(host: &HostInner, call: &mut PipelineCall) -> Result<(), CallEnding> {
    if call.progress.on_record == OnRecord::Nothing {
        append(host, call, RecordKind::Accepted).await?;
    }
    call.live.accepted();
    Ok(())
}

/// Appends a record of a call that has not started.
pub(crate) async fn append(
    host: &HostInner,
    call: &mut PipelineCall,
    kind: RecordKind,
) -> Result<(), CallEnding> {
    let record = rendering::record(call, kind, None);
    host.append(record, AppendStrength::Committed)
        .await
        .map_err(|error| result::journal_refuses(&error))?;
    if call.progress.on_record == OnRecord::Nothing {
        call.progress.on_record = OnRecord::Accepted;
    }
    Ok(())
}

/// Whether the caller waits for an acknowledgement and the call is not on record yet.
pub(crate) fn owes_acknowledgement(call: &PipelineCall, way: CallRunKind) -> bool {
    way == CallRunKind::Live(AcknowledgementTiming::OnceOnRecord)
        && call.progress.on_record == OnRecord::Nothing
}

/// Fills the observable input from the call input.
pub(crate) fn show(call: &mut PipelineCall) {
    let (Some(resolved), Some(input)) = (&call.findings.resolved, &call.inputs.call) else {
        return;
    };
    let arguments = input.arguments();
    let sensitive = resolved.entry.input().sensitive_pointers(arguments.value());
    let before = call.live.redactor().own;
    let RedactedArguments {
        shown,
        secrets,
        sensitive,
    } = redaction::observable_after(
        before.as_ref(),
        arguments,
        &sensitive,
        call.live.host_redactor(),
    );
    call.inputs.sensitive = sensitive;
    call.inputs.redacted = !std::ptr::eq(shown.value(), arguments.value());
    call.inputs.observable = Some(ObservableInput::new(shown));
    call.live.add_secrets(secrets);
    // The correlation id is redacted only before the first record. All records of a call must have the same one.
    if call.progress.on_record == OnRecord::Nothing
        && let Some(mark) = &mut call.origin.correlation_id
    {
        call.live
            .redactor()
            .in_place(mark, &mut Redactions::default());
    }
}
