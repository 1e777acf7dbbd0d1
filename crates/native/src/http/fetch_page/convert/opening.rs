//! Handles the start of an element.

use reqwest::Url;

use super::{
    super::{
        elements::{ElementRole, HtmlElement},
        table::HtmlTable,
        tokens::HtmlStartTag,
        writer::{PageTextStyle, TextGap},
    },
    ElementEndAction, HtmlConverter, MAX_LINK, MAX_TABLES, PreformattedBlock,
};

impl HtmlConverter {
    pub(super) fn void(&mut self, role: ElementRole, tag: HtmlStartTag<'_>) {
        if role == ElementRole::Base && !self.base_is_given {
            let url = tag
                .attribute("href")
                .and_then(|href| self.base.join(&href).ok());
            let usable = |url: &Url| {
                matches!(url.scheme(), "http" | "https") && url.as_str().len() <= MAX_LINK
            };
            if let Some(url) = url.filter(usable) {
                (self.base, self.base_is_given) = (url, true);
            }
        }
        if !self.is_shown() {
            return;
        }
        match (role, &mut self.preformatted) {
            (ElementRole::Break, Some(preformatted)) => preformatted.text.push('\n'),
            (ElementRole::Break, None) => self.writer.break_line(),
            (ElementRole::Rule, None) if !self.writer.in_line() => {
                self.writer.gap(TextGap::Blank);
                if self.writer.style == PageTextStyle::Markdown {
                    self.writer.exact("---");
                    self.writer.gap(TextGap::Blank);
                }
            }
            (ElementRole::Image, None) if self.code.is_none() => self.image(tag),
            _ => {}
        }
    }

    fn image(&mut self, tag: HtmlStartTag<'_>) {
        let alt = tag.attribute("alt").unwrap_or_default();
        let alt = alt.split_whitespace().collect::<Vec<_>>().join(" ");
        // An image without a text is decoration.
        if alt.is_empty() {
            return;
        }
        let url = tag.attribute("src").and_then(|src| self.link(&src));
        let text = match (self.writer.style, url) {
            (PageTextStyle::Markdown, Some(url)) => format!("![{alt}]({url})"),
            (PageTextStyle::Markdown | PageTextStyle::Text, _) => format!("[image: {alt}]"),
        };
        self.written += text.len();
        self.writer.exact(&text);
    }

