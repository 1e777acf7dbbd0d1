//! What the start of an element asks for.

use reqwest::Url;

use super::{
    super::{
        elements::{Element, Role},
        table::Table,
        tokens::Tag,
        writer::{Gap, Style},
    },
    Converter, End, MAX_LINK, MAX_TABLES, Preformatted,
};

impl Converter {
    pub(super) fn void(&mut self, role: Role, tag: Tag<'_>) {
        if role == Role::Base && !self.base_is_given {
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
            (Role::Break, Some(preformatted)) => preformatted.text.push('\n'),
            (Role::Break, None) => self.writer.break_line(),
            (Role::Rule, None) if !self.writer.in_line() => {
                self.writer.gap(Gap::Blank);
                if self.writer.style == Style::Markdown {
                    self.writer.exact("---");
                    self.writer.gap(Gap::Blank);
                }
            }
            (Role::Image, None) if self.code.is_none() => self.image(tag),
            _ => {}
        }
    }

    fn image(&mut self, tag: Tag<'_>) {
        let alt = tag.attribute("alt").unwrap_or_default();
        let alt = alt.split_whitespace().collect::<Vec<_>>().join(" ");
        // Without words it is decoration.
        if alt.is_empty() {
            return;
        }
        let url = tag.attribute("src").and_then(|src| self.link(&src));
        let text = match (self.writer.style, url) {
            (Style::Markdown, Some(url)) => format!("![{alt}]({url})"),
            (Style::Markdown | Style::Text, _) => format!("[image: {alt}]"),
        };
        self.written += text.len();
        self.writer.exact(&text);
    }

    /// A link as it stands in the result: absolute, and only where a reader could go.
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

    /// Does what the start of an element asks for, and says what its end will have to do.
    pub(super) fn open(&mut self, element: Element, tag: Tag<'_>) -> End {
        if is_noise(element, tag) || (element.role == Role::Footer && !self.is_in_article()) {
            self.noise += 1;
            return End::Noise;
        }
        if element.role == Role::Main || tag.attribute("role").as_deref() == Some("main") {
            (self.main, self.seen_main) = (self.main + 1, true);
            return End::Main;
        }
        if !self.is_shown() {
            return End::Nothing;
        }
        match element.role {
            // Within code only the text counts.
            role if self.preformatted.is_some() => {
                if let (Role::Code, Some(preformatted)) = (role, &mut self.preformatted) {
                    preformatted.language = preformatted.language.take().or_else(|| language(tag));
                }
                End::Nothing
            }
            _ if self.code.is_some() => End::Nothing,
            Role::Preformatted => {
                self.preformatted = Some(Preformatted {
                    text: String::new(),
                    language: language(tag),
                });
                End::Preformatted
            }
            Role::Code => {
                self.code = Some(String::new());
                End::Code
            }
            role => self
                .open_block(role)
                .unwrap_or_else(|| self.open_inline(role, tag)),
        }
    }

