//! Secrets with a known shape. Each begins with letters that begin nothing else, or follows words that announce it. A
//! shape that would also match hashes, ids or placeholders is not included.

use super::shape::{ByteClass, RedactedPatternPart, SecretBody, SecretPattern, SecretPatternStep};

const fn body(of: ByteClass, least: usize) -> SecretBody {
    SecretBody {
        of,
        least,
        proof: anything,
        before: None,
    }
}

/// A token whose first letters name its provider.
const fn token(
    kind: &'static str,
    head: &'static str,
    of: ByteClass,
    least: usize,
) -> SecretPattern {
    SecretPattern {
        kind,
        head,
        steps: &[],
        body: body(of, least),
        taken: RedactedPatternPart::All,
    }
}

/// A token with further parts after its first letters.
const fn longer(
    kind: &'static str,
    head: &'static str,
    steps: &'static [SecretPatternStep],
    of: ByteClass,
    least: usize,
) -> SecretPattern {
    SecretPattern {
        kind,
        head,
        steps,
        body: body(of, least),
        taken: RedactedPatternPart::All,
    }
}

/// A value that the words before it announce. The words stay.
const fn announced(
    kind: &'static str,
    head: &'static str,
    steps: &'static [SecretPatternStep],
    body: SecretBody,
) -> SecretPattern {
    SecretPattern {
        kind,
        head,
        steps,
        body,
        taken: RedactedPatternPart::Body,
    }
}

/// The text between a name and its value, in headers, JSON, YAML, code and commands.
const SEPARATOR: SecretPatternStep = SecretPatternStep::Run {
    of: separates,
    least: 1,
    most: 8,
};
const BEARER: SecretPatternStep = SecretPatternStep::Text(&[
    "Bearer ",
    "bearer ",
    "BEARER ",
    "Token ",
    "token ",
    "Bearer%20",
    "Bearer+",
]);
const BASIC: SecretPatternStep = SecretPatternStep::Text(&["Basic ", "basic ", "BASIC "]);
const BEARER_VALUE: SecretBody = SecretBody {
    of: in_token68,
    least: 8,
    proof: has_digit,
    before: None,
};
const BASIC_VALUE: SecretBody = SecretBody {
    of: in_token68,
    least: 8,
    proof: is_mixed,
    before: None,
};
const AWS_SECRET: SecretBody = SecretBody {
    of: in_base64,
    least: 40,
    proof: is_mixed,
    before: None,
};

/// Every shape. Several may share a head.
pub(super) const PATTERNS: &[SecretPattern] = &[
    token("aws", "AKIA", in_base32, 16),
    token("aws", "ASIA", in_base32, 16),
    token("aws", "ABIA", in_base32, 16),
    announced(
        "aws",
        "secret_a",
        &[SecretPatternStep::Text(&["ccess_key"]), SEPARATOR],
        AWS_SECRET,
    ),
    announced(
        "aws",
        "SECRET_A",
        &[SecretPatternStep::Text(&["CCESS_KEY"]), SEPARATOR],
        AWS_SECRET,
    ),
    announced(
        "aws",
        "ecretAcc",
        &[SecretPatternStep::Text(&["essKey"]), SEPARATOR],
        AWS_SECRET,
    ),
    announced(
        "aws",
        "session_",
        &[SecretPatternStep::Text(&["token"]), SEPARATOR],
        SecretBody {
            least: 100,
            ..AWS_SECRET
        },
    ),
    announced(
        "aws",
        "SESSION_",
        &[SecretPatternStep::Text(&["TOKEN"]), SEPARATOR],
        SecretBody {
            least: 100,
            ..AWS_SECRET
        },
    ),
    token("github", "ghp_", in_word, 36),
    token("github", "gho_", in_word, 36),
    token("github", "ghu_", in_word, 36),
    token("github", "ghs_", in_word, 36),
    token("github", "ghr_", in_word, 36),
    longer(
        "github",
        "github_p",
        &[SecretPatternStep::Text(&["at_"])],
        in_word,
        59,
    ),
    token("gitlab", "glpat-", in_dotted, 20),
    token("gitlab", "gldt-", in_dotted, 20),
    token("gitlab", "glrt-", in_dotted, 20),
    token("gitlab", "glptt-", in_dotted, 20),
    token("gitlab", "glsoat-", in_dotted, 20),
    token("slack", "xoxb-", in_dashed, 24),
    token("slack", "xoxp-", in_dashed, 24),
    token("slack", "xoxa-", in_dashed, 24),
    token("slack", "xoxr-", in_dashed, 24),
    token("slack", "xoxs-", in_dashed, 24),
    token("slack", "xapp-", in_dashed, 24),
    announced(
        "slack_webhook",
        "hooks.sl",
        &[SecretPatternStep::Text(&["ack.com/"]), HOOK],
        body(in_path, 20),
    ),
    token("stripe", "sk_live_", is_alphanumeric, 16),
    token("stripe", "sk_test_", is_alphanumeric, 16),
    token("stripe", "rk_live_", is_alphanumeric, 16),
    token("stripe", "rk_test_", is_alphanumeric, 16),
    token("stripe", "whsec_", in_base64, 24),
    SecretPattern {
        body: SecretBody {
            proof: has_all_cases,
            ..body(is_alphanumeric, 48)
        },
        ..token("openai", "sk-", is_alphanumeric, 48)
    },
    token("openai", "sk-proj-", in_dashed, 40),
    longer(
        "openai",
        "sk-svcac",
        &[SecretPatternStep::Text(&["ct-"])],
        in_dashed,
        40,
    ),
    longer(
        "openai",
        "sk-admin",
        &[SecretPatternStep::Text(&["-"])],
        in_dashed,
        40,
    ),
    token("anthropic", "sk-ant-", in_dashed, 32),
    token("google", "AIza", in_dashed, 35),
    token("google", "ya29.", in_dashed, 30),
    token("google", "GOCSPX-", in_dashed, 24),
    token("npm", "npm_", is_alphanumeric, 36),
    longer(
        "pypi",
        "pypi-AgE",
        &[SecretPatternStep::Text(&[
            "IcHlwaS5vcmc",
            "NdGVzdC5weXBpLm9yZw",
        ])],
        in_dashed,
        50,
    ),
    longer(
        "sendgrid",
        "SG.",
        &[
            SecretPatternStep::Run {
                of: in_dashed,
                least: 16,
                most: 64,
            },
            DOT,
        ],
        in_dashed,
        32,
    ),
    token("twilio", "SK", is_hex, 32),
    announced(
        "azure",
        "AccountK",
        &[SecretPatternStep::Text(&["ey="])],
        body(in_base64, 80),
    ),
    announced(
        "azure",
        "SharedAc",
        &[SecretPatternStep::Text(&["cessKey="])],
        body(in_base64, 40),
    ),
    SecretPattern {
        body: SecretBody {
            proof: has_all_cases,
            ..body(is_alphanumeric, 34)
        },
        ..token("huggingface", "hf_", is_alphanumeric, 34)
    },
    token("digitalocean", "dop_v1_", is_hex, 64),
    token("docker", "dckr_pat", in_dashed, 24),
    token("vault", "hvs.", in_dashed, 24),
    longer(
        "jwt",
        "eyJ",
        &[
            SecretPatternStep::Run {
                of: in_dashed,
                least: 8,
                most: 4 << 10,
            },
            SecretPatternStep::Text(&[".eyJ"]),
        ],
        in_dotted,
        8,
    ),
    announced(
        "password",
        "://",
        &[USER, SecretPatternStep::Text(&[":"])],
        SecretBody {
            of: in_password,
            least: 1,
            proof: is_no_placeholder,
            before: Some(b'@'),
        },
    ),
    announced("password", "ser Id=", &[FIELD, PASSWORD], body(in_field, 1)),
    announced("password", "ser ID=", &[FIELD, PASSWORD], body(in_field, 1)),
    announced("password", "Uid=", &[FIELD, PASSWORD], body(in_field, 1)),
    announced(
        "authorization",
        "uthoriza",
        &[SecretPatternStep::Text(&["tion"]), SEPARATOR, BEARER],
        BEARER_VALUE,
    ),
    announced(
        "authorization",
        "UTHORIZA",
        &[SecretPatternStep::Text(&["TION"]), SEPARATOR, BEARER],
        BEARER_VALUE,
    ),
    announced(
        "authorization",
        "uthoriza",
        &[SecretPatternStep::Text(&["tion"]), SEPARATOR, BASIC],
        BASIC_VALUE,
    ),
    announced(
        "authorization",
        "UTHORIZA",
        &[SecretPatternStep::Text(&["TION"]), SEPARATOR, BASIC],
        BASIC_VALUE,
    ),
];

