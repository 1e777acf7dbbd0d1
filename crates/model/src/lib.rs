//! Toolpost's vocabulary.
//!
//! The nouns of the nine layers as types: tools ([`Declaration`], [`Interface`]), visibility ([`SurfaceRequest`],
//! [`Visibility`]), inputs ([`ModelInput`] and its three siblings), decisions ([`Decision`]), results ([`ToolResult`])
//! and lifecycle events ([`Event`]). Tool authors implement [`Tool`], or wrap a closure in [`FnTool`]; they need no
//! other crate of Toolpost.
//!
//! There is no runtime and no I/O here: everything is data or a trait.
#![warn(missing_docs)]

mod approval;
mod artifact;
mod batch;
mod call_port;
mod canonical;
mod consult;
mod declaration;
mod effects;
mod error;
mod event;
mod fn_tool;
mod hook;
mod id;
mod input;
mod interface;
mod path_rules;
mod permission;
mod program;
mod result;
mod sandbox;
mod secret;
mod shares;
mod source;
mod stage;
mod surface;
mod tool;
mod tool_set;
mod tool_settings;
mod trace;
mod variable;
mod visible;

pub use approval::{
    ApprovalScope, ApprovalStatus, ArgumentChange, CallHash, OfferedTool, PermissionRequest,
    SourceReadOffer, Verdict,
};
pub use artifact::{
    ArtifactError, ArtifactHeader, ArtifactId, ArtifactIdError, ArtifactRef, ArtifactSink,
    ContentDigest, ContentDigestError, PersistStrategy, Redactions, ResultPersistence,
    StoredArtifact,
};
pub use batch::{BatchOrdering, BatchPlace, OnFailure};
pub use call_port::{
    CallArtifactStore, CallPort, CallRules, CallSurroundings, CallerPort, SiblingCalls,
};
pub use canonical::canonical_json;
pub use consult::{
    ConsultError, ConsultKind, ConsultKinds, ConsultQuestion, ConsultReply, ConsultableCaller,
};
pub use declaration::{
    Declaration, ExternalMapping, InputContract, Lifecycle, LoadingStrategy, OutputContract,
    Requirements, ToolKind,
};
pub use effects::{
    EffectClass, EffectOrigin, Effects, PathCaution, ResourceAccess, ResourceKey, ResourceUse,
};
pub use error::{ErrorClass, Recoverability, RetryGuidance, ToolError, ToolFailure};
pub use event::{Event, EventBody, LogLevel, OutputChunk, OutputStream, ToolProgress};
pub use fn_tool::{FnTool, FnToolBuilder, schema_of};
pub use hook::{HookDeed, HookEvent, HookRun, HookStanding};
pub use id::{
    InvocationId, NATIVE_NAMESPACES, NativeCallId, PrincipalName, RequestId, SessionId, SurfaceId,
    ToolId, ToolIdError,
};
pub use input::{
    Arguments, ArgumentsError, CallInput, ModelInput, ObservableInput, PermissionInput,
};
pub use interface::{
    AccessKind, ArgumentKind, ArgumentMeaning, CancelSupport, ClassFact, ExecutionKind,
    ExecutionProfile, Interface, Interrupt, PermissionProfile, Persistence, Rendering, RiskLevel,
    SafetyFacts,
};
pub use path_rules::PathRulesInForce;
pub use permission::{
    ArgumentComparison, ArgumentCondition, AuthorityKind, AuthorityName, AuthorityNameError,
    Behavior, ClassFinding, Decision, DecisionReason, DelegatedVote, ModeError, PermissionMode,
    Principal, PrincipalRole, ReasonType, RememberOffer, Rule, RuleError, RuleOrigin, RuleRef,
    RuleTests, Selector, ToolPattern, Vote, matches_any,
};
pub use program::{ProgramChange, ProgramContent, ProgramFile};
pub use result::{
    Disposition, Outcome, ResultContent, Timings, ToolOutput, ToolResult, Truncation,
};
pub use sandbox::{AppliedSandbox, SandboxLimit, SandboxPlan, SandboxProfile, SandboxTier};
pub use secret::Secret;
pub use shares::{DividedLimit, LimitUse, ShareRefusal, ShareRules, ShareTable};
pub use source::{
    BoxFuture, InputRefusal, Provenance, QuarantinedDefinition, SessionScope, Source,
    SourceCompanions, SourceError, SourceFeed, SourceHealth, SourceNotice, SourceProblem,
    SourceSession, SourceState, WireNaming,
};
pub use stage::{Stage, Transition};
pub use surface::{HiddenReason, SurfaceRequest, SurfaceScope, Visibility};
pub use tool::{CallContext, CallReport, CallableTool, DynTool, NestedCall, Tool, ToolCall};
pub use tool_set::ToolSet;
pub use tool_settings::{
    ToolExecutionSettings, ToolInputSettings, ToolPermissionSettings, ToolPersistenceSettings,
    ToolSettings, ToolSurfaceSettings,
};
pub use trace::TraceContext;
pub use variable::{changes_code, holds_secret, never_passed};
pub use visible::{is_hidden, visible, visible_line, visible_text};
