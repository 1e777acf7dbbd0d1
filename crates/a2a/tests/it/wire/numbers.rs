//! Whole numbers that arrive with a point.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolpost_a2a::wire::{Part, narrowed};

use super::properties::any_json;

#[test]
fn whole_numbers_lose_their_point() {
    let check = |text: &str, expected: &str| {
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(narrowed(value).to_string(), expected);
    };
    check("2.0", "2");
    check("-2.0", "-2");
    check("-0.0", "0");
    check("1e3", "1000");
    check("2.5", "2.5");
    check("9007199254740992.0", "9007199254740992");
    check("9007199254740994.0", "9007199254740994.0");
    check("1e300", "1e+300");
    // Written without a point, it is exact already.
    check("9007199254740993", "9007199254740993");
    check("18446744073709551615", "18446744073709551615");
    check(
        r#"{"a":[1.0,{"b":3.0}],"c":"2.0"}"#,
        r#"{"a":[1,{"b":3}],"c":"2.0"}"#,
    );
}

#[test]
fn the_data_of_a_part_comes_narrowed() {
    assert_eq!(
        Part::data(json!({ "n": 2.0 })).narrowed_data(),
        Some(json!({ "n": 2 }))
    );
    assert_eq!(Part::text("2.0").narrowed_data(), None);
}

/// Equal but for how a number is written.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| one.0 == other.0 && same(one.1, other.1))
        }
        (one, other) => one == other,
    }
}

fn numbers(value: &Value, found: &mut Vec<serde_json::Number>) {
    match value {
        Value::Number(number) => found.push(number.clone()),
        Value::Array(items) => items.iter().for_each(|item| numbers(item, found)),
        Value::Object(members) => members.values().for_each(|member| numbers(member, found)),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

proptest! {
    #[test]
    fn narrowing_changes_no_value_and_is_done_at_once(value in any_json()) {
        let once = narrowed(value.clone());
        prop_assert!(same(&value, &once));
        prop_assert_eq!(&narrowed(once.clone()), &once);
        let mut left = Vec::new();
        numbers(&once, &mut left);
        for number in left.iter().filter(|number| number.is_f64()) {
            let float = number.as_f64().unwrap();
            prop_assert!(float.fract() != 0.0 || float.abs() > 9_007_199_254_740_992.0, "{}", number);
        }
    }

    #[test]
    fn an_integer_that_went_through_a_double_comes_back(integer in -9_007_199_254_740_992_i64..=9_007_199_254_740_992) {
        prop_assert_eq!(narrowed(json!(integer as f64)), json!(integer));
        prop_assert_eq!(narrowed(json!(integer)), json!(integer));
    }
}
