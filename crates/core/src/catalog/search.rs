//! The search for tools: fielded BM25 for the ranking, plus every substring hit, so that it finds everything that a
//! plain text search would find.

use std::{
    cmp::Ordering,
    collections::{BinaryHeap, HashMap, HashSet},
};

use memchr::memmem;
use strsim::generic_levenshtein;

use super::CatalogEntry;

const K1: f32 = 1.2;
const B: f32 = 0.6;
/// Weights of name, tags with hint, and description. A word in a name counts most.
const NAME: f32 = 4.0;
const TAGS: f32 = 2.0;
const DESCRIPTION: f32 = 1.0;

/// The score of a tool without a matching word.
const UNTOUCHED: f32 = -1.0;

/// An inverted index over name, tags, search hint and description.
#[derive(Default)]
pub(super) struct SearchIndex {
    postings: HashMap<Box<str>, Vec<SearchPosting>>,
    lengths: Vec<f32>,
    mean_length: f32,
    /// All texts in lower case, one after another, for substring hits.
    text: String,
    ends: Vec<usize>,
    names: Vec<Box<str>>,
}

struct SearchPosting {
    place: u32,
    weight: f32,
}

impl SearchIndex {
    pub(super) fn add(&mut self, entry: &CatalogEntry) {
        let declaration = entry.declaration();
        let place = u32::try_from(self.lengths.len()).unwrap_or(u32::MAX);
        let mut weights: HashMap<String, f32> = HashMap::new();
        let mut length = 0.0;
        let mut field = |text: &str, weight: f32| {
            for word in words(text) {
                *weights.entry(word).or_default() += weight;
                length += weight;
            }
        };
        for name in entry.names() {
            field(name, NAME);
        }
        declaration
            .title
            .iter()
            .for_each(|title| field(title, NAME));
        declaration.tags.iter().for_each(|tag| field(tag, TAGS));
        field(&declaration.search_hint, TAGS);
        field(&declaration.description, DESCRIPTION);
        for (word, weight) in weights {
            self.postings
                .entry(word.into())
                .or_default()
                .push(SearchPosting { place, weight });
        }
        self.lengths.push(length);
        self.names.push(entry.name().to_lowercase().into());
        let tags = declaration.tags.join("\n");
        for text in [entry.name(), &declaration.description, &tags] {
            self.text.push_str(&text.to_lowercase());
            // A character that no query contains keeps a hit from spanning two texts.
            self.text.push('\0');
        }
        self.ends.push(self.text.len());
    }

    pub(super) fn finish(&mut self) {
        let total: f32 = self.lengths.iter().sum();
        self.mean_length = (total / self.lengths.len().max(1) as f32).max(1.0);
        self.text.shrink_to_fit();
    }

    /// Places, best first: the exact name, then by score, then matches of a substring alone. Lazy, because most callers
    /// need the first ten of many thousands.
    pub(super) fn search(&self, query: &str) -> impl Iterator<Item = usize> {
        let query = query.trim().to_lowercase();
        // One slot a tool is faster than a map as soon as a word is common.
        let mut scores = vec![UNTOUCHED; self.lengths.len()];
        let mut touched: Vec<u32> = Vec::new();
        let asked: HashSet<String> = words(&query).collect();
        for word in &asked {
            let Some(postings) = self.postings.get(word.as_str()) else {
                continue;
            };
            let rarity = self.rarity(postings.len());
            for posting in postings {
                let length = self.lengths[posting.place as usize] / self.mean_length;
                let saturation = posting.weight + K1 * (1.0 - B + B * length);
                let score = &mut scores[posting.place as usize];
                if *score < 0.0 {
                    *score = 0.0;
                    touched.push(posting.place);
                }
                *score += rarity * posting.weight * (K1 + 1.0) / saturation;
            }
        }
        for place in self.substring_hits(&query) {
            // A hit in the middle of a word ranks behind every whole word.
            if scores[place as usize] < 0.0 {
                scores[place as usize] = 0.0;
                touched.push(place);
            }
        }
        let ranked = touched.into_iter().map(|place| ToolSearchHit {
            exact: *self.names[place as usize] == *query,
            score: scores[place as usize],
            place,
        });
        let mut heap: BinaryHeap<ToolSearchHit> = ranked.collect();
        std::iter::from_fn(move || heap.pop().map(|best| best.place as usize))
    }

