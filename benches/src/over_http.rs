//! Calls over HTTP with sixteen clients, beside a bare axum POST echo.

use std::time::Duration;

use crate::{children::Served, clients, rounds::Pairs};

pub(crate) const BODY: &str =
    r#"{"message":"sixteen clients say hello to the host and want it back"}"#;
const ROUND: Duration = Duration::from_secs(2);

pub(crate) async fn run() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let floor = Served::start(&["--serve-floor"])?;
    let ours = Served::start(&[
        "--serve-toolpost",
        &folder.path().join("data").display().to_string(),
        "1",
    ])?;
    let (echo, call) = (
        clients::post("/echo", BODY),
        clients::post("/tools/echo/call", BODY),
    );
    let pairs = Pairs::take(
        7,
        || clients::load(&ours.address, &call, 16, ROUND),
        || clients::load(&floor.address, &echo, 16, ROUND),
    )
    .await?;
    pairs.tell("HTTP calls with 16 clients, each on record", "calls/s");
    Ok(())
}
