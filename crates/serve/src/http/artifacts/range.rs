//! Parses the `Range` header for a single range of bytes.

#[derive(Debug, PartialEq, Eq)]
pub(super) enum RequestedRange {
    /// All bytes: no range, or an unsupported one.
    All,
    /// From the first position up to the second, at least one byte.
    Part { from: u64, to: u64 },
    /// A range without a byte.
    Nothing,
}

/// Several ranges, other units and invalid headers count as no range.
pub(super) fn asked(header: &str, size: u64) -> RequestedRange {
    let Some((unit, range)) = header.split_once('=') else {
        return RequestedRange::All;
    };
    let Some((first, last)) = range.trim().split_once('-') else {
        return RequestedRange::All;
    };
    let number = |text: &str| -> Option<u64> {
        // `parse` would accept a plus sign.
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            text.parse().ok()
        } else {
            None
        }
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return RequestedRange::All;
    }
    let (from, to) = match (first, last) {
        ("", count) => match number(count).filter(|_| !count.is_empty()) {
            Some(count) => (size.saturating_sub(count), size),
            None => return RequestedRange::All,
        },
        (first, "") => match number(first) {
            Some(first) => (first, size),
            None => return RequestedRange::All,
        },
        (first, last) => match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => (first, last.saturating_add(1).min(size)),
            _ => return RequestedRange::All,
        },
    };
    if from < to {
        RequestedRange::Part { from, to }
    } else {
        RequestedRange::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::{RequestedRange, asked};

    #[test]
    fn one_range_of_bytes_is_understood() {
        let part = |from, to| RequestedRange::Part { from, to };
        for (header, expected) in [
            ("bytes=0-0", part(0, 1)),
            ("bytes=0-99", part(0, 100)),
            ("bytes=90-", part(90, 100)),
            ("bytes=-10", part(90, 100)),
            ("bytes=-1000", part(0, 100)),
            ("bytes=99-1000", part(99, 100)),
            ("Bytes = 1-2", part(1, 3)),
            ("bytes=0-18446744073709551615", part(0, 100)),
            ("bytes=100-", RequestedRange::Nothing),
            ("bytes=200-300", RequestedRange::Nothing),
            ("bytes=-0", RequestedRange::Nothing),
            ("bytes=", RequestedRange::All),
            ("bytes=-", RequestedRange::All),
            ("bytes=5-4", RequestedRange::All),
            ("bytes=+1-2", RequestedRange::All),
            ("bytes=0-1,3-4", RequestedRange::All),
            ("bytes=99999999999999999999-", RequestedRange::All),
            ("lines=1-2", RequestedRange::All),
            ("1-2", RequestedRange::All),
        ] {
            assert_eq!(asked(header, 100), expected, "{header}");
        }
        assert_eq!(asked("bytes=0-", 0), RequestedRange::Nothing);
    }
}
