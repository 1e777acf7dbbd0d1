//! Flags that earlier versions read. A command line that still has one gets a tip about its replacement.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// A flag that is no longer read.
struct DroppedFlag {
    flag: &'static str,
    /// The replacement. It names the command, since other commands may never have had the flag.
    tip: &'static str,
}

const PLANS_ONLY: &str =
    "leave it out: `modules` is about the modules of mount plans, which `--mount-plan` names";

const DROPPED_FLAGS: [DroppedFlag; 9] = [
    DroppedFlag {
        flag: "--follow",
        tip: "`watch` does not read files or pipes; `toolpost a2a normalize` does",
    },
    DroppedFlag {
        flag: "--mcp-config",
        tip: PLANS_ONLY,
    },
    DroppedFlag {
        flag: "--a2e-config",
        tip: PLANS_ONLY,
    },
    DroppedFlag {
        flag: "--a2e-import-path",
        tip: PLANS_ONLY,
    },
    DroppedFlag {
        flag: "--replace-native",
        tip: PLANS_ONLY,
    },
    DroppedFlag {
        flag: "--no-prompt",
        tip: "with `capture`, `--mode never-ask` denies calls that need approval",
    },
    DroppedFlag {
        flag: "--policy",
        tip: "leave it out: this command reads no policy",
    },
    DroppedFlag {
        flag: "--token",
        tip: "other users can read a command line; put the token into a file and name it with `--token-file`",
    },
    DroppedFlag {
        flag: "--v4",
        tip: "leave it out: `watch` and `a2a normalize` recognise the lines of AI SDK 4",
    },
];

/// The parser's error, with a tip if the unknown flag is a dropped one.
pub(crate) fn add_tip(mut error: clap::Error) -> clap::Error {
    if let Some(tip) = find_tip(&error) {
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
    error
}

fn find_tip(error: &clap::Error) -> Option<&'static str> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    DROPPED_FLAGS
        .iter()
        .find(|dropped| dropped.flag == unknown)
        .map(|dropped| dropped.tip)
}
