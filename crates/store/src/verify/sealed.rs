//! The head of a journal, as operators store it elsewhere.

use std::{fmt, str::FromStr};

use toolpost_core::GENESIS;

/// A record by its number and hash. Written `SEQ:HASH`, or the hash alone for a head without its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedHead {
    /// The number, where it was noted.
    pub seq: Option<u64>,
    /// The hash.
    pub hash: [u8; 32],
}

impl SealedHead {
    /// Before the first record.
    pub(super) const NOTHING: Self = Self {
        seq: Some(0),
        hash: GENESIS,
    };
}

/// Why a text is no head.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a head is a record's number, a colon and 64 hexadecimal digits, as `toolpost journal seal` prints it"
)]
pub struct SealedHeadError;

impl fmt::Display for SealedHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(seq) = self.seq {
            write!(f, "{seq}:")?;
        }
        write!(f, "{}", const_hex::display(self.hash))
    }
}

impl FromStr for SealedHead {
    type Err = SealedHeadError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (seq, hex) = match text.trim().split_once(':') {
            Some((seq, hex)) => (Some(seq.parse().map_err(|_| SealedHeadError)?), hex),
            None => (None, text.trim()),
        };
        if hex.len() != 64 {
            return Err(SealedHeadError);
        }
        let hash = const_hex::decode_to_array(hex).map_err(|_| SealedHeadError)?;
        Ok(Self { seq, hash })
    }
}

#[cfg(test)]
mod tests {
    use super::SealedHead;

    #[test]
    fn a_head_is_written_and_read() {
        let check = |text: &str, expected: Option<Option<u64>>| {
            let read = text.parse::<SealedHead>().ok();
            assert_eq!(read.as_ref().map(|head| head.seq), expected, "{text}");
            if let Some(head) = read {
                assert_eq!(
                    head.to_string(),
                    text.to_lowercase(),
                    "it is written as it was read"
                );
            }
        };
        check(&format!("7:{}", "ab".repeat(32)), Some(Some(7)));
        check(&format!("7:{}", "AB".repeat(32)), Some(Some(7)));
        check(&"0f".repeat(32), Some(None));
        check(&format!(":{}", "ab".repeat(32)), None);
        check(&format!("x:{}", "ab".repeat(32)), None);
        check("7:abc", None);
        check(&format!("7:{}", "xy".repeat(32)), None);
        check(&format!("7:{}", "é".repeat(32)), None);
        check("", None);
    }
}
