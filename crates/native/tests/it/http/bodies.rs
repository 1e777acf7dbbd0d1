use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde_json::json;
use toolpost_model::{EventBody, ResultContent};

use super::{Net, Server, body, facts, reply, text};

#[test]
fn text_is_read_with_the_charset_it_has() {
    let check = |media_type: &str, bytes: &[u8], expected: &str, charset: &str| {
        let header = format!("Content-Type: {media_type}");
        let content = bytes.to_vec();
        let server = Server::start(move |_| reply("200 OK", &[&header], &content));
        let output = Net::open(&[&server])
            .request(json!({ "url": server.url("/") }))
            .unwrap();
        assert_eq!(
            (body(&output), facts(&output)["charset"].as_str().unwrap()),
            (expected, charset),
            "{media_type}"
        );
    };
    check(
        "text/plain; charset=ISO-8859-1",
        b"gr\xf6\xdfe",
        "größe",
        "windows-1252",
    );
    check("text/plain", "größe".as_bytes(), "größe", "UTF-8");
    check(
        "text/plain;charset=\"utf-8\"",
        b"\xef\xbb\xbfa",
        "a",
        "UTF-8",
    );
    check("text/plain; charset=utf-16le", b"a\0b\0", "ab", "UTF-16LE");
    check(
        "text/html",
        b"<meta charset=shift_jis>\x93\xfa",
        "<meta charset=shift_jis>日",
        "Shift_JIS",
    );
    check("text/csv; charset=nonsense", b"a,b", "a,b", "UTF-8");
}

#[test]
fn a_body_without_bytes_is_an_empty_result_and_the_answer_is_told() {
    for status in ["204 No Content", "200 OK", "404 Not Found"] {
        let server = Server::start(move |_| reply(status, &[], b""));
        let output = Net::open(&[&server])
            .request(json!({ "url": server.url("/") }))
            .unwrap();
        assert!(output.is_empty, "{output:?}");
        assert!(
            text(&output).starts_with(&format!("HTTP {status}\n")),
            "{output:?}"
        );
    }
    let server = Server::start(|_| reply("200 OK", &[], b"\n"));
    assert!(
        !Net::open(&[&server])
            .request(json!({ "url": server.url("/") }))
            .unwrap()
            .is_empty
    );
    let server = Server::start(|_| reply("200 OK", &[], b""));
    let saved = Net::open(&[&server])
        .request(json!({ "url": server.url("/"), "save_to": "a.bin" }))
        .unwrap();
    assert!(!saved.is_empty, "there is a file: {saved:?}");
}

#[test]
fn json_is_indented_and_given_as_a_value() {
    let server = Server::start(|_| {
        reply(
            "200 OK",
            &["Content-Type: application/vnd.x+json"],
            r#"{"z":1,"a":[12345678901234567890123,{}]}"#,
        )
    });
    let output = Net::open(&[&server])
        .request(json!({ "url": server.url("/") }))
        .unwrap();
    assert_eq!(
        body(&output),
        "{\n  \"z\": 1,\n  \"a\": [\n    12345678901234567890123,\n    {}\n  ]\n}"
    );
    assert_eq!(facts(&output)["json"]["z"], 1);
}

#[test]
fn json_that_is_none_or_too_deep_is_text() {
    for content in ["{broken".to_owned(), "[".repeat(30_000)] {
        let sent = content.clone();
        let server =
            Server::start(move |_| reply("200 OK", &["Content-Type: application/json"], &sent));
        let output = Net::open(&[&server])
            .request(json!({ "url": server.url("/") }))
            .unwrap();
        assert_eq!(body(&output), content);
        assert!(
            facts(&output)["notes"][0]
                .as_str()
                .unwrap()
                .contains("JSON")
        );
    }
}

#[test]
fn images_are_shown_and_other_bytes_described() {
    let png = [b"\x89PNG\r\n\x1a\n".as_slice(), &[0; 400_000]].concat();
    let sent = png.clone();
    let server = Server::start(move |seen| match seen.path.as_str() {
        "/png" => reply("200 OK", &["Content-Type: image/png"], &sent),
        _ => reply(
            "200 OK",
            &["Content-Type: application/zip"],
            [b"PK\x03\x04".as_slice(), &[0; 5_000]].concat(),
        ),
    });
    let net = Net::open(&[&server]);
    let shown = net.request(json!({ "url": server.url("/png") })).unwrap();
    let expected = ResultContent::Image {
        data: BASE64.encode(&png),
        media_type: "image/png".to_owned(),
    };
    assert!(shown.content[1] == expected && shown.truncated.is_none());
    let described = net.request(json!({ "url": server.url("/zip") })).unwrap();
    let ResultContent::Binary {
        data,
        media_type,
        size,
    } = &described.content[1]
    else {
        panic!("{described:?}")
    };
    assert_eq!(
        (
            BASE64.decode(data).unwrap().len(),
            media_type.as_str(),
            *size
        ),
        (1024, "application/zip", 5_004)
    );
    assert!(text(&described).contains("save_to"));
}

