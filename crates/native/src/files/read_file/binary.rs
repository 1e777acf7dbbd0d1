//! Binary files: images that a model can see, and the head of all others.

use std::io::Read;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use sha2::{Digest, Sha256};
use toolpost_model::{ResultContent, Truncation};
use toolpost_processes::{
    FileWorkInterruption, StopSign,
    digest::{hex, read_some},
};

use super::scan::READ_ON_BYTES;

/// The largest image that is returned.
const IMAGE_BYTES: usize = 1024 * 1024;
/// How much is returned of other binary files.
const SHOWN_BYTES: usize = 1024;

/// A binary file, as far as it was read.
pub(super) struct BinaryFile {
    pub(super) content: ResultContent,
    pub(super) media_type: &'static str,
    pub(super) size: u64,
    pub(super) truncated: Option<Truncation>,
    pub(super) sha256: Option<String>,
}

/// Whether the head of a file shows that it is not text. An incomplete character at the end of the head does not count,
/// unless the file ends there.
pub(super) fn is_binary(head: &[u8], head_is_all: bool) -> bool {
    if head.contains(&0) {
        return true;
    }
    match std::str::from_utf8(head) {
        Ok(_) => false,
        Err(error) => error.error_len().is_some() || head_is_all,
    }
}

/// Reads the rest after `head`: the content of an image of a suitable size; of other files, unless they are too large,
/// only the digest.
/// large for its digest.
pub(super) fn read(
    file: &mut impl Read,
    head: Vec<u8>,
    size: u64,
    stop: &StopSign,
) -> Result<BinaryFile, FileWorkInterruption> {
    let media_type = media_type(&head);
    let image = media_type.starts_with("image/") && size <= IMAGE_BYTES as u64;
    let keep = if image { IMAGE_BYTES } else { SHOWN_BYTES };
    let mut hasher = Sha256::new_with_prefix(&head);
    let mut bytes = head;
    let mut through = bytes.len() as u64;
    let mut whole = false;
    if size <= READ_ON_BYTES {
        let mut chunk = vec![0; super::scan::CHUNK_BYTES];
        while through <= READ_ON_BYTES {
            stop.check()?;
            let count = read_some(file, &mut chunk)?;
            if count == 0 {
                whole = true;
                break;
            }
            hasher.update(&chunk[..count]);
            through += count as u64;
            if bytes.len() <= keep {
                bytes.extend_from_slice(&chunk[..count]);
            }
        }
    }
    let sha256 = whole.then(|| hex(hasher));
    let size = if whole { through } else { size.max(through) };
    if image && whole && bytes.len() <= IMAGE_BYTES {
        let content = ResultContent::Image {
            data: BASE64.encode(&bytes),
            media_type: media_type.to_owned(),
        };
        return Ok(BinaryFile {
            content,
            media_type,
            size,
            truncated: None,
            sha256,
        });
    }
    bytes.truncate(SHOWN_BYTES);
    let shown = bytes.len() as u64;
    let content = ResultContent::Binary {
        data: BASE64.encode(&bytes),
        media_type: media_type.to_owned(),
        size,
    };
    let truncated = (shown < size).then(|| Truncation {
        shown,
        total: Some(size),
        unit: "bytes".to_owned(),
        hint: Some("only the first bytes of a binary file are shown".to_owned()),
        artifact: None,
    });
    Ok(BinaryFile {
        content,
        media_type,
        size,
        truncated,
        sha256,
    })
}

/// The media type by the first bytes. File names are not reliable.
fn media_type(head: &[u8]) -> &'static str {
    const MAGIC: [(&[u8], &str); 10] = [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"%PDF-", "application/pdf"),
        (b"PK\x03\x04", "application/zip"),
        (b"\x1f\x8b", "application/gzip"),
        (b"\x7fELF", "application/x-executable"),
        (b"\0asm", "application/wasm"),
        (b"SQLite format 3\0", "application/vnd.sqlite3"),
    ];
    if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
        return "image/webp";
    }
    let known = MAGIC.iter().find(|(magic, _)| head.starts_with(magic));
    known.map_or("application/octet-stream", |(_, media_type)| media_type)
}

#[cfg(test)]
mod tests {
    use super::{is_binary, media_type};

    #[test]
    fn only_nul_and_broken_utf8_make_a_file_binary() {
        let check = |head: &[u8], all: bool, binary: bool| {
            assert_eq!(is_binary(head, all), binary, "{head:?}");
        };
        check(b"", true, false);
        check("größe\r\n".as_bytes(), true, false);
        check(b"\xef\xbb\xbfbom", true, false);
        check(b"a\0b", false, true);
        check(b"caf\xe9 au lait", true, true);
        check(b"cut \xc3", false, false);
        check(b"cut \xc3", true, true);
    }

    #[test]
    fn images_are_known_by_their_first_bytes() {
        assert_eq!(media_type(b"RIFF\x10\0\0\0WEBPVP8 "), "image/webp");
        assert_eq!(
            media_type(b"RIFF\x10\0\0\0WAVEfmt "),
            "application/octet-stream"
        );
        assert_eq!(media_type(b"\xff\xd8\xff\xe0"), "image/jpeg");
    }
}
