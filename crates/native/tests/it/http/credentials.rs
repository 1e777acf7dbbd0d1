use serde_json::{Value, json};
use toolpost_model::ErrorClass;
use toolpost_model::Secret;
use toolpost_processes::{Credential, CredentialHeader, NetworkSettings, UrlPrefix};

use super::{Net, Server, body, facts, listing, refused, reply};
use crate::http::server::Seen;

const SECRET: &str = "s3cr3t-va1ue";

fn credential(name: &str, header: &str, urls: &[String]) -> Credential {
    Credential {
        name: name.to_owned(),
        value: Secret::new(format!("{SECRET}\n")),
        header: CredentialHeader::parse(header).unwrap(),
        urls: urls
            .iter()
            .map(|url| UrlPrefix::parse(url).unwrap())
            .collect(),
    }
}

fn net(servers: &[&Server], credentials: Vec<Credential>) -> Net {
    Net::with(NetworkSettings {
        credentials,
        ..listing(servers)
    })
}

/// Sends back all it got.
fn echo(seen: &Seen) -> Vec<u8> {
    let echoed = format!("X-Echo: {}", seen.header("authorization").unwrap_or("none"));
    let told = json!({ "head": seen.head }).to_string();
    reply("200 OK", &[&echoed, "Content-Type: application/json"], told)
}

#[test]
fn a_credential_is_sent_and_never_shown() {
    let server = Server::start(echo);
    let urls = [server.url("/api/")];
    let net = net(
        &[&server],
        vec![
            credential("github", "Authorization: Bearer", &urls),
            credential("key", "X-Api-Key", &urls),
        ],
    );
    let output = net
        .request(json!({ "url": server.url("/api/x"), "credential": "github" }))
        .unwrap();
    assert_eq!(
        server.seen()[0].header("authorization"),
        Some(&*format!("Bearer {SECRET}"))
    );
    assert!(!format!("{output:?}").contains(SECRET), "{output:?}");
    assert_eq!(
        facts(&output)["headers"]["x-echo"],
        "Bearer [redacted:github]"
    );
    net.request(json!({ "url": server.url("/api/x"), "credential": "key" }))
        .unwrap();
    assert_eq!(server.seen()[1].header("x-api-key"), Some(SECRET));
    net.request(json!({ "url": server.url("/api/x") })).unwrap();
    assert_eq!(server.seen()[2].header("authorization"), None);
}

#[test]
fn a_credential_goes_only_where_it_may() {
    let server = Server::start(echo);
    let net = net(
        &[&server],
        vec![credential(
            "github",
            "Authorization: Bearer",
            &[server.url("/api/")],
        )],
    );
    for path in ["/", "/apix", "/api/../admin", "/api/%2e%2e/admin"] {
        let result = net.request(json!({ "url": server.url(path), "credential": "github" }));
        let failed = refused(result, ErrorClass::SandboxViolation);
        assert!(
            failed.message.contains("/api/") && !failed.message.contains(SECRET),
            "{failed:?}"
        );
    }
    let unknown = refused(
        net.request(json!({ "url": server.url("/api/"), "credential": "gitlab" })),
        ErrorClass::InvalidArguments,
    );
    assert!(unknown.message.contains("`github`"), "{unknown:?}");
    let both = json!({ "url": server.url("/api/"), "credential": "github", "headers": { "authorization": "mine" } });
    refused(net.request(both), ErrorClass::InvalidArguments);
    assert!(server.seen().is_empty());
}

#[test]
fn a_credential_does_not_follow_a_redirect_out_of_its_reach() {
    let there = Server::start(echo);
    let to = there.url("/api/");
    let server = Server::start(move |seen| match seen.path.as_str() {
        "/api/out" => reply("302 Found", &[&format!("Location: {to}")], ""),
        "/api/down" => reply("302 Found", &["Location: /public"], ""),
        "/api/same" => reply("302 Found", &["Location: /api/end"], ""),
        _ => echo(seen),
    });
    let urls = [server.url("/api/"), there.url("/api/")];
    let net = net(
        &[&server, &there],
        vec![credential("github", "Authorization: Bearer", &urls)],
    );
    let last = |path: &str| -> Value {
        let output = net
            .request(json!({ "url": server.url(path), "credential": "github" }))
            .unwrap();
        assert!(!body(&output).contains(SECRET));
        facts(&output)["headers"]["x-echo"].clone()
    };
    // It may be used there too, but the caller asked for here.
    assert_eq!(last("/api/out"), "none");
    assert_eq!(last("/api/down"), "none");
    assert_eq!(last("/api/same"), "Bearer [redacted:github]");
}

#[test]
fn a_credential_that_fits_no_header_says_so_without_telling_it() {
    let server = Server::start(echo);
    let mut broken = credential("github", "Authorization: Bearer", &[server.url("/")]);
    broken.value = Secret::new(format!("{SECRET}\nsecond line"));
    let net = net(&[&server], vec![broken]);
    let failed = refused(
        net.request(json!({ "url": server.url("/"), "credential": "github" })),
        ErrorClass::SetupRequired,
    );
    assert!(!format!("{failed:?}").contains(SECRET));
    assert!(server.seen().is_empty());
}
