//! Layer 9: artifacts, the parts of a result that are stored apart from it, and how a running call makes and reads
//! them.

use std::{collections::BTreeMap, fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BoxFuture, InvocationId, ShareRefusal};

/// The id of an artifact: the call that made it, and its number within that call. Written `art_<32 hex digits>_<n>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArtifactId {
    /// The call that made it.
    pub invocation: InvocationId,
    /// Counts up from 1 within the call.
    pub place: u32,
}

/// A text that names no artifact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of a kept result: those look like `art_019f3c…_1`")]
pub struct ArtifactIdError(String);

impl fmt::Display for ArtifactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "art_{}_{}", self.invocation.to_hex(), self.place)
    }
}

impl FromStr for ArtifactId {
    type Err = ArtifactIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text
            .strip_prefix("art_")
            .and_then(|rest| rest.split_once('_'));
        let parsed = parts
            .filter(|(hex, _)| hex.len() == 32)
            .and_then(|(hex, place)| {
                Some(Self {
                    invocation: hex.parse().ok()?,
                    place: place.parse().ok().filter(|&place| place > 0)?,
                })
            });
        // Only one spelling is valid: an id that can be written in two ways would be two ids in rules and logs.
        parsed
            .filter(|id| id.to_string() == text)
            .ok_or_else(|| ArtifactIdError(text.chars().take(80).collect()))
    }
}

/// SHA-256 of a content's bytes. Written `sha256:<64 hex digits>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentDigest(pub [u8; 32]);

/// A text that is no digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest is `sha256:` and 64 hexadecimal digits")]
pub struct ContentDigestError;

impl ContentDigest {
    /// The 64 digits without the name of the hash.
    pub fn to_hex(&self) -> String {
        const_hex::encode(self.0)
    }
}

impl fmt::Display for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.to_hex())
    }
}

impl fmt::Debug for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ContentDigest {
    type Err = ContentDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let hex = text
            .strip_prefix("sha256:")
            .filter(|hex| hex.len() == 64)
            .ok_or(ContentDigestError)?;
        const_hex::decode_to_array(hex)
            .map(Self)
            .map_err(|_| ContentDigestError)
    }
}

macro_rules! as_text {
    ($name:ident, $pattern:literal) => {
        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "pattern": $pattern })
            }
        }
    };
}

as_text!(ArtifactId, "^art_[0-9a-f]{32}_[1-9][0-9]*$");
as_text!(ContentDigest, "^sha256:[0-9a-f]{64}$");

/// The number of secrets of each kind that redaction removed from a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Redactions(pub BTreeMap<String, u64>);

impl Redactions {
    /// Nothing was redacted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Counts one more of a kind.
    pub fn count(&mut self, kind: &str) {
        match self.0.get_mut(kind) {
            Some(count) => *count += 1,
            None => {
                self.0.insert(kind.to_owned(), 1);
            }
        }
    }

    /// Adds another count to this one.
    pub fn add(&mut self, other: &Self) {
        for (kind, count) in &other.0 {
            *self.0.entry(kind.clone()).or_default() += count;
        }
    }
}

impl fmt::Display for Redactions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<String> = self
            .0
            .iter()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        f.write_str(&kinds.join(", "))
    }
}

/// A kept piece of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactRef {
    /// The id that `read_result`, `search_result` and `GET /artifacts/{id}` take.
    pub id: ArtifactId,
    /// Its name within the call, such as `result` or `stdout`.
    pub name: String,
    /// Such as `text/plain; charset=utf-8`.
    pub media_type: String,
    /// The stored size in bytes.
    pub size: u64,
    /// The digest of the stored bytes.
    pub digest: ContentDigest,
    /// The redactions made before the artifact was stored.
    #[serde(skip_serializing_if = "Redactions::is_empty", default)]
    pub redactions: Redactions,
}

impl ArtifactRef {
    /// The name of structured content that was too long to be shown.
    pub const STRUCTURED: &'static str = "structured";
}

/// A call's description of an artifact that it is about to write.
#[derive(Clone, Debug)]
pub struct ArtifactHeader {
    /// Its name within the call.
    pub name: String,
    /// Such as `text/plain; charset=utf-8`.
    pub media_type: String,
}

