//! Modules behind a whole host: Python ones in their process, services over gRPC, and those that are compiled in.
#![expect(
    clippy::disallowed_methods,
    reason = "tests prepare and inspect real files"
)]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up should stop"
)]

#[cfg(feature = "grpc")]
mod grpc;
mod python_modules;
mod rust_modules;