    fn open_block(&mut self, role: Role) -> Option<End> {
        const HEADINGS: [&str; 6] = ["# ", "## ", "### ", "#### ", "##### ", "###### "];
        let markdown = self.writer.style == Style::Markdown;
        Some(match role {
            Role::Block | Role::Main | Role::Article | Role::Footer | Role::RowGroup => {
                self.writer.gap(Gap::Line);
                End::Gap(Gap::Line)
            }
            Role::Paragraph => {
                self.writer.gap(Gap::Blank);
                End::Gap(Gap::Blank)
            }
            Role::Heading(level) => {
                self.writer.gap(Gap::Blank);
                self.writer
                    .open_mark(if markdown { HEADINGS[level - 1] } else { "" });
                self.writer.open_line();
                End::Line {
                    gap: Gap::Blank,
                    mark: String::new(),
                }
            }
            Role::Term => {
                self.writer.gap(Gap::Blank);
                self.writer.open_mark(if markdown { "**" } else { "" });
                self.writer.open_line();
                End::Line {
                    gap: Gap::Line,
                    mark: if markdown {
                        "**".to_owned()
                    } else {
                        String::new()
                    },
                }
            }
            Role::Definition => {
                self.writer.open_item(": ".to_owned());
                End::Margin(Gap::Line)
            }
            Role::Quote => {
                self.writer.open_quote();
                End::Margin(Gap::Blank)
            }
            Role::Bullets | Role::Numbers => {
                let within = self
                    .stack
                    .iter()
                    .any(|open| open.element.role == Role::Item);
                self.writer.gap(if within { Gap::Line } else { Gap::Blank });
                End::List {
                    next: (role == Role::Numbers).then_some(1),
                }
            }
            Role::Item => {
                let mark = self.item_mark();
                self.writer.open_item(mark);
                End::Margin(Gap::Line)
            }
            Role::Table => self.open_table(),
            Role::Row | Role::Cell | Role::HeadCell => self.open_part_of_table(role),
            _ => return None,
        })
    }

    fn open_inline(&mut self, role: Role, tag: Tag<'_>) -> End {
        let mark = match role {
            Role::Strong => "**",
            Role::Emphasis => "*",
            Role::Deleted => "~~",
            Role::Link => {
                let url = tag.attribute("href").and_then(|href| self.link(&href));
                let Some(url) = url.filter(|_| self.writer.style == Style::Markdown) else {
                    return End::Nothing;
                };
                self.written += url.len();
                self.writer.open_mark("[");
                self.writer.open_line();
                return End::Line {
                    gap: Gap::None,
                    mark: format!("]({url})"),
                };
            }
            _ => return End::Nothing,
        };
        let open_already = self
            .stack
            .iter()
            .any(|open| matches!(open.end, End::Mark(open) if open == mark));
        if open_already || self.writer.style == Style::Text {
            return End::Nothing;
        }
        self.writer.open_mark(mark);
        End::Mark(mark)
    }

    fn item_mark(&mut self) -> String {
        let lists = self
            .stack
            .iter_mut()
            .rev()
            .filter_map(|open| match &mut open.end {
                End::List { next } => Some(next),
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

    fn open_table(&mut self) -> End {
        if self.tables.len() == MAX_TABLES || self.writer.in_line() {
            self.writer.gap(Gap::Line);
            return End::Gap(Gap::Line);
        }
        if let Some(outer) = self.tables.last_mut() {
            outer.mark_nested();
        }
        self.tables.push(Table::default());
        End::Table
    }

    fn open_part_of_table(&mut self, role: Role) -> End {
        let Some(table) = self.tables.last_mut() else {
            self.writer.gap(Gap::Line);
            return End::Gap(Gap::Line);
        };
        match role {
            Role::Row => {
                table.open_row();
                End::Nothing
            }
            _ if table.open_cell(&mut self.writer) => End::Cell,
            _ => {
                self.writer.gap(Gap::Line);
                End::Gap(Gap::Line)
            }
        }
    }

    fn is_in_article(&self) -> bool {
        let inside = [Role::Article, Role::Main, Role::Quote];
        self.stack
            .iter()
            .any(|open| inside.contains(&open.element.role))
    }
}

/// The language that a class names, as the usual highlighters write it.
fn language(tag: Tag<'_>) -> Option<String> {
    let class = tag.attribute("class")?;
    let language = class.split_ascii_whitespace().find_map(|word| {
        ["language-", "lang-", "highlight-source-"]
            .iter()
            .find_map(|prefix| word.strip_prefix(prefix))
    })?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '#' | '_');
    (language.len() <= 20 && language.chars().all(plain)).then(|| language.to_owned())
}

/// Whether nobody is meant to read it: by what it is, or because it is hidden.
fn is_noise(element: Element, tag: Tag<'_>) -> bool {
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
    element.role == Role::Noise || (tag.has_attributes() && (role() || hidden()))
}
