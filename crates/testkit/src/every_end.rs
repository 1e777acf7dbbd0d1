//! Every kind of end that a call can have, for tests of code that shows results.

use toolpost_model::{
    ArtifactId, ArtifactRef, ContentDigest, Disposition, ErrorClass, InvocationId, Outcome,
    PersistStrategy, Recoverability, Redactions, ResultContent, ResultPersistence, RetryGuidance,
    Timings, ToolError, ToolResult, Truncation,
};

/// One end of each kind, by name. No two mean the same, so no two may look the same to a reader, whatever their texts
/// are.
pub fn every_end() -> Vec<(&'static str, ToolResult)> {
    let shown = |outcome, disposition| ToolResult {
        outcome,
        disposition,
        ..whole()
    };
    let nothing = |disposition| ToolResult {
        content: Vec::new(),
        ..shown(Outcome::Succeeded, disposition)
    };
    let mut ends = vec![
        ("whole", whole()),
        ("empty", nothing(Disposition::Empty)),
        ("partial", shown(Outcome::Partial, Disposition::Inline)),
        (
            "preview",
            kept(Disposition::Preview, PersistStrategy::PreviewAndPersist),
        ),
        (
            "too large to keep",
            ToolResult {
                artifacts: Vec::new(),
                ..dropped()
            },
        ),
        (
            "kept apart",
            kept(Disposition::RefOnly, PersistStrategy::RefOnly),
        ),
        ("held back", nothing(Disposition::Redacted)),
        (
            "without its secrets",
            ToolResult {
                redactions: one_secret(),
                ..whole()
            },
        ),
        (
            "withheld",
            ToolResult {
                outcome: Outcome::Succeeded,
                ..failed(ErrorClass::HookBlocked, true)
            },
        ),
    ];
    for (name, outcome, class, safe) in [
        ("broke", Outcome::Failed, ErrorClass::ExecutionFailed, false),
        (
            "denied",
            Outcome::Denied,
            ErrorClass::PermissionDenied,
            true,
        ),
        (
            "pending",
            Outcome::Rejected,
            ErrorClass::ApprovalPending,
            true,
        ),
        (
            "not taken",
            Outcome::Rejected,
            ErrorClass::RateLimited,
            true,
        ),
        ("canceled", Outcome::Canceled, ErrorClass::Canceled, true),
        (
            "sibling",
            Outcome::Canceled,
            ErrorClass::SiblingCanceled,
            true,
        ),
        ("timed out", Outcome::TimedOut, ErrorClass::Timeout, true),
        (
            "unknown",
            Outcome::Unknown,
            ErrorClass::OutcomeUnknown,
            false,
        ),
    ] {
        ends.push((
            name,
            ToolResult {
                outcome,
                ..failed(class, safe)
            },
        ));
    }
    let mut broke = failed(ErrorClass::Timeout, false);
    broke.outcome = Outcome::TimedOut;
    if let Some(error) = &mut broke.error {
        error.details = Some(serde_json::json!({ "late_answer": "discarded" }));
    }
    ends.push(("discarded", broke));
    ends
}

fn whole() -> ToolResult {
    ToolResult {
        invocation_id: InvocationId::new(),
        tool_id: None,
        outcome: Outcome::Succeeded,
        disposition: Disposition::Inline,
        is_error: false,
        content: vec![ResultContent::text("text")],
        structured_content: None,
        summary: None,
        exit_code: None,
        truncated: None,
        artifacts: Vec::new(),
        persistence: None,
        redactions: Redactions::default(),
        error: None,
        sandbox: None,
        approval_waived: None,
        meta: None,
        timings: Timings::default(),
    }
}

fn one_secret() -> Redactions {
    let mut redactions = Redactions::default();
    redactions.count("github");
    redactions
}

fn kept(disposition: Disposition, strategy: PersistStrategy) -> ToolResult {
    let mut result = ToolResult {
        disposition,
        ..whole()
    };
    let id = ArtifactId {
        invocation: result.invocation_id,
        place: 1,
    };
    result.artifacts = vec![ArtifactRef {
        id,
        name: "result".to_owned(),
        media_type: "text/plain".to_owned(),
        size: 100,
        digest: ContentDigest([7; 32]),
        redactions: Redactions::default(),
    }];
    let artifact = Some(id);
    let reason = None;
    result.persistence = Some(Box::new(ResultPersistence {
        strategy,
        threshold: 4,
        original: 100,
        preview: 4,
        artifact,
        reason,
    }));
    if disposition == Disposition::Preview {
        result.truncated = Some(cut(Some(id)));
    }
    result
}

fn cut(artifact: Option<ArtifactId>) -> Truncation {
    Truncation {
        shown: 4,
        total: Some(100),
        unit: "characters".to_owned(),
        hint: None,
        artifact,
    }
}

fn dropped() -> ToolResult {
    let mut result = kept(Disposition::Dropped, PersistStrategy::DropWithReason);
    result.truncated = Some(cut(None));
    if let Some(persistence) = &mut result.persistence {
        persistence.artifact = None;
        persistence.reason = Some("there is no room".to_owned());
    }
    result
}

fn failed(class: ErrorClass, safe: bool) -> ToolResult {
    let error = ToolError {
        class,
        code: class.as_str().into(),
        message: "so".to_owned(),
        hint: None,
        recoverability: Recoverability::Operator,
        retry: RetryGuidance {
            safe,
            ..RetryGuidance::SAFE
        },
        details: None,
    };
    let is_error = true;
    let disposition = Disposition::Synthetic;
    ToolResult {
        is_error,
        disposition,
        content: Vec::new(),
        error: Some(error),
        ..whole()
    }
}
