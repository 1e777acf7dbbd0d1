//! Splits HTML into text and tags in one pass and without a tree.
//!
//! A tree makes hostile pages expensive: a hundred thousand nested elements, or one tag with as many attributes, keep a
//! conforming parser busy for minutes. Here every byte is read a bounded number of times and nothing is stored;
//! attributes are parsed only when one is needed.

use super::entities::decoded;

/// A piece of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HtmlToken<'a> {
    /// Text with unresolved references.
    Text(&'a str),
    /// The start of an element.
    Start(HtmlStartTag<'a>),
    /// The end of an element.
    End(&'a str),
    /// Content of an element without tags in it, such as a title or a script. Some of them have references.
    Raw { name: &'a str, text: &'a str },
}

/// A start tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HtmlStartTag<'a> {
    /// The name as written; case is ignored.
    pub(super) name: &'a str,
    attributes: &'a str,
}

/// Elements with content that is not markup.
const RAW: [&str; 8] = [
    "script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes",
];

pub(super) struct HtmlTokenizer<'a> {
    rest: &'a str,
    /// The element whose raw content comes next.
    raw: Option<&'a str>,
}

impl<'a> HtmlTokenizer<'a> {
    pub(super) fn new(html: &'a str) -> Self {
        Self {
            rest: html,
            raw: None,
        }
    }

    /// Consumes and returns everything up to `at`.
    fn take(&mut self, at: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(at.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// Content up to the end tag of `name`, or to the end of the page.
    fn raw_text(&mut self, name: &'a str) -> &'a str {
        let mut from = 0;
        while let Some(found) = self.rest[from..].find("</") {
            let at = from + found;
            let after = &self.rest.as_bytes()[at + 2..];
            let ends = after
                .get(name.len())
                .is_none_or(|byte| !byte.is_ascii_alphanumeric());
            if after.len() >= name.len()
                && after[..name.len()].eq_ignore_ascii_case(name.as_bytes())
                && ends
            {
                return self.take(at);
            }
            from = at + 2;
        }
        self.take(self.rest.len())
    }

    /// A tag, or markup that is not shown; `None` if the `<` is only a character.
    fn markup(&mut self) -> Option<Option<HtmlToken<'a>>> {
        let bytes = self.rest.as_bytes();
        match bytes.get(1)? {
            b'!' if self.rest.starts_with("<!--") => {
                let end = comment_end(self.rest);
                self.take(end);
                Some(None)
            }
            b'!' | b'?' => {
                self.take_until_gt();
                Some(None)
            }
            b'/' if bytes.get(2).is_some_and(u8::is_ascii_alphabetic) => {
                self.take(2);
                let name = self.name();
                let end = attributes_end(self.rest);
                self.take(end);
                self.take(1);
                Some(Some(HtmlToken::End(name)))
            }
            b'/' => {
                self.take_until_gt();
                Some(None)
            }
            byte if byte.is_ascii_alphabetic() => {
                self.take(1);
                let name = self.name();
                let end = attributes_end(self.rest);
                let attributes = self.take(end);
                // An unfinished tag at the end of the page is not a tag.
                if self.rest.is_empty() {
                    return Some(None);
                }
                self.take(1);
                self.raw = RAW
                    .iter()
                    .any(|raw| name.eq_ignore_ascii_case(raw))
                    .then_some(name);
                Some(Some(HtmlToken::Start(HtmlStartTag { name, attributes })))
            }
            _ => None,
        }
    }

    fn name(&mut self) -> &'a str {
        let end = self
            .rest
            .find(|c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>'));
        self.take(end.unwrap_or(self.rest.len()))
    }

    fn take_until_gt(&mut self) {
        let end = self.rest.find('>').map_or(self.rest.len(), |at| at + 1);
        self.take(end);
    }
}

impl<'a> Iterator for HtmlTokenizer<'a> {
    type Item = HtmlToken<'a>;

    fn next(&mut self) -> Option<HtmlToken<'a>> {
        if let Some(name) = self.raw.take() {
            let text = self.raw_text(name);
            if !text.is_empty() {
                return Some(HtmlToken::Raw { name, text });
            }
        }
        while !self.rest.is_empty() {
            if self.rest.starts_with('<') {
                match self.markup() {
                    Some(Some(token)) => return Some(token),
                    Some(None) => continue,
                    None => {}
                }
            }
            let end = self
                .rest
                .bytes()
                .skip(1)
                .position(|byte| byte == b'<')
                .map_or(self.rest.len(), |at| at + 1);
            return Some(HtmlToken::Text(self.take(end)));
        }
        None
    }
}

fn comment_end(text: &str) -> usize {
    // `<!-->` and `<!--->` are complete comments. One search covers both ends: a separate search for a missing end
    // would read the whole page for every comment.
    let mut at = 2;
    while let Some(found) = text[at..].find("--") {
        let after = &text[at + found + 2..];
        let length = [">", "!>"]
            .into_iter()
            .find(|end| after.starts_with(end))
            .map(str::len);
        match length {
            Some(length) => return at + found + 2 + length,
            None => at += found + 1,
        }
    }
    text.len()
}

/// The end of a tag's attributes: a `>` outside of quotes. Quotes count only after a `=`.
fn attributes_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'>' => return at,
            b'=' => {
                at += 1;
                while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
                    at += 1;
                }
                if let Some(&quote @ (b'"' | b'\'')) = bytes.get(at) {
                    match text[at + 1..].find(char::from(quote)) {
                        Some(end) => at += end + 2,
                        None => return text.len(),
                    }
                }
            }
            _ => at += 1,
        }
    }
    text.len()
}

