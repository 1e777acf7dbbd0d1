//! What a peer can ask for.

use super::Dialect;

/// A method of A2A, whatever its name in a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// A message; the answer is a task or a message.
    Send,
    /// A message; the answer is a stream.
    SendStreaming,
    /// A task as it is now.
    GetTask,
    /// The tasks of the caller. Only in 1.0.
    ListTasks,
    /// A task shall stop.
    CancelTask,
    /// The stream of a task once more.
    Subscribe,
    /// The card that only known callers see.
    ExtendedCard,
    /// One of the four methods on push notifications.
    PushConfig,
}

/// Each method with its name in 0.3 and in 1.0.
const NAMES: &[(Method, Option<&str>, &str)] = &[
    (Method::Send, Some("message/send"), "SendMessage"),
    (
        Method::SendStreaming,
        Some("message/stream"),
        "SendStreamingMessage",
    ),
    (Method::GetTask, Some("tasks/get"), "GetTask"),
    (Method::ListTasks, None, "ListTasks"),
    (Method::CancelTask, Some("tasks/cancel"), "CancelTask"),
    (
        Method::Subscribe,
        Some("tasks/resubscribe"),
        "SubscribeToTask",
    ),
    (
        Method::ExtendedCard,
        Some("agent/getAuthenticatedExtendedCard"),
        "GetExtendedAgentCard",
    ),
    (
        Method::PushConfig,
        Some("tasks/pushNotificationConfig/set"),
        "CreateTaskPushNotificationConfig",
    ),
    (
        Method::PushConfig,
        Some("tasks/pushNotificationConfig/get"),
        "GetTaskPushNotificationConfig",
    ),
    (
        Method::PushConfig,
        Some("tasks/pushNotificationConfig/list"),
        "ListTaskPushNotificationConfigs",
    ),
    (
        Method::PushConfig,
        Some("tasks/pushNotificationConfig/delete"),
        "DeleteTaskPushNotificationConfig",
    ),
];

impl Method {
    /// The method of that name, and the dialect that calls it so.
    pub fn named(name: &str) -> Option<(Self, Dialect)> {
        NAMES.iter().find_map(|&(method, older, newer)| {
            if older == Some(name) {
                return Some((method, Dialect::V0_3));
            }
            (newer == name).then_some((method, Dialect::V1_0))
        })
    }
}
