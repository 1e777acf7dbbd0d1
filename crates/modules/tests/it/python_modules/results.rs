//! Whatever a tool returns comes out as a result, and as the text that Amplifier's own model would give.

use serde_json::json;
use toolpost_model::{Outcome, ResultContent};

use super::stage::{BOTH, Core, Stage, Wanted, folder_of, module_at};

#[tokio::test(flavor = "multi_thread")]
async fn every_return_becomes_a_result() {
    for core in BOTH {
        let stage = Stage::new(core, &["tool-rough"]).await;
        assert_eq!(
            stage.call("nothing", json!({})).await.model_text(),
            "Success"
        );
        assert_eq!(
            stage
                .call("raw_bytes", json!({ "text": true }))
                .await
                .model_text(),
            "café"
        );
        let raw = stage
            .call("raw_bytes", json!({}))
            .await
            .structured_content
            .unwrap();
        assert_eq!(raw, json!({ "encoding": "base64", "data": "//4=" }));
        let odd = stage
            .call("odd", json!({}))
            .await
            .structured_content
            .unwrap();
        assert_eq!(odd["path"], "/x");
        assert_eq!(odd["when"], "2020-01-02");
        assert_eq!(odd["price"], "1.10");
        assert_eq!(odd["set"], json!([1]));
        assert_eq!(odd["nan"], "nan");
        assert_eq!(odd["huge"], "1208925819614629174706176");
        assert_eq!(odd["half"], "ab");
        assert!(odd["3"].as_str().unwrap().contains("object"));
        assert_eq!(
            stage.call("deep", json!({})).await.outcome,
            Outcome::Succeeded
        );
        let image = stage.call("image", json!({})).await;
        let expected = ResultContent::Image {
            data: "aGk=".to_owned(),
            media_type: "image/png".to_owned(),
        };
        assert_eq!(image.content, [expected]);
        for (tool, words) in [
            ("wrong_type", "KeyError: 'file_path'"),
            ("leave", "SystemExit: 3"),
            ("own_cancel", "canceled itself"),
        ] {
            let error = stage.call(tool, json!({})).await.error.unwrap();
            assert!(
                error.message.contains(words) && error.code == "raised",
                "{tool}: {error:?}"
            );
        }
        // None of that kept the module from working.
        assert_eq!(
            stage.call("nothing", json!({})).await.outcome,
            Outcome::Succeeded
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_over_the_limit_is_shown_in_part_and_kept_whole() {
    for inline in [1 << 20, 1000] {
        let wanted = Wanted::new(Core::StandIn, &["tool-rough"]).set(|wanted| {
            wanted.settings.result_bytes = 64 << 10;
            wanted.limits.inline_chars = inline;
        });
        let stage = wanted.start().await;
        let cut = stage.call("huge", json!({ "size": 5_000_000 })).await;
        let told = cut.truncated.as_ref().unwrap();
        let kept = told.artifact.unwrap();
        assert_eq!(
            told.hint
                .as_ref()
                .unwrap()
                .matches("the whole is kept as")
                .count(),
            1,
            "{told:?}"
        );
        assert!(
            cut.model_text()
                .contains(&format!("the whole is kept as `{kept}`"))
        );
        let stored = stage
            .test
            .host
            .artifact(kept, stage.test.session.principal())
            .await
            .unwrap();
        assert_eq!(stored.about().size, 5_000_000);
        assert_eq!(
            stage.call("nothing", json!({})).await.model_text(),
            "Success"
        );
    }
    let stage = Stage::new(Core::StandIn, &["tool-rough"]).await;
    assert!(
        stage
            .call("huge", json!({ "size": 1_000 }))
            .await
            .truncated
            .is_none()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_is_all_there_is_of_it() {
    let wanted = Wanted::new(Core::StandIn, &["tool-large"]).set(|wanted| {
        wanted.settings.result_bytes = 64 << 10;
        wanted.settings.kept_bytes = 300_000;
    });
    let stage = wanted.start().await;
    for (what, begins) in [
        ("text", "xxx"),
        ("failed", "xxx"),
        ("image", r#"{"success":true,"output":null"#),
    ] {
        let result = stage.call("large", json!({ "what": what })).await;
        let kept = result
            .truncated
            .as_ref()
            .and_then(|cut| cut.artifact)
            .unwrap();
        let stored = stage
            .test
            .host
            .artifact(kept, stage.test.session.principal())
            .await
            .unwrap();
        let bytes = stored.read(0, 1 << 20).await.unwrap();
        assert!(bytes.starts_with(begins.as_bytes()), "{what}");
        assert!(
            (200_000..201_000).contains(&bytes.len()),
            "{what}: {}",
            bytes.len()
        );
    }
    let wanted = Wanted::new(Core::StandIn, &["tool-rough"]).set(|wanted| {
        wanted.settings.result_bytes = 64 << 10;
        wanted.settings.kept_bytes = 100_000;
    });
    let stage = wanted.start().await;
    let cut = stage.call("huge", json!({ "size": 5_000_000 })).await;
    let hint = cut.truncated.and_then(|cut| cut.hint).unwrap();
    assert!(
        hint.contains("the first 97 KiB are kept as") && hint.ends_with("the rest is lost"),
        "{hint}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_dropped_is_never_said_to_be_kept() {
    for inline in [1 << 20, 1000] {
        let wanted = Wanted::new(Core::StandIn, &["tool-large"]).set(|wanted| {
            wanted.settings.result_bytes = 64 << 10;
            wanted.settings.kept_bytes = 0;
            wanted.limits.inline_chars = inline;
        });
        let stage = wanted.start().await;
        for (what, words) in [
            ("text", "the first 32 KiB of 195 KiB are shown"),
            ("failed", "the first 32 KiB of 195 KiB are shown"),
            (
                "image",
                "0 bytes of text are shown and none of the 1 other content blocks",
            ),
        ] {
            let result = stage.call("large", json!({ "what": what })).await;
            assert_eq!(result.is_error, what == "failed");
            let hint = result
                .truncated
                .as_ref()
                .and_then(|cut| cut.hint.clone())
                .unwrap_or_default();
            assert!(hint.contains(words), "{what}: {hint}");
            let text = result.model_text();
            assert!(
                text.trim_end()
                    .ends_with("dropped by the limit `amplifier.max_result`]"),
                "{what}: {text}"
            );
            assert!(
                !format!("{text}{hint}").contains("the whole is kept"),
                "{what}: {hint}"
            );
            assert!(!text.contains("Success"), "{what}: {text}");
        }
    }
}

/// The same results, read by the host and said by Amplifier's own model.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_model_is_given_is_what_amplifier_would_give_it() {
    for core in BOTH {
        let modules = vec![module_at("tool-results", folder_of("tool-results"))];
        let stage = Wanted::new(core, &[])
            .set(|wanted| wanted.modules = modules)
            .start()
            .await;
        let count = stage
            .call("result_count", json!({}))
            .await
            .structured_content
            .unwrap();
        let count = count["count"].as_u64().unwrap();
        assert!(count > 20);
        for number in 0..count {
            let result = stage.call("result", json!({ "number": number })).await;
            let expected = stage
                .call("result_text", json!({ "number": number }))
                .await
                .structured_content
                .unwrap();
            let text = expected["text"].as_str().unwrap();
            let texts: Vec<&str> = result
                .content
                .iter()
                .filter_map(|piece| match piece {
                    ResultContent::Text { text } => Some(text.as_str()),
                    _ => None,
                })
                .collect();
            let given = match &result.error {
                // What only repeats the message is not shown a second time.
                Some(error) if texts.is_empty() => vec![error.message.as_str()],
                Some(_) | None => texts,
            };
            let said = text.strip_prefix("Error: ").unwrap_or(text);
            let fits =
                given == [text] || given == [said] || (text == "Error: Failed" && result.is_error);
            assert!(
                fits,
                "{core:?} {number}: {given:?} instead of {text:?} ({expected})"
            );
        }
    }
}
