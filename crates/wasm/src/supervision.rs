//! Runs a guest's work under its deadline. The epoch interrupts a guest that computes. A guest that waits for a host
//! function does not run code that the epoch could interrupt, so its future is dropped here.

use std::{future::Future, pin::pin, time::Duration};

use toolpost_model::{ErrorClass, ToolFailure};

use crate::{guest::GuestStopCondition, output::GuestOutput};

/// How often pending output is sent while a guest runs.
const PASS_ON: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuestStopReason {
    Canceled,
    TimedOut,
}

impl GuestStopReason {
    pub(crate) fn failure(self) -> ToolFailure {
        match self {
            Self::Canceled => ToolFailure::of(
                ErrorClass::Canceled,
                "the component was stopped: the call was canceled",
            ),
            Self::TimedOut => ToolFailure::of(
                ErrorClass::Timeout,
                "the component was stopped: its deadline passed",
            ),
        }
    }
}

/// Runs the work until it ends, its call is canceled or its deadline is over.
pub(crate) async fn watched<T>(
    work: impl Future<Output = T>,
    watch: &GuestStopCondition,
    output: Option<&GuestOutput>,
) -> Result<T, GuestStopReason> {
    let mut work = pin!(work);
    let canceled = async {
        match &watch.context {
            Some(context) => context.canceled().await,
            None => std::future::pending().await,
        }
    };
    let mut canceled = pin!(canceled);
    let mut over = pin!(tokio::time::sleep_until(watch.deadline.into()));
    loop {
        tokio::select! {
            biased;
            ended = &mut work => return Ok(ended),
            () = &mut canceled => return Err(GuestStopReason::Canceled),
            () = &mut over => return Err(GuestStopReason::TimedOut),
            () = tokio::time::sleep(PASS_ON), if output.is_some() => {
                if let Some(output) = output {
                    output.pass_on();
                }
            }
        }
    }
}
