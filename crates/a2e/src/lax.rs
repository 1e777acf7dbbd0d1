//! Reads scalars as leniently as the protocol's own validators: whole floats and numeric strings for integers, words
//! for flags. Values that those validators refuse are refused here too, `null` above all.

use std::{fmt, time::Duration};

use serde::{
    Deserialize, Deserializer, Serializer,
    de::{Error, Unexpected, Visitor},
};

/// A name or an id, with a limit that no usual client reaches.
pub(crate) fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    if name.len() > MAX_NAME {
        return Err(D::Error::custom(format_args!(
            "it is longer than {MAX_NAME} bytes"
        )));
    }
    Ok(name)
}

const MAX_NAME: usize = 1_024;

/// A flag; `null` counts as false.
pub(crate) fn maybe_flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    struct Given(#[serde(deserialize_with = "flag")] bool);
    Ok(Option::<Given>::deserialize(deserializer)?.is_some_and(|Given(flag)| flag))
}

pub(crate) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    struct Flag;
    impl Visitor<'_> for Flag {
        type Value = bool;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("true or false")
        }
        fn visit_bool<E: Error>(self, given: bool) -> Result<bool, E> {
            Ok(given)
        }
        fn visit_u64<E: Error>(self, given: u64) -> Result<bool, E> {
            match given {
                0 => Ok(false),
                1 => Ok(true),
                _ => Err(E::invalid_value(Unexpected::Unsigned(given), &self)),
            }
        }
        fn visit_str<E: Error>(self, given: &str) -> Result<bool, E> {
            match given.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" | "1" | "t" | "y" => Ok(true),
                "false" | "no" | "off" | "0" | "f" | "n" => Ok(false),
                _ => Err(E::invalid_value(Unexpected::Str(given), &self)),
            }
        }
    }
    deserializer.deserialize_any(Flag)
}

/// A number, also written as text.
pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    struct Number;
    impl Visitor<'_> for Number {
        type Value = f64;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number")
        }
        fn visit_f64<E: Error>(self, given: f64) -> Result<f64, E> {
            Ok(given)
        }
        fn visit_u64<E: Error>(self, given: u64) -> Result<f64, E> {
            Ok(given as f64)
        }
        fn visit_i64<E: Error>(self, given: i64) -> Result<f64, E> {
            Ok(given as f64)
        }
        fn visit_str<E: Error>(self, given: &str) -> Result<f64, E> {
            let number = given
                .trim()
                .parse::<f64>()
                .ok()
                .filter(|number| number.is_finite());
            number.ok_or_else(|| E::invalid_value(Unexpected::Str(given), &self))
        }
    }
    deserializer.deserialize_any(Number)
}

/// The largest whole number that a float distinguishes from its neighbours.
const EXACT: f64 = 9_007_199_254_740_992.0;

pub(crate) fn integer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let given = number(deserializer)?;
    if given.fract() == 0.0 && given.abs() <= EXACT {
        return Ok(given as i64);
    }
    Err(D::Error::invalid_value(
        Unexpected::Float(given),
        &"a whole number",
    ))
}

/// A whole number, 0 or more.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let given = integer(deserializer)?;
    u64::try_from(given).map_err(|_| {
        D::Error::invalid_value(Unexpected::Signed(given), &"a whole number from 0 up")
    })
}

pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Seconds, more than 0, optionally with a fraction.
pub(crate) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let time = patience(deserializer)?;
    if time.is_zero() {
        Err(D::Error::custom(
            "a timeout must be a number of seconds over 0",
        ))
    } else {
        Ok(time)
    }
}

/// Seconds, 0 or more. Longer times count as one day.
pub(crate) fn patience<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let given = number(deserializer)?;
    if given.is_nan() || given < 0.0 {
        return Err(D::Error::custom(
            "a timeout must be a number of seconds, not less than 0",
        ));
    }
    Ok(Duration::from_secs_f64(given.min(86_400.0)))
}

/// Rounds up to whole seconds, because other hosts accept nothing else.
pub(crate) fn whole_seconds<S: Serializer>(
    time: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(time.as_secs() + u64::from(time.subsec_nanos() > 0))
}
