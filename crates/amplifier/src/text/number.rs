//! Numbers as Python writes them.

use std::fmt::Write as _;

/// A number's JSON text as Python would write it after reading it.
pub(super) fn python(token: &str) -> String {
    let is_integer = !token.contains(['.', 'e', 'E']);
    match token {
        "-0" => "0".to_owned(),
        token if is_integer => token.to_owned(),
        // Each number of JSON's grammar parses. The text itself is only a fallback.
        token => token.parse().map_or_else(|_| token.to_owned(), float),
    }
}

/// A number's JSON text as Amplifier's models would write it after reading it.
pub(super) fn compact(token: &str) -> String {
    if !token.contains(['.', 'e', 'E']) {
        return python(token);
    }
    let number = token.parse().ok().and_then(serde_json::Number::from_f64);
    // JSON has no infinity.
    number.map_or_else(|| "null".to_owned(), |number| number.to_string())
}

/// The shortest digits that read back as the same number, with an exponent below 1e-4 and from 1e16 on.
fn float(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        }
        .to_owned();
    }
    let shortest = format!("{number:e}");
    let Some((digits, exponent)) = shortest.split_once('e') else {
        return shortest;
    };
    let Ok(exponent) = exponent.parse::<i32>() else {
        return shortest;
    };
    if (-4..16).contains(&exponent) {
        let plain = format!("{number}");
        return if plain.contains('.') {
            plain
        } else {
            plain + ".0"
        };
    }
    let mut written = digits.to_owned();
    let sign = if exponent < 0 { '-' } else { '+' };
    // Writing to a string cannot fail.
    let _ = write!(written, "e{sign}{:02}", exponent.unsigned_abs());
    written
}
