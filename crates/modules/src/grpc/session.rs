//! Calls of a service's tool. The protocol has no sessions, so all sessions share the service, and their calls
//! overlap.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use toolpost_model::{
    BoxFuture, CallContext, ErrorClass, SourceSession, ToolCall, ToolFailure, ToolId, ToolOutput,
};

use super::{
    connection::{GrpcConnection, RpcError},
    message::{ExecuteRequest, ExecuteResponse, path},
    outcome::outcome,
    remote::{GrpcService, GrpcServiceRoute},
};

/// The pauses between attempts of one call to reach a service: a restart is often this short.
const ATTEMPTS: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(400)];
/// Room for the rest of the message around the arguments.
const AROUND: usize = 64;

pub(super) struct GrpcSession {
    pub(super) service: Arc<GrpcService>,
}

impl SourceSession for GrpcSession {
    fn unbound_paths(&self, _: &ToolId) -> Option<String> {
        let label = &self.service.label;
        Some(match &self.service.way {
            GrpcServiceRoute::Service(_) => {
                format!(
                    "{label} is reached by a URL and reads files where it runs; path rules do not bind it"
                )
            }
            GrpcServiceRoute::Program(_) => {
                format!(
                    "{label} is a program that sees the whole workspace; path rules do not bind it"
                )
            }
        })
    }

    fn execute<'a>(
        &'a self,
        _: &'a ToolId,
        call: ToolCall,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin(async move {
            let answer = self.call(&call).await;
            let confined = match &self.service.way {
                GrpcServiceRoute::Service(_) => None,
                GrpcServiceRoute::Program(sidecar) => sidecar.applied().await,
            };
            let ended = answer.and_then(|answer| outcome(answer, &call.context));
            match (ended, confined) {
                (ended, None) => ended,
                (Ok(output), Some(applied)) => Ok(output.confined(applied)),
                (Err(failure), Some(_)) if failure.sandbox.is_some() => Err(failure),
                (Err(failure), Some(applied)) => Err(failure.confined(applied)),
            }
        })
    }
}

impl GrpcSession {
    async fn call(&self, call: &ToolCall) -> Result<ExecuteResponse, ToolFailure> {
        let input = serde_json::to_vec(call.input.arguments())?;
        let limit = self.service.settings.request_bytes.saturating_sub(AROUND);
        if input.len() > limit {
            let message = format!(
                "the arguments are {} bytes, and {} accepts at most {limit}",
                input.len(),
                self.service.label
            );
            return Err(ToolFailure::invalid(message).code("arguments_too_large"));
        }
        let request = ExecuteRequest {
            input,
            content_type: "application/json".to_owned(),
        };
        let mut pauses = ATTEMPTS.iter();
        loop {
            let failure = match self.attempt(&request, &call.context).await {
                Ok(answer) => return Ok(answer),
                Err(GrpcCallAttempt::Over(failure)) => return Err(failure),
                Err(GrpcCallAttempt::NotSent(failure)) => failure,
            };
            // No byte was sent, so the call can be sent again if there is time.
            let rest = remaining(&call.context);
            match pauses.next().filter(|pause| **pause * 2 < rest) {
                Some(pause) => tokio::time::sleep(*pause).await,
                None => return Err(failure),
            }
        }
    }

    async fn attempt(
        &self,
        request: &ExecuteRequest,
        context: &CallContext,
    ) -> Result<ExecuteResponse, GrpcCallAttempt> {
        let live = self
            .service
            .ready()
            .await
            .map_err(|failure| match failure.code.as_deref() {
                Some("not_sent" | "connection_lost") => GrpcCallAttempt::NotSent(failure),
                _ => GrpcCallAttempt::Over(failure),
            })?;
        let bounds = self.service.bounds(remaining(context));
        let asked = live
            .ask(path::EXECUTE, request.clone(), bounds, Some(context))
            .await;
        match asked {
            Ok(answer) => Ok(answer),
            Err(error) if error.unsent => Err(GrpcCallAttempt::NotSent(
                self.service.failed(&error, &live).await,
            )),
            Err(error) => Err(GrpcCallAttempt::Over(self.explained(&error, &live).await)),
        }
    }

    /// The failure, with the end of the program if that is its cause.
    async fn explained(&self, error: &RpcError, live: &GrpcConnection) -> ToolFailure {
        let mut failure = self.service.failed(error, live).await;
        if failure.code.as_deref() == Some("connection_lost")
            && failure.class == ErrorClass::DependencyUnavailable
            && let GrpcServiceRoute::Program(sidecar) = &self.service.way
            && let Some(end) = sidecar.end().await
        {
            failure.message = format!("{}; {end}", failure.message);
        }
        failure
    }
}

/// The failure of one attempt.
enum GrpcCallAttempt {
    /// The request never left this machine.
    NotSent(ToolFailure),
    /// A byte was sent, or another attempt would fail in the same way.
    Over(ToolFailure),
}

fn remaining(context: &CallContext) -> Duration {
    context.deadline().saturating_duration_since(Instant::now())
}
