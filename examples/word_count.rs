//! Your own tool: a closure over a typed argument struct, served over HTTP.
#![expect(
    clippy::print_stdout,
    reason = "the address and the token are what this program prints"
)]

use std::{collections::HashSet, error::Error, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolpost_config::{HostConfig, HttpConfig};
use toolpost_model::{EffectClass, FnTool, Tool, ToolFailure, ToolIdError, ToolOutput};
use toolpost_serve::Server;

/// The arguments. The JSON Schema that agents see comes from this type and its comments.
#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The text to count in.
    text: String,
    /// Count each word once, however often it is there.
    #[serde(default)]
    distinct: bool,
}

fn word_count() -> Result<impl Tool, ToolIdError> {
    let tool = FnTool::named("text.word_count")?
        .describe("Counts the words of a text")
        .class(EffectClass::Read);
    Ok(tool.run(|arguments: Arguments, _| async move {
        let words = arguments.text.split_whitespace();
        let count = if arguments.distinct {
            words.collect::<HashSet<_>>().len()
        } else {
            words.count()
        };
        let output = ToolOutput::text(format!("{count} words"));
        Ok::<_, ToolFailure>(output.with_structured(json!({ "words": count })))
    }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Port 0 takes any free port. Without a data directory the record is in memory and the token is new.
    let http = HttpConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        ..HttpConfig::default()
    };
    let config = HostConfig {
        http,
        ..HostConfig::default()
    };
    let server = Server::builder(config).tool(word_count()?).start().await?;
    if let Some(address) = server.address() {
        println!("url http://{address}");
    }
    println!("token {}", server.token().unwrap_or_default());
    tokio::signal::ctrl_c().await?;
    server.shutdown(Duration::from_secs(5)).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolpost_testkit::TestHost;

    #[tokio::test]
    async fn words_are_counted_and_wrong_arguments_never_reach_the_tool() {
        let host = TestHost::with(super::word_count().unwrap()).await;
        let result = host
            .call(
                "word_count",
                json!({ "text": "to be or not to be", "distinct": true }),
            )
            .await;
        assert_eq!(result.structured_content, Some(json!({ "words": 4 })));
        let result = host.call("word_count", json!({ "txt": "to be" })).await;
        assert_eq!(result.error.unwrap().class.as_str(), "invalid_arguments");
    }
}
