//! The one card for both dialects.

use serde_json::json;
use toolpost_a2a::wire::{AgentCard, Extension, Skill};

fn card() -> AgentCard {
    AgentCard {
        name: "toolpost".to_owned(),
        description: "Runs tools.".to_owned(),
        version: "0.1.0".to_owned(),
        url: "http://127.0.0.1:7420/a2a".to_owned(),
        skills: vec![Skill {
            id: "read_file".to_owned(),
            name: "Read a file".to_owned(),
            description: "Gives the lines of a file.".to_owned(),
            tags: vec![],
            examples: vec![r#"{"type":"tool-call"}"#.to_owned()],
        }],
        extensions: vec![Extension::tool_events()],
        has_extended: true,
        needs_token: true,
    }
}

#[test]
fn it_has_the_members_of_both_dialects() {
    insta::assert_json_snapshot!("card", card().to_value());
}

#[test]
fn an_open_host_asks_for_no_token() {
    let open = AgentCard {
        has_extended: false,
        needs_token: false,
        ..card()
    }
    .to_value();
    for absent in [
        "securitySchemes",
        "security",
        "securityRequirements",
        "supportsAuthenticatedExtendedCard",
    ] {
        assert_eq!(open.get(absent), None, "{absent}");
    }
    assert_eq!(open["capabilities"].get("extendedAgentCard"), None);
    assert_eq!(
        open["a2a"]["capabilities"]["extensions"],
        open["capabilities"]["extensions"]
    );
    assert_eq!(open["capabilities"]["extensions"][0].get("required"), None);
    assert_eq!(open["skills"][0]["tags"], json!([]));
}
