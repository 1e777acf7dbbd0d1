//! Whatever a tool returns comes out as a result, and as the text that Amplifier's own model would give.

use serde_json::json;
use toolpost_model::{Content, Outcome};

use super::stage::{BOTH, Core, Stage, Wanted, folder_of, module_at};

#[tokio::test(flavor = "multi_thread")]
async fn every_return_becomes_a_result() {
    for core in BOTH {
        let stage = Stage::new(core, &["tool-rough"]).await;
        assert_eq!(stage.call("nothing", json!({})).await.model_text(), "Success");
        assert_eq!(stage.call("raw_bytes", json!({ "text": true })).await.model_text(), "café");
        let raw = stage.call("raw_bytes", json!({})).await.structured_content.unwrap();
        assert_eq!(raw, json!({ "encoding": "base64", "data": "//4=" }));
        let odd = stage.call("odd", json!({})).await.structured_content.unwrap();
        assert_eq!(odd["path"], "/x");
        assert_eq!(odd["when"], "2020-01-02");
        assert_eq!(odd["price"], "1.10");
        assert_eq!(odd["set"], json!([1]));
        assert_eq!(odd["nan"], "nan");
        assert_eq!(odd["huge"], "1208925819614629174706176");
        assert_eq!(odd["half"], "ab");
        assert!(odd["3"].as_str().unwrap().contains("object"));
        assert_eq!(stage.call("deep", json!({})).await.outcome, Outcome::Succeeded);
        let image = stage.call("image", json!({})).await;
        let expected = Content::Image { data: "aGk=".to_owned(), media_type: "image/png".to_owned() };
        assert_eq!(image.content, [expected]);
        for (tool, words) in [
            ("wrong_type", "KeyError: 'file_path'"),
            ("leave", "SystemExit: 3"),
            ("own_cancel", "canceled itself"),
        ] {
            let error = stage.call(tool, json!({})).await.error.unwrap();
            assert!(error.message.contains(words) && error.code == "raised", "{tool}: {error:?}");
        }
        // None of that kept the module from working.
        assert_eq!(stage.call("nothing", json!({})).await.outcome, Outcome::Succeeded);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_over_the_limit_is_cut_and_says_so() {
    let wanted = Wanted::new(Core::StandIn, &["tool-rough"]).set(|wanted| {
        wanted.settings.result_bytes = 64 << 10;
        wanted.limits.inline_chars = 1 << 20;
    });
    let stage = wanted.start().await;
    let whole = stage.call("huge", json!({ "size": 60_000 })).await;
    assert!(whole.truncated.is_none());
    let cut = stage.call("huge", json!({ "size": 5_000_000 })).await;
    let told = cut.truncated.unwrap();
    assert_eq!((told.shown, told.total), (32 << 10, Some(5_000_000)));
    assert_eq!(stage.call("nothing", json!({})).await.model_text(), "Success");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_dropped_is_never_said_to_be_kept() {
    for inline in [1 << 20, 1000] {
        let wanted = Wanted::new(Core::StandIn, &["tool-large"]).set(|wanted| {
            wanted.settings.result_bytes = 64 << 10;
            wanted.limits.inline_chars = inline;
        });
        let stage = wanted.start().await;
        for (what, words) in [
            ("text", "the first 32 KiB of 195 KiB came"),
            ("failed", "the first 32 KiB of 195 KiB came"),
            ("image", "came 0 bytes of text and none of its 1 other pieces"),
        ] {
            let result = stage.call("large", json!({ "what": what })).await;
            assert_eq!(result.is_error, what == "failed");
            let hint = result.truncated.as_ref().and_then(|cut| cut.hint.clone()).unwrap_or_default();
            assert!(hint.contains(words), "{what}: {hint}");
            let text = result.model_text();
            assert!(
                text.trim_end().ends_with("dropped by the limit `amplifier.max_result`]"),
                "{what}: {text}"
            );
            assert!(!format!("{text}{hint}").contains("the whole is kept"), "{what}: {hint}");
            assert!(!text.contains("Success"), "{what}: {text}");
        }
    }
}

/// The same results, read by the host and said by Amplifier's own model.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_model_is_given_is_what_amplifier_would_give_it() {
    for core in BOTH {
        let modules = vec![module_at("tool-results", folder_of("tool-results"))];
        let stage = Wanted::new(core, &[]).set(|wanted| wanted.modules = modules).start().await;
        let count = stage.call("result_count", json!({})).await.structured_content.unwrap();
        let count = count["count"].as_u64().unwrap();
        assert!(count > 20);
        for number in 0..count {
            let result = stage.call("result", json!({ "number": number })).await;
            let expected =
                stage.call("result_text", json!({ "number": number })).await.structured_content.unwrap();
            let text = expected["text"].as_str().unwrap();
            let texts: Vec<&str> = result
                .content
                .iter()
                .filter_map(|piece| match piece {
                    Content::Text { text } => Some(text.as_str()),
                    Content::Image { .. } | Content::Binary { .. } => None,
                })
                .collect();
            let given = match &result.error {
                // What only repeats the message is not shown a second time.
                Some(error) if texts.is_empty() => vec![error.message.as_str()],
                Some(_) | None => texts,
            };
            let said = text.strip_prefix("Error: ").unwrap_or(text);
            let fits = given == [text] || given == [said] || (text == "Error: Failed" && result.is_error);
            assert!(fits, "{core:?} {number}: {given:?} instead of {text:?} ({expected})");
        }
    }
}
