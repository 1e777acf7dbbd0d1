//! What is found, what is left alone, and that it does not matter how a stream is cut.

use std::sync::Arc;

use serde_json::json;
use toolpost_model::Arguments;

use super::{KnownSecrets, Redactor, observable};

#[test]
fn known_values_and_sensitive_fields_are_taken_out() {
    let host = KnownSecrets::new([("token", "tp_0123456789"), ("short", "abc")]);
    assert_eq!(host.text("x tp_0123456789 abc"), "x [redacted:token] abc");
    let arguments =
        Arguments::from_value(json!({ "key": "hunter2hunter2", "note": "tp_0123456789", "n": 1 }));
    let host: Arc<dyn Redactor> = Arc::new(host);
    let (shown, secrets) = observable(&arguments, &["/key".to_owned()], &host);
    assert_eq!(shown.value(), &json!({ "key": "[redacted:argument]", "note": "[redacted:token]", "n": 1 }));
    assert_eq!(secrets, ["hunter2hunter2"]);
}
