//! Over pipes: both eras, many requests at once, an orderly end.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
};

use serde_json::{Value, json};
use toolpost_model::PrincipalRole;
use toolpost_testkit::{MockNativeTool, MockToolGate};

use super::{Place, meta, tools};
use crate::client::within;

/// The client's end, used from a thread of its own.
struct Client {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
}

impl Client {
    fn say(&mut self, message: &Value) {
        self.write(&message.to_string());
    }

    fn write(&mut self, line: &str) {
        self.writer
            .write_all(format!("{line}\n").as_bytes())
            .unwrap();
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    fn ask(&mut self, id: u64, method: &str, params: &Value) -> Value {
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let answer = self.hear();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }
}

fn new(params: Value) -> Value {
    let mut params = params;
    params["_meta"] = meta(&json!({ "elicitation": {} }));
    params
}

#[tokio::test]
async fn both_eras_are_spoken_over_one_pair_of_pipes() {
    let gate = MockToolGate::new();
    let slow = MockNativeTool::named("demo.slow")
        .output("late")
        .gate(&gate);
    let place = Place::without_native_tools();
    let server = tools(place.builder())
        .tool(slow)
        .start_offline()
        .await
        .unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut client = Client {
        reader: BufReader::new(ours.try_clone().unwrap()),
        writer: ours,
    };
    let talk = tokio::task::spawn_blocking(move || {
        client.write("{nonsense");
        assert_eq!(client.hear()["error"]["code"], -32700);
        client.say(&json!(["2.0", 7, "ping"]));
        assert_eq!(client.hear()["error"]["code"], -32600);
        assert_eq!(
            client.ask(1, "tools/list", &json!({}))["error"]["code"],
            -32602
        );
        assert_eq!(
            client.ask(2, "server/discover", &new(json!({})))["result"]["resultType"],
            "complete"
        );
        let call = new(json!({ "name": "slow", "arguments": {} }));
        client.say(&json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call }));
        // Others are answered while that one runs.
        let asked = client.ask(
            4,
            "tools/call",
            &new(json!({ "name": "asks", "arguments": {} })),
        );
        let mut again = new(json!({ "name": "asks", "arguments": {} }));
        again["requestState"] = asked["result"]["requestState"].clone();
        again["inputResponses"] =
            json!({ "who": { "action": "accept", "content": { "name": "Bo" } } });
        assert_eq!(
            client.ask(5, "tools/call", &again)["result"]["content"][0]["text"],
            "hello, Bo"
        );
        gate.let_through(1);
        assert_eq!(client.hear()["id"], 3);
        let hello =
            json!({ "protocolVersion": "2099-01-01", "capabilities": { "elicitation": {} } });
        assert_eq!(
            client.ask(6, "initialize", &hello)["result"]["protocolVersion"],
            "2025-11-25"
        );
        client.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        let call = json!({ "name": "asks", "arguments": {} });
        client.say(&json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call }));
        let question = client.hear();
        assert_eq!(question["method"], "elicitation/create");
        let reply = json!({ "action": "accept", "content": { "name": "Cy" } });
        client.say(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": reply }));
        assert_eq!(client.hear()["result"]["content"][0]["text"], "hello, Cy");
        let steps = json!({ "name": "steps", "arguments": {}, "_meta": { "progressToken": 1 } });
        client.say(&json!({ "jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": steps }));
        let heard: Vec<Value> = (0..5).map(|_| client.hear()).collect();
        assert_eq!(
            heard[4]["result"]["content"][0]["text"], "done",
            "{heard:?}"
        );
    });
    let output = theirs.try_clone().unwrap();
    within(server.converse_mcp(PrincipalRole::Agent, theirs, output)).await;
    within(talk).await.unwrap();
}
