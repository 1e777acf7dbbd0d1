//! Artifacts as resources: `toolpost://artifacts/{id}`, whole or in ranges, with the access rules of `GET /artifacts`.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use toolpost_model::{ArtifactError, ArtifactId, ArtifactRef, StoredArtifact, ToolResult};

use super::{
    exchange::ExchangeResult,
    fault::McpFault,
    peer::McpPeer,
    result::ResourceContents,
    wire::{self, McpReply},
};

const PREFIX: &str = "toolpost://artifacts/";
/// The most bytes of one read.
const MOST: u64 = 1 << 20;
/// The time to live of artifacts, which never change.
const FRESH_FOR_MS: u64 = 3_600_000;

pub(super) fn uri(id: ArtifactId) -> String {
    format!("{PREFIX}{id}")
}

pub(super) fn is_one(uri: &str) -> bool {
    uri.starts_with(PREFIX)
}

/// The template of such addresses.
pub(super) fn template() -> Value {
    json!({
        "uriTemplate": "toolpost://artifacts/{id}{?offset,length}",
        "name": "artifact",
        "title": "Kept result",
        "description": "A result that was too large to show, by the id in its resource link. Bytes from `offset` \
                        on, at most `length` of them; at most 1 MiB at once.",
    })
}

#[derive(Debug, PartialEq, Eq)]
struct ArtifactRange {
    id: ArtifactId,
    offset: u64,
    length: Option<u64>,
}

fn wanted(uri: &str) -> Option<ArtifactRange> {
    let rest = uri.strip_prefix(PREFIX)?;
    let (id, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut wanted = ArtifactRange {
        id: id.parse().ok()?,
        offset: 0,
        length: None,
    };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=')?;
        // `parse` would accept a plus sign.
        let digits = value.bytes().all(|byte| byte.is_ascii_digit());
        let number: u64 = value.parse().ok().filter(|_| digits)?;
        match key {
            "offset" => wanted.offset = number,
            "length" => wanted.length = Some(number),
            _ => return None,
        }
    }
    Some(wanted)
}

/// Reads an artifact or a range of it. The range stays text if it begins and ends at character boundaries.
pub(super) async fn read(peer: &McpPeer, uri: &str) -> ExchangeResult {
    let unknown = || McpFault::no_such_resource(uri, peer.is_modern());
    let wanted = wanted(uri).ok_or_else(unknown)?;
    let artifact = match peer.face.host.artifact(wanted.id, peer.principal()).await {
        Ok(artifact) => artifact,
        Err(ArtifactError::Unknown(_) | ArtifactError::Gone(_)) => return Err(unknown()),
        Err(error) => return Err(McpFault::internal(error.to_string())),
    };
    let about = artifact.about();
    let left = about.size.saturating_sub(wanted.offset);
    let length = wanted.length.unwrap_or(left).min(left);
    if length > MOST {
        let message = format!(
            "it has {} bytes; the limit of one read is {MOST}",
            about.size
        );
        return Err(McpFault::invalid_params(message).with(
            json!({ "uri": uri, "size": about.size, "hint": "add `?offset=0&length=1048576`" }),
        ));
    }
    let bytes = bytes(&*artifact, wanted.offset, length).await;
    let bytes = bytes.map_err(|error| McpFault::internal(error.to_string()))?;
    let is_text = is_textual(&about.media_type);
    let text = if is_text {
        std::str::from_utf8(&bytes).ok()
    } else {
        None
    };
    let blob = text.is_none().then(|| BASE64_STANDARD.encode(&bytes));
    let found = ResourceContents {
        uri,
        mime_type: Some(&about.media_type),
        text,
        blob: blob.as_deref(),
    };
    let mut told = json!({ "contents": [found] });
    told["contents"][0]["_meta"] =
        json!({ "toolpost/size": about.size, "toolpost/offset": wanted.offset });
    Ok(McpReply::Text(wire::json(&super::cached(
        told,
        peer,
        FRESH_FOR_MS,
    ))))
}

async fn bytes(
    artifact: &dyn StoredArtifact,
    offset: u64,
    length: u64,
) -> Result<Vec<u8>, ArtifactError> {
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < length {
        let at = offset + bytes.len() as u64;
        let room = length - bytes.len() as u64;
        let piece = artifact
            .read(at, usize::try_from(room).unwrap_or(usize::MAX))
            .await?;
        if piece.is_empty() {
            break;
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// The structured content of a result that was stored as an artifact because of its length.
pub(super) async fn structured(peer: &McpPeer, result: &ToolResult) -> Option<Value> {
    let kept = result
        .artifacts
        .iter()
        .find(|kept| kept.name == ArtifactRef::STRUCTURED)?;
    let artifact = peer
        .face
        .host
        .artifact(kept.id, peer.principal())
        .await
        .ok()?;
    let bytes = bytes(&*artifact, 0, kept.size).await.ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn is_textual(media_type: &str) -> bool {
    let name = media_type.split(';').next().unwrap_or_default().trim();
    name.starts_with("text/") || name == "application/json" || name.ends_with("+json")
}

#[cfg(test)]
mod tests {
    use super::wanted;

    #[test]
    fn addresses_are_read_in_one_spelling() {
        let id = "art_019f3c00112270008000000000000001_1";
        let check = |query: &str, expected: Option<(u64, Option<u64>)>| {
            let read = wanted(&format!("toolpost://artifacts/{id}{query}"));
            assert_eq!(
                read.map(|wanted| (wanted.offset, wanted.length)),
                expected,
                "{query}"
            );
        };
        check("", Some((0, None)));
        check("?offset=5&length=7", Some((5, Some(7))));
        check("?length=7", Some((0, Some(7))));
        check("?offset=+5", None);
        check("?offset=-5", None);
        check("?other=5", None);
        check("/more", None);
    }
}
