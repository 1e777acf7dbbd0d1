//! Decisions that rules delegate to an authority: the vote, its faults, what the authority sees, and what is on record.

mod asked;
mod classified;
mod votes;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use toolpost_core::{
    AuthorityAnswer, AuthorityFault, AuthorityQuestion, DecisionAuthority, HostBuilder,
};
use toolpost_model::{
    AuthorityKind, AuthorityName, Behavior, BoxFuture, EffectClass, PermissionMode,
};
use toolpost_testkit::{MockNativeTool, TestHost};

type Answer = Result<AuthorityAnswer, AuthorityFault>;
type Answering = Box<dyn Fn(&Value) -> BoxFuture<'static, Answer> + Send + Sync>;

/// An authority of an embedder, which keeps the questions it got.
struct Bureau {
    name: AuthorityName,
    kind: AuthorityKind,
    limit: Duration,
    kept_for: Option<Duration>,
    answering: Answering,
    questions: Questions,
}

#[derive(Clone, Default)]
struct Questions(Arc<Mutex<Vec<Value>>>);

impl Questions {
    fn all(&self) -> Vec<Value> {
        self.0.lock().unwrap().clone()
    }

    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl Bureau {
    fn answering(
        answering: impl Fn(&Value) -> BoxFuture<'static, Answer> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: "bureau".parse().unwrap(),
            kind: AuthorityKind::Embedded,
            limit: Duration::from_secs(5),
            kept_for: None,
            answering: Box::new(answering),
            questions: Questions::default(),
        }
    }

    /// Votes the same on every call.
    fn voting(behavior: Behavior) -> Self {
        Self::deciding(move |_| behavior)
    }

    /// Votes by what it sees.
    fn deciding(decide: impl Fn(&Value) -> Behavior + Send + Sync + 'static) -> Self {
        Self::answering(move |question| {
            let answer = AuthorityAnswer {
                behavior: decide(question),
                reason: Some("so it is".to_owned()),
            };
            Box::pin(std::future::ready(Ok(answer)))
        })
    }

    fn named(self, name: &str) -> Self {
        Self {
            name: name.parse().unwrap(),
            ..self
        }
    }
}

impl DecisionAuthority for Bureau {
    fn name(&self) -> &AuthorityName {
        &self.name
    }

    fn kind(&self) -> AuthorityKind {
        self.kind
    }

    fn time_limit(&self) -> Duration {
        self.limit
    }

    fn keeps_answers_for(&self) -> Option<Duration> {
        self.kept_for
    }

    fn decide<'a>(&'a self, question: &'a AuthorityQuestion<'a>) -> BoxFuture<'a, Answer> {
        let question = question.to_json();
        self.questions.0.lock().unwrap().push(question.clone());
        (self.answering)(&question)
    }
}

/// `demo.act`: class write, with a number and a secret.
fn act() -> MockNativeTool {
    let schema = json!({
        "type": "object",
        "properties": { "n": { "type": "integer" }, "pin": { "type": "string", "x-sensitive": true } },
    });
    MockNativeTool::named("demo.act")
        .class(EffectClass::Write)
        .schema(schema)
        .output("done")
}

fn governed(
    builder: HostBuilder,
    mode: PermissionMode,
    rules: &[&str],
    bureaus: Vec<Bureau>,
) -> HostBuilder {
    let authorities = bureaus
        .into_iter()
        .map(|bureau| Arc::new(bureau) as Arc<dyn DecisionAuthority>);
    builder
        .policy(TestHost::policy(mode, rules))
        .authorities(authorities)
}

async fn host(
    tool: &MockNativeTool,
    mode: PermissionMode,
    rules: &[&str],
    bureaus: Vec<Bureau>,
) -> TestHost {
    TestHost::build(|builder| governed(builder.tool(tool.clone()), mode, rules, bureaus)).await
}

/// The decision of the last record.
async fn decision(host: &TestHost) -> Value {
    let body: Value =
        serde_json::from_str(&host.records().await.last().unwrap().record.body).unwrap();
    body["decision"].clone()
}
