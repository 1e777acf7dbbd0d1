//! `http.fetch_page`: a web page as a reader would see it.

mod convert;
mod elements;
mod entities;
mod table;
mod tokens;
mod writer;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use reqwest::{
    Method, StatusCode, Url,
    header::{ACCEPT, HeaderMap, HeaderValue},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolpost_model::{
    CallContext, CallInput, Declaration, EffectClass, Effects, ErrorClass, InputRefusal,
    ResourceAccess, ResultContent, Tool, ToolCall, ToolFailure, ToolOutput, Truncation,
    visible_line, visible_text,
};
use toolpost_processes::{HttpError, HttpExchangeDeadline, HttpTarget, TargetRefusal};

pub(super) use self::tokens::meta_charset;
use self::{
    convert::{ConvertedPage, OutOfTime},
    writer::PageTextStyle,
};
use super::{
    HttpToolNetwork,
    body::{BodyOverflow, IncomingBody},
    charset, check_seconds, declare,
    exchange::{self, HttpResponseHead, OutgoingHttpRequest, RedirectPolicy, media_type},
    key,
};
use crate::arguments::{checked_arguments, read_arguments};

/// The most characters of one result.
const MAX_CHARS: usize = 200_000;
/// How much is shown of a page with an error status.
const ERROR_CHARS: usize = 2_000;

pub(super) struct FetchPage {
    network: Arc<HttpToolNetwork>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments<'a> {
    /// The page, beginning with `http://` or `https://`.
    url: &'a str,
    /// `markdown` with links, tables and code; `text` without any marks; `html` as it was sent.
    #[serde(default)]
    format: PageFormat,
    /// Most characters to give back.
    #[serde(default = "default_chars")]
    #[schemars(range(min = 1, max = 200_000))]
    max_chars: usize,
    /// The first character to give back, to go on where an earlier call was cut.
    #[serde(default)]
    offset: usize,
    /// How long everything may take.
    #[serde(default = "default_seconds")]
    #[schemars(range(min = 1, max = 300))]
    timeout_seconds: u64,
}

fn default_chars() -> usize {
    20_000
}

fn default_seconds() -> u64 {
    30
}

/// How a page is given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Format")]
enum PageFormat {
    /// Readable, with links, tables and code.
    #[default]
    Markdown,
    /// Readable, without marks.
    Text,
    /// As it was sent.
    Html,
}

/// A page.
#[derive(Serialize, JsonSchema)]
struct PageResult {
    /// Where it really is, after redirects.
    url: String,
    /// The status of the answer.
    status: u16,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// What the answer says it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    /// The charset it was read with.
    charset: String,
    /// The first character shown.
    offset: usize,
    /// How many characters are shown.
    chars: usize,
    /// How many characters there are.
    total_chars: usize,
    /// The page was larger than the limit, and its end is missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    incomplete: bool,
}

impl FetchPage {
    pub(super) fn new(network: Arc<HttpToolNetwork>) -> Self {
        Self { network }
    }

    fn target(&self, url: &str) -> Result<HttpTarget, TargetRefusal> {
        HttpTarget::parse(url, &self.network.settings.private)
    }

