//! Finds one value by its pointer in JSON of any size. Text before the value is skipped and text after it is not read.
//! Only the value itself is held, and of a list or an object only the shown part.

use std::{cell::RefCell, fmt, io::Read, ops::Range};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::reader::ResultReadBound;

/// The largest element that is held.
const ELEMENT_BYTES: u64 = 4 << 20;

/// The value at a pointer.
#[derive(Debug, PartialEq)]
pub(super) enum JsonValueExcerpt {
    /// Neither a list nor an object.
    Scalar(Value),
    /// Elements of a list, and the number of all.
    List { shown: Vec<Value>, length: u64 },
    /// Members of an object, and the number of all.
    Object {
        shown: Map<String, Value>,
        length: u64,
    },
}

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub(super) enum PointerError {
    #[error("`{0}` is not a JSON pointer: begin it with `/`, or leave it empty")]
    NoPointer(String),
    #[error("there is nothing at `{pointer}`: {why}")]
    Nothing { pointer: String, why: String },
    #[error("an element at `{pointer}` is larger than {} MiB; use a longer pointer, or read it by bytes", ELEMENT_BYTES >> 20)]
    TooLarge { pointer: String },
    #[error("it is not JSON: {0}")]
    NotJson(String),
}

pub(super) fn parts(pointer: &str) -> Result<Vec<String>, PointerError> {
    if pointer.is_empty() {
        return Ok(Vec::new());
    }
    let rest = pointer
        .strip_prefix('/')
        .ok_or_else(|| PointerError::NoPointer(pointer.to_owned()))?;
    Ok(rest
        .split('/')
        .map(|part| part.replace("~1", "/").replace("~0", "~"))
        .collect())
}

/// Finds `pointer` and returns the elements of `range`, up to `budget` bytes of JSON.
pub(super) fn find(
    reader: impl Read,
    bound: &ResultReadBound,
    pointer: &str,
    range: Range<u64>,
    budget: usize,
) -> Result<JsonValueExcerpt, PointerError> {
    let parts = parts(pointer)?;
    let state = JsonSearchState {
        bound,
        range,
        budget,
        met: RefCell::new(None),
    };
    let mut json = serde_json::Deserializer::from_reader(reader);
    let read = JsonPathDescent {
        state: &state,
        path: &parts,
    }
    .deserialize(&mut json);
    match (state.met.into_inner(), read) {
        (Some(JsonSearchEnd::Found(found)), _) => Ok(found),
        (Some(JsonSearchEnd::Nothing(why)), _) => Err(PointerError::Nothing {
            pointer: pointer.to_owned(),
            why,
        }),
        (None, Err(_)) if bound.was_met() => Err(PointerError::TooLarge {
            pointer: pointer.to_owned(),
        }),
        (None, Err(error)) => Err(PointerError::NotJson(error.to_string())),
        (None, Ok(())) => {
            let why = "the value was skipped".to_owned();
            Err(PointerError::Nothing {
                pointer: pointer.to_owned(),
                why,
            })
        }
    }
}

/// The result of the search. It is set once, and the parser is then stopped with an internal error.
enum JsonSearchEnd {
    Found(JsonValueExcerpt),
    Nothing(String),
}

struct JsonSearchState<'s> {
    bound: &'s ResultReadBound,
    range: Range<u64>,
    budget: usize,
    met: RefCell<Option<JsonSearchEnd>>,
}

impl JsonSearchState<'_> {
    fn stop<E: serde::de::Error>(&self, met: JsonSearchEnd) -> E {
        *self.met.borrow_mut() = Some(met);
        E::custom("found")
    }
}

/// Follows the rest of a path, and ends the parsing as soon as the target is known.
#[derive(Clone, Copy)]
struct JsonPathDescent<'s> {
    state: &'s JsonSearchState<'s>,
    path: &'s [String],
}

impl<'de> DeserializeSeed<'de> for JsonPathDescent<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        // The parser reads a string whole before it passes it on, so the bound is set before.
        self.state.bound.set(ELEMENT_BYTES);
        let read = deserializer.deserialize_any(self);
        self.state.bound.lift_unless_met();
        read
    }
}

