//! The description of the API: `GET /openapi.json`.

use axum::Json;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};
use toolpost_model::{BatchPlace, Decision, Effects, SurfaceRequest, ToolResult, Verdict};

pub(super) async fn serve() -> Json<Value> {
    Json(document())
}

/// The OpenAPI 3.1 document of the plain HTTP face.
pub fn document() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Toolpost",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Tools for agents over plain HTTP: one POST, one answer.",
            "license": { "name": "MIT OR Apache-2.0" }
        },
        "security": [{ "token": [] }],
        "paths": paths(),
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "parameters": {
                "Session": header("Toolpost-Session", "A session opened with `POST /sessions`. The default is the caller's own session."),
                "IdempotencyKey": header("Idempotency-Key", "A repeat with the same key and arguments gets the first answer, byte for byte, and nothing runs twice."),
                "CallId": header("Toolpost-Call-Id", "The id that the model's provider gave the call, such as `call_…` or `toolu_…`: 1 to 256 visible ASCII characters. Kept with the record; it does not make a repeat safe."),
                "TraceParent": header("traceparent", "The span that the call is part of, as in W3C Trace Context version 00. An invalid value is ignored."),
                "TraceState": header("tracestate", "The vendors' additions to it: at most 512 characters and 32 members."),
                "Tool": path_parameter("name", "The tool's name, alias or id."),
                "Id": path_parameter("id", "The id."),
                "Name": path_parameter("name", "The name.")
            },
            "schemas": schemas()
        }
    })
}

fn header(name: &str, description: &str) -> Value {
    json!({ "name": name, "in": "header", "required": false, "description": description, "schema": { "type": "string" } })
}

fn path_parameter(name: &str, description: &str) -> Value {
    json!({ "name": name, "in": "path", "required": true, "description": description, "schema": { "type": "string" } })
}

fn query(name: &str, kind: &str, description: &str) -> Value {
    json!({ "name": name, "in": "query", "required": false, "description": description, "schema": { "type": kind } })
}

fn parameter(name: &str) -> Value {
    json!({ "$ref": format!("#/components/parameters/{name}") })
}

fn answer(description: &str, schema: &str) -> Value {
    json!({
        "description": description,
        "content": { "application/json": { "schema": { "$ref": format!("#/components/schemas/{schema}") } } }
    })
}

/// Adds the errors of all routes that need a token.
fn with_problems(mut responses: Value) -> Value {
    for (status, description) in [
        ("400", "The request cannot be read."),
        ("401", "A token is required."),
        ("403", "The host or origin is not allowed."),
    ] {
        if responses.get(status).is_none() {
            responses[status] = answer(description, "Problem");
        }
    }
    responses
}

/// Adds the errors of a route that uses a session.
fn in_a_session(mut responses: Value) -> Value {
    if responses.get("404").is_none() {
        responses["404"] = answer("No such session.", "Problem");
    }
    with_problems(responses)
}

/// Adds the errors of a route that reads a body.
fn with_body(mut responses: Value) -> Value {
    for (status, description) in [
        ("408", "The body did not arrive in time."),
        ("413", "The body is over the limit."),
    ] {
        responses[status] = answer(description, "Problem");
    }
    with_problems(responses)
}

/// An answer about a call: its result, or the reason why the request was no call.
fn call_answer(description: &str) -> Value {
    let schemas = ["ToolResult", "Problem"]
        .map(|name| json!({ "$ref": format!("#/components/schemas/{name}") }));
    json!({ "description": description, "content": { "application/json": { "schema": { "anyOf": schemas } } } })
}

fn call_responses() -> Value {
    let mut ok = answer(
        "The tool ran; `outcome` shows whether it succeeded.",
        "ToolResult",
    );
    ok["content"]["text/event-stream"] = json!({
        "schema": { "type": "string", "description": "Events `stage`, `progress`, `status`, `log`, `artifact`, `kept`, `output`, `approval`, then one `result`; or one `pending` with the body of a 202, if a call with a key has not started when `patience` is over." }
    });
    with_body(json!({
        "200": ok,
        "202": accepted(),
        "400": call_answer("The request or its arguments cannot be read."),
        "403": call_answer("A rule, the mode, a person or a hook denies the call, the tool is hidden, or the host or origin is not allowed."),
        "404": call_answer("No such tool or session."),
        "409": call_answer("The tool is deferred and was not shown yet, the key was used for another call, or, without a key, the call was not approved in time (`approval_pending`): after an approval the same call runs once."),
        "415": answer("The body is not JSON.", "Problem"),
        "422": call_answer("The arguments do not fit; the error names the place."),
        "429": call_answer("The queue is full, or, without a key, no slot was free within `patience`."),
        "503": call_answer("The journal cannot be written, so nothing runs.")
    }))
}