    fn rarity(&self, found: usize) -> f32 {
        let all = self.lengths.len() as f32;
        let found = found as f32;
        (1.0 + (all - found + 0.5) / (found + 0.5)).ln()
    }

    fn substring_hits(&self, query: &str) -> Vec<u32> {
        let mut hits = Vec::new();
        if query.is_empty() {
            return hits;
        }
        let finder = memmem::Finder::new(query);
        let mut from = 0;
        while let Some(at) = finder.find(&self.text.as_bytes()[from..]) {
            let place = self.ends.partition_point(|&end| end <= from + at);
            hits.push(u32::try_from(place).unwrap_or(u32::MAX));
            from = self.ends[place];
        }
        hits
    }
}

/// A tool among the results. The greatest is the best.
#[derive(PartialEq)]
struct ToolSearchHit {
    exact: bool,
    score: f32,
    place: u32,
}

impl Eq for ToolSearchHit {}

impl Ord for ToolSearchHit {
    fn cmp(&self, other: &Self) -> Ordering {
        self.exact
            .cmp(&other.exact)
            .then(self.score.total_cmp(&other.score))
            // Of equals, the one listed first.
            .then(other.place.cmp(&self.place))
    }
}

impl PartialOrd for ToolSearchHit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Lower-case words; `readFile`, `read_file` and `read-file` all give `read` and `file`.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut spaced = String::with_capacity(text.len() + 8);
    let mut after_small = false;
    for c in text.chars() {
        if c.is_uppercase() && after_small {
            spaced.push(' ');
        }
        after_small = c.is_lowercase() || c.is_numeric();
        if c.is_alphanumeric() {
            spaced.extend(c.to_lowercase());
        } else {
            spaced.push(' ');
        }
    }
    let found: Vec<String> = spaced.split_ascii_whitespace().map(stem).collect();
    found.into_iter()
}

/// Folds the commonest English plural, so that `files` finds `file`. No more: names are not prose.
fn stem(word: &str) -> String {
    match word.strip_suffix('s') {
        Some(root) if root.len() > 2 && !root.ends_with('s') => root.to_owned(),
        _ => word.to_owned(),
    }
}

/// Up to three of `names` that `wanted` may stand for: names without their source first, then mistyped ones.
pub(crate) fn similar<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let limit = (wanted.len() / 3).clamp(1, 4);
    let is_bare = |name: &str| {
        let source = name.strip_suffix(wanted);
        !wanted.is_empty() && source.is_some_and(|source| source.ends_with("__"))
    };
    let near = names.filter_map(|name| {
        if is_bare(name) {
            return Some((0, name));
        }
        (name.len().abs_diff(wanted.len()) <= limit)
            .then(|| (distance(wanted, name), name))
            .filter(|(distance, _)| *distance <= limit)
    });
    let mut near: Vec<(usize, &str)> = near.collect();
    near.sort_unstable();
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Levenshtein distance over bytes.
fn distance(a: &str, b: &str) -> usize {
    generic_levenshtein(&a.as_bytes().to_vec(), &b.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::{distance, similar, words};

    #[test]
    fn words_split_at_case_and_punctuation() {
        let found: Vec<String> = words("readFile HTTP_get some-Things v2Beta").collect();
        assert_eq!(
            found,
            ["read", "file", "http", "get", "some", "thing", "v2", "beta"]
        );
    }

    #[test]
    fn mistyped_names_find_their_neighbours() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(
            similar("raed_file", ["read_file", "write_file", "echo"].into_iter()),
            ["read_file"]
        );
        assert!(similar("zzz", ["read_file"].into_iter()).is_empty());
        let named = ["rev__reverse", "reverses", "rev__rotate", "traverse"];
        assert_eq!(
            similar("reverse", named.into_iter()),
            ["rev__reverse", "reverses", "traverse"]
        );
    }
}