#[test]
fn long_bodies_are_cut_and_say_how_to_get_more() {
    let server =
        Server::start(|_| reply("200 OK", &["Content-Type: text/plain"], "é".repeat(300_000)));
    let net = Net::open(&[&server]);
    let output = net
        .request(json!({ "url": server.url("/"), "max_bytes": 1_001 }))
        .unwrap();
    let cut = output.truncated.as_ref().unwrap();
    assert_eq!(
        (cut.shown, cut.total, cut.unit.as_str()),
        (1_001, Some(600_000), "bytes")
    );
    assert!(body(&output).starts_with(&"é".repeat(500)) && !body(&output).contains('\u{fffd}'));
    assert!(
        text(&output).ends_with("for the whole body in a file]"),
        "{}",
        &text(&output)[text(&output).len() - 200..]
    );
    let usual = net.request(json!({ "url": server.url("/") })).unwrap();
    assert_eq!(usual.truncated.unwrap().shown, 40 * 1024);
    let whole = net
        .request(json!({ "url": server.url("/"), "max_bytes": 99_999_999 }))
        .unwrap();
    assert!(whole.truncated.is_none());
}

#[test]
fn compressed_bodies_are_unpacked() {
    const GZIP: &[u8] = &[
        31, 139, 8, 0, 0, 0, 0, 0, 2, 255, 203, 72, 205, 201, 201, 87, 72, 175, 202, 44, 0, 0, 25,
        106, 210, 223, 10, 0, 0, 0,
    ];
    let server = Server::start(|seen| match seen.path.as_str() {
        "/gzip" => reply("200 OK", &["Content-Encoding: gzip"], GZIP),
        "/twice" => reply("200 OK", &["Content-Encoding: gzip, gzip"], GZIP),
        "/broken" => reply("200 OK", &["Content-Encoding: gzip"], b"no gzip at all"),
        _ => reply("200 OK", &["Content-Encoding: br"], brotli(b"hello brotli")),
    });
    let net = Net::open(&[&server]);
    let get = |path: &str| net.request(json!({ "url": server.url(path) }));
    assert_eq!(body(&get("/gzip").unwrap()), "hello gzip");
    assert_eq!(body(&get("/br").unwrap()), "hello brotli");
    assert!(
        server.seen()[0]
            .header("accept-encoding")
            .unwrap()
            .contains("br")
    );
    // Nobody sends this in earnest; it is not unpacked.
    assert!(matches!(
        get("/twice").unwrap().content[1],
        ResultContent::Binary { .. }
    ));
    assert_eq!(get("/broken").unwrap_err().code, "cut_off");
}

/// A stream of one block that is not compressed.
fn brotli(content: &[u8]) -> Vec<u8> {
    // From the lowest bit: window 16, not last, four nibbles of length - 1, not compressed.
    let header = (content.len() as u32 - 1) << 4 | 1 << 20;
    let mut stream = header.to_le_bytes()[..3].to_vec();
    stream.extend_from_slice(content);
    stream.push(3);
    stream
}

#[test]
fn large_bodies_report_progress() {
    let server =
        Server::start(|_| reply("200 OK", &["Content-Type: text/plain"], vec![b'a'; 3 << 20]));
    let net = Net::open(&[&server]);
    let (result, events) = net.call_heard(
        "http_request",
        json!({ "url": server.url("/"), "max_bytes": 4 << 20 }),
    );
    result.unwrap();
    let progress: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            EventBody::Progress(progress) => Some(progress),
            _ => None,
        })
        .collect();
    assert!((2..=3).contains(&progress.len()), "{progress:?}");
    assert!(
        progress
            .iter()
            .all(|progress| progress.total == Some(3 << 20) && progress.done.is_some())
    );
}

#[test]
fn control_characters_are_written_out_for_models() {
    let server = Server::start(|_| {
        reply(
            "200 OK",
            &["Content-Type: text/plain", "Location: /\u{9b}x"],
            "a\u{1b}]0;t\u{7}\r\nb\rc\u{202e}",
        )
    });
    let output = Net::open(&[&server])
        .request(json!({ "url": server.url("/") }))
        .unwrap();
    assert_eq!(body(&output), "a\\u{1b}]0;t\\u{7}\nb\\rc\\u{202e}");
    let all = text(&output);
    assert!(
        !all.contains(|c: char| c.is_control() && c != '\n' && c != '\t'),
        "{all:?}"
    );
}
