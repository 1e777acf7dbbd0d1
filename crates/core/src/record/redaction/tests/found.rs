//! Every form of a known value, and every shape.

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::{
    super::{KnownSecrets, Redactor as _},
    clean, host,
};

/// Secrets, and their redacted forms.
pub(super) const EXAMPLES: &[(&str, &str)] = &[
    ("AKIAIOSFODNN7EXAMPLE", "[redacted:aws]"),
    ("ASIAY34FZKBOKMUTVV7A", "[redacted:aws]"),
    (
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "aws_secret_access_key = [redacted:aws]",
    ),
    (
        "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "AWS_SECRET_ACCESS_KEY=[redacted:aws]",
    ),
    (
        "\"SecretAccessKey\": \"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\"",
        "\"SecretAccessKey\": \"[redacted:aws]\"",
    ),
    (
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "[redacted:github]",
    ),
    (
        "gho_16C7e42F292c6912E7710c838347Ae178B4a",
        "[redacted:github]",
    ),
    (
        "ghs_16C7e42F292c6912E7710c838347Ae178B4a",
        "[redacted:github]",
    ),
    (
        "github_pat_11ABCDEFG0abcdefghijkl_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456",
        "[redacted:github]",
    ),
    ("glpat-abcDEF123_456-789xyz", "[redacted:gitlab]"),
    (
        "xoxb-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx",
        "[redacted:slack]",
    ),
    (
        "xapp-1-A0123456789-1234567890123-0123456789abcdef",
        "[redacted:slack]",
    ),
    (
        "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
        "https://hooks.slack.com/services/[redacted:slack_webhook]",
    ),
    ("sk_live_4eC39HqLyjWDarjtT1zdp7dc", "[redacted:stripe]"),
    ("rk_test_4eC39HqLyjWDarjtT1zdp7dc", "[redacted:stripe]"),
    (
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "[redacted:stripe]",
    ),
    (
        "sk-abcdefghijklmnopqrstT3BlbkFJABCDEFGHIJKLMNOPQRST",
        "[redacted:openai]",
    ),
    (
        "sk-proj-abcdefghijklmnopqrstuvwxyz_0123456789-ABCDEFGH",
        "[redacted:openai]",
    ),
    (
        "sk-svcacct-abcdefghijklmnopqrstuvwxyz_0123456789-ABCDEFGH",
        "[redacted:openai]",
    ),
    (
        "sk-ant-api03-abcdefghijklmnopqrstuvwxyz_0123456789-AA",
        "[redacted:anthropic]",
    ),
    (
        "AIzaSyA-1234567890abcdefghijklmnopqrstu",
        "[redacted:google]",
    ),
    (
        "ya29.a0AfH6SMBx1234567890abcdefghijklmnop",
        "[redacted:google]",
    ),
    ("GOCSPX-abcdefghijklmnopqrstuvwxyz01", "[redacted:google]"),
    ("npm_abcdefghijklmnopqrstuvwxyz0123456789", "[redacted:npm]"),
    (
        "pypi-AgEIcHlwaS5vcmcCJDAxMjM0NTY3LTg5YWItY2RlZi0wMTIzLTQ1Njc4OWFiY2RlZgACKlszLCJ",
        "[redacted:pypi]",
    ),
    (
        "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",
        "[redacted:sendgrid]",
    ),
    ("SK0123456789abcdef0123456789abcdef", "[redacted:twilio]"),
    (
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;",
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=[redacted:azure];",
    ),
    (
        "hf_abcdefghijKLMNOPQRSTuvwxyz01234567",
        "[redacted:huggingface]",
    ),
    ("hvs.CAESIJabcdefghijklmnopqrstuvwx", "[redacted:vault]"),
    (
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        "[redacted:jwt]",
    ),
    (
        "postgres://app:s3cr3t!pw@db.example.com:5432/app",
        "postgres://app:[redacted:password]@db.example.com:5432/app",
    ),
    (
        "redis://:hunter2@localhost:6379",
        "redis://:[redacted:password]@localhost:6379",
    ),
    (
        "Server=db;User Id=sa;Password=Str0ng Pass;Encrypt=yes",
        "Server=db;User Id=sa;Password=[redacted:password];Encrypt=yes",
    ),
    (
        "Authorization: Bearer abc.def-0123456789",
        "Authorization: Bearer [redacted:authorization]",
    ),
    (
        "{\"authorization\":\"Bearer abc.def-0123456789\"}",
        "{\"authorization\":\"Bearer [redacted:authorization]\"}",
    ),
    (
        "AUTHORIZATION=Basic dXNlcjpwYXNzd29yZA==",
        "AUTHORIZATION=Basic [redacted:authorization]",
    ),
    (
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAwVoQ3T2Zx0mCkl0pSecretSecretSecretSecret0123456789\nabcd\n-----END RSA PRIVATE KEY-----",
        "[redacted:private_key]",
    ),
    (
        "-----BEGIN PRIVATE KEY-----\\nMC4CAQAwBQYDK2VwBCIEIFhsSecretSecretSecretSecretSecretSecretSec\\n-----END PRIVATE KEY-----\\n",
        "[redacted:private_key]\\n",
    ),
    (
        "     1\t-----BEGIN OPENSSH PRIVATE KEY-----\n     2\tb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAAB\n     3\t-----END OPENSSH PRIVATE KEY-----\n",
        "     1\t[redacted:private_key]\n",
    ),
    (
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF0123456789ABCDEF\n\nMIIEowIBAAKCAQEAwVoQ3T2Zx0mC\n(cut)",
        "[redacted:private_key](cut)",
    ),
];

