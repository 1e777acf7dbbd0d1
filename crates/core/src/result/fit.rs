//! The size limits of a result: the part that is shown, and the handling of the rest.
//!
//! Runs when the result is made, before hooks see it. Parts to store wait in the call until the hooks have decided: a
//! result that a hook withholds or replaces is never written to disk.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use toolpost_model::{
    ArtifactId, ArtifactRef, Disposition, EffectOrigin, PersistStrategy, Redactions, ResultContent,
    ResultPersistence, ToolOutput, Truncation,
};

use super::preview;
use crate::{catalog::CatalogEntry, invocation::LiveCall};

/// A model processes an image by its picture, not by the letters of its encoding; providers accept about this much.
const IMAGE_CHARS: usize = 5 << 20;
/// A larger text is previewed by its lines, even if it is JSON: parsing it would cost more than its shape is worth.
const LARGEST_READ_JSON: usize = 8 << 20;
/// A preview is a fraction of the limit, but not less than this.
const SMALLEST_PREVIEW: usize = 4_000;
/// The text in place of a result that is neither shown nor stored.
const REDACTED: &str =
    "[redacted: by the operator's setting, results of this tool are neither shown nor kept]";

/// The limit for a tool's results in a session, and the handling of larger ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResultSizePolicy {
    /// The largest text that is shown whole, in characters.
    pub(crate) limit: usize,
    pub(crate) strategy: PersistStrategy,
    pub(crate) readers: ResultReaderTools,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResultReaderTools {
    pub(crate) read: bool,
    pub(crate) search: bool,
}

impl ResultSizePolicy {
    /// The operator's setting for the tool overrides the host's; the tool itself and the session can only lower it.
    pub(crate) fn of(host: usize, session: Option<usize>, entry: Option<&CatalogEntry>) -> Self {
        let declared = entry.map(|entry| &entry.declaration().interface.persistence);
        let own = declared.and_then(|declared| declared.max_inline_chars);
        let limit = match entry.and_then(|entry| entry.settings.persistence.max_inline_chars) {
            Some(operator) => operator,
            None => own.unwrap_or(host).min(host),
        };
        let strategy = match (
            entry,
            declared
                .map(|declared| declared.strategy)
                .unwrap_or_default(),
        ) {
            // An outside tool's own claim must not put more before the model. Results of unlisted tools are read by
            // programs.
            (Some(entry), PersistStrategy::Inline)
                if entry.origin == EffectOrigin::Claimed
                    && entry.settings.persistence.keep.is_none()
                    && entry.is_listed() =>
            {
                PersistStrategy::default()
            }
            (_, strategy) => strategy,
        };
        Self {
            limit: limit.min(session.unwrap_or(usize::MAX)),
            strategy,
            readers: ResultReaderTools::default(),
        }
    }

    /// Why results of the tool are never stored, if so.
    pub(crate) fn keeps_nothing(&self) -> Option<&'static str> {
        match self.strategy {
            PersistStrategy::Inline
            | PersistStrategy::PreviewAndPersist
            | PersistStrategy::RefOnly => None,
            PersistStrategy::Redact | PersistStrategy::DropWithReason => {
                Some("by the operator's setting, results of this tool are not kept")
            }
            PersistStrategy::NeverPersist => {
                Some("another call of this tool returns the result again")
            }
        }
    }

    /// The size of the preview of a larger result.
    pub(crate) fn preview(&self) -> usize {
        match self.strategy {
            PersistStrategy::PreviewAndPersist => {
                self.limit.min(SMALLEST_PREVIEW.max(self.limit / 5))
            }
            PersistStrategy::RefOnly | PersistStrategy::Redact => 0,
            // The hidden part is not available elsewhere.
            PersistStrategy::Inline
            | PersistStrategy::DropWithReason
            | PersistStrategy::NeverPersist => self.limit,
        }
    }

    fn is_over(&self, length: usize) -> bool {
        length > self.limit || (self.strategy == PersistStrategy::RefOnly && length > 0)
    }
}

