//! The answer of a policy endpoint: `{"result": true}`, or an object with `decision` or `allow` and a `reason`.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};
use toolpost_core::{AuthorityAnswer, AuthorityFault};
use toolpost_model::Behavior;

/// The envelope. Other keys belong to the endpoint: OPA adds `decision_id` and `metrics`.
#[derive(Deserialize)]
struct PolicyAnswerEnvelope {
    #[serde(default)]
    result: Option<PolicyResult>,
}

enum PolicyResult {
    Plain(bool),
    Fields(ResultFields),
}

/// A policy package may define further values.
#[derive(Deserialize)]
struct ResultFields {
    #[serde(default)]
    decision: Option<Behavior>,
    #[serde(default)]
    allow: Option<bool>,
    #[serde(default)]
    reason: Option<String>,
}

/// Written by hand, because serde's untagged enums report every mistake with the same message.
impl<'de> Deserialize<'de> for PolicyResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Expected;

        impl<'de> Visitor<'de> for Expected {
            type Value = PolicyResult;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false or an object with `decision` or `allow`")
            }

            fn visit_bool<E: Error>(self, allow: bool) -> Result<Self::Value, E> {
                Ok(PolicyResult::Plain(allow))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                ResultFields::deserialize(MapAccessDeserializer::new(map)).map(PolicyResult::Fields)
            }
        }

        deserializer.deserialize_any(Expected)
    }
}

pub(super) fn read(body: &[u8]) -> Result<AuthorityAnswer, AuthorityFault> {
    let fault = |text: String| AuthorityFault(text);
    let envelope: PolicyAnswerEnvelope = serde_json::from_slice(body)
        .map_err(|error| fault(format!("its answer cannot be read: {error}")))?;
    let result = envelope.result.ok_or_else(|| {
        fault("its answer has no result: the policy defines none for this input".to_owned())
    })?;
    let of_flag = |allow: bool| {
        if allow {
            Behavior::Allow
        } else {
            Behavior::Deny
        }
    };
    let (behavior, reason) = match result {
        PolicyResult::Plain(allow) => (of_flag(allow), None),
        PolicyResult::Fields(ResultFields {
            decision,
            allow,
            reason,
        }) => {
            let behavior = match (decision, allow) {
                (Some(decision), None) => decision,
                (None, Some(allow)) => of_flag(allow),
                (Some(decision), Some(allow)) if (decision == Behavior::Allow) == allow => decision,
                (Some(decision), Some(allow)) => {
                    let decision = decision.as_str();
                    let text = format!(
                        "its result contradicts itself: `decision` is {decision} and `allow` is {allow}"
                    );
                    return Err(fault(text));
                }
                (None, None) => {
                    return Err(fault(
                        "its result has neither `decision` nor `allow`".to_owned(),
                    ));
                }
            };
            (behavior, reason)
        }
    };
    Ok(AuthorityAnswer { behavior, reason })
}

#[cfg(test)]
mod tests {
    use toolpost_model::Behavior;

    use super::read;

    #[test]
    fn a_result_is_a_flag_or_an_object() {
        for (body, behavior, reason) in [
            (r#"{"result": true}"#, Behavior::Allow, None),
            (r#"{"result": false}"#, Behavior::Deny, None),
            (
                r#"{"decision_id": "1", "metrics": {}, "result": {"allow": true}}"#,
                Behavior::Allow,
                None,
            ),
            (
                r#"{"result": {"allow": false, "reason": "r"}}"#,
                Behavior::Deny,
                Some("r"),
            ),
            (
                r#"{"result": {"decision": "ask", "reason": "r", "x": [1]}}"#,
                Behavior::Ask,
                Some("r"),
            ),
            (
                r#"{"result": {"decision": "ask", "allow": false}}"#,
                Behavior::Ask,
                None,
            ),
            (
                r#"{"result": {"decision": "deny", "allow": false, "reason": null}}"#,
                Behavior::Deny,
                None,
            ),
            (
                r#"{"result": {"decision": "allow", "allow": true}}"#,
                Behavior::Allow,
                None,
            ),
        ] {
            let answer = read(body.as_bytes()).unwrap_or_else(|fault| panic!("{body}: {fault}"));
            assert_eq!(
                (answer.behavior, answer.reason.as_deref()),
                (behavior, reason),
                "{body}"
            );
        }
    }

    #[test]
    fn everything_else_is_no_decision() {
        for (body, part) in [
            ("", "cannot be read"),
            ("{}", "no result"),
            (r#"{"result": null}"#, "no result"),
            ("true", "cannot be read"),
            (
                r#"{"result": "allow"}"#,
                "expected true, false or an object",
            ),
            (r#"{"result": 1}"#, "expected true, false or an object"),
            (r#"{"result": [true]}"#, "expected true, false or an object"),
            (r#"{"result": {}}"#, "neither `decision` nor `allow`"),
            (
                r#"{"result": {"reason": "r"}}"#,
                "neither `decision` nor `allow`",
            ),
            (r#"{"result": {"allow": "true"}}"#, "cannot be read"),
            (
                r#"{"result": {"allow": true, "allow": false}}"#,
                "duplicate field `allow`",
            ),
            (
                r#"{"result": true, "result": false}"#,
                "duplicate field `result`",
            ),
            (
                r#"{"result": {"decision": "permit"}}"#,
                "unknown variant `permit`",
            ),
            (
                r#"{"result": {"decision": "deny", "allow": true}}"#,
                "contradicts itself",
            ),
            (
                r#"{"result": {"decision": "ask", "allow": true}}"#,
                "contradicts itself",
            ),
            (
                r#"{"result": {"decision": "allow", "allow": false}}"#,
                "contradicts itself",
            ),
            (
                r#"{"result": {"allow": true, "reason": 1}}"#,
                "cannot be read",
            ),
            (r#"{"result": true} x"#, "cannot be read"),
        ] {
            let fault = read(body.as_bytes()).unwrap_err();
            assert!(fault.0.contains(part), "{body}: {fault}");
        }
        let deep = format!(
            r#"{{"result": {{"allow": true, "x": {}1}}}}"#,
            "[".repeat(100_000)
        );
        assert!(read(deep.as_bytes()).is_err());
    }
}
