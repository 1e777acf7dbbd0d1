//! `tools`: names that could be a tool's, and settings that could be meant.

use std::collections::BTreeMap;

use crate::{Located, ToolEntry, error::Complaint, snippet::shown};

use super::limits::{check_chars, check_deadline};

pub(super) fn check(tools: &BTreeMap<String, Located<ToolEntry>>, complaints: &mut Vec<Complaint>) {
    for (name, entry) in tools {
        if !is_name(name) {
            let message = format!("`{}` is not the name or id of a tool", shown(name));
            let hint =
                name.contains('*').then(|| "patterns work in `rules`; settings name one tool".to_owned());
            complaints.push(Complaint::new(entry.at, message).hint(hint));
        }
        let (tool, name) = (&entry.value, shown(name));
        check_deadline(&format!("tools.{name}.timeout"), tool.timeout, complaints);
        check_chars(&format!("tools.{name}.max_inline_chars"), tool.max_inline_chars, complaints);
    }
}

/// The letters a tool id may hold.
fn is_name(text: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b':');
    !text.is_empty() && text.len() <= 256 && text.bytes().all(legal)
}
