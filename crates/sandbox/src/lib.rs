//! Starts processes that can do only what their profile says.
#![warn(missing_docs)]