impl JsonPathDescent<'_> {
    fn scalar<E: serde::de::Error>(self, value: Value) -> Result<(), E> {
        Err(self.state.stop(match self.path.first() {
            None => JsonSearchEnd::Found(JsonValueExcerpt::Scalar(value)),
            Some(part) => JsonSearchEnd::Nothing(format!("`{part}` is looked up in a plain value")),
        }))
    }
}

impl<'de> Visitor<'de> for JsonPathDescent<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.scalar(value.into())
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.scalar(value.into())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.scalar(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.scalar(value.into())
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<(), E> {
        self.scalar(value.into())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.scalar(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.state.bound.lift();
        let Some((part, rest)) = self.path.split_first() else {
            return shown_list(self.state, list);
        };
        let Ok(wanted) = part.parse::<u64>() else {
            let why = format!("`{part}` is not an index of a list");
            return Err(self.state.stop(JsonSearchEnd::Nothing(why)));
        };
        let mut length = 0;
        loop {
            let more = if length == wanted {
                list.next_element_seed(JsonPathDescent {
                    state: self.state,
                    path: rest,
                })?
            } else {
                list.next_element::<IgnoredAny>()?.map(|_| ())
            };
            if more.is_none() {
                let why = format!("the list has {length} elements, counted from 0");
                return Err(self.state.stop(JsonSearchEnd::Nothing(why)));
            }
            length += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        self.state.bound.lift();
        let Some((part, rest)) = self.path.split_first() else {
            return shown_object(self.state, object);
        };
        let mut names = Vec::new();
        while let Some(name) = next_name(self.state, &mut object)? {
            if name == *part {
                return object.next_value_seed(JsonPathDescent {
                    state: self.state,
                    path: rest,
                });
            }
            object.next_value::<IgnoredAny>()?;
            if names.len() < 12 {
                names.push(name);
            }
        }
        let why = match names.is_empty() {
            true => "the object is empty".to_owned(),
            false => format!(
                "the object has no `{part}`, it has `{}`",
                names.join("`, `")
            ),
        };
        Err(self.state.stop(JsonSearchEnd::Nothing(why)))
    }
}

fn next_name<'de, A: MapAccess<'de>>(
    state: &JsonSearchState<'_>,
    object: &mut A,
) -> Result<Option<String>, A::Error> {
    state.bound.set(ELEMENT_BYTES);
    let name = object.next_key::<String>()?;
    state.bound.lift();
    Ok(name)
}

/// The elements that are held, and the room for more.
struct JsonElementBuffer<'s> {
    state: &'s JsonSearchState<'s>,
    room: usize,
    length: u64,
}

impl JsonElementBuffer<'_> {
    fn wants_next(&self) -> bool {
        self.room > 0 && self.state.range.contains(&self.length)
    }

    /// Whether there was room for the element. At least one element is always shown.
    fn takes(&mut self, size: usize) -> bool {
        let fits = size <= self.room || self.room == self.state.budget;
        self.room = if fits {
            self.room.saturating_sub(size)
        } else {
            0
        };
        fits
    }
}

fn shown_list<'de, A: SeqAccess<'de>>(
    state: &JsonSearchState<'_>,
    mut list: A,
) -> Result<(), A::Error> {
    let mut shelf = JsonElementBuffer {
        state,
        room: state.budget,
        length: 0,
    };
    let mut shown = Vec::new();
    loop {
        if shelf.wants_next() {
            state.bound.set(ELEMENT_BYTES);
            let element = list.next_element::<Value>()?;
            state.bound.lift();
            let Some(element) = element else { break };
            if shelf.takes(element.to_string().len()) {
                shown.push(element);
            }
        } else if list.next_element::<IgnoredAny>()?.is_none() {
            break;
        }
        shelf.length += 1;
    }
    Err(state.stop(JsonSearchEnd::Found(JsonValueExcerpt::List {
        shown,
        length: shelf.length,
    })))
}

