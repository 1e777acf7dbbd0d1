//! The offers of sources besides tools, as one client sees them. Every address has one owner and every name one prompt,
//! so that no server can impersonate another.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolpost_core::{Host, Session};
use toolpost_model::SourceCompanions;

/// Addresses with this prefix belong to the host, even if a server lists one.
const OURS: &str = "toolpost:";
/// The most clashes that are remembered as reported.
const MOST_TOLD: usize = 1_024;

/// All offers, in the order of the sources.
pub(super) struct CompanionOffers(Vec<(String, Arc<SourceCompanions>)>);

/// An offer that is found by its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressedOfferKind {
    Resources,
    Templates,
}

/// A prompt under the name that clients see.
pub(super) struct OfferedPrompt<'a> {
    pub(super) shown: Cow<'a, str>,
    /// The server's own name of the prompt.
    pub(super) own: &'a str,
    pub(super) of: &'a SourceCompanions,
    entry: &'a Value,
}

impl OfferedPrompt<'_> {
    pub(super) fn entry(&self) -> Value {
        let mut entry = self.entry.clone();
        entry["name"] = json!(self.shown);
        entry
    }
}

impl AddressedOfferKind {
    fn of(self, companions: &SourceCompanions) -> (&[Value], &'static str) {
        match self {
            Self::Resources => (&companions.resources, "uri"),
            Self::Templates => (&companions.templates, "uriTemplate"),
        }
    }
}

fn is_ours(address: &str) -> bool {
    address
        .get(..OURS.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(OURS))
}

impl CompanionOffers {
    pub(super) fn to(host: &Host, session: &Session) -> Self {
        Self(host.companions(session))
    }

    pub(super) fn any(&self, has: fn(&SourceCompanions) -> bool) -> bool {
        self.0.iter().any(|(_, companions)| has(companions))
    }

    /// The listed offers of a kind. If two sources have the same address, the first one's offer is listed; the host's
    /// own addresses are left out.
    pub(super) fn addressed(
        &self,
        kind: AddressedOfferKind,
        clashes: &AddressClashes,
    ) -> Vec<&Value> {
        let mut owners: HashMap<&str, &str> = HashMap::new();
        let mut listed = Vec::new();
        for (source, companions) in &self.0 {
            let (entries, key) = kind.of(companions);
            for entry in entries {
                let Some(address) = entry[key].as_str() else {
                    continue;
                };
                if is_ours(address) {
                    clashes.tell(source, address, "this host");
                } else if let Some(owner) = owners.get(address) {
                    clashes.tell(source, address, owner);
                } else {
                    owners.insert(address, source);
                    listed.push(entry);
                }
            }
        }
        listed
    }

    /// The source of an address: the one that lists it, else the one with a matching template, else the only one that
    /// reads resources at all.
    pub(super) fn owner(&self, uri: &str) -> Option<&SourceCompanions> {
        if is_ours(uri) {
            return None;
        }
        let readers = || {
            self.0
                .iter()
                .map(|(_, companions)| &**companions)
                .filter(|one| one.read.is_some())
        };
        let lists =
            |one: &&SourceCompanions| one.resources.iter().any(|resource| resource["uri"] == uri);
        let fits = |one: &&SourceCompanions| {
            let mut templates = one
                .templates
                .iter()
                .filter_map(|template| template["uriTemplate"].as_str());
            templates.any(|template| fits(template, uri))
        };
        let only = || {
            let mut all = readers();
            let first = all.next();
            first.filter(|_| all.next().is_none())
        };
        readers()
            .find(lists)
            .or_else(|| readers().find(fits))
            .or_else(only)
    }

    /// The source that lists exactly this address or template.
    pub(super) fn lister(&self, address: &str) -> Option<&SourceCompanions> {
        let lists = |one: &&SourceCompanions| {
            one.templates
                .iter()
                .any(|template| template["uriTemplate"] == address)
                || one
                    .resources
                    .iter()
                    .any(|resource| resource["uri"] == address)
        };
        self.0
            .iter()
            .map(|(_, companions)| &**companions)
            .filter(|_| !is_ours(address))
            .find(lists)
    }

