//! An index that finds the few rules, among thousands, that could match a command, a path or a request.
//!
//! An index only narrows the candidates. Its users still match them with their matchers.

use std::collections::HashMap;

use toolpost_command::SimpleCommand;

use super::{
    matcher::Matcher,
    path_pattern::PathPattern,
    places::PlainPath,
    url_pattern::{HostPattern, PlannedUrlRequest},
};

/// A rule's index in its snapshot.
pub(super) type RulePosition = u32;

/// Rules by parts of their patterns.
#[derive(Debug, Default)]
pub(super) struct MatcherIndex {
    /// By the name of the program.
    programs: HashMap<Box<str>, Vec<RulePosition>>,
    /// By the folder that their paths begin with.
    folders: HashMap<Box<str>, Vec<RulePosition>>,
    /// By a name that must be a component of the path.
    names: HashMap<Box<str>, Vec<RulePosition>>,
    hosts: HashMap<Box<str>, Vec<RulePosition>>,
    domains: HashMap<Box<str>, Vec<RulePosition>>,
    /// Rules that must be matched against each subject.
    any_command: Vec<RulePosition>,
    any_path: Vec<RulePosition>,
    any_request: Vec<RulePosition>,
}

impl MatcherIndex {
    pub(super) fn add(&mut self, place: RulePosition, matcher: &Matcher) {
        let Some(readings) = matcher.readings() else {
            self.any_command.push(place);
            self.any_path.push(place);
            self.any_request.push(place);
            return;
        };
        let pattern = readings.command.as_ref().map(ToString::to_string);
        match pattern.as_deref().and_then(program_of) {
            Some(program) => self.programs.entry(program.into()).or_default().push(place),
            None => self.any_command.push(place),
        }
        match &readings.path {
            Some(pattern) => self.add_path(place, pattern),
            None => self.any_path.push(place),
        }
        match readings.url.as_ref().map(|pattern| &pattern.host) {
            Some(HostPattern::Exactly(host)) => {
                self.hosts
                    .entry(host.as_str().into())
                    .or_default()
                    .push(place);
            }
            Some(HostPattern::Beneath(domain)) => {
                self.domains
                    .entry(domain.as_str().into())
                    .or_default()
                    .push(place);
            }
            Some(HostPattern::Any) => self.any_request.push(place),
            None => {}
        }
    }

    fn add_path(&mut self, place: RulePosition, pattern: &PathPattern) {
        for alternative in &pattern.alternatives {
            let list = match (alternative.beginning(), alternative.name()) {
                (Some(folder), _) => self.folders.entry(folder.into()).or_default(),
                (None, Some(name)) => self.names.entry(name.into()).or_default(),
                (None, None) => &mut self.any_path,
            };
            if list.last() != Some(&place) {
                list.push(place);
            }
        }
    }

    pub(super) fn for_command(&self, command: &SimpleCommand) -> Vec<RulePosition> {
        let mut found = self.any_command.clone();
        // A multi-call program such as `busybox` has the name of the command in its first argument.
        let mut look_up = |name: &str| found.extend(self.programs.get(name).into_iter().flatten());
        for name in command.words.iter().map(|word| base_name(word)) {
            look_up(name);
            if !matches!(name, "busybox" | "toybox") {
                break;
            }
        }
        for outer in &command.within {
            look_up(base_name(outer.split(' ').next().unwrap_or(outer)));
        }
        in_order(found)
    }

    pub(super) fn for_path(&self, path: &PlainPath) -> Vec<RulePosition> {
        let mut found = self.any_path.clone();
        if !self.folders.is_empty() {
            found.extend(
                path.and_above()
                    .filter_map(|folder| self.folders.get(folder))
                    .flatten(),
            );
        }
        if !self.names.is_empty() {
            found.extend(
                path.components()
                    .filter_map(|name| self.names.get(name))
                    .flatten(),
            );
        }
        in_order(found)
    }

