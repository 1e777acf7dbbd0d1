//! A kept piece of a result, as agents hear of it.

use serde_json::{Value, json};
use toolpost_a2e::projection;
use toolpost_model::{ArtifactRef, ContentDigest, Event, EventBody, InvocationId, Redactions};

#[test]
fn a_kept_piece_is_an_artifact_without_a_chunk_and_with_a_reference() {
    let id = "art_019f3c00112270008000000000000001_2";
    let piece = ArtifactRef {
        id: id.parse().unwrap(),
        name: "log".to_owned(),
        media_type: "text/plain".to_owned(),
        size: 1_234_567,
        digest: ContentDigest([10; 32]),
        redactions: Redactions::default(),
    };
    let event = Event {
        invocation_id: InvocationId::new(),
        seq: 7,
        at: "2026-11-16T10:00:00Z".parse().unwrap(),
        body: EventBody::Kept(piece),
    };
    let told = projection::event("r1", &event).unwrap();
    assert_eq!(
        (told.kind.as_str(), told.req_id.as_str(), told.seq),
        ("artifact", "r1", 7)
    );
    let expected = json!({
        "name": "log",
        "mime": "text/plain",
        "chunk": "",
        "final": true,
        "ref": id,
        "size": 1_234_567,
        "digest": format!("sha256:{}", "0a".repeat(32)),
    });
    assert_eq!(Value::Object(told.data), expected);
}
