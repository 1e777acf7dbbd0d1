//! Authorities in the file: what is written, who may write it, and what people see when it is wrong.

use std::{path::PathBuf, time::Duration};

use toolpost_config::{
    AuthorityConfig, AuthorityReachConfig, ConfigFile, ConfigLayer, ConfigNotice, HostConfig,
    LayerTrust, config_example,
};
use toolpost_model::{Behavior, Rule, RuleOrigin, SandboxProfile};

fn layer(text: &str, standing: LayerTrust, origin: RuleOrigin) -> ConfigLayer {
    ConfigLayer::new(
        ConfigFile::parse(text, "toolpost.yaml").unwrap(),
        standing,
        origin,
    )
}

fn trusted(text: &str) -> ConfigLayer {
    layer(text, LayerTrust::Trusted, RuleOrigin::User)
}

fn resolved(layers: &[ConfigLayer]) -> (HostConfig, Vec<ConfigNotice>) {
    HostConfig::resolve(layers).unwrap()
}

const OPA: &str = "authorities: { opa: { url: 'http://127.0.0.1:8181/v1/data/x' } }\n";

fn urls(config: &HostConfig) -> Vec<&str> {
    let reaches = config.authorities.iter().map(|authority| &authority.reach);
    let url = reaches.filter_map(|reach| match reach {
        AuthorityReachConfig::Endpoint { url, .. } => Some(url.as_str()),
        AuthorityReachConfig::Program { .. } => None,
    });
    url.collect()
}

#[test]
fn what_is_left_out_has_its_default() {
    let expected = AuthorityConfig {
        name: "opa".parse().unwrap(),
        reach: AuthorityReachConfig::Endpoint {
            url: "http://127.0.0.1:8181/v1/data/x".to_owned(),
            credential: None,
            max_answer: 64 << 10,
        },
        timeout: Duration::from_secs(5),
        cache: None,
        place: "toolpost.yaml:1".to_owned(),
    };
    assert_eq!(resolved(&[trusted(OPA)]).0.authorities, [expected]);
}

#[test]
fn each_key_reaches_its_own_setting_and_files_are_found_beside_the_configuration() {
    let example =
        layer(config_example(), LayerTrust::Trusted, RuleOrigin::Cli).relative_to("/etc/host");
    let (config, _) = resolved(&[example]);
    let [hours, opa] = <[AuthorityConfig; 2]>::try_from(config.authorities).unwrap();
    assert_eq!(
        (hours.name.as_str(), hours.environment()),
        ("office-hours", &["OFFICE_REGION".to_owned()][..])
    );
    let AuthorityReachConfig::Program {
        command,
        files,
        profile,
        writable,
        ..
    } = hours.reach
    else {
        panic!("a program")
    };
    assert_eq!(command, ["python3", "/etc/host/office_hours.py"]);
    assert_eq!(files, [PathBuf::from("/etc/host/office_hours.py")]);
    assert_eq!(
        (profile, writable),
        (
            SandboxProfile::ReadOnly,
            vec![PathBuf::from("/var/lib/office")]
        )
    );
    assert_eq!(
        (opa.timeout, opa.cache),
        (Duration::from_secs(2), Some(Duration::from_secs(10)))
    );
    let AuthorityReachConfig::Endpoint { credential, .. } = opa.reach else {
        panic!("an endpoint")
    };
    assert_eq!(credential.as_deref(), Some("opa"));
}

#[test]
fn only_trusted_files_define_authorities_and_the_highest_standing_counts() {
    let other = "authorities: { opa: { url: 'http://127.0.0.1:9/x' } }\n";
    let policy = layer(other, LayerTrust::Trusted, RuleOrigin::Policy);
    let (config, notices) = resolved(&[policy, trusted(OPA)]);
    assert_eq!(
        (urls(&config), notices.len()),
        (vec!["http://127.0.0.1:9/x"], 0)
    );
    for standing in [LayerTrust::Untrusted, LayerTrust::LastGood] {
        let (config, notices) =
            resolved(&[trusted(OPA), layer(other, standing, RuleOrigin::Project)]);
        assert_eq!(urls(&config), ["http://127.0.0.1:8181/v1/data/x"]);
        // That a file cannot be read is said in its own note.
        assert_eq!(
            notices.len(),
            usize::from(standing == LayerTrust::Untrusted),
            "{notices:?}"
        );
    }
}