#[test]
fn every_shape_is_found_wherever_it_stands() {
    let host = KnownSecrets::default();
    for (secret, expected) in EXAMPLES {
        assert_eq!(clean(&host, secret).0, *expected);
        let before = "some text \"";
        let behind = "\" and more";
        assert_eq!(
            clean(&host, &format!("{before}{secret}{behind}")).0,
            format!("{before}{expected}{behind}")
        );
    }
}

/// The value in base64, made with crates that the finder does not use.
fn in_base64(value: &str, before: &str, engine: &impl Engine) -> String {
    engine.encode(format!("{before}{value}{before}"))
}

#[test]
fn a_known_value_is_found_in_every_form() {
    let value = "pa\"ss w\\ord/+é?";
    let host = host();
    let json = serde_json::to_string(value).unwrap();
    let twice = serde_json::to_string(&json).unwrap();
    let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    let form: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
    for text in [
        value.to_owned(),
        json[1..json.len() - 1].to_owned(),
        twice[3..twice.len() - 3].to_owned(),
        utf8_percent_encode(value, NON_ALPHANUMERIC)
            .to_string()
            .replace("%2E", ".")
            .replace("%2D", "-"),
        form,
        hex.to_uppercase(),
        hex,
    ] {
        assert_eq!(
            host.text(&format!("<{text}>")),
            "<[redacted:credential_db]>",
            "{text}"
        );
    }
    for before in ["", "x", "xy", "xyz", "user:"] {
        for text in [
            in_base64(value, before, &STANDARD),
            in_base64(value, before, &URL_SAFE_NO_PAD),
        ] {
            let shown = host.text(&text).into_owned();
            assert!(shown.contains("[redacted:credential_db]"), "{text}");
            // Only letters shared with the neighbours are left.
            let left = shown.replace("[redacted:credential_db]", "");
            let around = STANDARD_NO_PAD.encode(before).len();
            assert!(
                left.trim_end_matches('=').len() <= 2 * around + 4,
                "{before}: {left}"
            );
        }
    }
}

#[test]
fn lines_of_a_value_of_several_lines_are_found_by_themselves() {
    let host = host();
    let shown = "     2\tline-one-of-the-value-0001\n     3\tline-two-of-the-value-0002\n     4\t-----END THING-----";
    assert_eq!(
        host.text(shown),
        "     2\t[redacted:env_key]\n     3\t[redacted:env_key]\n     4\t-----END THING-----"
    );
}

#[test]
fn kinds_are_words() {
    let host = KnownSecrets::new([("env_My-Key.2", "0123456789abc"), ("", "fedcba9876543")]);
    assert_eq!(
        host.text("0123456789abc fedcba9876543"),
        "[redacted:env_my_key_2] [redacted:secret]"
    );
}

/// As `base64` and `xxd -p` write it: lines of so many letters.
fn in_lines(letters: &str, columns: usize, line_break: &str) -> String {
    let lines: Vec<&str> = letters
        .as_bytes()
        .chunks(columns)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    lines.join(line_break)
}