    /// A link for the result: absolute, and only to addresses that a reader could open.
    fn link(&self, href: &str) -> Option<String> {
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') || href.len() > MAX_LINK {
            return None;
        }
        let url = self.base.join(href).ok()?;
        matches!(url.scheme(), "http" | "https" | "mailto").then(|| {
            // A bracket would end the link early.
            url.as_str().replace('(', "%28").replace(')', "%29")
        })
    }

    /// Handles the start of an element, and returns the action for its end.
    pub(super) fn open(&mut self, element: HtmlElement, tag: HtmlStartTag<'_>) -> ElementEndAction {
        if is_noise(element, tag) || (element.role == ElementRole::Footer && !self.is_in_article())
        {
            self.noise += 1;
            return ElementEndAction::Noise;
        }
        if element.role == ElementRole::Main || tag.attribute("role").as_deref() == Some("main") {
            (self.main, self.seen_main) = (self.main + 1, true);
            return ElementEndAction::Main;
        }
        if !self.is_shown() {
            return ElementEndAction::Nothing;
        }
        match element.role {
            // In code only the text counts.
            role if self.preformatted.is_some() => {
                if let (ElementRole::Code, Some(preformatted)) = (role, &mut self.preformatted) {
                    preformatted.language = preformatted.language.take().or_else(|| language(tag));
                }
                ElementEndAction::Nothing
            }
            _ if self.code.is_some() => ElementEndAction::Nothing,
            ElementRole::Preformatted => {
                self.preformatted = Some(PreformattedBlock {
                    text: String::new(),
                    language: language(tag),
                });
                ElementEndAction::Preformatted
            }
            ElementRole::Code => {
                self.code = Some(String::new());
                ElementEndAction::Code
            }
            role => self
                .open_block(role)
                .unwrap_or_else(|| self.open_inline(role, tag)),
        }
    }

    fn open_block(&mut self, role: ElementRole) -> Option<ElementEndAction> {
        const HEADINGS: [&str; 6] = ["# ", "## ", "### ", "#### ", "##### ", "###### "];
        let markdown = self.writer.style == PageTextStyle::Markdown;
        Some(match role {
            ElementRole::Block
            | ElementRole::Main
            | ElementRole::Article
            | ElementRole::Footer
            | ElementRole::RowGroup => {
                self.writer.gap(TextGap::Line);
                ElementEndAction::Gap(TextGap::Line)
            }
            ElementRole::Paragraph => {
                self.writer.gap(TextGap::Blank);
                ElementEndAction::Gap(TextGap::Blank)
            }
            ElementRole::Heading(level) => {
                self.writer.gap(TextGap::Blank);
                self.writer
                    .open_mark(if markdown { HEADINGS[level - 1] } else { "" });
                self.writer.open_line();
                ElementEndAction::Line {
                    gap: TextGap::Blank,
                    mark: String::new(),
                }
            }
            ElementRole::Term => {
                self.writer.gap(TextGap::Blank);
                self.writer.open_mark(if markdown { "**" } else { "" });
                self.writer.open_line();
                ElementEndAction::Line {
                    gap: TextGap::Line,
                    mark: if markdown {
                        "**".to_owned()
                    } else {
                        String::new()
                    },
                }
            }
            ElementRole::Definition => {
                self.writer.open_item(": ".to_owned());
                ElementEndAction::Margin(TextGap::Line)
            }
            ElementRole::Quote => {
                self.writer.open_quote();
                ElementEndAction::Margin(TextGap::Blank)
            }
            ElementRole::Bullets | ElementRole::Numbers => {
                let within = self
                    .stack
                    .iter()
                    .any(|open| open.element.role == ElementRole::Item);
                self.writer.gap(if within {
                    TextGap::Line
                } else {
                    TextGap::Blank
                });
                ElementEndAction::List {
                    next: (role == ElementRole::Numbers).then_some(1),
                }
            }
            ElementRole::Item => {
                let mark = self.item_mark();
                self.writer.open_item(mark);
                ElementEndAction::Margin(TextGap::Line)
            }
            ElementRole::Table => self.open_table(),
            ElementRole::Row | ElementRole::Cell | ElementRole::HeadCell => {
                self.open_part_of_table(role)
            }
            _ => return None,
        })
    }

    fn open_inline(&mut self, role: ElementRole, tag: HtmlStartTag<'_>) -> ElementEndAction {
        let mark = match role {
            ElementRole::Strong => "**",
            ElementRole::Emphasis => "*",
            ElementRole::Deleted => "~~",
            ElementRole::Link => {
                let url = tag.attribute("href").and_then(|href| self.link(&href));
                let Some(url) = url.filter(|_| self.writer.style == PageTextStyle::Markdown) else {
                    return ElementEndAction::Nothing;
                };
                self.written += url.len();
                self.writer.open_mark("[");
                self.writer.open_line();
                return ElementEndAction::Line {
                    gap: TextGap::None,
                    mark: format!("]({url})"),
                };
            }
            _ => return ElementEndAction::Nothing,
        };
        let open_already = self
            .stack
            .iter()
            .any(|open| matches!(open.end, ElementEndAction::Mark(open) if open == mark));
        if open_already || self.writer.style == PageTextStyle::Text {
            return ElementEndAction::Nothing;
        }
        self.writer.open_mark(mark);
        ElementEndAction::Mark(mark)
    }

    fn item_mark(&mut self) -> String {
        let lists = self
            .stack
            .iter_mut()
            .rev()
            .filter_map(|open| match &mut open.end {
                ElementEndAction::List { next } => Some(next),
                _ => None,
            });
        match lists.into_iter().next() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            Some(None) | None => "- ".to_owned(),
        }
    }

    fn open_table(&mut self) -> ElementEndAction {
        if self.tables.len() == MAX_TABLES || self.writer.in_line() {
            self.writer.gap(TextGap::Line);
            return ElementEndAction::Gap(TextGap::Line);
        }
        if let Some(outer) = self.tables.last_mut() {
            outer.mark_nested();
        }
        self.tables.push(HtmlTable::default());
        ElementEndAction::Table
    }

    fn open_part_of_table(&mut self, role: ElementRole) -> ElementEndAction {
        let Some(table) = self.tables.last_mut() else {
            self.writer.gap(TextGap::Line);
            return ElementEndAction::Gap(TextGap::Line);
        };
        match role {
            ElementRole::Row => {
                table.open_row();
                ElementEndAction::Nothing
            }
            _ if table.open_cell(&mut self.writer) => ElementEndAction::Cell,
            _ => {
                self.writer.gap(TextGap::Line);
                ElementEndAction::Gap(TextGap::Line)
            }
        }
    }

    fn is_in_article(&self) -> bool {
        let inside = [ElementRole::Article, ElementRole::Main, ElementRole::Quote];
        self.stack
            .iter()
            .any(|open| inside.contains(&open.element.role))
    }
}

/// The language in a class name, as the usual highlighters write it.
fn language(tag: HtmlStartTag<'_>) -> Option<String> {
    let class = tag.attribute("class")?;
    let language = class.split_ascii_whitespace().find_map(|word| {
        ["language-", "lang-", "highlight-source-"]
            .iter()
            .find_map(|prefix| word.strip_prefix(prefix))
    })?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '#' | '_');
    (language.len() <= 20 && language.chars().all(plain)).then(|| language.to_owned())
}

/// Whether the element is not meant for readers: by its kind, or because it is hidden.
fn is_noise(element: HtmlElement, tag: HtmlStartTag<'_>) -> bool {
    const ROLES: [&str; 8] = [
        "navigation",
        "search",
        "contentinfo",
        "dialog",
        "alertdialog",
        "menu",
        "menubar",
        "toolbar",
    ];
    let role = || {
        tag.attribute("role")
            .is_some_and(|role| ROLES.contains(&role.as_str()))
    };
    let hidden = || {
        tag.attribute("hidden")
            .is_some_and(|value| value != "until-found")
            || tag
                .attribute("aria-hidden")
                .is_some_and(|value| value == "true")
            || tag.attribute("style").is_some_and(|style| {
                let style: String = style
                    .split_whitespace()
                    .collect::<String>()
                    .to_ascii_lowercase();
                style.contains("display:none") || style.contains("visibility:hidden")
            })
    };
    element.role == ElementRole::Noise || (tag.has_attributes() && (role() || hidden()))
}
