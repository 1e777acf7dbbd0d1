//! The regular expression of a call, within limits. The engine takes linear time for any expression.

use grep_matcher::LineTerminator;
use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use toolpost_model::InputRefusal;
use toolpost_processes::shown;

/// The longest expression, in bytes.
const MAX_BYTES: usize = 10_000;
/// The deepest nesting of groups.
const MAX_NESTING: u32 = 100;
/// The size of the compiled expression, and the longest text for one of that size in one piece. In the worst case the
/// time per byte grows with the size (measured: 3.4 µs per byte at 18 KiB), so that the product of the two amounts to a
/// few seconds.
const COMPILED: [(usize, usize); 6] = [
    (4 << 10, HELD_BYTES),
    (16 << 10, 2 << 20),
    (64 << 10, 512 << 10),
    (256 << 10, 128 << 10),
    (1 << 20, 32 << 10),
    (5 << 20, 8 << 10),
];
/// The most cached states of each thread, in bytes.
const CACHE_BYTES: usize = 8 << 20;

/// The longest line, and with `multiline` the largest file, in memory. Each thread may hold that much.
pub(super) const HELD_BYTES: usize = 8 << 20;

/// A compiled expression.
pub(in crate::search) struct SearchExpression {
    pub(super) engine: RegexMatcher,
    pub(super) multiline: bool,
    /// The longest line, and with `multiline` the largest file, that it is applied to.
    pub(super) longest_text: usize,
}

/// Why an expression was refused.
#[derive(Debug, thiserror::Error)]
pub(in crate::search) enum ExpressionError {
    #[error("the pattern is empty; use `glob` to list files without reading them")]
    Empty,
    #[error("the pattern has {bytes} bytes, the limit is {MAX_BYTES}")]
    TooLong { bytes: usize },
    #[error("`{}` can only match across lines; set `multiline`", shown(.pattern))]
    AcrossLines { pattern: String },
    #[error("`{}` is not a regular expression that this tool supports: {}{}", shown(.pattern), reason(.source), advice(.source))]
    Malformed {
        pattern: String,
        source: grep_regex::Error,
    },
}

impl ExpressionError {
    pub(in crate::search) fn into_refusal(self) -> InputRefusal {
        InputRefusal::invalid("/pattern", self.to_string())
    }
}

/// How the text of a pattern is interpreted.
#[derive(Clone, Copy)]
pub(in crate::search) struct ExpressionOptions {
    pub(in crate::search) literal: bool,
    pub(in crate::search) case_insensitive: bool,
    pub(in crate::search) multiline: bool,
}

pub(in crate::search) fn compile(
    pattern: &str,
    reading: ExpressionOptions,
) -> Result<SearchExpression, ExpressionError> {
    match pattern.len() {
        0 => return Err(ExpressionError::Empty),
        1..=MAX_BYTES => {}
        bytes => return Err(ExpressionError::TooLong { bytes }),
    }
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .crlf(true)
        .fixed_strings(reading.literal)
        .case_insensitive(reading.case_insensitive)
        .nest_limit(MAX_NESTING)
        .dfa_size_limit(CACHE_BYTES);
    if reading.multiline {
        builder.dot_matches_new_line(true).line_terminator(None);
    }
    let mut refused = None;
    for (size, longest_text) in COMPILED {
        match builder.size_limit(size).build(pattern) {
            Ok(engine) => {
                return Ok(SearchExpression {
                    engine,
                    multiline: reading.multiline,
                    longest_text,
                });
            }
            Err(source) => refused = Some(source),
        }
    }
    Err(match refused {
        None => ExpressionError::Empty,
        Some(source) => match source.kind() {
            ErrorKind::NotAllowed(_) => ExpressionError::AcrossLines {
                pattern: pattern.to_owned(),
            },
            _ => ExpressionError::Malformed {
                pattern: pattern.to_owned(),
                source,
            },
        },
    })
}

/// The end of a line for the searcher, which must agree with the expression.
pub(super) fn line_terminator() -> LineTerminator {
    LineTerminator::crlf()
}

/// The parser's message: the last line of its drawing of the position.
fn reason(error: &grep_regex::Error) -> String {
    let text = error.to_string();
    let last = text
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or(&text)
        .trim();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

fn advice(error: &grep_regex::Error) -> &'static str {
    let text = error.to_string();
    if text.contains("look-around") || text.contains("backreference") {
        "; search for a simpler expression and read the matches"
    } else if text.contains("size limit") || text.contains("nest") {
        "; use smaller repetitions"
    } else {
        "; escape special characters with `\\`, or set `literal`"
    }
}

#[cfg(test)]
mod tests {
    use grep_matcher::Matcher as _;

    use super::{ExpressionOptions, compile};

    const PLAIN: ExpressionOptions = ExpressionOptions {
        literal: false,
        case_insensitive: false,
        multiline: false,
    };

    #[test]
    fn what_cannot_be_searched_for_says_what_to_do() {
        let check = |pattern: &str, parts: &[&str]| {
            let message = compile(pattern, PLAIN).map(|_| ()).unwrap_err().to_string();
            for part in parts {
                assert!(message.contains(part), "{message}");
            }
        };
        check("", &["is empty"]);
        check(
            "fn main(",
            &["`fn main(`", "unclosed group", "set `literal`"],
        );
        check("(?=x)", &["look-around", "simpler expression"]);
        check(
            r"(a)\1",
            &["backreferences are not supported", "simpler expression"],
        );
        check(r"a\nb", &["across lines; set `multiline`"]);
        check(&"(".repeat(200), &["not a regular expression"]);
        check(
            &format!("{}a{}", "(".repeat(150), ")".repeat(150)),
            &["nest", "smaller repetitions"],
        );
        check(r"(\w{100}){100}", &["size limit", "smaller repetitions"]);
        check("a{1000}{1000}{1000}", &["size limit"]);
        check(&"a".repeat(10_001), &["10001 bytes, the limit is 10000"]);
    }

    #[test]
    fn ordinary_expressions_fit_the_limits() {
        let longest = |pattern: &str| compile(pattern, PLAIN).unwrap().longest_text;
        assert!(longest("fn main") == super::HELD_BYTES && longest(r"fn \w+\(") == 512 << 10);
        for pattern in [
            r"\bfn\s+\w{1,80}\s*\(",
            r"(?i)todo|fixme|xxx",
            r"[\p{Greek}\d]+$",
            r"^\s*//.*TODO",
        ] {
            compile(pattern, PLAIN).unwrap();
        }
    }

    #[test]
    fn a_line_ends_in_front_of_a_carriage_return_too() {
        assert!(
            compile("b$", PLAIN)
                .unwrap()
                .engine
                .is_match(b"ab\r\n")
                .unwrap()
        );
    }

    #[test]
    fn literal_text_has_no_signs_with_a_meaning() {
        let matcher = compile(
            "f(x)*",
            ExpressionOptions {
                literal: true,
                ..PLAIN
            },
        )
        .unwrap()
        .engine;
        assert!(matcher.is_match(b"y = f(x)*2").unwrap());
        assert!(!matcher.is_match(b"fx").unwrap());
    }
}
