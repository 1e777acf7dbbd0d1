//! The hash that binds an approval to the exact call.

use serde_json::Value;
use sha2::{Digest, Sha256};
use toolpost_model::{
    CallHash, Declaration, Effects, InvocationId, Principal, ProgramContent, ProgramFile,
};

/// A random value that is mixed into the hash of a call with sensitive arguments. The hash is shown and recorded, so a
/// short secret could otherwise be found by trying all values. The salt is never stored. This costs nothing, because a
/// call with sensitive arguments is not resumed by another host either.
pub(crate) struct CallHashSalt([u8; 32]);

impl CallHashSalt {
    pub(crate) fn new() -> Self {
        let mut hasher = Sha256::new();
        // Two ids have 148 random bits from the system.
        hasher.update(InvocationId::new().as_bytes());
        hasher.update(InvocationId::new().as_bytes());
        Self(hasher.finalize().into())
    }
}

/// Hashes a call. `salt` is set if its arguments hold a sensitive value.
pub(crate) fn call_hash(
    declaration: &Declaration,
    arguments: &Value,
    effects: &Effects,
    programs: &[ProgramFile],
    principal: &Principal,
    salt: Option<&CallHashSalt>,
) -> CallHash {
    let mut hash = CallHasher(Sha256::new());
    hash.field(salt.map_or(&[][..], |salt| &salt.0));
    hash.field(declaration.tool_id.as_str().as_bytes());
    hash.field(declaration.version.as_bytes());
    hash.value(arguments);
    hash.field(effects.class.as_str().as_bytes());
    hash.count(effects.uses.len());
    for used in &effects.uses {
        hash.field(used.key.as_str().as_bytes());
        hash.tag(match used.access {
            toolpost_model::ResourceAccess::Read => 0,
            toolpost_model::ResourceAccess::Write => 1,
        });
    }
    hash.optional(effects.confined.map(toolpost_model::SandboxProfile::as_str));
    hash.optional(effects.caution.as_deref());
    hash.field(principal.name.as_str().as_bytes());
    hash.field(principal.role.as_str().as_bytes());
    // Skipped if empty: the hash then equals the hash in records that are older than this field.
    if !effects.path_cautions.is_empty() {
        hash.count(effects.path_cautions.len());
        for caution in &effects.path_cautions {
            hash.field(caution.key.as_str().as_bytes());
            hash.field(caution.reason.as_bytes());
        }
    }
    // Skipped if empty: the hash then equals the hash in records that are older than this field.
    if !programs.is_empty() {
        hash.count(programs.len());
        programs.iter().for_each(|file| hash.program(file));
    }
    CallHash(hash.0.finalize().into())
}

/// Prefixes each field with its length or its kind, so that two different calls cannot produce the same bytes.
struct CallHasher(Sha256);

impl CallHasher {
    fn tag(&mut self, kind: u8) {
        self.0.update([kind]);
    }

    fn count(&mut self, count: usize) {
        self.0.update((count as u64).to_le_bytes());
    }

    fn field(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.update(bytes);
    }

    fn optional(&mut self, text: Option<&str>) {
        self.tag(u8::from(text.is_some()));
        self.field(text.unwrap_or_default().as_bytes());
    }

    fn program(&mut self, file: &ProgramFile) {
        self.field(file.name.as_bytes());
        self.field(file.path.as_bytes());
        match &file.content {
            ProgramContent::Digest { sha256, bytes } => {
                self.tag(0);
                self.field(sha256.as_bytes());
                self.field(&bytes.to_le_bytes());
            }
            ProgramContent::Identity {
                bytes,
                inode,
                changed_at,
            } => {
                self.tag(1);
                self.field(&bytes.to_le_bytes());
                self.field(inode.as_bytes());
                self.field(changed_at.as_bytes());
            }
            ProgramContent::Absent => self.tag(2),
            ProgramContent::Outside { target } => {
                self.tag(3);
                self.field(target.as_bytes());
            }
            ProgramContent::Unreadable { reason } => {
                self.tag(4);
                self.field(reason.as_bytes());
            }
        }
    }