#[test]
fn a_rule_of_an_untrusted_file_delegates_nothing_and_one_that_cannot_be_read_denies() {
    let delegates = "rules: [delegate opa echo, delegate nobody shell]\n";
    let (config, notices) = resolved(&[
        trusted(OPA),
        layer(delegates, LayerTrust::Untrusted, RuleOrigin::Project),
    ]);
    assert_eq!((config.rules.len(), notices.len()), (0, 2));
    assert!(
        notices[0]
            .message
            .contains("`delegate opa echo` is ignored"),
        "{notices:?}"
    );
    let last_good = layer(delegates, LayerTrust::LastGood, RuleOrigin::Project);
    let rules: Vec<Rule> = resolved(&[trusted(OPA), last_good]).0.rules;
    assert!(
        rules
            .iter()
            .all(|rule| rule.delegate.is_none() && rule.effect == Behavior::Deny),
        "{rules:?}"
    );
    let lines: Vec<String> = rules.iter().map(ToString::to_string).collect();
    assert_eq!(lines, ["deny echo", "deny shell"]);
}

#[test]
fn a_rule_that_names_an_unknown_authority_is_an_error_with_its_place() {
    for (text, line, hint) in [
        (
            "rules:\n  - allow echo\n  - delegate oppa echo\n",
            3,
            "did you mean `opa`?",
        ),
        (
            "rules:\n  - { rule: delegate court echo, id: x }\n",
            2,
            "the authorities are: opa",
        ),
    ] {
        let errors = HostConfig::resolve(&[trusted(OPA), trusted(text)]).unwrap_err();
        let error = errors.iter().next().unwrap();
        assert!(
            error
                .message
                .contains("no trusted file defines that authority"),
            "{errors}"
        );
        assert_eq!(
            (error.line, error.hint.as_deref()),
            (line, Some(hint)),
            "{errors}"
        );
    }
    let errors = HostConfig::resolve(&[trusted("rules: [delegate opa echo]\n")]).unwrap_err();
    let hint = "define it under `authorities.opa`, with a `url` or a `command`";
    assert_eq!(errors.iter().next().unwrap().hint.as_deref(), Some(hint));
    // A definition of an untrusted file is none.
    let untrusted = layer(OPA, LayerTrust::Untrusted, RuleOrigin::Project);
    assert!(HostConfig::resolve(&[trusted("rules: [delegate opa echo]\n"), untrusted]).is_err());
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for (entry, message) in [
        ("opa: {}", "needs either a `url` or a `command`"),
        (
            "opa: { url: 'http://a/', command: [x] }",
            "needs either a `url` or a `command`",
        ),
        (
            "opa: { url: 'ftp://a/' }",
            "is not the address of a policy endpoint",
        ),
        (
            "opa: { url: 'http://user:pw@a/' }",
            "is not the address of a policy endpoint",
        ),
        (
            "opa: { url: 'http://a/?x=1' }",
            "is not the address of a policy endpoint",
        ),
        (
            "opa: { url: 'http://a/', profile: none }",
            "requires `command`",
        ),
        (
            "opa: { url: 'http://a/', max_answer: 2MiB }",
            "must be between",
        ),
        ("opa: { url: 'http://a/', timeout: 2m }", "must be between"),
        ("opa: { url: 'http://a/', cache: 2d }", "must be between"),
        ("opa: { command: [x], max_answer: 1KiB }", "requires `url`"),
        ("opa: { command: [] }", "is empty"),
        (
            "opa: { command: [a/b] }",
            "neither a name nor an unambiguous path",
        ),
        ("o.p.a: { command: [x] }", "is not a name for an authority"),
    ] {
        let text = format!("authorities:\n  {entry}\n");
        let errors = ConfigFile::parse(&text, "t").unwrap_err();
        let error = errors.iter().next().unwrap();
        assert!(error.message.contains(message), "{entry}: {errors}");
        assert!(!error.message.contains("pw"), "{errors}");
        assert_eq!(error.line, 2, "{errors}");
    }
    let errors = HostConfig::resolve(&[trusted(
        "authorities: { opa: { url: 'http://a/', credential: oppa } }\nnetwork: { credentials: { opa: { env: X, urls: ['http://a/'] } } }\n",
    )])
    .unwrap_err();
    let error = errors.iter().next().unwrap();
    assert_eq!(
        error.hint.as_deref(),
        Some("did you mean `opa`?"),
        "{errors}"
    );
}