    async fn fetch(
        &self,
        arguments: &Arguments<'_>,
        context: CallContext,
    ) -> Result<ToolOutput, ToolFailure> {
        let target = self
            .target(arguments.url)
            .map_err(|refusal| refusal.into_failure().untouched())?;
        let deadline = HttpExchangeDeadline::new(
            Duration::from_secs(arguments.timeout_seconds),
            context.deadline(),
        );
        let mut headers = HeaderMap::new();
        let accept = "text/html,application/xhtml+xml,text/markdown,text/plain;q=0.9,*/*;q=0.5";
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        let outgoing = OutgoingHttpRequest {
            target,
            method: Method::GET,
            headers,
            body: None,
            credential: None,
            redirects: RedirectPolicy::Follow,
        };
        let HttpToolNetwork { settings, clients } = &*self.network;
        let arrived = exchange::run(clients, settings, outgoing, deadline, &context).await;
        let HttpResponseHead {
            response, target, ..
        } = arrived.map_err(HttpError::into_failure)?;
        let status = response.status();
        let (said, label) = media_type(response.headers());
        let incoming = IncomingBody::new(response, deadline, &context);
        let body = incoming
            .read(settings.max_body_bytes, BodyOverflow::LeaveIt)
            .await
            .map_err(HttpError::into_failure)?;
        if !charset::is_text(said.as_deref(), label.as_deref(), &body.bytes) {
            return Err(not_text(said.as_deref(), target.url.as_str()));
        }
        let body_bytes = body.bytes.len() as u64;
        let work = RawPageBody {
            url: target.url,
            format: arguments.format,
            said,
            label,
            body: body.bytes,
            whole: body.whole,
        };
        // The conversion is quick, but a large page would block other tasks on this thread. A conversion whose call has
        // ended stops at the deadline.
        let read = tokio::task::spawn_blocking(move || work.run(deadline.at.into_std())).await;
        let read = read
            .map_err(|_| ToolFailure::new("the page could not be converted").code("conversion"))?;
        let missed = |OutOfTime| {
            deadline
                .missed(arguments.url.to_owned(), body_bytes)
                .into_failure()
        };
        let read = read.map_err(missed)?;
        report(read, status, arguments)
    }
}

/// A body before its conversion.
struct RawPageBody {
    url: Url,
    format: PageFormat,
    said: Option<String>,
    label: Option<String>,
    body: Vec<u8>,
    whole: bool,
}

/// A page after its conversion.
struct FetchedPage {
    url: Url,
    said: Option<String>,
    page: ConvertedPage,
    charset: &'static str,
    whole: bool,
}

impl RawPageBody {
    fn run(self, until: Instant) -> Result<FetchedPage, OutOfTime> {
        let is_html = charset::is_html(self.said.as_deref(), &self.body);
        let decoded = charset::decode(&self.body, self.label.as_deref(), is_html, !self.whole);
        let style = match self.format {
            PageFormat::Markdown => Some(PageTextStyle::Markdown),
            PageFormat::Text => Some(PageTextStyle::Text),
            PageFormat::Html => None,
        };
        let page = match style.filter(|_| is_html) {
            Some(style) => convert::convert(&decoded.text, &self.url, style, until)?,
            None => ConvertedPage {
                title: None,
                text: decoded.text,
                cut: false,
            },
        };
        let whole = self.whole && !page.cut;
        Ok(FetchedPage {
            url: self.url,
            said: self.said,
            page,
            charset: decoded.charset,
            whole,
        })
    }
}

impl Tool for FetchPage {
    fn declaration(&self) -> Declaration {
        let mut declaration = declare::<Arguments<'_>, PageResult>(
            "fetch_page",
            "Fetches a web page and gives it as readable Markdown: title, headings, links made absolute, lists, \
             tables and code, without scripts, navigation and hidden parts. Text of other kinds (plain text, JSON, \
             XML) comes back as it is; PDF, images and other binary files are refused: save those with \
             `http_request` and `save_to`. Long pages come in parts: go on with the `offset` that the result \
             names. For APIs, other methods or headers use `http_request`.",
        );
        declaration.title = Some("Fetch page".to_owned());
        declaration.search_hint =
            "web browse url website download read article documentation html markdown".to_owned();
        declaration.tags.push("read".to_owned());
        declaration.input.examples = vec![
            json!({ "url": "https://example.org/guide" }),
            json!({ "url": "https://example.org/guide", "offset": 20_000 }),
            json!({ "url": "https://example.org/", "format": "text", "max_chars": 4_000 }),
        ];
        declaration.interface.execution.idempotent = true;
        declaration
    }

    fn check(&self, input: &CallInput) -> Result<(), InputRefusal> {
        let arguments: Arguments<'_> = checked_arguments(input)?;
        check_seconds(arguments.timeout_seconds)?;
        if !(1..=MAX_CHARS).contains(&arguments.max_chars) {
            let message = format!(
                "`{}` characters are not possible; give 1 to {MAX_CHARS}",
                arguments.max_chars
            );
            return Err(InputRefusal::invalid("/max_chars", message));
        }
        self.target(arguments.url)
            .map(|_| ())
            .map_err(|refusal| refusal.into_refusal())
    }