/// A part of a result that waits to be stored.
pub(crate) struct UnkeptPart {
    pub(crate) id: ArtifactId,
    pub(crate) name: &'static str,
    pub(crate) media_type: String,
    pub(crate) bytes: Vec<u8>,
    /// The redactions in this part alone, beside those of the result.
    pub(crate) redactions: Redactions,
    /// The content's note about the part, which occurs once.
    pub(crate) note: String,
    /// The note if the part could not be stored, up to the reason.
    pub(crate) lost: String,
}

#[derive(Default)]
pub(crate) struct ResultFitReport {
    pub(crate) disposition: Option<Disposition>,
    pub(crate) persistence: Option<Box<ResultPersistence>>,
    pub(crate) unkept: Vec<UnkeptPart>,
    /// Nothing of the result is available.
    pub(crate) is_redacted: bool,
}

pub(crate) fn fit(
    live: &LiveCall,
    room: ResultSizePolicy,
    output: &mut ToolOutput,
) -> ResultFitReport {
    let mut fitter = ResultFitter::run(live, room, output, |fitter, output| {
        fitter.text(output);
        fitter.structured(output);
        fitter.media(output);
    });
    fitter.of_the_tool(output);
    fitter.fitted
}

/// The same for a value that replaces the structured content alone.
pub(crate) fn fit_structured(
    live: &LiveCall,
    room: ResultSizePolicy,
    output: &mut ToolOutput,
) -> ResultFitReport {
    ResultFitter::run(live, room, output, ResultFitter::structured).fitted
}

struct ResultFitter<'a> {
    live: &'a LiveCall,
    room: ResultSizePolicy,
    fitted: ResultFitReport,
    /// The tool's own cut. The tool may have stored the whole.
    cut: Option<Truncation>,
}

/// A part that is not shown whole.
struct OversizedPart {
    name: &'static str,
    media_type: String,
    bytes: Vec<u8>,
    /// The text before the note about the artifact.
    said: String,
    /// The redactions in this part alone.
    redactions: Redactions,
}

/// The size of a part, and of its shown piece.
#[derive(Clone, Copy)]
struct PartExtent {
    shown: usize,
    total: usize,
    unit: &'static str,
}

impl<'a> ResultFitter<'a> {
    /// Applies the strategy to the output; `cut` shortens its parts.
    fn run(
        live: &'a LiveCall,
        room: ResultSizePolicy,
        output: &mut ToolOutput,
        cut: impl FnOnce(&mut Self, &mut ToolOutput),
    ) -> Self {
        let mut fitter = Self {
            live,
            room,
            fitted: ResultFitReport::default(),
            cut: output.truncated.clone(),
        };
        match room.strategy {
            PersistStrategy::Inline => {}
            PersistStrategy::Redact => fitter.redact(output),
            PersistStrategy::PreviewAndPersist
            | PersistStrategy::RefOnly
            | PersistStrategy::DropWithReason
            | PersistStrategy::NeverPersist => cut(&mut fitter, output),
        }
        fitter
    }

