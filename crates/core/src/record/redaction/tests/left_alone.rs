//! Texts that look a little like a secret and are none.

use super::{super::KnownSecrets, clean};

const ORDINARY: &[&str] = &[
    // Commits, digests, UUIDs.
    "commit 3b18e512dba79e4c8300dd08aeb37f8e728b8dad",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "id 0193a5b0-7c1e-7d4e-9f35-0123456789ab, task-3b18e512dba79e4c8300dd08aeb37f8e728b8dad12345678",
    "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
    // Addresses without a password, or with a placeholder for it.
    "https://example.com:8080/a@b and https://example.com:443?to=me@example.com",
    "ssh://git@github.com:22/a/b.git postgres://user@localhost/db",
    "postgres://user:$PASSWORD@localhost postgres://user:${DB_PASS}@localhost postgres://user:<password>@localhost",
    "mysql://root:****@db mongodb://{user}:{password}@host",
    // Announcing words without a secret.
    "Authorization: Bearer <token>",
    "Authorization: Bearer $TOKEN",
    "\"Authorization\": \"Bearer {}\"",
    "the Authorization header takes Bearer tokens",
    "Authorization: Basic authentication",
    "aws_secret_access_key = YOUR_SECRET",
    "AccountKey=...",
    "User Id=sa;Trusted_Connection=yes",
    // Beginnings of tokens in names and prose.
    "ghp_short",
    "npm_config_registry=https://registry.npmjs.org",
    "npm_lifecycle_event",
    "sk-learn",
    "disk-usage",
    "AKIA",
    "SKIP THE TASK",
    "xoxb-your-token",
    "AIza",
    "glpat-",
    "hf_transformers_cache_directory_for_models",
    "eyJ is how base64 of {\" begins",
    "eyJhbGciOiJIUzI1NiJ9 alone",
    "whsec_...",
    "SG.x.y",
    // The frame of a key in code that reads keys, and keys that are not private.
    "if text.startswith(\"-----BEGIN PRIVATE KEY-----\"):\n    return parse(text)",
    "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----",
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEVs/o5+uQbTjL3chynL4wXgUg2R9\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQWxwaGFiZXRpY2FsbHkgbm90IGEgc2VjcmV0IQ==\n-----END CERTIFICATE-----",
];

#[test]
fn ordinary_texts_stay_as_they_are() {
    let host = KnownSecrets::default();
    for text in ORDINARY {
        assert_eq!(clean(&host, text).0, *text);
    }
}
