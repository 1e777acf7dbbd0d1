//! Every cutting of a text gives the same output as the whole text.

use std::sync::{Arc, LazyLock};

use proptest::{prelude::*, sample::Index};
use toolpost_model::Redactions;

use super::{
    super::{
        CallRedactor, KnownSecrets, RedactionWindow, Redactor, StreamRedactor, runs::ByteRuns,
    },
    found::EXAMPLES,
    host,
};

/// The redactor of a call that has secrets of its own: two finders over one stream.
fn redactor() -> Arc<dyn Redactor> {
    static BUILT: LazyLock<Arc<dyn Redactor>> = LazyLock::new(|| {
        let own = KnownSecrets::arguments(&["hunter2-hunter2".to_owned(), "tp_01234".to_owned()]);
        Arc::new(CallRedactor {
            host: Arc::new(host()),
            own: Some(Arc::new(own)),
        })
    });
    Arc::clone(&BUILT)
}

fn streamed(redactor: &Arc<dyn Redactor>, pieces: &[&[u8]]) -> (Vec<u8>, Redactions) {
    let mut stream = StreamRedactor::new(Arc::clone(redactor));
    let mut clean = Vec::new();
    for piece in pieces {
        stream.push(piece, &mut clean);
    }
    let counts = stream.finish(&mut clean);
    (clean, counts)
}

fn whole(redactor: &Arc<dyn Redactor>, text: &str) -> (Vec<u8>, Redactions) {
    let mut counts = Redactions::default();
    let clean = redactor
        .counted(text, &mut counts)
        .into_owned()
        .into_bytes();
    (clean, counts)
}

/// Pieces of secrets, of announcing words and of their surroundings, so that near misses and overlaps are as likely as
/// secrets.
fn texts() -> impl Strategy<Value = String> {
    let whole: Vec<String> = EXAMPLES
        .iter()
        .map(|(secret, _)| (*secret).to_owned())
        .collect();
    let known = [
        "tp_0123456789",
        "tp_01234",
        "hunter2-hunter2",
        "pa\"ss w\\ord/+é?",
        "line-one-of-the-value-0001",
        "00000000: 6875 6e74 6572 322d 6875 6e74 6572 32    hunter2-hunter2\n",
        "00000000  2d 2d 2d 2d 2d 2d 2d 2d  2d 2d 2d 2d 2d 68 75 6e  |-------------hun|\n00000010  74 65 72 32 2d 68 75 6e  74 65 72 32 0a  |ter2-hunter2.|\n",
        "0000000 7568 746e 7265 2d32 7568 746e 7265 0032\n",
        "aHVudGVyMi\n1odW50ZXIy",
        "68756e7465\r\n72322d68756e74657232",
        "h\\u0075nter2-h\\u0075nter2",
    ];
    let scraps = [
        "://",
        "user:",
        "pass@",
        "Authorization",
        ": Bearer ",
        "eyJ",
        ".eyJ",
        "-----BEGIN ",
        "RSA PRIVATE KEY-----",
        "-----END ",
        "[redacted:",
        "argument]",
        "]",
        "[",
        "\"",
        "\\n",
        "\n",
        " ",
        "é",
        "00000000: ",
        "00000010  68 75",
        "6875 6e74",
        "\\u0068",
        "aHVu\n",
        "AKIA",
        "ghp_",
        "SK",
        "sk-",
    ];
    let any = prop_oneof![
        3 => prop::sample::select(whole.clone()),
        3 => prop::sample::select(known.map(str::to_owned).to_vec()),
        6 => prop::sample::select(scraps.map(str::to_owned).to_vec()),
        2 => "[A-Za-z0-9+/=_-]{1,70}",
        2 => "[ -~]{0,12}",
        2 => (prop::sample::select(whole), any::<Index>()).prop_map(|(text, at)| {
            text.char_indices().nth(at.index(text.chars().count())).map_or(String::new(), |(end, _)| text[..end].to_owned())
        }),
    ];
    prop::collection::vec(any, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_cutting_gives_what_the_whole_gives(text in texts(), cuts in prop::collection::vec(any::<Index>(), 0..24)) {
        let redactor = redactor();
        let bytes = text.as_bytes();
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let pieces: Vec<&[u8]> = places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        let expected = whole(&redactor, &text);
        prop_assert_eq!(&streamed(&redactor, &pieces), &expected);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&streamed(&redactor, &single), &expected);
    }

    #[test]
    fn redacting_again_changes_nothing(text in texts()) {
        let redactor = redactor();
        let once = redactor.text(&text).into_owned();
        let again = redactor.text(&once).into_owned();
        prop_assert_eq!(again, once);
    }
}

#[test]
fn what_cannot_be_a_secret_goes_out_at_once() {
    let mut stream = StreamRedactor::new(redactor());
    let mut clean = Vec::new();
    stream.push(b"an ordinary line of output\n", &mut clean);
    assert_eq!(
        (clean.as_slice(), stream.held()),
        (&b"an ordinary line of output\n"[..], 0)
    );
    stream.push(b"the key is ghp_", &mut clean);
    assert_eq!(stream.held(), 4);
    stream.push(b" and no more\n", &mut clean);
    assert_eq!(
        clean,
        b"an ordinary line of output\nthe key is ghp_ and no more\n"
    );
}

#[test]
fn what_is_held_back_is_bounded() {
    let mut stream = StreamRedactor::new(redactor());
    let mut clean = Vec::new();
    let mut most = 0;
    for beginning in [
        "ghp_",
        "eyJ",
        "-----BEGIN PRIVATE KEY-----\n",
        "https://user:",
    ] {
        stream.push(beginning.as_bytes(), &mut clean);
        for _ in 0..200 {
            stream.push(&[b'A'; 1_000], &mut clean);
            most = most.max(stream.held());
        }
        stream.finish(&mut clean);
    }
    assert!(most <= 66 << 10, "{most} bytes were held back");
}

#[test]
fn beginnings_within_one_another_are_read_once() {
    // Several times the most that is held back; the bound is of the same form for every length.
    const LENGTH: usize = 1 << 18;
    let key = "-----BEGIN PRIVATE KEY-----\n";
    let with_line = format!("{key}MC4CAQAwBQYDK2VwBCIEIFhsSecretSecret\n");
    let heads = [
        "AKIA",
        "eyJ",
        "ghp_",
        "SG.",
        "sk-ant-",
        "sk-ant-sk-proj-glpat-ghp_",
        "://a:",
        key,
        &with_line,
    ];
    for head in heads {
        let text = head.repeat(LENGTH / head.len());
        for is_last in [true, false] {
            let mut runs = ByteRuns::default();
            host().search(
                RedactionWindow {
                    bytes: text.as_bytes(),
                    is_last,
                },
                &mut runs,
                &mut Vec::new(),
            );
            assert!(
                runs.steps <= 8 * LENGTH as u64,
                "{} steps for {head:?}",
                runs.steps
            );
        }
    }
}