    /// The name of the stored thing: if the tool cut its output, the host cannot store the whole.
    fn what_is_kept(&self) -> &'static str {
        if self.cut.is_some() {
            "the returned part"
        } else {
            "the whole"
        }
    }

    fn text(&mut self, output: &mut ToolOutput) {
        let texts = || output.content.iter().filter_map(as_text);
        // The number of bytes is an upper bound of characters, so the common small text is never counted.
        if !self.room.is_over(texts().map(str::len).sum()) {
            return;
        }
        if !self
            .room
            .is_over(texts().map(|text| text.chars().count()).sum())
        {
            return;
        }
        let (at, whole) = take_text(&mut output.content);
        let total = whole.chars().count();
        let (preview, media_type, json) = self.preview(&whole);
        let shown = preview.as_ref().map_or(0, preview::Preview::shown);
        let said = match &preview {
            Some(_) if !json => format!("{} characters cut", total.saturating_sub(shown)),
            Some(_) => format!("{total} characters of JSON, cut to their shape"),
            None => format!("result: {total} characters"),
        };
        let extent = PartExtent {
            shown,
            total,
            unit: "characters",
        };
        let redactions = Redactions::default();
        let part = OversizedPart {
            name: "result",
            media_type,
            bytes: whole.into_bytes(),
            said,
            redactions,
        };
        let note = self.put_away(part, extent);
        self.truncate(output, extent);
        let pieces = match preview {
            Some(preview) => preview.with_note(&note),
            None => vec![format!("[{note}]")],
        };
        output
            .content
            .splice(at..at, pieces.into_iter().map(ResultContent::text));
    }

    /// The preview of a long text, a description of it, and whether it is JSON.
    fn preview(&self, whole: &str) -> (Option<preview::Preview>, String, bool) {
        let keeps = self.room.keeps_nothing().is_none();
        let value = keeps
            .then(|| preview::as_json(whole, LARGEST_READ_JSON))
            .flatten();
        let media_type = if value.is_some() {
            "application/json"
        } else {
            "text/plain; charset=utf-8"
        };
        let preview = match (self.room.strategy, &value) {
            (PersistStrategy::RefOnly, _) => None,
            (_, Some(value)) => Some(preview::of_json(value, self.room.preview())),
            (_, None) => Some(preview::of_text(whole, self.room.preview())),
        };
        (preview, media_type.to_owned(), value.is_some())
    }

    fn structured(&mut self, output: &mut ToolOutput) {
        let Some(value) = output.structured.as_ref() else {
            return;
        };
        let json = value.to_string();
        if !self.room.is_over(json.len()) || !self.room.is_over(json.chars().count()) {
            return;
        }
        let has_text = output
            .content
            .iter()
            .filter_map(as_text)
            .any(|text| !text.is_empty());
        let shows = !has_text && self.room.strategy != PersistStrategy::RefOnly;
        let preview = shows.then(|| preview::of_json(value, self.room.preview()));
        let total = json.chars().count();
        let shown = preview.as_ref().map_or(0, preview::Preview::shown);
        let extent = PartExtent {
            shown,
            total,
            unit: "characters",
        };
        let part = OversizedPart {
            name: ArtifactRef::STRUCTURED,
            media_type: "application/json".to_owned(),
            bytes: json.into_bytes(),
            said: format!("structured content: {total} characters of JSON"),
            redactions: Redactions::default(),
        };
        let note = self.put_away(part, extent);
        output.structured = None;
        if output
            .truncated
            .as_ref()
            .is_none_or(|cut| cut.artifact.is_none())
        {
            self.truncate(output, extent);
        }
        let pieces = match preview {
            Some(preview) => preview.with_note(&note),
            None => vec![format!("[{note}]")],
        };
        output
            .content
            .extend(pieces.into_iter().map(ResultContent::text));
    }

    fn media(&mut self, output: &mut ToolOutput) {
        let unknown = "application/octet-stream".to_owned();
        for place in 0..output.content.len() {
            let (name, media_type, largest) = match &output.content[place] {
                ResultContent::Text { .. } | ResultContent::Link { .. } => continue,
                ResultContent::Image { media_type, .. } => {
                    ("image", media_type, self.room.limit.max(IMAGE_CHARS))
                }
                ResultContent::Audio { media_type, .. } => {
                    ("audio", media_type, self.room.limit.max(IMAGE_CHARS))
                }
                ResultContent::Binary { media_type, .. } => ("binary", media_type, self.room.limit),
                ResultContent::Resource { media_type, .. } => (
                    "resource",
                    media_type.as_ref().unwrap_or(&unknown),
                    self.room.limit,
                ),
            };
            let media_type = media_type.clone();
            let size = output.content[place].size();
            let always = self.room.strategy == PersistStrategy::RefOnly && size > 0;
            if size <= largest && !always {
                continue;
            }
            let bytes = bytes_of(&mut output.content[place]);
            // The letters of the encoding are already redacted; a secret may be visible only in the decoded bytes.
            let (bytes, redactions) = self.without_secrets(&bytes);
            let extent = PartExtent {
                shown: 0,
                total: bytes.len(),
                unit: "bytes",
            };
            let said = format!("{name}: {media_type}, {} bytes, not shown", bytes.len());
            let note = self.put_away(
                OversizedPart {
                    name,
                    media_type,
                    bytes,
                    said,
                    redactions,
                },
                extent,
            );
            if output.truncated.is_none() {
                self.truncate(output, extent);
            }
            output.content[place] = ResultContent::text(format!("[{note}]"));
        }
    }

    fn without_secrets(&self, bytes: &[u8]) -> (Vec<u8>, Redactions) {
        let mut clean = Vec::with_capacity(bytes.len());
        let mut stream = self.live.redactor().stream();
        stream.push(bytes, &mut clean);
        let redactions = stream.finish(&mut clean);
        (clean, redactions)
    }

    /// Applies the strategy to a part, and returns the content's text about it.
    fn put_away(&mut self, part: OversizedPart, extent: PartExtent) -> String {
        let (disposition, artifact, reason) = match self.room.strategy {
            PersistStrategy::PreviewAndPersist => {
                (Disposition::Preview, Some(self.next_id()), None)
            }
            PersistStrategy::RefOnly => (Disposition::RefOnly, Some(self.next_id()), None),
            PersistStrategy::DropWithReason => (
                Disposition::Dropped,
                None,
                self.room.keeps_nothing().map(str::to_owned),
            ),
            PersistStrategy::NeverPersist | PersistStrategy::Inline | PersistStrategy::Redact => {
                (Disposition::Preview, None, None)
            }
        };
        self.fitted.disposition.get_or_insert(disposition);
        if self.fitted.persistence.is_none() {
            self.fitted.persistence = Some(Box::new(ResultPersistence {
                strategy: self.room.strategy,
                threshold: self.room.limit as u64,
                original: extent.total as u64,
                preview: extent.shown as u64,
                artifact,
                reason: reason.clone(),
            }));
        }
        match (artifact, reason) {
            (Some(id), _) => {
                let note = format!(
                    "{}; {} is kept as `{id}`{}",
                    part.said,
                    self.what_is_kept(),
                    self.room.readers
                );
                self.fitted.unkept.push(UnkeptPart {
                    id,
                    name: part.name,
                    media_type: part.media_type,
                    bytes: part.bytes,
                    redactions: part.redactions,
                    note: note.clone(),
                    lost: part.said,
                });
                note
            }
            (None, Some(reason)) => format!("{}: {reason}", part.said),
            (None, None) => part.said,
        }
    }

    fn next_id(&self) -> ArtifactId {
        ArtifactId {
            invocation: self.live.id,
            place: self.live.artifacts.begin(),
        }
    }

    fn truncate(&self, output: &mut ToolOutput, extent: PartExtent) {
        let artifact = self.fitted.unkept.last().map(|part| part.id);
        let hint = match artifact {
            Some(id) => format!(
                "{} is kept as `{id}`{}",
                self.what_is_kept(),
                self.room.readers
            ),
            None => format!(
                "the host shows at most {} characters of this tool's results; ask for a smaller part",
                self.room.limit
            ),
        };
        let (total, hint) = match &self.cut {
            None => (Some(extent.total as u64), hint),
            Some(cut) => {
                let total = cut.total.filter(|_| cut.unit == extent.unit);
                (
                    total,
                    [Some(hint), cut.hint.clone()]
                        .into_iter()
                        .flatten()
                        .collect::<Vec<_>>()
                        .join("; "),
                )
            }
        };
        // If the tool stored the whole, the hint refers to that artifact.
        let whole = self.cut.as_ref().and_then(|cut| cut.artifact);
        output.truncated = Some(Truncation {
            shown: extent.shown as u64,
            total,
            unit: extent.unit.to_owned(),
            hint: Some(hint),
            artifact: whole.or(artifact),
        });
    }

    fn redact(&mut self, output: &mut ToolOutput) {
        let content: usize = output.content.iter().map(ResultContent::size).sum();
        let structured = output
            .structured
            .as_ref()
            .map_or(0, |value| value.to_string().len());
        if content + structured == 0 {
            return;
        }
        output.content = vec![ResultContent::text(REDACTED)];
        output.structured = None;
        output.summary = None;
        output.truncated = None;
        self.fitted.is_redacted = true;
        self.fitted.disposition = Some(Disposition::Redacted);
        self.fitted.persistence = Some(Box::new(ResultPersistence {
            strategy: PersistStrategy::Redact,
            threshold: self.room.limit as u64,
            original: (content + structured) as u64,
            preview: 0,
            artifact: None,
            reason: Some("`keep: redact` is set for this tool".to_owned()),
        }));
    }

    /// Handles a tool that stored the whole itself and shows a part, so that its result looks like those that the host
    /// cut.
    fn of_the_tool(&mut self, output: &ToolOutput) {
        let Some(Truncation {
            shown,
            total,
            artifact: Some(id),
            ..
        }) = &output.truncated
        else {
            return;
        };
        self.fitted.persistence.get_or_insert_with(|| {
            Box::new(ResultPersistence {
                strategy: PersistStrategy::PreviewAndPersist,
                threshold: self.room.limit as u64,
                original: total.unwrap_or(*shown),
                preview: *shown,
                artifact: Some(*id),
                reason: None,
            })
        });
    }
}

