//! What a model and what a watcher are given of an output.

use serde_json::{Value, json};
use toolpost_model::{Disposition, OutputStream, ToolResult};

use crate::workshop::{Workshop, chunks, facts, text};

#[tokio::test]
async fn terminal_sequences_and_broken_text_are_cleaned() {
    let shop = Workshop::new().await;
    let result = shop
        .shell(r"printf '\033[31mred\033[0m 10%%\r20%%\n\377\n'")
        .await;
    assert_eq!(text(&result), "20%\n\u{fffd}\n[exit code 0]");
    assert_eq!(facts(&result)["lossy"], true);
}

async fn page(shop: &Workshop, id: &str, offset: u64, limit: u64) -> ToolResult {
    shop.call(
        "process_read",
        json!({ "process_id": id, "offset": offset, "limit": limit }),
    )
    .await
}

#[tokio::test]
async fn long_output_is_shown_by_head_and_tail_and_kept_whole() {
    let shop = Workshop::new().await;
    let result = shop.shell("seq 1 100000").await;
    assert_eq!(result.disposition, Disposition::Preview);
    let shown = text(&result).to_owned();
    assert!(
        shown.starts_with("1\n2\n3\n") && shown.ends_with("\n99999\n100000\n[exit code 0]"),
        "{shown}"
    );
    assert!(shown.len() < 26_000, "{}", shown.len());
    let whole: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(
        (
            &facts(&result)["output_bytes"],
            &facts(&result)["output_lines"]
        ),
        (&json!(whole.len()), &json!(100_000))
    );
    let kept = &result.artifacts[0];
    let id = facts(&result)["ref"].as_str().unwrap();
    assert_eq!(
        (kept.id.to_string().as_str(), kept.size),
        (id, whole.len() as u64)
    );
    let mark = shown.lines().find(|line| line.starts_with("[…")).unwrap();
    assert!(mark.contains(id) && mark.contains("not shown"), "{mark}");

    // Where the mark says, what was cut begins.
    let line: u64 = mark
        .split("\"offset\": ")
        .nth(1)
        .unwrap()
        .split('}')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!(shown.contains(&format!("\n{}\n[…", line - 1)), "{mark}");
    let mut read = String::new();
    let mut offset = Some(1);
    while let Some(next) = offset {
        let part = shop
            .call(
                "read_result",
                json!({ "ref": id, "offset": next, "limit": 100_000 }),
            )
            .await;
        read.push_str(text(&part));
        offset = facts(&part)["next_offset"].as_u64();
    }
    assert!(read == whole, "{} bytes of {}", read.len(), whole.len());
    let tail = shop
        .call("read_result", json!({ "ref": id, "offset": -2 }))
        .await;
    assert_eq!(text(&tail), "99999\n100000\n");
    let found = shop
        .call("search_result", json!({ "ref": id, "pattern": "^7777$" }))
        .await;
    assert_eq!(text(&found), "7777:7777\n");
}

#[tokio::test]
async fn a_flood_that_cannot_be_kept_stays_readable_for_the_session() {
    // This host keeps results in memory, and not that much of them.
    let shop = Workshop::new().await;
    let result = shop
        .shell("yes 0123456789abcde | head -c 120000000; echo; echo the end")
        .await;
    let facts = facts(&result).clone();
    assert_eq!(
        (&facts["output_bytes"], &facts["ref"]),
        (&json!(120_000_009), &Value::Null)
    );
    assert!(text(&result).ends_with("the end\n[exit code 0]"));
    let id = facts["process_id"].as_str().unwrap();
    let kept = page(&shop, id, 100_000_000, 32).await;
    assert!(text(&kept).contains("0123456789abcde\n"), "{}", text(&kept));
}

