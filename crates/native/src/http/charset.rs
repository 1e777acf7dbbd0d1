//! Decodes bytes to text by the byte order mark, the header, the page's `<meta>`, or the content, in this order.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use super::fetch_page::meta_charset;

/// How far into a page its `<meta>` is searched, as browsers do.
const META_BYTES: usize = 1024;
/// How much of a body decides whether it is text.
const LOOK_BYTES: usize = 8 * 1024;

/// A body as text.
pub(super) struct DecodedBody {
    pub(super) text: String,
    pub(super) charset: &'static str,
    /// Whether bytes that are not valid in this charset were replaced.
    pub(super) damaged: bool,
}

/// Decodes a body. `label` is the charset of the header. `cut` means that the body ends somewhere in the middle, where
/// an incomplete character is left out.
pub(super) fn decode(bytes: &[u8], label: Option<&str>, is_html: bool, cut: bool) -> DecodedBody {
    let bom = Encoding::for_bom(bytes).map(|(encoding, _)| encoding);
    let named = || label.and_then(|label| Encoding::for_label(label.as_bytes()));
    let meta = || {
        let head = String::from_utf8_lossy(&bytes[..bytes.len().min(META_BYTES)]);
        let label = is_html.then(|| meta_charset(&head)).flatten()?;
        // A page that was readable up to its `<meta>` is not UTF-16, even if the `<meta>` names it.
        Encoding::for_label(label.as_bytes()).map(Encoding::output_encoding)
    };
    let encoding = bom
        .or_else(named)
        .or_else(meta)
        .unwrap_or_else(|| guess(bytes, cut));
    let (text, encoding, damaged) = encoding.decode(bytes);
    let mut text = text.into_owned();
    if cut && damaged && encoding == UTF_8 && text.ends_with('\u{fffd}') {
        text.pop();
        let damaged = text.contains('\u{fffd}');
        return DecodedBody {
            text,
            charset: encoding.name(),
            damaged,
        };
    }
    DecodedBody {
        text,
        charset: encoding.name(),
        damaged,
    }
}

fn guess(bytes: &[u8], cut: bool) -> &'static Encoding {
    match std::str::from_utf8(bytes) {
        Ok(_) => UTF_8,
        Err(error) if cut && error.error_len().is_none() => UTF_8,
        Err(_) => WINDOWS_1252,
    }
}

/// Whether a body is text, by its media type or, if that is not enough, by its first bytes.
pub(super) fn is_text(media_type: Option<&str>, charset: Option<&str>, bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(LOOK_BYTES)];
    if Encoding::for_bom(head).is_some() {
        return true;
    }
    let wide = charset.is_some_and(|label| label.to_ascii_lowercase().starts_with("utf-16"));
    if head.contains(&0) && !wide {
        return false;
    }
    match media_type {
        Some(media_type) if is_text_type(media_type) => true,
        Some("application/octet-stream" | "binary/octet-stream") | None => {
            match std::str::from_utf8(head) {
                Ok(_) => true,
                Err(error) => {
                    error.error_len().is_none() && head.len() < bytes.len().max(LOOK_BYTES)
                }
            }
        }
        Some(_) => charset.is_some(),
    }
}

fn is_text_type(media_type: &str) -> bool {
    const TEXTS: [&str; 12] = [
        "application/json",
        "application/javascript",
        "application/ecmascript",
        "application/xml",
        "application/xhtml+xml",
        "application/x-www-form-urlencoded",
        "application/x-ndjson",
        "application/jsonl",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/sql",
    ];
    let suffix = media_type.rsplit_once('+').map(|(_, suffix)| suffix);
    media_type.starts_with("text/")
        || matches!(suffix, Some("json" | "xml" | "yaml"))
        || TEXTS.contains(&media_type)
}

/// Whether the body is JSON.
pub(super) fn is_json(media_type: Option<&str>) -> bool {
    media_type
        .is_some_and(|media_type| media_type == "application/json" || media_type.ends_with("+json"))
}

/// Whether the body is HTML. Without a media type, its beginning decides.
pub(super) fn is_html(media_type: Option<&str>, bytes: &[u8]) -> bool {
    match media_type {
        Some(media_type) => matches!(media_type, "text/html" | "application/xhtml+xml"),
        None => {
            let head: Cow<'_, str> = String::from_utf8_lossy(&bytes[..bytes.len().min(META_BYTES)]);
            let head = head.trim_start().to_ascii_lowercase();
            head.starts_with("<!doctype html") || head.starts_with("<html")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{decode, is_text};

    #[test]
    fn charsets_are_found_where_they_are_said() {
        let check = |bytes: &[u8], label: Option<&str>, html: bool, text: &str, charset: &str| {
            let decoded = decode(bytes, label, html, false);
            assert_eq!(
                (decoded.text.as_str(), decoded.charset),
                (text, charset),
                "{bytes:?}"
            );
        };
        check("größe".as_bytes(), None, false, "größe", "UTF-8");
        check(
            b"gr\xf6\xdfe",
            Some("iso-8859-1"),
            false,
            "größe",
            "windows-1252",
        );
        check(b"gr\xf6\xdfe", None, false, "größe", "windows-1252");
        check(b"\xef\xbb\xbfa", Some("iso-8859-1"), false, "a", "UTF-8");
        check(b"\xff\xfea\0b\0", None, false, "ab", "UTF-16LE");
        check(b"a\0b\0", Some("utf-16le"), false, "ab", "UTF-16LE");
        check(
            b"\x93\xfa\x96{",
            Some("Shift_JIS"),
            false,
            "日本",
            "Shift_JIS",
        );
        check(
            b"<meta charset=shift_jis>\x93\xfa",
            None,
            true,
            "<meta charset=shift_jis>日",
            "Shift_JIS",
        );
        check(
            b"<meta charset=utf-16>\xc3\xb6",
            None,
            true,
            "<meta charset=utf-16>ö",
            "UTF-8",
        );
        check(
            b"<meta charset=shift_jis>",
            None,
            false,
            "<meta charset=shift_jis>",
            "UTF-8",
        );
        check(b"a", Some("no-such-charset"), false, "a", "UTF-8");
        check(
            b"+ADw-script+AD4-",
            Some("utf-7"),
            true,
            "+ADw-script+AD4-",
            "UTF-8",
        );
    }

    #[test]
    fn half_a_character_at_a_cut_is_left_out() {
        let cut = decode("größe".as_bytes().split_at(3).0, None, false, true);
        assert_eq!((cut.text.as_str(), cut.damaged), ("gr", false));
    }

    #[test]
    fn text_is_told_from_other_bodies() {
        let check = |media_type: Option<&str>, bytes: &[u8], text: bool| {
            assert_eq!(
                is_text(media_type, None, bytes),
                text,
                "{media_type:?} {bytes:?}"
            );
        };
        check(Some("text/plain"), b"a", true);
        check(Some("application/problem+json"), b"{}", true);
        check(Some("text/html"), b"PNG\0", false);
        check(Some("application/octet-stream"), b"plain enough", true);
        check(Some("application/pdf"), b"%PDF-1.7", false);
        check(Some("image/svg+xml"), b"<svg/>", true);
        check(None, b"\x89PNG", false);
    }
}
