//! Artifacts of a task.

use serde_json::{Map, Value};

use super::members::{JsonObjectWriter, ObjectMembers, PeerMessageError, values};
use super::{A2aDialect, Part};

/// An artifact of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    /// Its id within the task.
    pub artifact_id: String,
    /// A name for people.
    pub name: Option<String>,
    /// A longer text for people.
    pub description: Option<String>,
    /// The content.
    pub parts: Vec<Part>,
    /// The extensions that the artifact uses.
    pub extensions: Vec<String>,
    /// Further data of the author.
    pub metadata: Option<Map<String, Value>>,
}

impl Artifact {
    /// An artifact with the given parts.
    pub fn new(artifact_id: impl Into<String>, parts: Vec<Part>) -> Self {
        Self {
            artifact_id: artifact_id.into(),
            name: None,
            description: None,
            parts,
            extensions: Vec::new(),
            metadata: None,
        }
    }

    /// Reads an artifact of either dialect.
    pub fn read(value: &Value) -> Result<Self, PeerMessageError> {
        Self::read_at(value, "artifact")
    }

    pub(super) fn read_at(value: &Value, place: &str) -> Result<Self, PeerMessageError> {
        let artifact = ObjectMembers::of(value, place)?;
        Ok(Self {
            artifact_id: artifact.required_text("artifactId")?,
            name: artifact.said("name")?,
            description: artifact.said("description")?,
            parts: artifact.each("parts", Part::read_at)?,
            extensions: artifact.texts("extensions")?,
            metadata: artifact.metadata()?,
        })
    }

    /// The artifact in the given dialect.
    pub fn to_value(&self, dialect: A2aDialect) -> Value {
        JsonObjectWriter::default()
            .with("artifactId", self.artifact_id.as_str())
            .maybe("name", self.name.as_deref())
            .maybe("description", self.description.as_deref())
            .with("parts", values(&self.parts, |part| part.to_value(dialect)))
            .texts("extensions", &self.extensions)
            .maybe("metadata", self.metadata.clone())
            .done()
    }
}