impl HtmlStartTag<'_> {
    pub(super) fn has_attributes(&self) -> bool {
        !self.attributes.is_empty()
    }

    /// The value of an attribute, with references resolved.
    pub(super) fn attribute(&self, wanted: &str) -> Option<String> {
        let mut rest = self.attributes;
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
            if rest.is_empty() {
                return None;
            }
            // A leading `=` is part of the name, as in browsers.
            let first = rest.chars().next().map_or(1, char::len_utf8);
            let end =
                rest[first..].find(|c: char| c.is_ascii_whitespace() || matches!(c, '/' | '='));
            let (name, after) = rest.split_at(end.map_or(rest.len(), |end| end + first));
            let (value, after) = attribute_value(after);
            if name.eq_ignore_ascii_case(wanted) {
                return Some(decoded(value).into_owned());
            }
            rest = after;
        }
    }
}

/// The value after a name, if there is one, and the rest.
fn attribute_value(text: &str) -> (&str, &str) {
    let Some(value) = text.trim_start().strip_prefix('=') else {
        return ("", text);
    };
    let value = value.trim_start();
    match value.as_bytes().first() {
        Some(&quote @ (b'"' | b'\'')) => {
            let inside = &value[1..];
            let end = inside.find(char::from(quote)).unwrap_or(inside.len());
            (&inside[..end], inside.get(end + 1..).unwrap_or_default())
        }
        _ => value.split_at(
            value
                .find(|c: char| c.is_ascii_whitespace())
                .unwrap_or(value.len()),
        ),
    }
}

/// The charset in a page's `<meta>`.
pub(in crate::http) fn meta_charset(head: &str) -> Option<String> {
    HtmlTokenizer::new(head).find_map(|token| {
        let HtmlToken::Start(tag) = token else {
            return None;
        };
        if !tag.name.eq_ignore_ascii_case("meta") {
            return None;
        }
        if let Some(charset) = tag.attribute("charset") {
            return Some(charset);
        }
        let content = tag.attribute("content")?.to_ascii_lowercase();
        let (_, charset) = content.split_once("charset=")?;
        let charset = charset.trim().trim_matches(['"', '\'']);
        Some(
            charset
                .split([';', ' ', '"', '\''])
                .next()
                .unwrap_or_default()
                .to_owned(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{HtmlToken, HtmlTokenizer, meta_charset};

    fn told(html: &str) -> String {
        let pieces = HtmlTokenizer::new(html).map(|token| match token {
            HtmlToken::Text(text) => format!("{text:?}"),
            HtmlToken::Start(tag) => format!("<{}>", tag.name),
            HtmlToken::End(name) => format!("</{name}>"),
            HtmlToken::Raw { name, text } => format!("{name}:{text:?}"),
        });
        pieces.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn pages_are_cut_as_browsers_cut_them() {
        let check = |html: &str, expected: &str| assert_eq!(told(html), expected, "{html}");
        check("a<b>c</b>", r#""a" <b> "c" </b>"#);
        check("1 < 2 <3", r#""1 " "< 2 " "<3""#);
        check("<a title='x>y' b=\"z>\">t", r#"<a> "t""#);
        check("<a b=c'd>t", r#"<a> "t""#);
        check("<a 'b>c'>t", r#"<a> "c'>t""#);
        check("<!-- <b> -->x<!-->y<!--->z<!-- open", r#""x" "y" "z""#);
        check("<!doctype html><?php x ?>t", r#""t""#);
        check(
            "<script>if (a</b>c) '<p>'</SCRIPT >t",
            r#"<script> script:"if (a</b>c) '<p>'" </SCRIPT> "t""#,
        );
        check(
            "<title>a &amp; <b></title>",
            r#"<title> title:"a &amp; <b>" </title>"#,
        );
        check("<style>open", r#"<style> style:"open""#);
        check("<br/><img src=x />", "<br> <img>");
        check("<div", "");
        check("<", r#""<""#);
        check("</>x</ y>z", r#""x" "z""#);
        check("é<ü>", r#""é" "<ü>""#);
    }

    #[test]
    fn attributes() {
        let check = |html: &str, name: &str, value: Option<&str>| {
            let Some(HtmlToken::Start(tag)) = HtmlTokenizer::new(html).next() else {
                panic!("{html}")
            };
            assert_eq!(tag.attribute(name).as_deref(), value, "{html}");
        };
        check("<a href=x>", "href", Some("x"));
        check("<a HREF = 'x y' b>", "href", Some("x y"));
        check(
            "<a data-href=y href=\"?a=1&amp;b=2\">",
            "href",
            Some("?a=1&b=2"),
        );
        check("<a hidden>", "hidden", Some(""));
        check("<a hidden href=/x/y/>", "href", Some("/x/y/"));
        check("<a =x href=y>", "href", Some("y"));
        check("<a b>", "href", None);
        check("<a é='ü' href='ö'>", "href", Some("ö"));
    }

    #[test]
    fn charsets() {
        let check =
            |html: &str, charset: Option<&str>| assert_eq!(meta_charset(html).as_deref(), charset);
        check("<html><meta charset=\"Shift_JIS\">", Some("Shift_JIS"));
        check(
            "<meta http-equiv=Content-Type content='text/html; charset=iso-8859-2'>",
            Some("iso-8859-2"),
        );
        check("<!-- <meta charset=x> -->", None);
        check("<meta name=viewport content=width>", None);
    }
}
