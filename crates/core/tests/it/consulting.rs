//! Running calls that ask whoever made them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};
use toolpost_core::{CallRequest, KnownSecrets};
use toolpost_model::{
    BoxFuture, ClassFact, ConsultError, ConsultKind, ConsultKinds, ConsultQuestion, ConsultReply,
    ConsultableCaller, Declaration, EffectClass, InvocationId, NestedCall, Outcome, Tool, ToolCall,
    ToolFailure, ToolOutput,
};
use toolpost_testkit::{MockNativeTool, MockToolGate, TestHost};

/// Asks its caller for a name and greets whoever that is.
struct Greeter {
    timeout: Option<Duration>,
    class: ClassFact,
}

impl Greeter {
    fn patient() -> Self {
        Self {
            timeout: None,
            class: ClassFact::Always(EffectClass::Read),
        }
    }

    /// Nobody knows what it does, so it runs alone in its session.
    fn unknown() -> Self {
        Self {
            timeout: None,
            class: ClassFact::default(),
        }
    }
}

impl Tool for Greeter {
    fn declaration(&self) -> Declaration {
        let mut declaration = Declaration::new("demo.greet".parse().unwrap(), "Greets");
        declaration.interface.safety.class = self.class;
        declaration.interface.execution.timeout_ms = self
            .timeout
            .map(|limit| u64::try_from(limit.as_millis()).unwrap());
        declaration
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let message = call
            .input
            .arguments()
            .str("message")
            .unwrap_or("who are you?")
            .to_owned();
        let question = ConsultQuestion {
            key: "name".to_owned(),
            kind: ConsultKind::Elicitation,
            params: json!({ "message": message }),
        };
        let replies = match call.context.consult(vec![question]).await {
            Ok(replies) => replies,
            Err(error) => return Err(ToolFailure::new(error.to_string())),
        };
        Ok(format!(
            "hello {}",
            replies[0].value["content"]["name"].as_str().unwrap()
        )
        .into())
    }
}

/// Has another tool greet.
struct Passes;

impl Tool for Passes {
    fn declaration(&self) -> Declaration {
        let mut declaration = Declaration::new("demo.pass".parse().unwrap(), "Calls the greeter");
        declaration.interface.safety.class = ClassFact::Always(EffectClass::Read);
        declaration
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let nested = NestedCall::new("greet", json!({}));
        Ok(call.context.call_tool(nested).await?.model_text().into())
    }
}

/// Answers every form with the name Ada, once it is let.
struct Ada {
    kinds: ConsultKinds,
    asked: Mutex<Vec<Value>>,
    reached: Notify,
    gate: Semaphore,
}

impl Ada {
    fn answering(kinds: ConsultKinds, permits: usize) -> Arc<Self> {
        Arc::new(Self {
            kinds,
            asked: Mutex::default(),
            reached: Notify::new(),
            gate: Semaphore::new(permits),
        })
    }

    fn forms(permits: usize) -> Arc<Self> {
        Self::answering(
            ConsultKinds {
                elicitation: true,
                ..ConsultKinds::default()
            },
            permits,
        )
    }
}

impl ConsultableCaller for Ada {
    fn answers(&self) -> ConsultKinds {
        self.kinds
    }

    fn consult(
        &self,
        _: InvocationId,
        questions: Vec<ConsultQuestion>,
    ) -> BoxFuture<'_, Result<Vec<ConsultReply>, ConsultError>> {
        Box::pin(async move {
            self.asked
                .lock()
                .unwrap()
                .extend(questions.iter().map(|question| question.params.clone()));
            self.reached.notify_one();
            self.gate.acquire().await.unwrap().forget();
            let reply = |question: ConsultQuestion| ConsultReply {
                key: question.key,
                value: json!({ "action": "accept", "content": { "name": "Ada" } }),
            };
            Ok(questions.into_iter().map(reply).collect())
        })
    }
}

fn asking(host: &TestHost, tool: &str, arguments: Value, caller: Option<Arc<Ada>>) -> CallRequest {
    let mut request = host.request(tool, arguments);
    request.delivery.caller = caller.map(|caller| caller as Arc<dyn ConsultableCaller>);
    request
}

#[tokio::test]
async fn a_caller_that_can_be_asked_is_asked_and_its_answer_reaches_the_tool() {
    let host = TestHost::with(Greeter::patient()).await;
    let ada = Ada::forms(1);
    let answer = host
        .host
        .call(asking(&host, "greet", json!({}), Some(Arc::clone(&ada))))
        .await;
    assert_eq!(answer.result().model_text(), "hello Ada");
    assert_eq!(
        *ada.asked.lock().unwrap(),
        [json!({ "message": "who are you?" })]
    );
}

