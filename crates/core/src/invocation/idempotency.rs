//! What makes two requests under one id the same: a repeat gets the first answer, another request is a conflict.

use sha2::{Digest, Sha256};
use toolpost_model::ModelInput;

/// SHA-256 of tool and arguments. Blanks between the arguments do not count.
pub fn request_digest(tool: &str, input: &ModelInput) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update((tool.len() as u64).to_le_bytes());
    hasher.update(tool);
    hasher.update(input.compact().as_bytes());
    hasher.finalize().into()
}