impl std::fmt::Display for ResultReaderTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.read, self.search) {
            (true, true) => {
                f.write_str(": `read_result` reads on, `search_result` looks through it")
            }
            (true, false) => f.write_str(": `read_result` reads on"),
            (false, true) => f.write_str(": `search_result` looks through it"),
            (false, false) => Ok(()),
        }
    }
}

fn as_text(piece: &ResultContent) -> Option<&str> {
    match piece {
        ResultContent::Text { text } => Some(text),
        ResultContent::Image { .. }
        | ResultContent::Binary { .. }
        | ResultContent::Audio { .. }
        | ResultContent::Resource { .. }
        | ResultContent::Link { .. } => None,
    }
}

/// The bytes of a piece, taken out of it.
fn bytes_of(piece: &mut ResultContent) -> Vec<u8> {
    let decoded = |data: String| STANDARD.decode(&data).unwrap_or_else(|_| data.into_bytes());
    match piece {
        ResultContent::Image { data, .. }
        | ResultContent::Binary { data, .. }
        | ResultContent::Audio { data, .. } => decoded(std::mem::take(data)),
        ResultContent::Resource {
            text: Some(text), ..
        } => std::mem::take(text).into_bytes(),
        ResultContent::Resource {
            data: Some(data), ..
        } => decoded(std::mem::take(data)),
        ResultContent::Text { .. }
        | ResultContent::Resource { .. }
        | ResultContent::Link { .. } => Vec::new(),
    }
}

/// Takes all text out, joined as a reader of text gets it, and returns its first place.
fn take_text(content: &mut Vec<ResultContent>) -> (usize, String) {
    let at = content
        .iter()
        .position(|piece| as_text(piece).is_some())
        .unwrap_or_default();
    let mut whole: Option<String> = None;
    content.retain_mut(|piece| match piece {
        ResultContent::Text { text } => {
            match &mut whole {
                None => whole = Some(std::mem::take(text)),
                Some(whole) => {
                    whole.push('\n');
                    whole.push_str(text);
                }
            }
            false
        }
        ResultContent::Image { .. }
        | ResultContent::Binary { .. }
        | ResultContent::Audio { .. }
        | ResultContent::Resource { .. }
        | ResultContent::Link { .. } => true,
    });
    (at, whole.unwrap_or_default())
}