/// Why a piece cannot be kept or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArtifactError {
    /// The store is full.
    #[error(
        "there is no room to keep it: the host keeps at most {limit} bytes of results (`{setting}`)"
    )]
    Full {
        /// The limit that was reached.
        limit: u64,
        /// The setting behind the limit.
        setting: &'static str,
    },
    /// The caller has used its share for now.
    #[error("there is no room to keep it: {}", .0.told("bytes of kept results", "limits.artifacts"))]
    Shared(ShareRefusal),
    /// The artifact alone exceeds the limit.
    #[error("it is larger than the limit of {limit} bytes for one result (`{setting}`)")]
    TooLarge {
        /// The limit that was reached.
        limit: u64,
        /// The setting behind the limit.
        setting: &'static str,
    },
    /// None of the calls that this caller may see made an artifact of that id.
    #[error("the kept result `{0}` is unknown")]
    Unknown(ArtifactId),
    /// The artifact was stored and has been removed.
    #[error("the kept result `{0}` is gone: it expired or was removed")]
    Gone(ArtifactId),
    /// The stored bytes do not match the digest.
    #[error("the kept result `{0}` is damaged: its bytes are not those that were written")]
    Damaged(ArtifactId),
    /// The storage failed, or there is none.
    #[error("results cannot be kept or read: {0}")]
    Storage(String),
}

/// An artifact that is being written. If the sink is dropped before `finish`, nothing of the artifact is stored.
pub trait ArtifactSink: Send {
    /// Adds bytes. Resolves when there is room for more, so a writer that is faster than the disk waits here.
    fn write<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, Result<(), ArtifactError>>;

    /// Ends the artifact. From now on it can be read, and the call's result names it.
    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<ArtifactRef, ArtifactError>>;
}

/// A kept piece, open for reading.
pub trait StoredArtifact: Send + Sync {
    /// Its reference.
    fn about(&self) -> &ArtifactRef;

    /// Up to `limit` bytes from `offset` on; fewer only at its end.
    fn read(&self, offset: u64, limit: usize) -> BoxFuture<'_, Result<Vec<u8>, ArtifactError>>;
}

/// The handling of a result that is larger than the limit for inline content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PersistStrategy {
    /// The result is shown whole at any size.
    Inline,
    /// A part is shown, the whole is kept.
    #[default]
    PreviewAndPersist,
    /// Only the type, the size and the artifact id are shown, also for a small result.
    RefOnly,
    /// The content is neither shown nor stored; the result records that there was some.
    Redact,
    /// A part is shown, the rest is dropped, and the result gives the reason.
    DropWithReason,
    /// A part is shown, and nothing is kept: the tool can be asked for the rest.
    NeverPersist,
}

/// The handling of one result's size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResultPersistence {
    /// The applied strategy. If storing failed, this is `drop_with_reason`.
    pub strategy: PersistStrategy,
    /// The largest result that is shown whole, in characters.
    pub threshold: u64,
    /// The full size: characters of text, or bytes of other content.
    pub original: u64,
    /// The size of the part that is shown.
    pub preview: u64,
    /// The artifact that holds the whole.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub artifact: Option<ArtifactId>,
    /// Why the whole was not stored.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::{ArtifactId, ContentDigest};

    #[test]
    fn ids_and_digests_have_one_spelling() {
        let id = "art_019f3c00112270008000000000000001_12";
        assert_eq!(id.parse::<ArtifactId>().unwrap().to_string(), id);
        for wrong in [
            "",
            "art_",
            "art_019f3c00112270008000000000000001",
            "art_019f3c00112270008000000000000001_0",
            "art_019f3c00112270008000000000000001_01",
            "art_019F3C00112270008000000000000001_1",
            "art_019f3c00-1122-7000-8000-000000000001_1",
            "019f3c00112270008000000000000001_1",
        ] {
            assert!(wrong.parse::<ArtifactId>().is_err(), "{wrong}");
        }
        let digest = format!("sha256:{}", "0a".repeat(32));
        assert_eq!(digest.parse::<ContentDigest>().unwrap().to_string(), digest);
        assert!("sha256:0a".parse::<ContentDigest>().is_err());
    }
}