/// The answer for a call that continues without its caller.
fn accepted() -> Value {
    json!({
        "description": "The call continues: with `background`, or because a call with a key has not started when the caller's patience is over. Its result is at `Location`, and a repeat with the same key gets it.",
        "headers": { "Location": { "description": "The call's address: `/invocations/{id}`.", "schema": { "type": "string" } } },
        "content": { "application/json": { "schema": {
            "type": "object",
            "required": ["invocation_id", "status"],
            "properties": {
                "invocation_id": { "type": "string" },
                "status": { "type": "string", "enum": ["backgrounded", "approval_pending", "queued"] },
                "ask_id": { "type": "string", "description": "The question, with `approval_pending`." },
                "expires_at": { "type": "string", "format": "date-time", "description": "When the question expires, with `approval_pending`." }
            }
        } } }
    })
}

fn any_object(description: &str) -> Value {
    json!({ "description": description, "content": { "application/json": { "schema": { "type": "object" } } } })
}

fn event_stream(description: &str) -> Value {
    json!({ "description": description, "content": { "text/event-stream": { "schema": { "type": "string" } } } })
}

fn bytes(description: &str) -> Value {
    json!({ "description": description, "content": { "*/*": { "schema": { "type": "string", "format": "binary" } } } })
}

fn arguments() -> Value {
    json!({ "required": false, "content": { "application/json": { "schema": { "type": "object", "description": "The tool's arguments." } } } })
}

fn approval_responses(found: &Value) -> Value {
    json!({
        "200": found,
        "404": answer("No such question.", "Problem"),
        "409": answer("The question was answered already.", "Problem"),
        "410": answer("The question has expired, or its caller gave up the call.", "Problem"),
        "422": answer("The changed arguments are not valid, or no such rule can be remembered.", "Problem"),
        "503": answer("The answer cannot be recorded, so it has no effect.", "Problem")
    })
}

fn paths() -> Value {
    let mut paths = callers_paths();
    for more in [operators_paths(), stream_paths()] {
        if let (Some(paths), Value::Object(more)) = (paths.as_object_mut(), more) {
            paths.extend(more);
        }
    }
    paths
}

fn stream_paths() -> Value {
    let of_all = [
        query("vocabulary", "string", "tool-events or ai-sdk."),
        query(
            "version",
            "integer",
            "With ai-sdk: 5 (the default), 6 or 7, for chunks of approvals.",
        ),
        query("from", "string", "now or start."),
        query(
            "after",
            "integer",
            "The id of the last event that was read, for clients that cannot send `Last-Event-ID`.",
        ),
        header(
            "Last-Event-ID",
            "The id of the last event that was read: the stream continues after it.",
        ),
    ];
    let of_one: Vec<Value> = [parameter("Id")]
        .into_iter()
        .chain(of_all.iter().cloned())
        .collect();
    let told = event_stream("Events `tool-event`, or the chunks of a UI message stream.");
    json!({
        "/sessions/{id}/events": { "get": {
            "summary": "A session's calls as they happen. `default` is the caller's own session",
            "parameters": of_one,
            "responses": with_problems(json!({
                "200": told,
                "404": answer("No such session.", "Problem"),
                "429": answer("Too many streams.", "Problem")
            }))
        } },
        "/events": { "get": {
            "summary": "The calls of all sessions as they happen. For operators",
            "parameters": of_all,
            "responses": with_problems(json!({ "200": told, "429": answer("Too many streams.", "Problem") }))
        } }
    })
}

fn operators_paths() -> Value {
    let any = any_object("Described in the guide.");
    let mut questions = any.clone();
    questions["content"]["text/event-stream"] = json!({
        "schema": { "type": "string", "description": "Events `asked` for open and new questions, `decided` and `withdrawn` for closed ones." }
    });
    json!({
        "/approvals": { "get": {
            "summary": "The open questions. For operators",
            "responses": with_problems(json!({ "200": questions }))
        } },
        "/approvals/{id}": {
            "get": {
                "summary": "One question. For operators",
                "parameters": [parameter("Id")],
                "responses": with_problems(approval_responses(&any))
            },
            "post": {
                "summary": "Answer a question. For operators",
                "parameters": [parameter("Id")],
                "requestBody": { "required": true, "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Verdict" } } } },
                "responses": with_body(approval_responses(&any))
            }
        },
        "/rules": { "get": {
            "summary": "The remembered rules. For operators",
            "responses": with_problems(json!({ "200": any }))
        } },
        "/rules/{id}": { "delete": {
            "summary": "Remove a remembered rule. For operators",
            "parameters": [parameter("Id")],
            "responses": with_problems(json!({ "200": any, "404": answer("No such rule.", "Problem") }))
        } },
        "/sources": { "get": {
            "summary": "The state of every source, and the definitions that it keeps back. For operators",
            "responses": with_problems(json!({ "200": any }))
        } },
        "/sources/{name}/accept": { "post": {
            "summary": "Accept definitions that a source keeps back: of the `tool` in the body, if its `digest` is unchanged, or all. For operators",
            "parameters": [parameter("Name")],
            "responses": with_body(json!({
                "200": any,
                "404": answer("No such source.", "Problem"),
                "409": answer("Nothing is held back, or it cannot be accepted.", "Problem")
            }))
        } }
    })
}

