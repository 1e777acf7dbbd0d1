//! The two dialects, and the dialect of a request.

use super::A2aMethod;

/// A dialect of A2A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum A2aDialect {
    /// Every object has a `kind`; roles and states are lower-case words.
    V0_3,
    /// JSON as the protocol's proto file defines it: no `kind`, roles and states are names of constants.
    V1_0,
}

/// A version of A2A that this host does not support.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("A2A version `{0}` is not supported; use 0.3 or 1.0")]
pub struct UnsupportedVersion(String);

impl A2aDialect {
    /// The dialect of a JSON-RPC request: the version in its header, otherwise the dialect of its method.
    ///
    /// By the protocol, a request without the header is one of 0.3. Peers of 1.0 forget the header, though, and no
    /// method has the same name in both dialects, so the method decides. An unknown method without a header counts as
    /// 0.3, unless it has the spelling of 1.0.
    pub fn of_request(version: Option<&str>, method: &str) -> Result<Self, UnsupportedVersion> {
        match version.map(str::trim).filter(|version| !version.is_empty()) {
            Some(version) => Self::of_version(version),
            None => Ok(A2aMethod::named(method)
                .map_or_else(|| Self::spelled_like(method), |(_, dialect)| dialect)),
        }
    }

    /// The dialect of a version: `0.3`, `0.3.0`, `1.0`, `1.1` …
    pub fn of_version(version: &str) -> Result<Self, UnsupportedVersion> {
        let mut numbers = version.split('.');
        let known = match (numbers.next(), numbers.next()) {
            (Some("0"), Some("3")) => Some(Self::V0_3),
            (Some("1"), minor) => minor.is_none_or(is_number).then_some(Self::V1_0),
            _ => None,
        };
        known
            .filter(|_| numbers.all(is_number))
            .ok_or_else(|| UnsupportedVersion(version.chars().take(32).collect()))
    }

    /// The version as the version header and agent cards write it.
    pub fn version(self) -> &'static str {
        match self {
            Self::V0_3 => "0.3",
            Self::V1_0 => "1.0",
        }
    }

    /// The header that names extensions in this dialect.
    pub fn extensions_header(self) -> &'static str {
        match self {
            Self::V0_3 => super::EXTENSIONS_0_3,
            Self::V1_0 => super::EXTENSIONS_1_0,
        }
    }

    fn spelled_like(method: &str) -> Self {
        let newer =
            method.starts_with(|first: char| first.is_ascii_uppercase()) && !method.contains('/');
        if newer { Self::V1_0 } else { Self::V0_3 }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit())
}
