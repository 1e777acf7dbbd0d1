//! Tools behind gRPC, called through a whole host, against services made by hand that behave and that do not.

mod calls;
mod failing;
mod lifecycle;
mod server;

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value, json};
use toolpost_amplifier::{ModuleId, ModuleKind, PlannedModule};
use toolpost_core::CallRequest;
use toolpost_model::{ModelInput, Principal, ToolResult};
use toolpost_modules::{GrpcModule, GrpcSettings};
use toolpost_testkit::TestHost;

pub(crate) use server::{Heard, Reply, Service, Spec, message};

/// Far beyond anything that works: turns a hang into a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn planned(config: &Value) -> PlannedModule {
    let config: Map<String, Value> = config.as_object().unwrap().clone();
    let place = "plan.yaml: tools[0]".to_owned();
    PlannedModule {
        kind: ModuleKind::Tool,
        id: ModuleId::new("tool-x"),
        source: None,
        config,
        place,
    }
}

pub(crate) fn module(endpoint: &str) -> GrpcModule {
    GrpcModule::service(&planned(&json!({})), endpoint, GrpcSettings::default()).unwrap()
}

/// A host whose only tool is that of the service.
pub(crate) async fn host_of(service: &Service) -> TestHost {
    let module = module(&service.address.to_string());
    TestHost::build(|builder| builder.source(module)).await
}

/// A call in a session of its own: tools of unknown effect run alone in theirs.
pub(crate) fn request_as(host: &TestHost, who: &str, arguments: Value) -> CallRequest {
    let session = host.host.default_session(&Principal::agent(who));
    CallRequest::new(session, "echo", ModelInput::value(arguments))
}

pub(crate) async fn call_within(host: &TestHost, time: Duration, arguments: Value) -> ToolResult {
    let mut request = host.request("echo", arguments);
    request.times.timeout = Some(time);
    host.host.call(request).await.result().clone()
}

/// A service with the tool `echo` that answers calls so.
pub(crate) async fn answering(
    answer: impl Fn(&Heard) -> Reply + Clone + Send + Sync + 'static,
) -> Service {
    Service::start(Arc::new(move |heard: Heard| {
        let answer = answer.clone();
        Box::pin(async move {
            match heard.method() {
                "GetSpec" => message(&Spec::echo()),
                "Execute" => answer(&heard),
                _ => Reply::Status(12, "no such method".to_owned()),
            }
        })
    }))
    .await
}
