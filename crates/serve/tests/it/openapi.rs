//! The API as it describes itself, held against the router and the server.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{client::Request, running::Place};

/// The router's own lines, so that a route added there and forgotten in the document is found.
const ROUTER: &str = include_str!("../../src/http.rs");

/// Every `METHOD /path` of the router.
fn routes() -> BTreeSet<String> {
    let mut routes = BTreeSet::new();
    // rustfmt may break a route over several lines.
    let router = ROUTER.split_whitespace().collect::<Vec<_>>().join(" ");
    for route in router.split(".route(").skip(1) {
        let (path, handlers) = route.trim().split_once(", ").unwrap();
        let path = if path == "HEALTH" {
            "/health"
        } else {
            path.trim_matches('"')
        };
        for method in ["get", "post", "put", "patch", "delete"] {
            if handlers.starts_with(&format!("{method}("))
                || handlers.contains(&format!(").{method}("))
            {
                routes.insert(format!("{} {path}", method.to_uppercase()));
            }
        }
    }
    routes
}

fn described(document: &Value) -> BTreeSet<String> {
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            described.insert(format!("{} {path}", method.to_uppercase()));
        }
    }
    described
}

#[test]
fn every_route_is_described_and_nothing_else() {
    let routes = routes();
    assert!(routes.len() >= 11, "the router was read: {routes:?}");
    assert_eq!(described(&toolpost_serve::openapi_document()), routes);
}

#[tokio::test]
async fn every_described_route_is_served_and_asks_for_a_token_as_it_says() {
    let server = Place::new().start().await;
    let document = server.send(Request::get("/openapi.json")).await.json();
    assert_eq!(document, toolpost_serve::openapi_document());
    assert_eq!(document["openapi"], "3.1.0");
    for route in described(&document) {
        let (method, path) = route.split_once(' ').unwrap();
        let operation = &document["paths"][path][method.to_lowercase()];
        let filled = path.replace("{name}", "echo").replace("{id}", "x");
        let method = ["GET", "POST", "DELETE"]
            .into_iter()
            .find(|known| *known == method)
            .unwrap();
        let answer = server.send_bare(Request::new(method, filled)).await;
        let is_open = operation["security"].as_array().is_some_and(Vec::is_empty);
        assert_eq!(answer.status(), if is_open { 200 } else { 401 }, "{route}");
        let said = operation["responses"].get(answer.status().to_string());
        assert!(
            said.is_some(),
            "{route} does not say that it answers {}",
            answer.status()
        );
    }
}

#[test]
fn every_reference_leads_somewhere() {
    fn check(document: &Value, value: &Value, found: &mut usize) {
        match value {
            Value::Object(object) => {
                if let Some(reference) = object.get("$ref") {
                    let reference = reference.as_str().unwrap();
                    let pointer = reference
                        .strip_prefix('#')
                        .unwrap_or_else(|| panic!("{reference} leads outside"));
                    assert!(
                        document.pointer(pointer).is_some(),
                        "{reference} leads nowhere"
                    );
                    *found += 1;
                }
                object
                    .values()
                    .for_each(|inner| check(document, inner, found));
            }
            Value::Array(items) => items.iter().for_each(|item| check(document, item, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let document = toolpost_serve::openapi_document();
    let mut found = 0;
    check(&document, &document, &mut found);
    assert!(found > 30, "{found} references");
}

/// The parameters in a path's braces are exactly the ones its operations describe.
#[test]
fn every_path_parameter_is_described() {
    let document = toolpost_serve::openapi_document();
    for (path, item) in document["paths"].as_object().unwrap() {
        let in_path: BTreeSet<&str> = path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
            .collect();
        for (method, operation) in item.as_object().unwrap() {
            let parameters = operation["parameters"]
                .as_array()
                .map(Vec::as_slice)
                .unwrap_or_default();
            let resolved = parameters
                .iter()
                .map(|parameter| match parameter["$ref"].as_str() {
                    Some(reference) => document.pointer(&reference[1..]).unwrap(),
                    None => parameter,
                });
            let described: BTreeSet<&str> = resolved
                .filter(|parameter| parameter["in"] == "path")
                .map(|parameter| parameter["name"].as_str().unwrap())
                .collect();
            assert_eq!(described, in_path, "{method} {path}");
        }
    }
}
