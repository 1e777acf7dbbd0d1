//! A reference to a credential, from the configuration to the process that gets the value.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::json;

use super::{Laid, post};

const VALUE: &str = "the-real-value-of-the-credential";

fn laid(tools: &str) -> Laid {
    let config = format!(
        "mode: bypass\n\
         network:\n  credentials:\n    deploy: {{ file: secret, tools: [{tools}] }}\n\
         commands:\n  send:\n    description: Sends\n\
         \x20   argv: [sh, -c, 'printf %s \"$1\" > sent.txt; echo \"sent $1\"', sh, '{{key}}']\n\
         \x20   parameters: {{ key: {{ type: string, description: The key, required: true }} }}\n"
    );
    let laid = Laid::new(&config);
    let file = laid.beside("secret");
    fs::write(&file, VALUE).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    laid
}

#[test]
fn the_process_gets_the_value_and_the_record_has_the_reference() {
    let laid = laid("commands.send");
    let served = laid.serve();
    let result = post(
        &mut served.connect(&laid.home),
        "/tools/send/call",
        &json!({ "key": { "$cred": "deploy" } }),
    );
    assert_eq!(result["outcome"], "succeeded", "{result}");
    assert!(
        result
            .to_string()
            .contains("sent [redacted:credential_deploy]"),
        "{result}"
    );
    assert_eq!(
        result["redactions"]["credential_deploy"]
            .as_u64()
            .map(|count| count > 0),
        Some(true),
        "{result}"
    );
    assert_eq!(laid.home.read("sent.txt"), VALUE);
    let (_, log) = served.stop();
    let told = laid
        .run(&["journal", "tail", "-n", "100", "--json"])
        .expect(0)
        .stdout;
    assert!(
        told.contains("$cred") && !told.contains(VALUE) && !log.contains(VALUE),
        "{told}"
    );
}

#[test]
fn a_tool_that_is_not_listed_gets_nothing() {
    let laid = laid("commands.other");
    let served = laid.serve();
    let result = post(
        &mut served.connect(&laid.home),
        "/tools/send/call",
        &json!({ "key": { "$cred": "deploy" } }),
    );
    assert_eq!(
        result["error"]["code"], "credential_not_granted",
        "{result}"
    );
    assert!(
        result["error"]["hint"]
            .as_str()
            .unwrap()
            .contains("network.credentials.deploy.tools"),
        "{result}"
    );
    assert_eq!(laid.home.try_read("sent.txt"), None);
}
