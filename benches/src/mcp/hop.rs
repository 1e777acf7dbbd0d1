//! What it costs to go through the host to a server upstream, beside asking that server directly.

pub(super) async fn run() -> anyhow::Result<()> {
    Ok(())
}
