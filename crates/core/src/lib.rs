//! The nine layers of a tool host, as a library.
//!
//! Build a [`Host`] from sources, a policy and a journal; open a [`Session`]; start calls. Everything that
//! touches the outside world is a port with an adapter in memory here and a real one in another crate: this
//! crate opens no socket, file or process.
//!
//! ```
//! use toolpost_core::{CallRequest, Host};
//! use toolpost_model::{EffectClass, FnTool, ModelInput, Principal, ToolFailure};
//! # #[derive(serde::Deserialize, schemars::JsonSchema)] struct Name { name: String }
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let greet = FnTool::named("demo.greet")?
//!     .describe("Greets somebody")
//!     .class(EffectClass::Read)
//!     .run(|args: Name, _| async move { Ok::<_, ToolFailure>(format!("hello, {}", args.name)) });
//! let host = Host::builder().tool(greet).build().await?;
//! let session = host.default_session(&Principal::agent("me"));
//! let input = ModelInput::text(r#"{"name":"world"}"#);
//! let answer = host.call(CallRequest::new(session, "greet", input)).await;
//! assert_eq!(answer.result().model_text(), "hello, world");
//! # Ok(()) }
//! ```
#![warn(missing_docs)]

mod approval;
mod call;
mod catalog;
mod execution;
mod hooks;
mod host;
mod invocation;
mod permission;
mod port;
mod record;
mod result;
mod scheduling;
mod session;

pub use approval::{
    ApprovalError, Approvals, MemoryRules, QuestionClosure, RememberedRule, RuleStore,
    RuleStoreError, VerdictReceipt,
};
pub use call::explain::{
    DeclarationExplanation, ExecutionExplanation, Explanation, HookPlan, InterfaceExplanation,
    InvocationExplanation, KeptIn, KeptPlan, LayerExplanations, PermissionExplanation,
    PersistenceExplanation, ResultExplanation, SchedulingExplanation, SchemaVerdict,
    SurfaceExplanation,
};
pub use catalog::{
    Catalog, CatalogEntry, CatalogNotice, MemoryPins, OperatorSettings, PinStore, PinStoreError,
    Schema, SchemaError, SchemaViolation, SourceSettings, SourceTrust, Surface, SurfaceEntry,
    ToolFilter,
};
pub use execution::credentials::CredentialGrant;
pub use hooks::{
    ConcernError, Hook, HookCall, HookError, HookOutput, HookScope, HookVote, InputMutation,
    OutputMutation,
    witness::{Witness, WitnessedCall, WitnessedEnd, WitnessedStart},
};
pub use host::{
    FoundCall, Health, Host, HostBuilder, HostError, HostLimits, InvocationView, SessionError,
    SourceNews, SourceReport, StatusWord,
};
pub use invocation::{
    AcknowledgementTiming, CallDeadline, CallDelivery, CallHandle, CallHandleState, CallRequest,
    CallTimeLimits, CancelReason, DeadlineBy, EarlierCall, EventDelivery, EventInterest,
    EventListener, LateAnswer, MatchedBy, ModuleEvent, Patience, PendingCall, PendingCause,
    RecordedResult, RequestIdentity, request_digest,
};
pub use permission::{
    Account, AuthorityAnswer, AuthorityFault, AuthorityQuestion, BareAllow, ConsideredRule,
    DecisionAlternative, DecisionAlternativeKind, DecisionAuthority, Delegation, PartDecision,
    PathBaseFolders, PermissionFacts, Policy, PolicyEngine, PolicySpec, RuleProblem, RuleVoice,
};
pub use record::{
    blobs::{
        Blob, BlobError, BlobRoom, BlobStore, BlobWriter, KeptBlob, MemoryBlobs, StoragePlace,
    },
    body::{
        ApprovalBody, BlockedTool, CallRecordBody, CallRecordHead, CallRequestHead,
        CancellationBody, CatalogBody, CatalogOnRecord, CatalogRestatement, CircumstancesBody,
        DiscoveryBody, DiscoveryWay, HostStartBody, NamedContent, PrunedBody, RecordBodyMember,
        RecordedCallRequest, RecordedLimits, RecordedQuestion, RecordedResultFields,
        RestatableHead, SessionOpenedBody, SurfaceRecordBody, VerdictBody,
    },
    declared::{DeclaredTool, ToolTerms},
    evidence::{
        Export, ExportError, ExportFormat, InputChange, InputTrail, StandsOn, evidence_schema,
    },
    facets::{BodyFacets, FacetReader, Facets},
    journal::{
        AppendStrength, GENESIS, Journal, JournalError, JournalHead, MemoryJournal, Record,
        RecordKind, RequestKey, SessionPage, StoredRecord, chain,
    },
    query::{Query, ToolQueryPattern},
    redaction::{KnownSecrets, RedactionWindow, Redactor, SecretFinding, StreamRedactor},
    replay::{
        Cassette, CassetteCall, CassetteError, CassetteEvent, CassetteSession, CassetteTool,
        LeftOver, Recorder, ReplayMatching, ReplayOptions, ReplayPace, ReplayReport,
    },
    retention::{
        PruneReport, PruneRequest, PrunedRange, Retention, RetentionCut, RetentionExemptions,
        RetentionHold, plan_prune, prune, pruned_record,
    },
    story::{CallOnRecord, EndOnRecord, question_of, verdict_of},
};
pub use scheduling::{OwnLimit, SchedulerLimits, SchedulerSnapshot, SlotUse, WaitReason};
pub use session::{Session, SessionGuard};
