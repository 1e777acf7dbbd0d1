//! The server's own token: in its file and nowhere else.

use std::path::{Path, PathBuf};

use serde_json::json;
use toolpost_testkit::MockNativeTool;

use super::{client::Request, running::Place};

fn contains(bytes: &[u8], part: &str) -> bool {
    bytes
        .windows(part.len())
        .any(|window| window == part.as_bytes())
}

fn files_beneath(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(files_beneath(&path)),
            false => files.push(path),
        }
    }
    files
}

/// The files of a data directory that hold `secret`, by name.
fn holders(data_dir: &Path, secret: &str) -> Vec<String> {
    let holds = |path: &PathBuf| contains(&std::fs::read(path).unwrap(), secret);
    let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    files_beneath(data_dir)
        .into_iter()
        .filter(|path| path.is_file())
        .filter(holds)
        .map(name)
        .collect()
}

#[tokio::test]
async fn the_token_appears_in_no_answer_and_no_record() {
    let place = Place::new();
    let server = place
        .start_with(|builder| builder.tool(MockNativeTool::named("demo.any")))
        .await;
    let token = server.token().to_owned();
    std::fs::write(
        place.workspace().join("note.txt"),
        format!("the token is {token}\n"),
    )
    .unwrap();
    let escaped: String = token
        .chars()
        .map(|c| format!("\\u{:04x}", u32::from(c)))
        .collect();
    let plain = json!({ "message": format!("<{token}>") });
    let nested = json!({ "deep": [{ token.clone(): token }], "twice": format!("{token}{token}") });
    let mut answers = Vec::new();
    for request in [
        Request::call("echo", &plain),
        Request::call("echo", &plain).streamed(),
        Request::call("echo", &plain).key("k"),
        Request::call("echo", &plain).key("k"),
        Request::post("/tools/echo/call", format!(r#"{{"message":"{escaped}"}}"#)),
        Request::call("any", &nested),
        Request::call("read_file", &json!({ "path": "note.txt" })),
        Request::call("echo", &json!({ "message": "hi", "unknown": token })),
        Request::call("missing", &plain),
        Request::post("/tools/echo/call", format!("{{\"message\":\"{token}\"")),
        Request::post(
            "/tools/echo/explain",
            json!({ "message": token, "unknown": 1 }).to_string(),
        ),
        Request::get("/tools?hidden=true"),
        Request::get("/health"),
        Request::get("/openapi.json"),
        Request::post("/sessions", ""),
    ] {
        let mut connection = server.begin(request).await;
        let answer = connection.receive().await;
        assert!(!contains(&answer.body, &token), "{}", answer.text());
        answers.push(answer);
    }
    assert_eq!(
        answers[0].json()["content"][0]["text"],
        "<[redacted:host_token]>"
    );
    assert_eq!(answers[2].body, answers[3].body);
    assert_eq!(
        answers[4].json()["content"][0]["text"],
        "[redacted:host_token]"
    );
    assert_eq!(
        answers[6].json()["content"][0]["text"],
        "     1\tthe token is [redacted:host_token]\n"
    );
    for answer in answers.iter().take(10) {
        let Ok(result) = serde_json::from_slice::<serde_json::Value>(&answer.body) else {
            continue;
        };
        let told = server
            .ended(result["invocation_id"].as_str().unwrap())
            .await;
        assert!(!contains(&told.body, &token), "{}", told.text());
    }
    assert_eq!(
        holders(&place.data_dir(), &token),
        ["token"],
        "while it runs"
    );
    server.shut_down().await;
    assert_eq!(holders(&place.data_dir(), &token), ["token"], "after it");
    let recorded = holders(&place.data_dir(), "[redacted:host_token]");
    assert_eq!(
        recorded,
        ["journal.db"],
        "the calls are there, without the token"
    );
}

#[tokio::test]
async fn a_sensitive_argument_appears_in_no_answer_and_no_record() {
    const SECRET: &str = "correct horse battery staple";
    let place = Place::without_native_tools();
    let schema = json!({ "type": "object", "properties": {
        "password": { "type": "string", "x-sensitive": true }, "user": { "type": "string" },
    } });
    let tool = MockNativeTool::named("demo.login")
        .schema(schema)
        .output(format!("logged in with {SECRET}").as_str());
    let server = place.start_with(|builder| builder.tool(tool.clone())).await;
    let arguments = json!({ "user": "u", "password": SECRET });
    let answer = server.call("login", arguments.clone()).await;
    assert_eq!(
        answer.json()["content"][0]["text"],
        "logged in with [redacted:argument]"
    );
    assert_eq!(tool.inputs(), [arguments], "the tool itself gets it");
    let wrong = server
        .call("login", json!({ "user": 5, "password": SECRET }))
        .await;
    assert_eq!(wrong.status(), 422);
    assert!(!contains(&wrong.body, SECRET), "{}", wrong.text());
    server.shut_down().await;
    assert_eq!(holders(&place.data_dir(), SECRET), Vec::<String>::new());
}

/// Before its schema is known or its text was read, nobody can say what of a call is sensitive.
#[tokio::test]
async fn arguments_of_a_call_that_does_not_get_far_are_not_kept() {
    const SECRET: &str = "correct horse battery staple";
    let schema = json!({ "type": "object", "properties": { "password": { "type": "string", "x-sensitive": true } } });
    let login = MockNativeTool::named("demo.login").schema(schema.clone());
    let later = MockNativeTool::named("demo.later")
        .schema(schema)
        .declare(|declaration| declaration.loading = toolpost_model::LoadingStrategy::Deferred);
    let place = Place::without_native_tools();
    let server = place
        .start_with(|builder| builder.tool(login.clone()).tool(later))
        .await;
    let whole = format!(r#"{{"password":"{SECRET}"}}"#);
    let cut = format!(r#"{{"password":"{SECRET}"#);
    let twice = format!(r#"{{"password":"{SECRET}","password":"x"}}"#);
    let odd = format!(r#"{{"password":["{SECRET}"]}}"#);
    for (tool, body) in [
        ("login", &cut),
        ("login", &twice),
        ("login", &odd),
        ("logni", &whole),
        ("later", &whole),
    ] {
        let answer = server
            .send(Request::post(format!("/tools/{tool}/call"), body.as_str()))
            .await;
        assert_ne!(answer.status(), 200, "{tool} {body}");
        assert!(!contains(&answer.body, SECRET), "{}", answer.text());
    }
    assert_eq!(login.call_count(), 0);
    server.shut_down().await;
    assert_eq!(holders(&place.data_dir(), SECRET), Vec::<String>::new());
    assert_eq!(
        holders(&place.data_dir(), "logni"),
        ["journal.db"],
        "the calls themselves are on record"
    );
}

#[tokio::test]
async fn the_token_reaches_the_record_by_no_other_way() {
    let place = Place::new();
    let server = place.start().await;
    let token = server.token().to_owned();
    let hello = json!({ "message": "hi" });
    let keyed = Request::call("echo", &hello).key(&token);
    let first = server.send(keyed.clone()).await;
    assert_eq!(
        server.send(keyed).await.body,
        first.body,
        "a key that is a secret still finds its call"
    );
    for request in [
        Request::call(&token, &json!({})),
        Request::call("read_file", &json!({ "path": token })),
        Request::call(
            "write_file",
            &json!({ "path": format!("{token}/x"), "content": "" }),
        ),
        Request::post(
            format!("/tools/echo/call?correlation_id={token}"),
            hello.to_string(),
        ),
        Request::post(
            "/sessions",
            json!({ "task": token, "skills": [token] }).to_string(),
        ),
        Request::get("/tools").session(&token),
        Request::get(format!("/tools/{token}")),
    ] {
        server.send(request).await;
    }
    server.shut_down().await;
    assert_eq!(holders(&place.data_dir(), &token), ["token"]);
}