    fn effects(&self, input: &CallInput) -> Option<Effects> {
        let target = self.target(input.arguments().str("url")?).ok()?;
        let mut effects = Effects::of(EffectClass::Network)
            .using(key(&target), ResourceAccess::Read)
            .idempotent();
        effects.concurrency_safe = true;
        Some(effects)
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let arguments: Arguments<'_> = read_arguments(&call.input)?;
        self.fetch(&arguments, call.context).await
    }
}

fn not_text(said: Option<&str>, url: &str) -> ToolFailure {
    let said = said.unwrap_or("application/octet-stream");
    let message = format!("`{url}` is not a page but `{said}`, which cannot be read as text");
    ToolFailure::new(message)
        .code("not_a_page")
        .hint("save it with `http_request` and `save_to`; `http_request` alone shows images")
        .untouched()
}

fn report(
    read: FetchedPage,
    status: StatusCode,
    arguments: &Arguments<'_>,
) -> Result<ToolOutput, ToolFailure> {
    let FetchedPage {
        url,
        said,
        page,
        charset,
        whole,
    } = read;
    if !status.is_success() {
        return Err(bad_status(&url, status, &page));
    }
    let total_chars = page.text.chars().count();
    let shown: String = page
        .text
        .chars()
        .skip(arguments.offset)
        .take(arguments.max_chars)
        .collect();
    let chars = shown.chars().count();
    if chars == 0 && arguments.offset > 0 {
        let message = format!(
            "`{}` is past the end: the page has {total_chars} characters",
            arguments.offset
        );
        return Err(ToolFailure::invalid(message).code("behind_the_end"));
    }
    let end = arguments.offset + chars;
    let truncated = (end < total_chars || !whole).then(|| Truncation {
        shown: chars as u64,
        total: whole.then_some(total_chars as u64),
        unit: "characters".to_owned(),
        hint: Some(match end < total_chars {
            true => format!("go on with `offset: {end}`"),
            false => {
                "the page is larger than the operator's limit; save it with `http_request` and `save_to`"
                    .to_owned()
            }
        }),
        artifact: None,
    });
    let mut text = String::new();
    if arguments.offset == 0 {
        let title = page
            .title
            .as_deref()
            .map(|title| format!("{}\n", visible_line(title)))
            .unwrap_or_default();
        text = format!("{title}{url}\n\n");
    }
    text.push_str(
        if total_chars == 0 {
            "(the page has no text)".into()
        } else {
            visible_text(&shown)
        }
        .as_ref(),
    );
    if let Some(hint) = truncated
        .as_ref()
        .and_then(|truncated| truncated.hint.as_deref())
    {
        text.push_str(&format!(
            "\n\n[characters {} to {end} of {total_chars}; {hint}]",
            arguments.offset
        ));
    }
    let summary = format!(
        "{total_chars} characters from {}",
        url.host_str().unwrap_or_default()
    );
    let result = PageResult {
        url: url.to_string(),
        status: status.as_u16(),
        title: page.title,
        media_type: said,
        charset: charset.to_owned(),
        offset: arguments.offset,
        chars,
        total_chars,
        incomplete: !whole,
    };
    let mut output = ToolOutput::text(text)
        .with_summary(summary)
        .with_structured(serde_json::to_value(&result)?);
    output.truncated = truncated;
    output.is_empty = total_chars == 0;
    Ok(output)
}

fn bad_status(url: &Url, status: StatusCode, page: &ConvertedPage) -> ToolFailure {
    let class = match status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        true => ErrorClass::DependencyUnavailable,
        false => ErrorClass::ExecutionFailed,
    };
    let mut failure = ToolFailure::of(class, format!("`{url}` answered {status}"))
        .code("http_status")
        .untouched();
    failure.details = Some(json!({ "status": status.as_u16() }));
    let head: String = page.text.chars().take(ERROR_CHARS).collect();
    if !head.is_empty() {
        failure
            .content
            .push(ResultContent::text(visible_text(&head)));
    }
    failure
}
