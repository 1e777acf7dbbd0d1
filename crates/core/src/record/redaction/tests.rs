//! The secrets that are found, the texts that are left alone, and the independence of cuts.

mod cuts;
mod found;
mod left_alone;

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;
use toolpost_model::{Arguments, Redactions, ResultContent, ToolOutput};

use super::{CallRedactor, HostRedactor, KnownSecrets, RedactedArguments, Redactor, observable};

/// A secret of every kind that is known by value, and the shapes.
fn host() -> KnownSecrets {
    KnownSecrets::new([
        ("token", "tp_0123456789"),
        ("credential_db", "pa\"ss w\\ord/+é?"),
        (
            "env_key",
            "-----BEGIN THING-----\nline-one-of-the-value-0001\nline-two-of-the-value-0002\n-----END THING-----",
        ),
        ("short", "abc"),
    ])
}

fn clean(redactor: &dyn Redactor, text: &str) -> (String, Redactions) {
    let mut counts = Redactions::default();
    (redactor.counted(text, &mut counts).into_owned(), counts)
}

#[test]
fn known_values_and_sensitive_fields_are_taken_out() {
    let host = HostRedactor::new(Arc::new(host()));
    assert_eq!(host.text("x tp_0123456789 abc"), "x [redacted:token] abc");
    let arguments =
        Arguments::from_value(json!({ "key": "hunter2hunter2", "note": "tp_0123456789", "n": 1 }));
    let RedactedArguments {
        shown,
        secrets,
        sensitive,
    } = observable(&arguments, &["/key".to_owned()], &host);
    assert_eq!(
        shown.value(),
        &json!({ "key": "[redacted:argument]", "note": "[redacted:token]", "n": 1 })
    );
    assert_eq!(secrets, ["hunter2hunter2"]);
    assert_eq!(
        (sensitive[0].pointer.as_str(), sensitive[0].length),
        ("/key", 14)
    );
}

#[test]
fn equal_values_have_equal_hashes_within_one_life_of_a_host() {
    let hash = |host: &HostRedactor, value: &str| {
        let arguments = Arguments::from_value(json!({ "key": value }));
        let told = observable(&arguments, &["/key".to_owned()], host).sensitive;
        assert!(!serde_json::to_string(&told).unwrap().contains(value));
        told[0].hash.clone()
    };
    let one = HostRedactor::new(Arc::new(host()));
    let other = HostRedactor::new(Arc::new(host()));
    assert_eq!(hash(&one, "1234"), hash(&one, "1234"));
    assert_ne!(hash(&one, "1234"), hash(&one, "1235"));
    assert_ne!(hash(&one, "1234"), hash(&other, "1234"));
}

