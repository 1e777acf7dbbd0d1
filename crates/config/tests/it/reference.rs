//! The schema, the reference and the example agree with what is parsed.

use serde_json::{Value, json};
use toolpost_config::{
    ConfigFile, ConfigLayer, HostConfig, LayerTrust, config_example, config_reference,
    config_schema,
};
use toolpost_model::RuleOrigin;

/// The example as JSON, which is what a schema speaks about.
fn as_json(yaml: &str) -> Value {
    serde_saphyr::from_str(yaml).unwrap()
}

#[test]
fn the_example_is_good_and_the_schema_agrees() {
    let parsed = ConfigFile::parse(config_example(), "example.yaml").unwrap();
    let layer = ConfigLayer::new(parsed, LayerTrust::Trusted, RuleOrigin::Cli);
    HostConfig::resolve(&[layer]).unwrap();
    let validator = jsonschema::draft202012::new(&config_schema()).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&as_json(config_example()))
        .map(|e| e.to_string())
        .collect();
    assert_eq!(errors, Vec::<String>::new());
}

#[test]
fn the_schema_refuses_what_the_parser_refuses() {
    let validator = jsonschema::draft202012::new(&config_schema()).unwrap();
    let texts = [
        "mod: plan",
        "mode: pln",
        "rules: [alow x]",
        "rules: [{ reason: x }]",
        "rules: [{ rule: ask x, remember: always }]",
        "rules: [{ rule: ask x, tests: { matches: [] } }]",
        "tools: { x: { arguments: { /a: path } } }",
        "tools: { x: { name: a b } }",
        "sources: { x: { trust: some } }",
        "tools: { x: { keep: preview_and_persist } }",
        "limits: { artifacts: 4GB }",
        "limits: { queue: 0 }",
        "limits: { deadline: 30 }",
        "http: { body_limit: 4MB }",
        "tokens: [{ name: ci, sha256: short }]",
        "tokens: [{ name: ci, token: x }]",
        "tools: { x: { clas: read } }",
        "roots: [{ path: x, access: rw }]",
        "roots: [x]",
        "sandbox: { profile: workspace }",
        "sandbox: { processes: 0 }",
        "network: { credentials: { x: { env: X } } }",
        "network: { credentials: { x: { env: abc, urls: ['https://a/'] } } }",
        "network: { credentials: { x: { env: X, urls: [] } } }",
        "commands: { x: { description: d, argv: [] } }",
        "commands: { x: { argv: [ls] } }",
        "commands: { x: { description: d, argv: [ls], output: xml } }",
        "commands: { x: { description: d, argv: ['a', '{p}'], parameters: { p: { type: text } } } }",
        "approvals: { timeout: 10 }",
        "approvals: { timout: 10m }",
        "retention: { journal: 30d }",
        "retention: { journal: { age: 30 } }",
        "hooks: [{ name: x, event: before }]",
        "hooks: [{ name: x, event: pre, command: [x] }]",
        "hooks: [{ name: x, event: [], command: [x] }]",
        "hooks: [{ name: x, event: before, command: [] }]",
        "a2e: { host_id: '' }",
        "a2e: { audit: { backup_count: 1001 } }",
        "a2e: { audit: { max_bytes: 4MB } }",
    ];
    for text in texts {
        assert!(
            !validator.is_valid(&as_json(text)),
            "the schema takes {text}"
        );
        assert!(
            ConfigFile::parse(text, "t.yaml").is_err(),
            "the parser takes {text}"
        );
    }
}

#[test]
fn the_example_uses_every_key() {
    let schema = config_schema();
    let example = config_example();
    let mut objects = vec![&schema];
    objects.extend(schema["$defs"].as_object().unwrap().values());
    for key in objects
        .iter()
        .filter_map(|object| object["properties"].as_object())
        .flat_map(|keys| keys.keys())
    {
        assert!(
            example.contains(&format!("{key}:")),
            "`{key}` is not in the example"
        );
    }
}

#[test]
fn the_schema_carries_defaults_and_descriptions() {
    let schema = config_schema();
    let limits = &schema["$defs"]["LimitsSection"]["properties"];
    assert_eq!(limits["concurrency"]["default"], json!(64));
    assert_eq!(limits["journal"]["default"], json!("10GiB"));
    assert_eq!(schema["properties"]["mode"]["default"], json!("default"));
    for section in [
        "LimitsSection",
        "HttpSection",
        "DiscoverySection",
        "ApprovalsSection",
        "ProtectSection",
        "SandboxSection",
        "CodeSection",
    ] {
        for (key, property) in schema["$defs"][section]["properties"].as_object().unwrap() {
            assert!(
                !property["default"].is_null(),
                "{section}.{key} has no default"
            );
            assert!(
                property["description"].is_string(),
                "{section}.{key} has no description"
            );
        }
    }
}

#[test]
fn the_reference_names_everything_the_schema_does() {
    let reference = config_reference();
    assert!(
        reference
            .lines()
            .next()
            .unwrap()
            .contains("`cargo xtask gen`")
    );
    assert!(reference.contains(config_example()));
    assert!(
        reference
            .contains("| `concurrency` | whole number | `64` | Calls that run at the same time. |")
    );
    assert!(reference.contains("| `deadline_ceiling` | duration | `10m` |"));
    assert!(reference.contains("| `rules` | list of rules | – |"));
    assert!(reference.contains("| `rule` | text | required |"));
    let schema = config_schema();
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        for key in definition["properties"]
            .as_object()
            .into_iter()
            .flat_map(|keys| keys.keys())
        {
            assert!(
                reference.contains(&format!("| `{key}` |")),
                "{name}.{key} is missing"
            );
        }
        for word in definition["oneOf"].as_array().into_iter().flatten() {
            let word = word["const"].as_str().unwrap();
            assert!(
                reference.contains(&format!("| `{word}` |")),
                "{name} {word} is missing"
            );
        }
    }
}
