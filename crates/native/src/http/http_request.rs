//! `http.http_request`: one request with its unmodified response.

mod arguments;
mod report;
mod save;

use std::{sync::Arc, time::Duration};

use serde_json::json;
use toolpost_model::{
    AccessKind, ArgumentKind, ArgumentMeaning, CallContext, CallInput, Declaration, EffectClass,
    Effects, InputRefusal, ResourceAccess, RiskLevel, Tool, ToolCall, ToolFailure, ToolOutput,
};
use toolpost_processes::{HttpError, HttpExchangeDeadline, Workspace};

use self::{
    arguments::{Arguments, HttpRequestError},
    report::{HttpResponseReport, RequestResult},
};
use super::{
    HttpToolNetwork,
    body::{self, BodyOverflow, IncomingBody},
    check_seconds, declare,
    exchange::{self, HttpResponseHead, OutgoingHttpRequest, RedirectPolicy},
    key,
};
use crate::{
    arguments::{checked_arguments, read_arguments},
    files::{check_incoming, incoming_effects},
};

/// The default of how much of a body is shown.
const SHOWN_BYTES: u64 = 40 * 1024;
/// The default of how large a shown image may be.
const IMAGE_BYTES: u64 = 1024 * 1024;

pub(super) struct HttpRequest {
    workspace: Arc<Workspace>,
    network: Arc<HttpToolNetwork>,
}

impl HttpRequest {
    pub(super) fn new(workspace: Arc<Workspace>, network: Arc<HttpToolNetwork>) -> Self {
        Self { workspace, network }
    }

    /// The request as it will be sent, without its credential's value.
    fn outgoing(&self, arguments: &Arguments) -> Result<OutgoingHttpRequest<'_>, HttpRequestError> {
        let settings = &self.network.settings;
        let target = arguments.target(&settings.private)?;
        let credential = arguments.credential(&target, &settings.credentials)?;
        let mut headers = arguments.headers()?;
        let body = arguments.body(&mut headers)?;
        if let Some(credential) =
            credential.filter(|credential| headers.contains_key(&credential.header.name))
        {
            return Err(HttpRequestError::CredentialHeaderGiven {
                name: credential.header.name.clone(),
            });
        }
        let redirects = match arguments.follow_redirects {
            true => RedirectPolicy::Follow,
            false => RedirectPolicy::Show,
        };
        let credential = credential.map(|credential| (credential, None));
        Ok(OutgoingHttpRequest {
            target,
            method: arguments.method.of_http(),
            headers,
            body,
            credential,
            redirects,
        })
    }

    async fn request(
        &self,
        arguments: &Arguments,
        context: CallContext,
    ) -> Result<ToolOutput, ToolFailure> {
        let mut outgoing = self
            .outgoing(arguments)
            .map_err(HttpRequestError::into_failure)?;
        // The secret is read only here, after the decision.
        let credential = outgoing
            .reveal()
            .map_err(|name| HttpRequestError::bad_secret(&name).into_failure())?;
        let HttpToolNetwork { settings, clients } = &*self.network;
        let deadline = HttpExchangeDeadline::new(
            Duration::from_secs(arguments.timeout_seconds),
            context.deadline(),
        );
        let saving = match &arguments.save_to {
            Some(path) => {
                let limit = arguments.limit(settings.max_saved_bytes, settings.max_saved_bytes);
                Some(save::begin(&self.workspace, path, limit, &context).await?)
            }
            None => None,
        };
        let arrived = exchange::run(clients, settings, outgoing, deadline, &context).await;
        let HttpResponseHead {
            response,
            target,
            hops,
            stopped_because,
        } = arrived.map_err(HttpError::into_failure)?;
        let mut answer =
            HttpResponseReport::new(&response, &target, hops, stopped_because, credential);
        match saving {
            // An error response is for the caller and not for the file.
            Some(saving) if response.status().is_success() => {
                let saved = saving
                    .run(IncomingBody::new(response, deadline, &context), deadline)
                    .await?;
                answer.saved(saved)
            }
            saving => {
                if saving.is_some() {
                    answer.note("the status is not a success, so nothing was saved".to_owned());
                }
                let usual = if answer.is_image() {
                    IMAGE_BYTES
                } else {
                    SHOWN_BYTES
                };
                let limit = arguments.limit(usual, settings.max_body_bytes);
                let media_type = answer.media_type().to_owned();
                // A caller that sets a limit needs no more than that.
                let beyond = match arguments.max_bytes {
                    Some(_) => BodyOverflow::LeaveIt,
                    // An event stream has no end.
                    None if media_type == "text/event-stream" => BodyOverflow::LeaveIt,
                    None => BodyOverflow::Keep {
                        media_type: &media_type,
                        most: settings.max_saved_bytes,
                    },
                };
                let body = IncomingBody::new(response, deadline, &context)
                    .read(limit, beyond)
                    .await;
                let mut body = body.map_err(HttpError::into_failure)?;
                if body.whole && answer.shows_only_the_head_of(&body.bytes) {
                    body.kept = body::keep(&context, &media_type, &body.bytes).await.ok();
                }
                answer.shown(body, settings.max_body_bytes)
            }
        }
    }
}

