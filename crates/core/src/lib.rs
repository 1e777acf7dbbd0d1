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

mod call;
mod catalog;
mod flow;
mod host;
mod port;
mod record;
mod session;

pub use call::{
    Answer, CallHandle, PendingCall, PendingCause, Standing,
    explain::{
        DeclarationLayer, ExecutionLayer, Explanation, HookPlan, InterfaceLayer, InvocationLayer,
        KeptIn, KeptPlan, Layers, PermissionLayer, PersistenceLayer, ResultLayer, SchedulingLayer,
        SchemaVerdict, SurfaceLayer,
    },
};
pub use catalog::{
    Catalog, CatalogNotice, Entry, Listing, MemoryPins, OperatorSettings, PinStore, PinStoreError,
    Schema, SchemaError, SourceSettings, SourceTrust, Surface, ToolFilter, ToolSettings, Violation,
};
pub use flow::{
    approval::{Approvals, Closed, MemoryRules, RememberedRule, RuleStore, RuleStoreError},
    credentials::CredentialGrant,
    hooks::{Concern, ConcernError, Hook, HookCall, HookError, HookOutput, InputMutation, Opinion},
    invocation::{
        Acknowledged, CallRequest, CancelReason, Deadline, DeadlineBy, Heard, Listener, MatchedBy,
        ModuleEvent, Patience, Wants,
    },
    permission::{
        Account, AuthorityAnswer, AuthorityFault, AuthorityQuestion, BareAllow, Change, ChangeKind,
        ConsideredRule, DecisionAuthority, Delegation, Facts, PartDecision, Places, Policy,
        PolicyEngine, PolicySpec, RuleProblem, RuleVoice,
    },
    scheduling::{Outlook, OwnLimit, SchedulerLimits, Slots, WaitReason},
    witness::{Witness, WitnessedCall, WitnessedEnd, WitnessedStart},
};
pub use host::{
    ApprovalError, Decided, Earlier, FoundCall, Health, Host, HostBuilder, HostError,
    InvocationView, Limits, SessionError, SourceNews, SourceReport, StatusWord,
};
pub use record::{
    blobs::{
        Blob, BlobError, BlobRoom, BlobStore, BlobWriter, KeptBlob, MemoryBlobs, StoragePlace,
    },
    declared::{BlockedTool, CatalogBody, DeclaredTool, SurfaceBody, ToolTerms},
    evidence::{
        Export, ExportError, ExportFormat, InputChange, InputTrail, StandsOn, evidence_schema,
    },
    facets::{FacetReader, Facets, NamedContent, ToldFacets},
    journal::{
        GENESIS, Journal, JournalError, JournalHead, MemoryJournal, Record, RecordKind, RequestKey,
        SessionPage, StoredRecord, Strength, chain,
    },
    query::{Query, ToolPattern},
    redaction::{Finding, KnownSecrets, Redactor, StreamRedactor, Window},
    replay::{
        Cassette, CassetteCall, CassetteError, CassetteEvent, CassetteSession, CassetteTool,
        LeftOver, Matching, Pace, Recorder, ReplayOptions, ReplayReport,
    },
    retention::{
        Cut, Due, Hold, Needed, PruneReport, Pruned, PrunedBody, Retention, plan_prune, prune,
        pruned_record,
    },
    story::{CallOnRecord, EndOnRecord, question_of, verdict_of},
};
pub use session::{Session, Stay};