    /// Sorts the members of objects, because their order has no meaning.
    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.tag(0),
            Value::Bool(is) => self.tag(1 + u8::from(*is)),
            Value::Number(number) => {
                self.tag(3);
                self.field(number.to_string().as_bytes());
            }
            Value::String(text) => {
                self.tag(4);
                self.field(text.as_bytes());
            }
            Value::Array(items) => {
                self.tag(5);
                self.count(items.len());
                items.iter().for_each(|item| self.value(item));
            }
            Value::Object(members) => {
                self.tag(6);
                self.count(members.len());
                let mut sorted: Vec<_> = members.iter().collect();
                sorted.sort_unstable_by_key(|(key, _)| *key);
                for (key, inner) in sorted {
                    self.field(key.as_bytes());
                    self.value(inner);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use toolpost_model::{
        CallHash, Declaration, EffectClass, Effects, Principal, ProgramContent, ProgramFile,
        ResourceAccess, ResourceKey,
    };

    use super::{CallHashSalt, call_hash};

    fn of(arguments: &Value) -> CallHash {
        let declaration = Declaration::new("a.b".parse().unwrap(), "");
        call_hash(
            &declaration,
            arguments,
            &Effects::unknown(),
            &[],
            &Principal::agent("a"),
            None,
        )
    }

    #[test]
    fn the_order_of_members_is_nothing_and_everything_else_is_something() {
        let two: Value = serde_json::from_str(r#"{"b":[1,2],"a":"x"}"#).unwrap();
        assert_eq!(of(&json!({"a": "x", "b": [1, 2]})), of(&two));
        let different = [
            json!({}),
            json!({"a": "x"}),
            json!({"a": "x", "b": [1, 2]}),
            json!({"a": "x", "b": [2, 1]}),
            json!({"a": "x", "b": [[1], 2]}),
            json!({"a": "x", "b": "12"}),
            json!({"a": null}),
            json!({"a": false}),
            json!({"a": true}),
            json!({"a": 1}),
            json!({"a": "1"}),
            json!({"a": {}}),
            json!({"a": []}),
            json!({"ab": ""}),
            json!({"a": "b"}),
        ];
        for (place, one) in different.iter().enumerate() {
            for other in &different[place + 1..] {
                assert_ne!(of(one), of(other), "{one} and {other}");
            }
        }
    }

    #[test]
    fn every_fact_counts() {
        let declaration = Declaration::new("a.b".parse().unwrap(), "");
        let mut newer = declaration.clone();
        newer.version = "2".to_owned();
        let other = Declaration::new("a.c".parse().unwrap(), "");
        let write = Effects::of(EffectClass::Write);
        let agent = Principal::agent("a");
        let read_a = write
            .clone()
            .using(ResourceKey::path("/a"), ResourceAccess::Read);
        let write_a = write
            .clone()
            .using(ResourceKey::path("/a"), ResourceAccess::Write);
        let confined = write
            .clone()
            .confined_by(toolpost_model::SandboxProfile::ReadOnly);
        let cautioned = write.clone().with_caution("mind");
        let operator = Principal::operator("a");
        let salt = CallHashSalt::new();
        let cases = [
            (&declaration, &write, &agent, None),
            (&newer, &write, &agent, None),
            (&other, &write, &agent, None),
            (&declaration, &read_a, &agent, None),
            (&declaration, &write_a, &agent, None),
            (&declaration, &confined, &agent, None),
            (&declaration, &cautioned, &agent, None),
            (&declaration, &write, &operator, None),
            (&declaration, &write, &agent, Some(&salt)),
        ];
        let hashes: std::collections::HashSet<CallHash> = cases
            .iter()
            .map(|(declaration, effects, principal, salt)| {
                call_hash(declaration, &json!({}), effects, &[], principal, *salt)
            })
            .collect();
        assert_eq!(hashes.len(), cases.len());
    }

    #[test]
    fn every_file_counts_with_its_name_its_place_and_its_content() {
        let file = |name: &str, path: &str, content: ProgramContent| {
            let name = name.to_owned();
            let path = path.to_owned();
            ProgramFile {
                name,
                path,
                content,
            }
        };
        let digest = |bytes| ProgramContent::Digest {
            sha256: "ab".to_owned(),
            bytes,
        };
        let identity = |changed_at: &str| {
            let inode = "1:2".to_owned();
            let changed_at = changed_at.to_owned();
            ProgramContent::Identity {
                bytes: 1,
                inode,
                changed_at,
            }
        };
        let one = file("x", "/w/x", digest(1));
        let sets = [
            vec![],
            vec![one.clone()],
            vec![one.clone(), one],
            vec![file("y", "/w/x", digest(1))],
            vec![file("x", "/w/y", digest(1))],
            vec![file("x", "/w/x", digest(2))],
            vec![file("x", "/w/x", identity("1.0"))],
            vec![file("x", "/w/x", identity("1.1"))],
            vec![file("x", "/w/x", ProgramContent::Absent)],
            vec![file(
                "x",
                "/w/x",
                ProgramContent::Outside {
                    target: "/usr/bin/x".to_owned(),
                },
            )],
            vec![file(
                "x",
                "/w/x",
                ProgramContent::Unreadable {
                    reason: "a folder".to_owned(),
                },
            )],
        ];
        let declaration = Declaration::new("a.b".parse().unwrap(), "");
        let effects = Effects::unknown();
        let agent = Principal::agent("a");
        let hashes: std::collections::HashSet<CallHash> = sets
            .iter()
            .map(|set| call_hash(&declaration, &json!({}), &effects, set, &agent, None))
            .collect();
        assert_eq!(hashes.len(), sets.len());
    }
}