#[tokio::test]
async fn who_cannot_be_asked_is_not_asked() {
    let host = TestHost::with(Greeter::patient()).await;
    let roots_only = Ada::answering(
        ConsultKinds {
            roots: true,
            ..ConsultKinds::default()
        },
        1,
    );
    for (caller, said) in [
        (None, "the caller cannot be asked anything"),
        (
            Some(Arc::clone(&roots_only)),
            "the caller does not answer questions of the kind elicitation",
        ),
    ] {
        let answer = host
            .host
            .call(asking(&host, "greet", json!({}), caller))
            .await;
        assert_eq!(answer.result().error.as_ref().unwrap().message, said);
    }
    assert!(roots_only.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_deadline_stands_still_while_the_caller_thinks() {
    let host = TestHost::with(Greeter {
        timeout: Some(Duration::from_millis(400)),
        ..Greeter::patient()
    })
    .await;
    let ada = Ada::forms(0);
    let call = host
        .host
        .call(asking(&host, "greet", json!({}), Some(Arc::clone(&ada))));
    let later = async {
        ada.reached.notified().await;
        // Longer than the call has: this is about time, so time must pass.
        tokio::time::sleep(Duration::from_millis(900)).await;
        ada.gate.add_permits(1);
    };
    let (answer, ()) = tokio::join!(call, later);
    assert_eq!(
        answer.result().outcome,
        Outcome::Succeeded,
        "{:?}",
        answer.result()
    );
}

#[tokio::test]
async fn a_call_that_is_canceled_waits_for_no_answer() {
    let host = TestHost::with(Greeter::patient()).await;
    let ada = Ada::forms(0);
    let handle = host
        .host
        .start(asking(&host, "greet", json!({}), Some(Arc::clone(&ada))))
        .await;
    ada.reached.notified().await;
    assert!(
        host.host
            .cancel(handle.invocation_id(), host.session.principal())
    );
    let answer = handle.answer().await;
    assert_eq!(answer.result().outcome, Outcome::Canceled);
}

#[tokio::test]
async fn a_nested_call_asks_the_caller_of_its_parent() {
    let host = TestHost::build(|builder| builder.tool(Greeter::patient()).tool(Passes)).await;
    let ada = Ada::forms(1);
    let answer = host
        .host
        .call(asking(&host, "pass", json!({}), Some(ada)))
        .await;
    assert_eq!(answer.result().model_text(), "hello Ada");
}

#[tokio::test]
async fn secrets_of_the_host_are_not_asked_away() {
    let host = TestHost::build(|builder| {
        builder
            .tool(Greeter::patient())
            .redactor(KnownSecrets::new([(
                "host_token",
                "open-sesame-4711-open-sesame",
            )]))
    })
    .await;
    let ada = Ada::forms(1);
    let arguments = json!({ "message": "is it open-sesame-4711-open-sesame?" });
    host.host
        .call(asking(&host, "greet", arguments, Some(Arc::clone(&ada))))
        .await;
    let asked = ada.asked.lock().unwrap()[0]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        asked.contains("[redacted:host_token]") && !asked.contains("4711"),
        "{asked}"
    );
}

#[tokio::test]
async fn a_call_that_waits_for_an_answer_keeps_nobody_waiting() {
    let host = TestHost::with(Greeter::unknown()).await;
    let slow = Ada::forms(0);
    let quick = Ada::forms(1);
    let first = host
        .host
        .start(asking(&host, "greet", json!({}), Some(Arc::clone(&slow))))
        .await;
    slow.reached.notified().await;
    let second = host
        .host
        .call(asking(&host, "greet", json!({}), Some(quick)))
        .await;
    assert_eq!(
        second.result().model_text(),
        "hello Ada",
        "it runs although the first has not ended"
    );
    slow.gate.add_permits(1);
    assert_eq!(first.answer().await.result().model_text(), "hello Ada");
    let health = host.host.health();
    assert_eq!((health.running, health.queued), (0, 0));
}

#[tokio::test]
async fn one_that_was_answered_waits_for_its_turn_again() {
    let gate = MockToolGate::new();
    let host = TestHost::build(|builder| {
        builder.tool(Greeter::unknown()).tool(
            MockNativeTool::named("demo.hold")
                .class(EffectClass::Unknown)
                .gate(&gate),
        )
    })
    .await;
    let ada = Ada::forms(0);
    let first = host
        .host
        .start(asking(&host, "greet", json!({}), Some(Arc::clone(&ada))))
        .await;
    ada.reached.notified().await;
    let second = host.host.start(host.request("hold", json!({}))).await;
    gate.entered(1).await;
    ada.gate.add_permits(1);
    // The first has its answer and no turn: only the end of the second lets it go on.
    gate.let_through(1);
    assert_eq!(second.answer().await.result().outcome, Outcome::Succeeded);
    assert_eq!(first.answer().await.result().model_text(), "hello Ada");
}