    pub(super) fn for_request(&self, request: &PlannedUrlRequest) -> Vec<RulePosition> {
        let mut found = self.any_request.clone();
        found.extend(self.hosts.get(request.host()).into_iter().flatten());
        let mut domain = request.host();
        while let Some((_, above)) = domain.split_once('.') {
            found.extend(self.domains.get(above).into_iter().flatten());
            domain = above;
        }
        in_order(found)
    }
}

/// Sorts the rules in their written order and removes duplicates.
fn in_order(mut found: Vec<RulePosition>) -> Vec<RulePosition> {
    found.sort_unstable();
    found.dedup();
    found
}

fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// The program of a pattern, if it is written without quotes or wildcards.
fn program_of(pattern: &str) -> Option<&str> {
    let word = pattern.split_whitespace().next()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+');
    let name = base_name(word);
    (word.chars().all(plain) && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};
    use toolpost_model::{Behavior, ResourceAccess};

    use super::{Matcher, MatcherIndex, PlainPath, PlannedUrlRequest};
    use crate::permission::places::PathBaseFolders;

    fn places() -> PathBaseFolders {
        PathBaseFolders {
            workspace: Some("/w".into()),
            home: Some("/h".into()),
            roots: Vec::new(),
        }
    }

    /// Few words for patterns and paths, so that they often match.
    fn piece() -> impl Strategy<Value = &'static str> {
        select(vec![
            "a", "b", "w", "h", "*", "**", "a*", "?", "[ab]", "{a,b}", ".env", "ws:", "~",
        ])
    }

    fn path() -> impl Strategy<Value = String> {
        vec(select(vec!["a", "b", "w", "h", "ab", ".env"]), 0..5)
            .prop_map(|parts| format!("/{}", parts.join("/")))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_index_finds_every_path_rule_that_fits(
            pieces in vec(piece(), 1..5), rooted in any::<bool>(), path in path(),
        ) {
            let text = format!("{}{}", if rooted { "/" } else { "" }, pieces.join("/"));
            let Ok(matcher) = Matcher::of_paths(&text, &places()) else { return Ok(()) };
            let mut index = MatcherIndex::default();
            index.add(7, &matcher);
            let path = PlainPath::of(&path).unwrap();
            for effect in [Behavior::Allow, Behavior::Deny] {
                for access in [ResourceAccess::Read, ResourceAccess::Write] {
                    if matcher.takes_path(effect, &path, access) {
                        prop_assert_eq!(index.for_path(&path), vec![7], "{} on {:?}", text, path);
                    }
                }
            }
        }

        #[test]
        fn the_index_finds_every_command_rule_that_fits(
            words in vec(select(vec!["rm", "/bin/rm", "git", "*", "r*", "{rm,git}", "sudo", "busybox", "X=1", "'rm'"]), 1..4),
            command in vec(select(vec!["rm", "/bin/rm", "git", "sudo", "busybox", "X=1", "sh -c 'rm x'", "$y", "; "]), 1..5),
        ) {
            let Ok(matcher) = Matcher::parse(&words.join(" "), &places()) else { return Ok(()) };
            let mut index = MatcherIndex::default();
            index.add(7, &matcher);
            for found in toolpost_command::analyze(&command.join(" ")).commands {
                for effect in [Behavior::Allow, Behavior::Deny] {
                    if matcher.takes_command(effect, &found) {
                        prop_assert_eq!(index.for_command(&found), vec![7], "{:?} on {:?}", words, found);
                    }
                }
            }
        }

        #[test]
        fn the_index_finds_every_request_rule_that_fits(
            host in select(vec!["a.b.example", "b.example", "example", "*.example", "*.b.example", "*", "127.0.0.1"]),
            request in select(vec!["a.b.example", "b.example", "example", "x.a.b.example", "127.1", "[::ffff:7f00:1]"]),
        ) {
            let matcher = Matcher::of_requests(&format!("https://{host}/*")).unwrap();
            let mut index = MatcherIndex::default();
            index.add(7, &matcher);
            let request = PlannedUrlRequest::parse(&format!("https://{request}/x"), None).unwrap();
            if matcher.takes_request(Behavior::Deny, &request) {
                prop_assert_eq!(index.for_request(&request), vec![7], "{} on {:?}", host, request);
            }
        }
    }
}