#[test]
fn a_record_stays_json() {
    let host = HostRedactor::new(Arc::new(KnownSecrets::new([("pin", "12345678")])));
    assert_eq!(host.json(r#"{"a":"no"}"#), r#"{"a":"no"}"#);
    assert_eq!(
        host.json(r#"{"a":"x 12345678"}"#),
        r#"{"a":"x [redacted:pin]"}"#
    );
    // A number may be a time or a size, and readers of the record expect a number.
    assert_eq!(
        host.json(r#"{"a":"x 12345678","b":12345678}"#),
        r#"{"a":"x [redacted:pin]","b":12345678}"#
    );
}

/// The redactor of a call with secrets of its own.
fn of_call(secrets: &[&str]) -> CallRedactor {
    let secrets: Vec<String> = secrets.iter().map(|&secret| secret.to_owned()).collect();
    let host = HostRedactor::new(Arc::new(host()));
    CallRedactor {
        own: Some(Arc::new(KnownSecrets::arguments(&secrets))),
        ..host.of_no_call()
    }
}

#[test]
fn a_call_takes_nothing_of_the_host_out_of_its_record() {
    let call = of_call(&[
        "principal",
        "succeeded",
        "arguments",
        "decision",
        "\",\"role\":\"",
    ]);
    let check = |json: &str, expected: &str| {
        assert_eq!(call.json(json, &mut Redactions::default()), expected);
    };
    let same = r#"{"call":{"principal":"principal","role":"agent","tool_id":"arguments"},"outcome":"succeeded"}"#;
    check(same, same);
    check(
        r#"{"arguments":{"principal":["succeeded"],"x":1},"message":"it succeeded","outcome":"succeeded"}"#,
        r#"{"arguments":{"[redacted:argument]":["[redacted:argument]"],"x":1},"message":"it [redacted:argument]","outcome":"succeeded"}"#,
    );
    // A foreign text in the place of a host's term is not trusted.
    check(
        r#"{"kind":"The principal!"}"#,
        r#"{"kind":"The [redacted:argument]!"}"#,
    );
    // The batch id is the caller's; other ids are not.
    check(
        r#"{"batch":{"id":"decision"},"artifacts":[{"id":"decision"}]}"#,
        r#"{"batch":{"id":"[redacted:argument]"},"artifacts":[{"id":"decision"}]}"#,
    );
    // The host's own secrets are removed everywhere, also from names.
    check(
        r#"{"principal":"tp_0123456789"}"#,
        r#"{"principal":"[redacted:token]"}"#,
    );
}

#[test]
fn a_mark_takes_the_place_of_whole_characters() {
    let call = of_call(&["nn_secret_", "_value_\\", "00e9_0123"]);
    for json in [
        r#"{"a":"x\nn_secret_y"}"#,
        r#"{"a":"_value_\n"}"#,
        r#"{"a":"\u00e9_0123"}"#,
        r#"{"a":"\\nn_secret_"}"#,
    ] {
        let clean = call.json(json, &mut Redactions::default()).into_owned();
        let value: serde_json::Value = serde_json::from_str(&clean).unwrap();
        assert!(
            value["a"].as_str().unwrap().contains("[redacted:argument]"),
            "{clean}"
        );
    }
}

#[test]
fn data_is_looked_into() {
    let call = of_call(&["hunter2-hunter2"]);
    let kept = |bytes: &[u8]| {
        let data = STANDARD.encode(bytes);
        let mut output = ToolOutput::default();
        output.content.push(ResultContent::Binary {
            data,
            media_type: "text/x".to_owned(),
            size: bytes.len() as u64,
        });
        let mut counts = Redactions::default();
        call.output(&mut output, &mut counts);
        (output.content.remove(0), counts)
    };
    let (content, counts) = kept(b"\x00\xffkey AKIAIOSFODNN7EXAMPLE\xfe");
    assert_eq!(
        content,
        ResultContent::text("[text/x left out: it holds [redacted:aws]]")
    );
    assert_eq!(counts.0["aws"], 1);
    assert!(matches!(
        kept(b"\x00nothing in it\xff").0,
        ResultContent::Binary { .. }
    ));
}

#[test]
fn secrets_that_overlap_become_one_mark_that_covers_both() {
    let host = KnownSecrets::new([
        ("one", "abcdefgh12"),
        ("two", "gh12345678"),
        ("inner", "cdefgh12"),
    ]);
    assert_eq!(host.text("<abcdefgh12345678>"), "<[redacted:one]>");
    assert_eq!(
        host.text("<abcdefgh12><gh12345678>"),
        "<[redacted:one]><[redacted:two]>"
    );
    assert_eq!(host.text("xcdefgh12x"), "x[redacted:inner]x");
}

#[test]
fn a_mark_is_left_as_it_is() {
    let host = KnownSecrets::new([("password", "password"), ("redacted", "redacted")]);
    let once = host.text("the password is redacted").into_owned();
    assert_eq!(once, "the [redacted:password] is [redacted:redacted]");
    assert_eq!(host.text(&once), once);
    // A text that only looks like the beginning of a secret is none.
    assert_eq!(
        host.text("[redacted:Password password]"),
        "[[redacted:redacted]:Password [redacted:password]]"
    );
}

#[test]
fn what_was_taken_out_is_counted_by_kind() {
    let (_, counts) = clean(&host(), "tp_0123456789 tp_0123456789 AKIAIOSFODNN7EXAMPLE");
    assert_eq!(
        serde_json::to_value(counts).unwrap(),
        json!({ "token": 2, "aws": 1 })
    );
}

#[test]
fn an_empty_redactor_finds_the_shapes() {
    assert_eq!(
        KnownSecrets::default().text("id AKIAIOSFODNN7EXAMPLE."),
        "id [redacted:aws]."
    );
}
