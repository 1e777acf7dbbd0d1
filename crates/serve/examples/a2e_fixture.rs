//! A host with tools that misbehave in every way a client must cope with: slow, chatty, failing, large. The
//! end-to-end suite starts it as it starts the real binary.
#![expect(
    clippy::print_stderr,
    reason = "a program of the tests, whose reader waits for this line"
)]

use std::{error::Error, path::PathBuf, sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolpost_config::{HostConfig, HttpConfig};
use toolpost_model::{
    ClassFact, Declaration, EffectClass, FnTool, FnToolBuilder, LogLevel, ResultContent, Tool,
    ToolCall, ToolFailure, ToolIdError, ToolOutput, ToolProgress,
};
use toolpost_serve::{CallerAuthentication, Server, ServerBuilder};

#[derive(Deserialize, JsonSchema)]
struct Slow {
    /// How long it takes.
    seconds: f64,
}

#[derive(Deserialize, JsonSchema)]
struct Chatty {
    /// How many events.
    events: u64,
    /// How long between two of them.
    #[serde(default)]
    pause_ms: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Big {
    /// How many characters.
    chars: usize,
    /// What is repeated.
    #[serde(default)]
    text: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Empty {}

fn reads(name: &str, description: &str) -> Result<FnToolBuilder, ToolIdError> {
    Ok(FnTool::named(name)?
        .describe(description)
        .class(EffectClass::Read))
}

fn slow() -> Result<impl Tool, ToolIdError> {
    Ok(
        reads("fixture.slow", "Takes its time")?.run(|arguments: Slow, context| async move {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs_f64(arguments.seconds)) => Ok("done"),
                () = context.canceled() => Err(ToolFailure::new("stopped")),
            }
        }),
    )
}

fn chatty() -> Result<impl Tool, ToolIdError> {
    let tool = reads("fixture.chatty", "Reports a lot")?
        .declare(|declaration| declaration.interface.execution.streaming = true);
    Ok(tool.run(|arguments: Chatty, context| async move {
        for done in 0..arguments.events {
            match done % 3 {
                0 => context.progress(ToolProgress {
                    message: "counting".to_owned(),
                    percent: None,
                    done: Some(done + 1),
                    total: Some(arguments.events),
                }),
                1 => context.status(format!("event {done}")),
                _ => context.log(LogLevel::Info, format!("event {done}")),
            }
            if arguments.pause_ms > 0 {
                tokio::time::sleep(Duration::from_millis(arguments.pause_ms)).await;
            }
        }
        Ok::<_, ToolFailure>(json!({ "events": arguments.events }))
    }))
}

fn big() -> Result<impl Tool, ToolIdError> {
    Ok(
        reads("fixture.big", "Says a lot")?.run(|arguments: Big, _| async move {
            let unit = arguments.text.unwrap_or_else(|| "x".to_owned());
            let text: String = unit.chars().cycle().take(arguments.chars).collect();
            Ok::<_, ToolFailure>(text)
        }),
    )
}

fn boom() -> Result<impl Tool, ToolIdError> {
    Ok(reads("fixture.boom", "Fails")?
        .run(|_: Empty, _| async move { Err::<ToolOutput, _>(ToolFailure::new("it went boom")) }))
}

fn image() -> Result<impl Tool, ToolIdError> {
    Ok(
        reads("fixture.image", "Shows a picture")?.run(|_: Empty, _| async move {
            let picture = ResultContent::Image {
                data: "iVBORw0KGgo=".to_owned(),
                media_type: "image/png".to_owned(),
            };
            let content = vec![ResultContent::text("a picture"), picture];
            Ok::<_, ToolFailure>(ToolOutput {
                content,
                ..ToolOutput::default()
            })
        }),
    )
}

fn nested() -> Result<impl Tool, ToolIdError> {
    let schema = json!({
        "type": "object",
        "properties": {
            "outer": {
                "type": "object",
                "description": "An object in an object",
                "properties": { "inner": { "type": ["integer", "null"] }, "deep": { "$ref": "#/$defs/deep" } },
                "required": ["inner"]
            },
            "level": { "type": "integer", "enum": [1, 2, 3] },
            "either": { "type": ["string", "null"] },
            "many": { "type": "array", "items": { "type": "number" } }
        },
        "required": ["outer"],
        "additionalProperties": false,
        "$defs": { "deep": { "type": "object", "properties": { "deep": { "$ref": "#/$defs/deep" } } } }
    });
    let mut declaration = Declaration::new("fixture.nested".parse()?, "Takes everything there is");
    declaration.input.schema = Arc::new(schema);
    declaration.tags = vec!["Shapes".to_owned(), "fixture".to_owned()];
    declaration.interface.safety.class = ClassFact::Always(EffectClass::Read);
    Ok(Nested(declaration))
}

/// A schema that no Rust type gives.
struct Nested(Declaration);

impl Tool for Nested {
    fn declaration(&self) -> Declaration {
        self.0.clone()
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        Ok(call.input.arguments().value().clone().into())
    }
}

struct Words {
    http: String,
    data_dir: PathBuf,
    stdio: bool,
    token: Option<String>,
}

fn words() -> Result<Words, Box<dyn Error>> {
    let mut words = Words {
        http: "127.0.0.1:0".to_owned(),
        data_dir: PathBuf::new(),
        stdio: false,
        token: None,
    };
    let mut given = std::env::args().skip(1);
    while let Some(word) = given.next() {
        let mut value = || given.next().ok_or("a value is missing");
        match word.as_str() {
            "--http" => words.http = value()?,
            "--data-dir" => words.data_dir = value()?.into(),
            "--stdio" => words.stdio = true,
            "--token" => words.token = Some(value()?),
            other => return Err(format!("`{other}` is not known").into()),
        }
    }
    Ok(words)
}

fn builder(words: &Words) -> Result<ServerBuilder, Box<dyn Error>> {
    let http = HttpConfig {
        listen: words.http.parse()?,
        ..HttpConfig::default()
    };
    let mut config = HostConfig {
        http,
        data_dir: Some(words.data_dir.clone()),
        ..HostConfig::default()
    };
    // Large answers are what some tests of the transports are about.
    config.limits.inline_chars = 400_000;
    let builder = Server::builder(config)
        .tool(slow()?)
        .tool(chatty()?)
        .tool(boom()?);
    let builder = builder.tool(big()?).tool(image()?).tool(nested()?);
    Ok(match &words.token {
        Some(token) => builder.access(CallerAuthentication::Token(token.clone())),
        None => builder,
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words = words()?;
    let builder = builder(&words)?;
    if words.stdio {
        let server = builder.start_offline().await?;
        server.converse(std::io::stdin(), std::io::stdout()).await;
        let _ =
            tokio::time::timeout(Duration::from_millis(700), server.shutdown(Duration::ZERO)).await;
        std::process::exit(0);
    }
    let server = builder.start().await?;
    if let Some(address) = server.address() {
        eprintln!("listening http://{address}");
    }
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    terminate.recv().await;
    server.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
