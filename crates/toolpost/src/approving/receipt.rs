//! The rules that an answer saved, from the receipt of the host.

use serde_json::Value;

use crate::terminal::{moment, spelled_out};

/// A line for each rule about a tool of the call's source, with the time until which it holds.
pub(crate) fn saved_rules(decided: &Value) -> Vec<String> {
    let saved = decided["decided"]["source_rules"].as_array();
    saved
        .into_iter()
        .flatten()
        .map(|rule| {
            let line = rule["rule"].as_str().unwrap_or_default();
            let until = rule["expires"].as_str().unwrap_or_default();
            format!("`{}` until {}", spelled_out(line), moment(until))
        })
        .collect()
}
