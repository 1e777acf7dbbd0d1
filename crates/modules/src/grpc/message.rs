//! The wire messages with their field numbers; `docs/grpc.md` has the same as a `.proto`. They are written by hand, so
//! that building this crate needs no protobuf compiler. Messages that a tool's service never receives are left out.

use std::collections::BTreeMap;

use prost::{Message, Oneof};

/// The paths of the methods, and the errors that calling them may give.
pub(super) mod path {
    pub(in super::super) const GET_SPEC: &str = "/amplifier.module.ToolService/GetSpec";
    pub(in super::super) const EXECUTE: &str = "/amplifier.module.ToolService/Execute";
    pub(in super::super) const MOUNT: &str = "/amplifier.module.ModuleLifecycle/Mount";
    pub(in super::super) const CLEANUP: &str = "/amplifier.module.ModuleLifecycle/Cleanup";
    pub(in super::super) const MODULE_HEALTH: &str =
        "/amplifier.module.ModuleLifecycle/HealthCheck";
    pub(in super::super) const HEALTH: &str = "/grpc.health.v1.Health/Check";
}

/// An empty message. Answers that the host does not read are decoded as this too.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct GrpcEmptyMessage {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct GrpcToolSpec {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) description: String,
    /// A JSON Schema, as text.
    #[prost(string, tag = "3")]
    pub(super) parameters_json: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ExecuteRequest {
    /// The arguments, in the format of `content_type`.
    #[prost(bytes = "vec", tag = "1")]
    pub(super) input: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(super) content_type: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ExecuteResponse {
    #[prost(bool, tag = "1")]
    pub(super) success: bool,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) output: Vec<u8>,
    /// Empty means JSON.
    #[prost(string, tag = "3")]
    pub(super) content_type: String,
    #[prost(string, tag = "4")]
    pub(super) error: String,
    #[prost(message, repeated, tag = "5")]
    pub(super) content_blocks: Vec<GrpcContentBlock>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct GrpcContentBlock {
    #[prost(oneof = "GrpcBlockContent", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub(super) piece: Option<GrpcBlockContent>,
    /// The audience of the block. Results do not use it: 0.
    #[prost(int32, tag = "8")]
    pub(super) visibility: i32,
}

/// Results may contain only the first and the sixth. The others are listed so that their refusal can name them.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum GrpcBlockContent {
    #[prost(message, tag = "1")]
    Text(GrpcTextBlock),
    #[prost(message, tag = "2")]
    Thinking(GrpcEmptyMessage),
    #[prost(message, tag = "3")]
    RedactedThinking(GrpcEmptyMessage),
    #[prost(message, tag = "4")]
    ToolCall(GrpcEmptyMessage),
    #[prost(message, tag = "5")]
    ToolResult(GrpcEmptyMessage),
    #[prost(message, tag = "6")]
    Image(Image),
    #[prost(message, tag = "7")]
    Reasoning(GrpcEmptyMessage),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct GrpcTextBlock {
    #[prost(string, tag = "1")]
    pub(super) text: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Image {
    #[prost(string, tag = "1")]
    pub(super) media_type: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) data: Vec<u8>,
    #[prost(string, tag = "3")]
    pub(super) source_json: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MountRequest {
    #[prost(btree_map = "string, string", tag = "1")]
    pub(super) config: BTreeMap<String, String>,
    #[prost(string, tag = "2")]
    pub(super) module_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MountResponse {
    #[prost(bool, tag = "1")]
    pub(super) success: bool,
    #[prost(string, tag = "2")]
    pub(super) error: String,
}

/// The answer of the module's own health check.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ModuleHealth {
    /// 1 serving, 2 not serving; any other value is ignored.
    #[prost(int32, tag = "1")]
    pub(super) status: i32,
    #[prost(string, tag = "2")]
    pub(super) message: String,
}

/// gRPC's own health check, which many frameworks include. It names no service, so it covers the server as a whole.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HealthRequest {
    #[prost(string, tag = "1")]
    pub(super) service: String,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct HealthResponse {
    /// 1 serving, 2 not serving; any other value is ignored.
    #[prost(int32, tag = "1")]
    pub(super) status: i32,
}
