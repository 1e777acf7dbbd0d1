//! The operations of A2A, independent of the binding.

use std::{cmp::Reverse, sync::Arc, time::Duration};

use toolpost_a2a::wire::{
    A2aDialect, A2aRefusal, ErrorCode, ListParams, Message, Part, SendParams, Task as TaskView,
    TaskPage, TaskParams, TaskState,
};
use toolpost_core::{ApprovalError, SessionError};
use toolpost_model::{InvocationId, Principal, PrincipalRole, SurfaceRequest, TraceContext};

use super::{
    A2aServerFace,
    asked::{self, invalid},
    follow,
    task::{A2aTask, TaskCallState},
    tasks::{self, TaskCallMessage},
    telling,
};
use crate::clock;

/// The time that a cancellation waits for the calls to stop. Nearly all calls stop sooner.
const CANCEL_PATIENCE: Duration = Duration::from_secs(10);
/// The longest context id that a client may choose.
const LONGEST_CONTEXT: usize = 128;

pub(super) struct A2aCaller {
    pub(super) principal: Principal,
    pub(super) dialect: A2aDialect,
    /// Whether the caller named the extension in a header.
    pub(super) knows_events: bool,
    /// The span of the caller's request.
    pub(super) span: Option<Box<TraceContext>>,
}

pub(super) enum SendMessageResult {
    Task {
        task: Arc<A2aTask>,
        /// A remark about the state of the task for this caller alone.
        remark: Option<Message>,
        /// Whether this message created the task.
        is_new: bool,
    },
    Message(Message),
}

pub(super) async fn send(
    face: &Arc<A2aServerFace>,
    caller: &A2aCaller,
    params: SendParams,
) -> Result<SendMessageResult, A2aRefusal> {
    if params.wants_push {
        return Err(no_push());
    }
    let message = params.message;
    if message.task_id.is_some() {
        return follow_up(face, caller, &message).await;
    }
    let asked = asked::calls(&message, |id| face.host.redacted(id).into_owned())?;
    let context_id = context(&message)?;
    if asked.calls.is_empty() {
        let mut told = Message::agent(fresh_id(), vec![Part::text(telling::HOW_TO)]);
        told.context_id = Some(context_id);
        return Ok(SendMessageResult::Message(told));
    }
    let id = tasks::session_of(&caller.principal, &context_id);
    let session = face
        .host
        .session_or_open(id, &caller.principal, SurfaceRequest::default())
        .await;
    let session = session.map_err(|error| match error {
        SessionError::Unknown(_) => {
            invalid("this `contextId` belongs to another caller or was closed")
        }
        SessionError::Default
        | SessionError::Full(_)
        | SessionError::SurfaceTooLarge(_)
        | SessionError::Journal(_) => A2aRefusal::new(ErrorCode::Internal, error.to_string()),
    })?;
    let tells_events = caller.knows_events
        || asked.speaks_events
        || message.activates_tool_events()
        || face.always_tells_events();
    let is_first = message.context_id.is_none();
    let message_id = message.message_id;
    let span = caller.span.clone();
    let begin = TaskCallMessage {
        session,
        is_first,
        message_id,
        calls: asked.calls,
        tells_events,
        span,
    };
    let task = begin.task(face).await?;
    Ok(SendMessageResult::Task {
        task,
        remark: None,
        is_new: true,
    })
}

fn fresh_id() -> String {
    InvocationId::new().to_string()
}

/// The conversation of a message; a new one if the message names none.
fn context(message: &Message) -> Result<String, A2aRefusal> {
    let Some(given) = &message.context_id else {
        return Ok(fresh_id());
    };
    let legal =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-');
    if given.len() <= LONGEST_CONTEXT && given.bytes().all(legal) {
        return Ok(given.clone());
    }
    Err(invalid(format!(
        "`contextId` must be up to {LONGEST_CONTEXT} letters, digits, `.`, `_`, `:` and `-`"
    )))
}

