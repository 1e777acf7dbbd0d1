//! Searches find calls by their facets, newest first, each once.

use jiff::Timestamp;
use toolpost_core::{Facets, Journal, Query, Record, RecordKind, ToolQueryPattern};
use toolpost_model::{InvocationId, Outcome, SessionId};

use super::{call_record, microseconds, put};

pub(super) async fn run<J: Journal>(make: &impl AsyncFn() -> J) {
    calls_are_found_by_what_they_are(&make().await).await;
    a_call_is_found_once_by_its_end_or_else_its_beginning(&make().await).await;
    pages_follow_one_another(&make().await).await;
}

fn facets(tool: &str, principal: &str, outcome: Option<Outcome>) -> Facets {
    Facets {
        tool: tool.into(),
        principal: principal.into(),
        outcome,
        correlation: None,
    }
}

fn second(second: i64) -> Timestamp {
    microseconds(1_785_000_000_000_000 + second * 1_000_000)
}

/// A call's end, written at this second.
fn end(at: i64, session: &str, facets: Facets) -> Record {
    Record {
        at: second(at),
        session_id: Some(SessionId::new(session)),
        facets: Some(facets),
        ..call_record(RecordKind::Ended, InvocationId::new())
    }
}

async fn check<J: Journal>(journal: &J, query: Query, expected: &[u64]) {
    let found = journal.find(query.clone()).await.expect("find");
    assert!(
        found.iter().all(|row| row.record.facets.is_none()),
        "a record that was read has none"
    );
    assert_eq!(
        found.iter().map(|row| row.seq).collect::<Vec<_>>(),
        expected,
        "{query:?}"
    );
}

#[expect(clippy::too_many_lines, reason = "a table of cases")]
async fn calls_are_found_by_what_they_are<J: Journal>(journal: &J) {
    let done = Some(Outcome::Succeeded);
    put(journal, end(1, "s", facets("files.read_file", "ann", done))).await;
    put(
        journal,
        end(
            2,
            "t",
            facets("files.write_file", "ann", Some(Outcome::Denied)),
        ),
    )
    .await;
    put(
        journal,
        end(
            3,
            "s",
            facets("files.read_file", "bob", Some(Outcome::Failed)),
        ),
    )
    .await;
    put(journal, end(4, "s", facets("mcp.github.push", "bob", done))).await;
    let marked = Facets {
        correlation: Some("trace-1".into()),
        ..facets("files.read_file", "ann", done)
    };
    put(journal, end(5, "s", marked)).await;
    // Records without facets are never found.
    put(journal, call_record(RecordKind::Ended, InvocationId::new())).await;
    let all = Query::newest(100);
    let tool = |text: &str| Query {
        tool: Some(ToolQueryPattern::new(text)),
        ..all.clone()
    };
    check(journal, all.clone(), &[5, 4, 3, 2, 1]).await;
    check(journal, tool("files.read_file"), &[5, 3, 1]).await;
    check(journal, tool("read_file"), &[5, 3, 1]).await;
    check(journal, tool("files.*"), &[5, 3, 2, 1]).await;
    check(journal, tool("*push"), &[4]).await;
    check(journal, tool("nothing"), &[]).await;
    check(journal, tool("'; DROP TABLE facet"), &[]).await;
    check(
        journal,
        Query {
            principal: Some("bob".into()),
            ..all.clone()
        },
        &[4, 3],
    )
    .await;
    check(
        journal,
        Query {
            principal: Some("bob".into()),
            ..tool("files.*")
        },
        &[3],
    )
    .await;
    check(
        journal,
        Query {
            outcome: Some(Outcome::Denied),
            ..all.clone()
        },
        &[2],
    )
    .await;
    check(
        journal,
        Query {
            outcome: done,
            ..tool("read_file")
        },
        &[5, 1],
    )
    .await;
    check(
        journal,
        Query {
            correlation: Some("trace-1".into()),
            ..all.clone()
        },
        &[5],
    )
    .await;
    check(
        journal,
        Query {
            correlation: Some("trace".into()),
            ..all.clone()
        },
        &[],
    )
    .await;
    check(
        journal,
        Query {
            session: Some(SessionId::new("t")),
            ..all.clone()
        },
        &[2],
    )
    .await;
    check(
        journal,
        Query {
            since: Some(second(3)),
            ..all.clone()
        },
        &[5, 4, 3],
    )
    .await;
    check(
        journal,
        Query {
            until: Some(second(3)),
            ..all.clone()
        },
        &[2, 1],
    )
    .await;
    let between = Query {
        since: Some(second(2)),
        until: Some(second(5)),
        ..tool("files.*")
    };
    check(journal, between, &[3, 2]).await;
}

async fn a_call_is_found_once_by_its_end_or_else_its_beginning<J: Journal>(journal: &J) {
    let ended = InvocationId::new();
    let open = InvocationId::new();
    let of = |kind, id, outcome| Record {
        facets: Some(facets("a.b", "ann", outcome)),
        ..call_record(kind, id)
    };
    put(journal, of(RecordKind::Accepted, ended, None)).await;
    put(journal, of(RecordKind::Started, open, None)).await;
    put(journal, call_record(RecordKind::Started, ended)).await;
    put(
        journal,
        of(RecordKind::Ended, ended, Some(Outcome::Partial)),
    )
    .await;
    let all = Query::newest(100);
    check(journal, all.clone(), &[4, 2]).await;
    check(
        journal,
        Query {
            tool: Some(ToolQueryPattern::new("a.b")),
            ..all.clone()
        },
        &[4, 2],
    )
    .await;
    check(
        journal,
        Query {
            outcome: Some(Outcome::Partial),
            ..all
        },
        &[4],
    )
    .await;
}

async fn pages_follow_one_another<J: Journal>(journal: &J) {
    for at in 0..25 {
        let tool = if at % 5 == 0 { "a.rare" } else { "a.common" };
        put(
            journal,
            end(at, "s", facets(tool, "ann", Some(Outcome::Succeeded))),
        )
        .await;
    }
    let page = |before, limit| Query {
        before,
        ..Query::newest(limit)
    };
    check(journal, page(None, 3), &[25, 24, 23]).await;
    check(journal, page(Some(23), 3), &[22, 21, 20]).await;
    check(journal, page(Some(2), 3), &[1]).await;
    check(journal, page(Some(1), 3), &[]).await;
    check(journal, page(None, 0), &[]).await;
    let rare = Query {
        tool: Some(ToolQueryPattern::new("rare")),
        ..page(Some(16), 2)
    };
    check(journal, rare, &[11, 6]).await;
    let any = Query {
        tool: Some(ToolQueryPattern::new("a.*")),
        ..page(Some(18), 3)
    };
    check(journal, any, &[17, 16, 15]).await;
    check(
        journal,
        page(None, usize::MAX),
        &(1..=25).rev().collect::<Vec<_>>(),
    )
    .await;
}