fn shown_object<'de, A: MapAccess<'de>>(
    state: &JsonSearchState<'_>,
    mut object: A,
) -> Result<(), A::Error> {
    let mut shelf = JsonElementBuffer {
        state,
        room: state.budget,
        length: 0,
    };
    let mut shown = Map::new();
    while let Some(name) = next_name(state, &mut object)? {
        if shelf.wants_next() {
            state.bound.set(ELEMENT_BYTES);
            let value = object.next_value::<Value>()?;
            state.bound.lift();
            if shelf.takes(name.len() + value.to_string().len()) {
                shown.insert(name, value);
            }
        } else {
            object.next_value::<IgnoredAny>()?;
        }
        shelf.length += 1;
    }
    Err(state.stop(JsonSearchEnd::Found(JsonValueExcerpt::Object {
        shown,
        length: shelf.length,
    })))
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::{JsonValueExcerpt, PointerError, ResultReadBound, find};

    fn at(
        json: &str,
        pointer: &str,
        range: std::ops::Range<u64>,
    ) -> Result<JsonValueExcerpt, PointerError> {
        find(
            json.as_bytes(),
            &ResultReadBound::default(),
            pointer,
            range,
            1_000,
        )
    }

    fn check(json: &str, pointer: &str, expected: &Value) {
        let found = at(json, pointer, 0..10).unwrap();
        let value = match found {
            JsonValueExcerpt::Scalar(value) => value,
            JsonValueExcerpt::List { shown, .. } => Value::Array(shown),
            JsonValueExcerpt::Object { shown, .. } => Value::Object(shown),
        };
        assert_eq!(&value, expected, "{pointer} in {json}");
    }

    #[test]
    fn a_pointer_leads_to_its_value() {
        let json = r#"{"a":{"b":[1,{"c/d":"x","e~f":null}],"":3.5},"t":true}"#;
        check(json, "/a/b/0", &json!(1));
        check(json, "/a/b/1/c~1d", &json!("x"));
        check(json, "/a/b/1/e~0f", &json!(null));
        check(json, "/a/", &json!(3.5));
        check(json, "/t", &json!(true));
        check(json, "/a/b", &json!([1, { "c/d": "x", "e~f": null }]));
        check("[[1,2],[3]]", "/1", &json!([3]));
        check("7", "", &json!(7));
    }

    #[test]
    fn what_is_not_there_says_what_is() {
        let message = |json: &str, pointer: &str| at(json, pointer, 0..10).unwrap_err().to_string();
        assert!(message(r#"{"a":1,"b":2}"#, "/c").contains("no `c`, it has `a`, `b`"));
        assert!(message("[1,2]", "/2").contains("has 2 elements"));
        assert!(message("[1,2]", "/x").contains("not an index of a list"));
        assert!(message(r#"{"a":1}"#, "/a/b").contains("plain value"));
        assert!(message("{}", "a").contains("not a JSON pointer"));
        assert!(message("{\"a\":", "/a").contains("not JSON"));
        assert!(message("hello", "").contains("not JSON"));
    }

    #[test]
    fn a_page_of_a_list_is_held_and_the_rest_counted() {
        let list = Value::from((0..100).collect::<Vec<u32>>()).to_string();
        assert_eq!(
            at(&list, "", 10..12).unwrap(),
            JsonValueExcerpt::List {
                shown: vec![json!(10), json!(11)],
                length: 100
            }
        );
        let long = Value::from(vec!["y".repeat(300); 10]).to_string();
        let JsonValueExcerpt::List { shown, length } = at(&long, "", 0..10).unwrap() else {
            panic!("a list")
        };
        assert_eq!((shown.len(), length), (3, 10));
        let object: Map<String, Value> = (0..50).map(|n| (format!("k{n:02}"), json!(n))).collect();
        let JsonValueExcerpt::Object { shown, length } =
            at(&Value::Object(object).to_string(), "", 5..7).unwrap()
        else {
            panic!("an object")
        };
        assert_eq!(
            (Value::Object(shown), length),
            (json!({ "k05": 5, "k06": 6 }), 50)
        );
    }

    #[test]
    fn nothing_behind_the_value_is_read() {
        check("{\"a\":1,\"b\": this is not JSON any more", "/a", &json!(1));
    }
}