/// Handles a message to a running task: the answer to its question. Only operators may answer.
async fn follow_up(
    face: &Arc<A2aServerFace>,
    caller: &A2aCaller,
    message: &Message,
) -> Result<SendMessageResult, A2aRefusal> {
    let task = find(face, caller, message.task_id.as_deref().unwrap_or_default()).await?;
    if message
        .context_id
        .as_ref()
        .is_some_and(|context| *context != task.context_id)
    {
        return Err(invalid("`contextId` is not the one of this task"));
    }
    for place in 0..task.calls.len() {
        follow::look_for_a_question(face, &task, place).await;
    }
    let state = task.task_state();
    if state.is_terminal() {
        let why = "this task has ended; send a message without `taskId` for a new one";
        return Err(unsupported(why, &task));
    }
    let open: Vec<InvocationId> = task
        .standing()
        .into_iter()
        .filter_map(|call| match call {
            TaskCallState::Asked(question) => Some(question),
            TaskCallState::Running | TaskCallState::Over(_) => None,
        })
        .collect();
    let Some(first) = open.first() else {
        return Err(unsupported(
            "this task is running and has no open question",
            &task,
        ));
    };
    match caller.principal.role {
        PrincipalRole::Operator => {}
        PrincipalRole::Agent => {
            let text = "An operator of the host must answer; this task continues after the answer.";
            let remark = Message::agent(fresh_id(), vec![Part::text(text)]);
            let remark = Some(remark.within(&task.id, &task.context_id));
            return Ok(SendMessageResult::Task {
                task,
                remark,
                is_new: false,
            });
        }
    }
    let answer = asked::answer(message)?;
    let question = match answer.question {
        Some(question) if open.contains(&question) => question,
        Some(_) => return Err(invalid("this task does not have that question")),
        None if open.iter().all(|question| question == first) => *first,
        None => {
            return Err(invalid(
                "this task has several open questions; name one as `approvalId`",
            ));
        }
    };
    face.host
        .decide(question, answer.verdict, &caller.principal)
        .await
        .map_err(|error| undecided(&error))?;
    // The followers of the calls notice the answer a moment later; this caller gets the state after its answer at once.
    task.answered(question, clock::now());
    Ok(SendMessageResult::Task {
        task,
        remark: None,
        is_new: false,
    })
}

fn undecided(error: &ApprovalError) -> A2aRefusal {
    let code = match error {
        ApprovalError::Unknown(_)
        | ApprovalError::AlreadyDecided { .. }
        | ApprovalError::Expired
        | ApprovalError::Withdrawn
        | ApprovalError::NotOperator
        | ApprovalError::OwnCall(_) => ErrorCode::UnsupportedOperation,
        ApprovalError::BadArguments(_)
        | ApprovalError::NothingToRemember { .. }
        | ApprovalError::NothingOffered
        | ApprovalError::RuleBesideOffer(_)
        | ApprovalError::Redacted => ErrorCode::InvalidParams,
        ApprovalError::Journal(_) | ApprovalError::Rules(_) => ErrorCode::Internal,
    };
    A2aRefusal::new(code, error.to_string())
}

fn unsupported(why: &str, task: &A2aTask) -> A2aRefusal {
    A2aRefusal::new(ErrorCode::UnsupportedOperation, why).fact("taskId", task.id.as_str())
}

pub(super) fn no_push() -> A2aRefusal {
    A2aRefusal::new(
        ErrorCode::PushNotificationNotSupported,
        "this host sends no push notifications; follow the task's stream",
    )
}

/// A task that the caller may see.
pub(super) async fn find(
    face: &Arc<A2aServerFace>,
    caller: &A2aCaller,
    id: &str,
) -> Result<Arc<A2aTask>, A2aRefusal> {
    let found = tasks::find(face, id, &caller.principal).await?;
    found.ok_or_else(|| A2aRefusal::new(ErrorCode::TaskNotFound, "there is no such task"))
}