const DOT: SecretPatternStep = SecretPatternStep::Text(&["."]);
const HOOK: SecretPatternStep = SecretPatternStep::Text(&["services/", "workflows/", "triggers/"]);
const USER: SecretPatternStep = SecretPatternStep::Run {
    of: in_user,
    least: 0,
    most: 128,
};
const FIELD: SecretPatternStep = SecretPatternStep::Run {
    of: in_field,
    least: 1,
    most: 128,
};
const PASSWORD: SecretPatternStep = SecretPatternStep::Text(&[
    ";Password=",
    ";password=",
    ";PASSWORD=",
    ";Pwd=",
    ";pwd=",
    ";PWD=",
]);

fn anything(_: &[u8]) -> bool {
    true
}

fn has_digit(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit)
}

/// Excludes ordinary words, which are in one case and without digits.
fn is_mixed(value: &[u8]) -> bool {
    has_digit(value)
        || (value.iter().any(u8::is_ascii_uppercase) && value.iter().any(u8::is_ascii_lowercase))
}

/// Excludes hashes in hexadecimal digits.
fn has_all_cases(value: &[u8]) -> bool {
    has_digit(value)
        && value.iter().any(u8::is_ascii_uppercase)
        && value.iter().any(u8::is_ascii_lowercase)
}

/// Excludes `$PASSWORD`, `{password}`, `<password>`, `%s`, `***`, and Toolpost's own marks.
fn is_no_placeholder(value: &[u8]) -> bool {
    !matches!(value.first(), Some(b'$' | b'{' | b'*' | b'%'))
        || (value[0] == b'%' && value.len() > 2)
}

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

fn in_base32(byte: u8) -> bool {
    matches!(byte, b'A'..=b'Z' | b'2'..=b'7')
}

fn in_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)
}

fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn in_dashed(byte: u8) -> bool {
    in_word(byte) || byte == b'-'
}

fn in_dotted(byte: u8) -> bool {
    in_dashed(byte) || byte == b'.'
}

fn in_path(byte: u8) -> bool {
    in_dashed(byte) || byte == b'/'
}

fn in_token68(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)
}

fn separates(byte: u8) -> bool {
    b" \t:=\"'\\,>".contains(&byte)
}

fn in_user(byte: u8) -> bool {
    is_visible_except(byte, b":/@\"'<>[\\?#")
}

fn in_password(byte: u8) -> bool {
    is_visible_except(byte, b"/@\"'<>[]\\?#")
}

fn in_field(byte: u8) -> bool {
    is_visible_except(byte, b";\"'<>[\\") || byte == b' '
}

fn is_visible_except(byte: u8, others: &[u8]) -> bool {
    byte.is_ascii_graphic() && !others.contains(&byte)
}