fn callers_paths() -> Value {
    let any = any_object("Described in the guide.");
    json!({
        "/health": { "get": { "summary": "The health of the host", "security": [], "responses": { "200": any } } },
        "/openapi.json": { "get": { "summary": "This document", "responses": with_problems(json!({ "200": any })) } },
        "/host": { "get": { "summary": "The identity of the host. For operators", "responses": with_problems(json!({ "200": any })) } },
        "/tools": { "get": {
            "summary": "List or search the tools",
            "parameters": [
                query("format", "string", "toolpost, openai, anthropic, gemini, mcp or a2e."),
                query("query", "string", "Search words."),
                query("kind", "string", "Only this kind."),
                query("tags", "string", "Only tools with all of these tags, separated by commas."),
                query("include_deferred", "boolean", "Deferred tools too; showing one makes it callable in the session."),
                query("hidden", "boolean", "Also hidden tools, with the reason. For operators."),
                query("limit", "integer", "The largest number of tools."),
                parameter("Session")
            ],
            "responses": in_a_session(json!({ "200": any }))
        } },
        "/tools/{name}": { "get": {
            "summary": "Everything about one tool",
            "parameters": [parameter("Tool"), parameter("Session")],
            "responses": with_problems(json!({ "200": any, "404": answer("No such tool or session.", "Problem") }))
        } },
        "/tools/{name}/call": { "post": {
            "summary": "Call a tool: arguments in, result out",
            "parameters": [
                parameter("Tool"), parameter("Session"), parameter("IdempotencyKey"), parameter("CallId"), parameter("TraceParent"), parameter("TraceState"),
                query("timeout", "number", "The requested deadline, in seconds."),
                query("correlation_id", "string", "Kept with the record."),
                query("patience", "number", "How long the caller waits for a free slot or for approval, in seconds. It does not limit the work. 0 does not wait for approval and sets no limit for a slot. The default is `http.patience`, for approval only and not for event streams."),
                query("batch", "string", "The call's place among the calls of one turn: a `BatchPlace` as JSON."),
                query("background", "boolean", "Answer at once with 202 and the call's id; the call continues.")
            ],
            "requestBody": arguments(),
            "responses": call_responses()
        } },
        "/tools/{name}/explain": { "post": {
            "summary": "Explain a call without running it",
            "parameters": [parameter("Tool"), parameter("Session")],
            "requestBody": arguments(),
            "responses": with_body(in_a_session(json!({ "200": any, "415": answer("The body is not JSON.", "Problem") })))
        } },
        "/invocations/{id}": { "get": {
            "summary": "The state of a call",
            "parameters": [parameter("Id"), query("wait", "number", "How long to wait for its end, in seconds; at most 50.")],
            "responses": with_problems(json!({ "200": any, "404": answer("No such call.", "Problem") }))
        } },
        "/invocations/{id}/cancel": { "post": {
            "summary": "Cancel a call",
            "parameters": [parameter("Id")],
            "responses": with_problems(json!({ "200": any, "404": answer("No such call.", "Problem") }))
        } },
        "/artifacts/{id}": { "get": {
            "summary": "The bytes of a kept result. Agents get those of their own calls",
            "parameters": [parameter("Id"), header("Range", "One range of bytes.")],
            "responses": with_problems(json!({
                "200": bytes("The whole result."),
                "206": bytes("The requested range."),
                "304": { "description": "The caller already has the result." },
                "404": answer("No such kept result.", "Problem"),
                "410": answer("The result is no longer kept.", "Problem"),
                "500": answer("The kept bytes have changed, so they are not returned.", "Problem"),
                "416": answer("The range holds no bytes.", "Problem"),
                "503": answer("Kept results cannot be read.", "Problem")
            }))
        } },
        "/sessions": { "post": {
            "summary": "Open a session",
            "requestBody": { "required": false, "content": { "application/json": { "schema": { "$ref": "#/components/schemas/SurfaceRequest" } } } },
            "responses": with_body(json!({ "201": any, "429": answer("Too many sessions.", "Problem") }))
        } },
        "/sessions/{id}": {
            "get": { "summary": "One session", "parameters": [parameter("Id")], "responses": with_problems(json!({ "200": any, "404": answer("No such session.", "Problem") })) },
            "delete": { "summary": "Close a session and end its calls", "parameters": [parameter("Id")], "responses": in_a_session(json!({ "204": { "description": "Closed." } })) }
        }
    })
}

fn schemas() -> Value {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut generator = settings.into_generator();
    fn add<T: JsonSchema>(generator: &mut schemars::SchemaGenerator) {
        generator.subschema_for::<T>();
    }
    add::<ToolResult>(&mut generator);
    add::<Decision>(&mut generator);
    add::<Effects>(&mut generator);
    add::<SurfaceRequest>(&mut generator);
    add::<Verdict>(&mut generator);
    add::<BatchPlace>(&mut generator);
    let mut schemas = Value::Object(generator.take_definitions(true));
    schemas["Problem"] = json!({
        "type": "object",
        "required": ["error"],
        "properties": { "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": { "code": { "type": "string" }, "message": { "type": "string" }, "hint": { "type": "string" } }
        } }
    });
    schemas
}