/// Waits until the task has ended, asks a question, or the host shuts down.
pub(super) async fn settled(face: &A2aServerFace, task: &A2aTask) {
    let mut grown = task.grown();
    loop {
        grown.borrow_and_update();
        match task.task_state() {
            TaskState::Submitted | TaskState::Working => {}
            TaskState::InputRequired
            | TaskState::AuthRequired
            | TaskState::Completed
            | TaskState::Canceled
            | TaskState::Failed
            | TaskState::Rejected
            | TaskState::Unknown => return,
        }
        tokio::select! {
            () = face.closing.cancelled() => return,
            changed = grown.changed() => if changed.is_err() { return },
        }
    }
}

/// The current task as the caller sees it.
pub(super) fn told(
    task: &A2aTask,
    remark: Option<Message>,
    history_length: Option<u64>,
) -> TaskView {
    let mut told = task.snapshot(task.length());
    if remark.is_some() {
        told.status.message = remark;
    }
    told.with_history(history_length)
}

/// Cancels a task's calls, and waits a short time until they have stopped.
pub(super) async fn cancel(
    face: &Arc<A2aServerFace>,
    caller: &A2aCaller,
    params: &TaskParams,
) -> Result<Arc<A2aTask>, A2aRefusal> {
    let task = find(face, caller, &params.id).await?;
    if task.is_over() {
        let why = "this task has ended already";
        return Err(
            A2aRefusal::new(ErrorCode::TaskNotCancelable, why).fact("taskId", task.id.as_str())
        );
    }
    for (call, standing) in task.calls.iter().zip(task.standing()) {
        match standing {
            TaskCallState::Running | TaskCallState::Asked(_) => {
                face.host.cancel(call.invocation_id, &caller.principal);
            }
            TaskCallState::Over(_) => {}
        }
    }
    let over = async {
        let mut grown = task.grown();
        while !task.is_over() && grown.changed().await.is_ok() {}
    };
    tokio::select! {
        () = over => {}
        () = tokio::time::sleep(CANCEL_PATIENCE) => {}
        () = face.closing.cancelled() => {}
    }
    Ok(task)
}

/// A page of the caller's own tasks.
pub(super) async fn list(
    face: &Arc<A2aServerFace>,
    caller: &A2aCaller,
    params: &ListParams,
) -> Result<TaskPage, A2aRefusal> {
    let found = tasks::list(face, &caller.principal, params).await?;
    // The positions are read once, because tasks change meanwhile and pages need a fixed order.
    let mut found: Vec<_> = found
        .into_iter()
        .map(|task| (place_in_list(&task), task))
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    let begin = match &params.page_token {
        None => 0,
        Some(token) => {
            let after = read_token(token)
                .ok_or_else(|| invalid("`pageToken` is not one of this host's"))?;
            found.partition_point(|(place, _)| *place <= after)
        }
    };
    let size = usize::try_from(params.page_size).unwrap_or(usize::MAX);
    let page = &found[begin..];
    let more = page.len() > size;
    let page = &page[..size.min(page.len())];
    let tell = |(_, task): &(_, Arc<A2aTask>)| {
        let mut told = told(task, None, Some(params.history_length.unwrap_or(0)));
        if !params.include_artifacts {
            told.artifacts.clear();
        }
        told
    };
    Ok(TaskPage {
        tasks: page.iter().map(tell).collect(),
        next_page_token: page
            .last()
            .filter(|_| more)
            .map(|(place, _)| token(place))
            .unwrap_or_default(),
        page_size: params.page_size,
        total_size: u64::try_from(found.len()).unwrap_or(u64::MAX),
    })
}

type TaskListPosition = (Reverse<i128>, Reverse<String>);

/// The position of a task in a list, which begins with the newest change.
fn place_in_list(task: &A2aTask) -> TaskListPosition {
    (
        Reverse(task.changed_at().as_nanosecond()),
        Reverse(task.id.clone()),
    )
}

/// The end of a page as a position, because the last task of the page may have moved before the next request.
fn token((Reverse(at), Reverse(id)): &TaskListPosition) -> String {
    format!("{at:x}.{id}")
}

fn read_token(token: &str) -> Option<TaskListPosition> {
    let (at, id) = token.split_once('.')?;
    let at = i128::from_str_radix(at, 16).ok()?;
    Some((
        Reverse(at),
        Reverse(id.parse::<InvocationId>().ok()?.to_string()),
    ))
}