#[tokio::test]
async fn output_comes_as_events_with_counters_while_the_command_runs() {
    let shop = Workshop::new().await;
    let command =
        "for i in $(seq 1 300); do echo line $i; done; echo err >&2; sleep 0.3; printf tail";
    let (request, recorder) = shop.watched("shell", json!({ "command": command }));
    let answer = shop.host.host.call(request).await;
    let events = recorder.all().await;
    let chunks = chunks(&events);
    let total = facts(answer.result())["output_bytes"].as_u64().unwrap();
    assert!(
        chunks.len() >= 2,
        "the pause comes between two events: {chunks:?}"
    );
    let shown: String = chunks.iter().map(|chunk| chunk.text.as_str()).collect();
    assert_eq!(
        shown,
        text(answer.result())
            .strip_suffix("\n[exit code 0]")
            .unwrap()
    );
    let last = chunks.last().unwrap();
    assert_eq!(
        (last.bytes, last.lines, last.skipped, last.stream),
        (total, 301, 0, OutputStream::Combined)
    );
    assert!(chunks.is_sorted_by_key(|chunk| chunk.bytes));
}

#[tokio::test]
async fn events_of_a_flood_stay_few_and_say_what_they_skip() {
    let shop = Workshop::new().await;
    let (request, recorder) = shop.watched("shell", json!({ "command": "seq 1 3000000" }));
    let answer = shop.host.host.call(request).await;
    let events = recorder.all().await;
    let chunks = chunks(&events);
    let shown: u64 = chunks
        .iter()
        .map(|chunk| chunk.text.len() as u64 + chunk.skipped)
        .sum();
    assert_eq!(Some(shown), facts(answer.result())["output_bytes"].as_u64());
    assert!(chunks.iter().all(|chunk| chunk.text.len() <= 8 * 1024));
    assert!(chunks.iter().map(|chunk| chunk.skipped).sum::<u64>() > 1_000_000);
    assert_eq!(chunks.last().unwrap().lines, 3_000_000);
}

#[tokio::test]
async fn the_result_is_what_the_schema_promises() {
    let shop = Workshop::new().await;
    for command in [
        "true",
        "exit 3",
        "kill -9 $$",
        "seq 1 100000",
        "touch /etc/x",
    ] {
        let (request, recorder) = shop.watched("shell", json!({ "command": command }));
        shop.host.host.call(request).await;
        let logs: Vec<Value> = recorder
            .all()
            .await
            .iter()
            .map(|event| json!(event))
            .collect();
        assert!(
            logs.iter().all(|event| event["kind"] != "log"),
            "a promise was broken: {logs:?}"
        );
    }
}

#[tokio::test]
async fn secrets_in_a_long_output_are_found_behind_colours_and_across_cuts() {
    let shop = Workshop::new().await;
    let secret = format!("ghp_{}", "S3nt1nel".repeat(5));
    // In colour, as `grep` writes it, and a key that the shown tail begins within.
    let command = format!(
        "seq 1 5000; printf 'x \\033[01;31m\\033[Kghp_\\033[m\\033[K{}\\n'; seq 1 5000; echo '-----BEGIN PRIVATE KEY-----'; \
         for i in $(seq 1 690); do echo MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj$i; done; echo '-----END PRIVATE KEY-----'",
        "S3nt1nel".repeat(5)
    );
    let result = shop.shell(&command).await;
    let kept = &result.artifacts[0];
    assert!(kept.redactions.0.contains_key("github"), "{kept:?}");
    let found = shop
        .call(
            "search_result",
            json!({ "ref": kept.id, "pattern": "ghp_|S3nt1nel|MIIEvQ" }),
        )
        .await;
    assert_eq!(facts(&found)["matches"], 0, "{}", text(&found));
    let told = text(&result);
    assert!(
        !told.contains(&secret) && !told.contains("S3nt1nelS3nt1nel") && !told.contains("MIIEvQ"),
        "{told}"
    );
    // What the mark names is where the shown beginning ends.
    let mark = text(&result)
        .lines()
        .find(|line| line.starts_with("[…"))
        .unwrap()
        .to_owned();
    let line: u64 = mark
        .split("\"offset\": ")
        .nth(1)
        .unwrap()
        .split('}')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let next = shop
        .call(
            "read_result",
            json!({ "ref": kept.id, "offset": line, "limit": 1 }),
        )
        .await;
    assert_eq!(text(&next), format!("{line}\n"));
}