    /// All prompts. If two sources have a prompt with the same name, both get their source's name as a prefix.
    pub(super) fn prompts(&self) -> Vec<OfferedPrompt<'_>> {
        let every = || {
            self.0.iter().flat_map(|(source, companions)| {
                let named = |entry: &Value| entry["name"].as_str().is_some();
                let prompts = companions.prompts.iter().filter(move |entry| named(entry));
                prompts.map(move |entry| (source.as_str(), &**companions, entry))
            })
        };
        let name = |entry: &'_ Value| entry["name"].as_str().unwrap_or_default().to_owned();
        let mut sources: HashMap<String, HashSet<&str>> = HashMap::new();
        let mut qualified: HashSet<String> = HashSet::new();
        for (source, _, entry) in every() {
            sources.entry(name(entry)).or_default().insert(source);
            qualified.insert(in_full(source, &name(entry)));
        }
        let mut seen: HashSet<String> = HashSet::new();
        let shown = every().filter_map(|(source, of, entry)| {
            let own = entry["name"].as_str()?;
            // A name that looks like another source's prefixed prompt gets a prefix too.
            let is_plain =
                sources.get(own).is_some_and(|all| all.len() == 1) && !qualified.contains(own);
            let shown = if is_plain {
                Cow::Borrowed(own)
            } else {
                Cow::Owned(in_full(source, own))
            };
            seen.insert(shown.to_string()).then_some(OfferedPrompt {
                shown,
                own,
                of,
                entry,
            })
        });
        shown.collect()
    }

    pub(super) fn prompt(&self, shown: &str) -> Option<OfferedPrompt<'_>> {
        self.prompts()
            .into_iter()
            .find(|prompt| prompt.shown == shown)
    }
}

/// The name of a prompt with its source as prefix, in the same form as for tools.
fn in_full(source: &str, name: &str) -> String {
    format!("{source}__{name}")
}

/// Whether an address matches a template: the fixed texts occur in their order. A template without a fixed scheme would
/// match the addresses of all other servers, so it matches none.
fn fits(template: &str, uri: &str) -> bool {
    let Some((head, mut rest)) = template.split_once('{') else {
        return template == uri;
    };
    if head.find(':').is_none_or(|at| at == 0) {
        return false;
    }
    let Some(mut left) = uri.strip_prefix(head) else {
        return false;
    };
    while let Some((_, after)) = rest.split_once('}') {
        let (fixed, next) = after
            .split_once('{')
            .map_or((after, None), |(fixed, next)| (fixed, Some(next)));
        match (left.find(fixed), next) {
            (Some(at), Some(next)) => {
                left = &left[at + fixed.len()..];
                rest = next;
            }
            (Some(_), None) => return left.ends_with(fixed),
            (None, _) => return false,
        }
    }
    true
}

/// The reported clashes of addresses, so that each is reported once.
#[derive(Default)]
pub(super) struct AddressClashes(Mutex<HashSet<(String, String)>>);

impl AddressClashes {
    fn tell(&self, source: &str, address: &str, owner: &str) {
        let shown: String = address
            .chars()
            .take(200)
            .flat_map(char::escape_debug)
            .collect();
        let mut told = self.0.lock();
        if told.len() >= MOST_TOLD || !told.insert((source.to_owned(), shown.clone())) {
            return;
        }
        drop(told);
        tracing::warn!(
            source,
            address = shown,
            owner,
            "an address is left out: another source owns it"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn addresses_fit_the_templates_they_were_made_from() {
        for (template, uri, expected) in [
            ("test://template/{id}/data", "test://template/7/data", true),
            (
                "test://template/{id}/data",
                "test://template/7/other",
                false,
            ),
            ("test://template/{id}", "test://template/7", true),
            ("test://{a}/x/{b}", "test://1/x/2", true),
            ("test://{a}/x/{b}", "test://1/y/2", false),
            ("test://fixed", "test://fixed", true),
            ("test://fixed", "test://fixed/2", false),
            ("other://{id}", "test://7", false),
            ("{+any}", "test://7", false),
            ("te{+any}", "test://7", false),
        ] {
            assert_eq!(fits(template, uri), expected, "{template} {uri}");
        }
    }
}
