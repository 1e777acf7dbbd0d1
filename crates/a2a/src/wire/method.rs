//! The methods of A2A.

use super::A2aDialect;

/// A method of A2A, independent of its name in a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum A2aMethod {
    /// Sends a message; the answer is a task or a message.
    Send,
    /// Sends a message; the answer is a stream.
    SendStreaming,
    /// Returns a task.
    GetTask,
    /// Lists the caller's tasks. Only in 1.0.
    ListTasks,
    /// Cancels a task.
    CancelTask,
    /// Opens the stream of a task again.
    Subscribe,
    /// Returns the card for authenticated callers.
    ExtendedCard,
    /// One of the four methods on push notifications.
    PushConfig,
}

/// Each method with its names in 0.3 and in 1.0.
const NAMES: &[(A2aMethod, Option<&str>, &str)] = &[
    (A2aMethod::Send, Some("message/send"), "SendMessage"),
    (
        A2aMethod::SendStreaming,
        Some("message/stream"),
        "SendStreamingMessage",
    ),
    (A2aMethod::GetTask, Some("tasks/get"), "GetTask"),
    (A2aMethod::ListTasks, None, "ListTasks"),
    (A2aMethod::CancelTask, Some("tasks/cancel"), "CancelTask"),
    (
        A2aMethod::Subscribe,
        Some("tasks/resubscribe"),
        "SubscribeToTask",
    ),
    (
        A2aMethod::ExtendedCard,
        Some("agent/getAuthenticatedExtendedCard"),
        "GetExtendedAgentCard",
    ),
    (
        A2aMethod::PushConfig,
        Some("tasks/pushNotificationConfig/set"),
        "CreateTaskPushNotificationConfig",
    ),
    (
        A2aMethod::PushConfig,
        Some("tasks/pushNotificationConfig/get"),
        "GetTaskPushNotificationConfig",
    ),
    (
        A2aMethod::PushConfig,
        Some("tasks/pushNotificationConfig/list"),
        "ListTaskPushNotificationConfigs",
    ),
    (
        A2aMethod::PushConfig,
        Some("tasks/pushNotificationConfig/delete"),
        "DeleteTaskPushNotificationConfig",
    ),
];

impl A2aMethod {
    /// The method with that name, and the dialect that uses the name.
    pub fn named(name: &str) -> Option<(Self, A2aDialect)> {
        NAMES.iter().find_map(|&(method, older, newer)| {
            if older == Some(name) {
                return Some((method, A2aDialect::V0_3));
            }
            (newer == name).then_some((method, A2aDialect::V1_0))
        })
    }
}