impl Tool for HttpRequest {
    fn declaration(&self) -> Declaration {
        let mut declaration = declare::<Arguments, RequestResult>(
            "http_request",
            "Makes one HTTP request and gives the answer: status, headers and body, whatever the status is. Give \
             the body as one of `json`, `form` or `body`. Text comes back as text, JSON indented and also as \
             `json` of the structured result, images are shown, other binary data is described. `save_to` puts \
             the whole body into a workspace file instead: use it for downloads and for bodies that are cut. \
             `credential` names a secret of the operator that is added for you; never put secrets into the \
             arguments if there is one. Redirects are followed up to 5 times. To read a web page use `fetch_page`.",
        );
        declaration.title = Some("HTTP request".to_owned());
        declaration.search_hint =
            "api rest curl wget download upload post put delete webhook json endpoint".to_owned();
        declaration.input.examples = vec![
            json!({ "url": "https://api.example.org/items", "query": { "page": 2 } }),
            json!({
                "url": "https://api.example.org/items", "method": "POST",
                "json": { "name": "lathe" }, "credential": "example"
            }),
            json!({ "url": "https://example.org/data.tar.gz", "save_to": "downloads/data.tar.gz" }),
        ];
        if self.network.settings.credentials.is_empty() {
            declaration.input.examples.remove(1);
        }
        let interface = &mut declaration.interface;
        interface.safety.destructive = true;
        interface.permission.risk = RiskLevel::High;
        interface.permission.access = vec![
            AccessKind::Network,
            AccessKind::ExternalSend,
            AccessKind::Credential,
            AccessKind::FileWrite,
        ];
        interface
            .permission
            .arguments
            .push(ArgumentMeaning::of("method", ArgumentKind::Method));
        declaration
    }

    fn check(&self, input: &CallInput) -> Result<(), InputRefusal> {
        let arguments: Arguments = checked_arguments(input)?;
        check_seconds(arguments.timeout_seconds)?;
        self.outgoing(&arguments)
            .map_err(HttpRequestError::into_refusal)?;
        match &arguments.save_to {
            Some(path) => check_incoming(&self.workspace, path, "/save_to"),
            None => Ok(()),
        }
    }

    fn effects(&self, input: &CallInput) -> Option<Effects> {
        let arguments: Arguments = read_arguments(input).ok()?;
        let target = arguments.target(&self.network.settings.private).ok()?;
        let effects = Effects::of(EffectClass::Network);
        let effects = match arguments.method.is_safe() {
            true => {
                let mut effects = effects
                    .using(key(&target), ResourceAccess::Read)
                    .idempotent();
                effects.concurrency_safe = true;
                effects
            }
            // Alone in its session: calls that change something keep their order.
            false => effects.using(key(&target), ResourceAccess::Write),
        };
        match &arguments.save_to {
            Some(path) => incoming_effects(&self.workspace, effects, path),
            None => Some(effects),
        }
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let arguments: Arguments = read_arguments(&call.input)?;
        self.request(&arguments, call.context).await
    }
}
