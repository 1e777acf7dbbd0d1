//! What is sensitive is in no record, event or answer.

use serde_json::json;
use toolpost_core::KnownSecrets;
use toolpost_model::{Content, EffectClass, FnTool, LogLevel, ToolFailure};
use toolpost_testkit::{EventRecorder, TestHost};

const HOST_SECRET: &str = "tp_sentinel_host_0123456789";
const ARGUMENT_SECRET: &str = "sentinel-argument-98765";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Login {
    #[schemars(extend("x-sensitive" = true))]
    pin: String,
    note: String,
    fail: bool,
}

#[tokio::test]
async fn sentinels_show_up_nowhere_and_the_tool_still_gets_the_real_value() {
    let tool = FnTool::named("demo.login").unwrap().class(EffectClass::Read).run(
        |args: Login, context| async move {
            assert_eq!((args.pin.as_str(), args.note.as_str()), (ARGUMENT_SECRET, HOST_SECRET));
            context.log(LogLevel::Info, format!("pin {} note {}", args.pin, args.note));
            context.artifact("copy", Content::text(args.pin.clone()));
            if args.fail {
                return Err(ToolFailure::new(format!("bad pin {}", args.pin)).hint(args.note));
            }
            Ok(json!({ "echo": args.pin, args.note: [1, "x"] }))
        },
    );
    let host =
        TestHost::build(|b| b.tool(tool).redactor(KnownSecrets::new([("host_token", HOST_SECRET)]))).await;
    for fail in [false, true] {
        let (events, recorder) = EventRecorder::new(64);
        let mut request =
            host.request("login", json!({ "pin": ARGUMENT_SECRET, "note": HOST_SECRET, "fail": fail }));
        request.events = Some(events);
        let answer = host.host.call(request).await;
        assert_eq!(answer.result().is_error, fail);
        let mut everything = answer.json().to_owned();
        for event in recorder.all().await {
            everything.push_str(&serde_json::to_string(&event).unwrap());
        }
        for row in host.records().await {
            everything.push_str(&row.record.body);
        }
        assert!(!everything.contains(HOST_SECRET), "{everything}");
        assert!(!everything.contains(ARGUMENT_SECRET), "{everything}");
        assert!(everything.contains("[redacted:argument]") && everything.contains("[redacted:host_token]"));
    }
}

#[tokio::test]
async fn a_schema_error_does_not_quote_a_secret() {
    let tool = FnTool::named("demo.login").unwrap().run(|_: Login, _| async { Ok::<_, ToolFailure>(()) });
    let host = TestHost::with(tool).await;
    let result = host.call("login", json!({ "pin": 987_654_321, "note": "n", "fail": false })).await;
    let text = format!("{}{:?}", serde_json::to_string(&result).unwrap(), host.records().await);
    assert!(!text.contains("987654321"), "{text}");
}
