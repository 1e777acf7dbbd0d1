//! The unanswered requests of an agent.

use bytes::Bytes;

/// The most remembered requests. A host runs fewer calls of one session concurrently.
const MOST_REQUESTS: usize = 2_048;
/// The most bytes of requests that are kept for sending again.
const MOST_BYTES: usize = 32 << 20;

/// The unanswered requests of an agent, in the order of arrival.
#[derive(Default)]
pub(crate) struct OpenRequests {
    entries: Vec<OpenRequest>,
    bytes: usize,
}

struct OpenRequest {
    id: String,
    /// The request itself, if it can be sent to the next host.
    line: Option<Bytes>,
}

impl OpenRequests {
    /// Adds a request. `line` is given if it can be sent to another host; beyond the limit only the id is kept.
    pub(crate) fn add(&mut self, id: &str, line: Option<&Bytes>) {
        // Without an id the answer cannot be matched, and the next host cannot recognise the request as a repeat.
        if id.is_empty() {
            return;
        }
        // The answer to the first request answers a repeat too.
        if self.entries.len() >= MOST_REQUESTS || self.entries.iter().any(|open| open.id == id) {
            return;
        }
        let line = line
            .filter(|line| self.bytes + line.len() <= MOST_BYTES)
            .cloned();
        self.bytes += line.as_ref().map_or(0, Bytes::len);
        self.entries.push(OpenRequest {
            id: id.to_owned(),
            line,
        });
    }

    pub(crate) fn remove(&mut self, id: &str) {
        if let Some(place) = self.entries.iter().position(|open| open.id == id) {
            let gone = self.entries.remove(place);
            self.bytes -= gone.line.map_or(0, |line| line.len());
        }
    }

    /// The lines to send to the next host. Their requests stay open.
    pub(crate) fn lines(&self) -> Vec<Bytes> {
        self.entries
            .iter()
            .filter_map(|open| open.line.clone())
            .collect()
    }

    /// Removes the requests that cannot be sent again, and returns their ids.
    pub(crate) fn take_interrupted(&mut self) -> Vec<String> {
        let (kept, gone) = std::mem::take(&mut self.entries)
            .into_iter()
            .partition(|open| open.line.is_some());
        self.entries = kept;
        let gone: Vec<OpenRequest> = gone;
        gone.into_iter().map(|open| open.id).collect()
    }

    pub(crate) fn take_all(&mut self) -> Vec<String> {
        self.bytes = 0;
        std::mem::take(&mut self.entries)
            .into_iter()
            .map(|open| open.id)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{MOST_BYTES, MOST_REQUESTS, OpenRequests};

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut open = OpenRequests::default();
        let half = Bytes::from(vec![b'x'; MOST_BYTES / 2 + 1]);
        open.add("a", Some(&half));
        open.add("b", Some(&half));
        open.add("c", None);
        open.add("", Some(&Bytes::from_static(b"a call without an id")));
        assert_eq!(open.lines().len(), 1, "the second one is too much");
        assert_eq!(open.take_interrupted(), ["b", "c"]);
        open.remove("a");
        open.add("d", Some(&half));
        assert_eq!(open.lines().len(), 1, "there is room again");
        for number in 0..2 * MOST_REQUESTS {
            open.add(&number.to_string(), None);
        }
        assert_eq!(open.take_all().len(), MOST_REQUESTS);
    }
}