#[test]
fn a_value_that_lines_tear_apart_is_found() {
    let value = "a-long-secret/value+of-many_letters.0123456789";
    let host = KnownSecrets::new([("k", value)]);
    let left = |text: &str| {
        let shown = host.text(text).into_owned();
        assert!(shown.contains("[redacted:k]"), "{text}");
        shown
            .replace("[redacted:k]", "")
            .chars()
            .filter(|c| c.is_ascii_alphanumeric())
            .count()
    };
    for before in 0..80 {
        let around = "x".repeat(before);
        let encoded = STANDARD.encode(format!("{around}{value}"));
        // Letters shared with the neighbours, and letters before a break among the first three.
        let clean_letters = STANDARD.encode(&around).len() + 4 + 3;
        for columns in [60, 64, 76] {
            for line_break in ["\n", "\r\n", "\n    ", "\\n"] {
                // The letters of `\\n` count as well.
                let most = clean_letters + 8;
                assert!(
                    left(&in_lines(&encoded, columns, line_break)) <= most,
                    "{before} {columns} {line_break:?}"
                );
            }
        }
        let digits: String = format!("{around}{value}")
            .bytes()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert!(
            (2 * before..=2 * before + 3).contains(&left(&in_lines(&digits, 60, "\n"))),
            "{before}"
        );
    }
}

/// `xxd`, `hexdump -C`, `hexdump` and `od -t x1`, by the shape of a line.
fn dumped(bytes: &[u8], tool: &str) -> String {
    let line = |(number, line): (usize, &[u8])| {
        let hex = |bytes: &[u8]| {
            bytes
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<Vec<_>>()
        };
        let text: String = line
            .iter()
            .map(|&byte| {
                if byte.is_ascii_graphic() || byte == b' ' {
                    char::from(byte)
                } else {
                    '.'
                }
            })
            .collect();
        let offset = number * 16;
        match tool {
            "xxd" => {
                let groups: Vec<String> = line.chunks(2).map(|pair| hex(pair).concat()).collect();
                format!("{offset:08x}: {:<39}  {text}\n", groups.join(" "))
            }
            "hexdump -C" => {
                let halves: Vec<String> = line.chunks(8).map(|half| hex(half).join(" ")).collect();
                format!("{offset:08x}  {:<48}  |{text}|\n", halves.join("  "))
            }
            "hexdump" => {
                let words = line.chunks(2).map(|pair| {
                    let first = pair[0];
                    let second = pair.get(1).copied().unwrap_or(0);
                    format!("{second:02x}{first:02x}")
                });
                format!("{offset:07x} {}\n", words.collect::<Vec<_>>().join(" "))
            }
            _ => format!("{offset:07o} {}\n", hex(line).join(" ")),
        }
    };
    bytes.chunks(16).enumerate().map(line).collect()
}

#[test]
fn a_value_in_a_dump_is_found_with_the_column_of_its_text() {
    let value = "a-long-secret/value+of-many_letters.0123456789";
    let host = KnownSecrets::new([("k", value)]);
    for tool in ["xxd", "hexdump -C", "hexdump", "od"] {
        for before in 0..40 {
            let text = format!("{}{value}", "=".repeat(before));
            let dump = dumped(text.as_bytes(), tool);
            let shown = host.text(&dump).into_owned();
            assert!(
                shown.contains("[redacted:k]"),
                "{tool} {before}:\n{dump}{shown}"
            );
            let (kept, behind) = shown.split_once("[redacted:k]").unwrap();
            assert_eq!(behind, "\n", "{tool} {before}:\n{shown}");
            let hex = kept.matches("3d").count();
            let lost = usize::from(tool == "hexdump" && before % 2 == 1);
            assert_eq!(hex + lost, before, "{tool} {before}:\n{shown}");
        }
        let other = dumped("=".repeat(200).as_bytes(), tool);
        assert_eq!(host.text(&other), other);
    }
}

#[test]
fn a_value_with_escaped_characters_is_found() {
    let value = "pa\"ss w\\ord/+é?😀end";
    let host = KnownSecrets::new([("k", value)]);
    let spell = |escapes: &dyn Fn(usize, char) -> bool, upper: bool| -> String {
        let unit = |unit: u16| {
            if upper {
                format!("\\u{unit:04X}")
            } else {
                format!("\\u{unit:04x}")
            }
        };
        let spelled = |(place, c): (usize, char)| match escapes(place, c) {
            true => c
                .encode_utf16(&mut [0; 2])
                .iter()
                .map(|one| unit(*one))
                .collect::<String>(),
            false => match c {
                '"' => "\\\"".to_owned(),
                '\\' => "\\\\".to_owned(),
                c => c.to_string(),
            },
        };
        value.chars().enumerate().map(spelled).collect()
    };
    for upper in [false, true] {
        for escapes in [
            &(|_, _| true) as &dyn Fn(usize, char) -> bool,
            &|_, c: char| !c.is_ascii(),
            &|place, _| place % 2 == 0,
            &|place, _| place % 2 == 1,
            &|place, _| place > 5,
            &|_, c: char| "/+\"".contains(c),
        ] {
            let text = spell(escapes, upper);
            assert_eq!(host.text(&format!("<{text}>")), "<[redacted:k]>", "{text}");
        }
    }
}
