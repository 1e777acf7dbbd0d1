use toolpost_model::Secret;
use toolpost_model::{ClassFact, EffectClass, RiskLevel, ToolKind};
use toolpost_processes::{Credential, CredentialHeader, NetworkSettings, UrlPrefix};

use super::Net;
use crate::desk::input;

#[test]
fn the_tools_declare_what_they_are() {
    let credential = Credential {
        name: "example".to_owned(),
        value: Secret::new("x"),
        header: CredentialHeader::default(),
        urls: vec![UrlPrefix::parse("https://api.example.org/").unwrap()],
    };
    let net = Net::with(NetworkSettings {
        credentials: vec![credential],
        ..NetworkSettings::default()
    });
    for (name, risk) in [
        ("http_request", RiskLevel::High),
        ("fetch_page", RiskLevel::Medium),
    ] {
        let declaration = net.tool(name).declaration();
        assert_eq!(declaration.tool_id.as_str(), format!("http.{name}"));
        assert_eq!(declaration.kind, ToolKind::Http);
        assert_eq!(
            declaration.interface.safety.class,
            ClassFact::Always(EffectClass::Network)
        );
        assert_eq!(declaration.interface.permission.risk, risk);
        assert!(declaration.title.is_some() && !declaration.search_hint.is_empty());
        let schema = &declaration.input.schema;
        assert_eq!(
            (&schema["additionalProperties"], &schema["required"]),
            (&false.into(), &serde_json::json!(["url"]))
        );
        let properties = schema["properties"].as_object().unwrap();
        assert!(
            properties
                .values()
                .all(|property| property["description"].is_string()),
            "{schema}"
        );
        assert!(declaration.input.examples.len() >= 3);
        for example in &declaration.input.examples {
            net.tool(name).check(&input(example.clone())).unwrap();
        }
    }
    // A reference to a secret is not one: people should see which is used.
    let schema = net.tool("http_request").declaration().input.schema;
    assert_eq!(schema["properties"]["credential"]["x-sensitive"], false);
}
