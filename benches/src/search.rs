//! Search over many tools, beside a plain scan of names and descriptions for the same words.

use std::time::Instant;

use toolpost_core::{Host, ToolFilter};
use toolpost_model::{
    Declaration, DynTool, Principal, Tool, ToolCall, ToolFailure, ToolOutput, ToolSet,
};

use crate::rounds::median;

const QUERIES: [&str; 6] = [
    "create invoice",
    "list repositories",
    "send message",
    "voice",
    "search_customer_17",
    "weather",
];
const VERBS: [&str; 8] = [
    "create", "list", "update", "delete", "search", "send", "export", "archive",
];
const NOUNS: [&str; 12] = [
    "invoice",
    "repository",
    "message",
    "customer",
    "ticket",
    "document",
    "event",
    "branch",
    "payment",
    "contact",
    "dashboard",
    "report",
];

struct Made(Declaration);

impl Tool for Made {
    fn declaration(&self) -> Declaration {
        self.0.clone()
    }

    async fn execute(&self, _: ToolCall) -> Result<ToolOutput, ToolFailure> {
        Ok(ToolOutput::default())
    }
}

fn made(place: usize) -> Option<std::sync::Arc<dyn DynTool>> {
    let verb = VERBS[place % VERBS.len()];
    let noun = NOUNS[(place / VERBS.len()) % NOUNS.len()];
    let id = format!("service{}.{verb}_{noun}_{place}", place % 97)
        .parse()
        .ok()?;
    let description = format!(
        "{verb}s one {noun} of the account number {place} and returns what the service said about it"
    );
    Some(std::sync::Arc::new(Made(Declaration::new(id, description))))
}

pub(crate) async fn run() -> anyhow::Result<()> {
    for count in [1_000, 10_000, 100_000] {
        let began = Instant::now();
        let host = Host::builder()
            .source(ToolSet::new("made", (0..count).filter_map(made)))
            .build()
            .await?;
        let built = began.elapsed().as_secs_f64() * 1_000.0;
        let session = host.default_session(&Principal::agent("bench"));
        let catalog = host.catalog();
        let texts: Vec<String> = catalog
            .entries()
            .iter()
            .map(|entry| {
                format!("{} {}", entry.name(), entry.declaration().description).to_lowercase()
            })
            .collect();
        let mut ours = Vec::new();
        let mut scans = Vec::new();
        let mut hits = 0;
        for round in 0..60 {
            let query = QUERIES[round % QUERIES.len()];
            let filter = ToolFilter {
                query: query.to_owned(),
                limit: Some(10),
                ..ToolFilter::default()
            };
            let began = Instant::now();
            hits += host.list(&session, &filter).await.len();
            ours.push(began.elapsed().as_secs_f64() * 1e6);
            let began = Instant::now();
            hits += texts
                .iter()
                .filter(|text| query.split(' ').all(|word| text.contains(word)))
                .take(10)
                .count();
            scans.push(began.elapsed().as_secs_f64() * 1e6);
        }
        println!(
            "search over {count} tools: p50 {:.0} µs against {:.0} µs of a plain scan that stops at ten ({hits} hits); catalog built in {built:.0} ms",
            median(&ours),
            median(&scans),
        );
    }
    Ok(())
}
