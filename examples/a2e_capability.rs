//! Your own capability beside the host's tools: a board of notes that every agent of the host shares. Run it, and
//! connect to it with an A2E agent:
//!
//!     cargo run -p toolpost-examples --bin a2e-capability
#![expect(clippy::print_stdout, reason = "the example prints its address")]

use std::{error::Error, time::Duration};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use toolpost_a2e::{Body, CapabilityName, ErrorCode, ErrorMessage, Message, OtherBody};
use toolpost_config::{HostConfig, HttpConfig};
use toolpost_model::BoxFuture;
use toolpost_serve::{
    Server,
    a2e::{A2eCapability, A2ePeer, CapabilityResponse},
};

/// The notes, oldest first.
#[derive(Default)]
struct Notes(Mutex<Vec<Value>>);

impl Notes {
    fn add(&self, fields: &Map<String, Value>, peer: &A2ePeer) -> Result<usize, ErrorMessage> {
        let Some(text) = fields.get("text").and_then(Value::as_str) else {
            return Err(ErrorMessage::new(
                ErrorCode::SchemaViolation,
                "`text` must be a string",
            ));
        };
        let mut notes = self.0.lock();
        notes.push(json!({ "text": text, "by": peer.session().principal().name }));
        Ok(notes.len())
    }

    fn all(&self) -> Vec<Value> {
        self.0.lock().clone()
    }
}

/// An answer. The host adds the id of the request.
fn answer(kind: &str, name: &str, value: Value) -> CapabilityResponse {
    let fields = Map::from_iter([(name.to_owned(), value)]);
    CapabilityResponse::with(Body::Other(OtherBody {
        kind: kind.to_owned(),
        fields,
    }))
}

impl A2eCapability for Notes {
    fn name(&self) -> CapabilityName {
        CapabilityName::Memory
    }

    fn plugin(&self) -> &str {
        "notes"
    }

    fn messages(&self) -> &'static [&'static str] {
        &["notes/add/req", "notes/list/req"]
    }

    fn handle<'a>(
        &'a self,
        peer: &'a A2ePeer,
        message: Message,
    ) -> BoxFuture<'a, Result<CapabilityResponse, ErrorMessage>> {
        Box::pin(async move {
            let Body::Other(OtherBody { kind, fields }) = message.body else {
                return Ok(CapabilityResponse::NotMine);
            };
            match kind.as_str() {
                "notes/add/req" => Ok(answer(
                    "notes/add/resp",
                    "count",
                    json!(self.add(&fields, peer)?),
                )),
                _ => Ok(answer("notes/list/resp", "notes", json!(self.all()))),
            }
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let http = HttpConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        ..HttpConfig::default()
    };
    let config = HostConfig {
        http,
        ..HostConfig::default()
    };
    let server = Server::builder(config)
        .capability(Notes::default())
        .start()
        .await?;
    if let Some(address) = server.address() {
        println!("url http://{address}");
    }
    println!("token {}", server.token().unwrap_or_default());
    tokio::signal::ctrl_c().await?;
    server.shutdown(Duration::from_secs(5)).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use toolpost_a2e::{Client, ConnectOptions, HostTransport};

    use super::*;

    #[tokio::test]
    async fn agents_share_the_notes() {
        let server = Server::builder(HostConfig::default()).capability(Notes::default());
        let server = server.start_offline().await.unwrap();
        let options = ConnectOptions::new("test").capabilities(["memory", "tools"]);
        let client = Client::connect(HostTransport::Link(server.connect()), options)
            .await
            .unwrap();
        let entries: Vec<_> = client
            .welcome()
            .accepted_caps
            .iter()
            .map(|entry| entry.capability.clone())
            .collect();
        assert_eq!(entries, [CapabilityName::Memory, CapabilityName::Tools]);
        let ask = async |kind: &str, fields: Value| {
            let Value::Object(fields) = fields else {
                panic!("fields")
            };
            let body = Body::Other(OtherBody {
                kind: kind.to_owned(),
                fields,
            });
            client.request(body, Duration::from_secs(10)).await
        };
        let Ok(Body::Other(added)) = ask("notes/add/req", json!({ "text": "hello" })).await else {
            panic!("add")
        };
        assert_eq!(
            (added.kind.as_str(), &added.fields["count"]),
            ("notes/add/resp", &json!(1))
        );
        let Ok(Body::Other(list)) = ask("notes/list/req", json!({})).await else {
            panic!("list")
        };
        assert_eq!(
            list.fields["notes"],
            json!([{ "text": "hello", "by": "embedded" }])
        );
        assert!(ask("notes/add/req", json!({ "text": 5 })).await.is_err());
        client.close().await;
    }
}
