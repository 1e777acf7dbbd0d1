//! The roles of HTML elements.

/// The role of an element for a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElementRole {
    /// Begins a new block and has no other role.
    Block,
    /// The page's own content, without the parts around it that every page has.
    Main,
    /// Self-contained content; a footer in it belongs to it.
    Article,
    /// The end of a page, unless it is in an article.
    Footer,
    Paragraph,
    /// A heading of this level.
    Heading(usize),
    /// A list without numbers.
    Bullets,
    /// A list with numbers.
    Numbers,
    /// An item of a list.
    Item,
    /// A term that a definition follows.
    Term,
    Definition,
    /// A quotation.
    Quote,
    /// Text with line breaks that count.
    Preformatted,
    /// Code within a line.
    Code,
    /// Strong text.
    Strong,
    /// Emphasised text.
    Emphasis,
    /// Text that was deleted.
    Deleted,
    Link,
    /// A part of a line without another role. It is tracked, so that end tags find their starts.
    Inline,
    Table,
    /// A row of a table.
    Row,
    /// A cell of a table.
    Cell,
    /// A cell of a table that names a row or a column.
    HeadCell,
    RowGroup,
    /// Not for readers: navigation, controls, drawings, scripts.
    Noise,
    /// A line break.
    Break,
    /// A horizontal line.
    Rule,
    Image,
    /// The base of relative links.
    Base,
}

impl ElementRole {
    /// Whether the element has no content, and so no end tag.
    pub(super) fn is_void(self) -> bool {
        matches!(self, Self::Break | Self::Rule | Self::Image | Self::Base)
    }

    /// Whether the element starts a new line, and so ends an open paragraph.
    pub(super) fn is_block(self) -> bool {
        !self.is_void()
            && !matches!(
                self,
                Self::Code
                    | Self::Strong
                    | Self::Emphasis
                    | Self::Deleted
                    | Self::Link
                    | Self::Inline
                    | Self::Noise
            )
    }
}

/// A known element, by its index in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HtmlElement {
    place: usize,
    pub(super) role: ElementRole,
}

impl HtmlElement {
    /// The element of a name, in any case. Unknown elements are ignored.
    pub(super) fn named(name: &str) -> Option<Self> {
        // The longest name has ten letters.
        if name.len() > 10 {
            return None;
        }
        let lower = name.to_ascii_lowercase();
        let place = ELEMENTS
            .binary_search_by(|(known, _)| (*known).cmp(&lower))
            .ok()?;
        Some(Self {
            place,
            role: ELEMENTS[place].1,
        })
    }
}

/// In alphabetical order.
const ELEMENTS: &[(&str, ElementRole)] = &[
    ("a", ElementRole::Link),
    ("abbr", ElementRole::Inline),
    ("address", ElementRole::Block),
    ("article", ElementRole::Article),
    ("aside", ElementRole::Block),
    ("audio", ElementRole::Noise),
    ("b", ElementRole::Strong),
    ("base", ElementRole::Base),
    ("bdi", ElementRole::Inline),
    ("bdo", ElementRole::Inline),
    ("blockquote", ElementRole::Quote),
    ("body", ElementRole::Block),
    ("br", ElementRole::Break),
    ("button", ElementRole::Noise),
    ("canvas", ElementRole::Noise),
    ("caption", ElementRole::Block),
    ("center", ElementRole::Block),
    ("cite", ElementRole::Inline),
    ("code", ElementRole::Code),
    ("datalist", ElementRole::Noise),
    ("dd", ElementRole::Definition),
    ("del", ElementRole::Deleted),
    ("details", ElementRole::Block),
    ("dfn", ElementRole::Inline),
    ("dialog", ElementRole::Noise),
    ("div", ElementRole::Block),
    ("dl", ElementRole::Block),
    ("dt", ElementRole::Term),
    ("em", ElementRole::Emphasis),
    ("fieldset", ElementRole::Block),
    ("figcaption", ElementRole::Block),
    ("figure", ElementRole::Block),
    ("font", ElementRole::Inline),
    ("footer", ElementRole::Footer),
    ("form", ElementRole::Block),
    ("h1", ElementRole::Heading(1)),
    ("h2", ElementRole::Heading(2)),
    ("h3", ElementRole::Heading(3)),
    ("h4", ElementRole::Heading(4)),
    ("h5", ElementRole::Heading(5)),
    ("h6", ElementRole::Heading(6)),
    ("header", ElementRole::Block),
    ("hgroup", ElementRole::Block),
    ("hr", ElementRole::Rule),
    ("i", ElementRole::Emphasis),
    ("img", ElementRole::Image),
    ("ins", ElementRole::Inline),
    ("kbd", ElementRole::Code),
    ("label", ElementRole::Inline),
    ("legend", ElementRole::Block),
    ("li", ElementRole::Item),
    ("main", ElementRole::Main),
    ("map", ElementRole::Noise),
    ("mark", ElementRole::Inline),
    ("math", ElementRole::Inline),
    ("menu", ElementRole::Bullets),
    ("nav", ElementRole::Noise),
    ("noscript", ElementRole::Block),
    ("object", ElementRole::Noise),
    ("ol", ElementRole::Numbers),
    ("p", ElementRole::Paragraph),
    ("pre", ElementRole::Preformatted),
    ("q", ElementRole::Inline),
    ("s", ElementRole::Deleted),
    ("samp", ElementRole::Code),
    ("search", ElementRole::Noise),
    ("section", ElementRole::Block),
    ("select", ElementRole::Noise),
    ("small", ElementRole::Inline),
    ("span", ElementRole::Inline),
    ("strike", ElementRole::Deleted),
    ("strong", ElementRole::Strong),
    ("sub", ElementRole::Inline),
    ("summary", ElementRole::Block),
    ("sup", ElementRole::Inline),
    ("svg", ElementRole::Noise),
    ("table", ElementRole::Table),
    ("tbody", ElementRole::RowGroup),
    ("td", ElementRole::Cell),
    ("template", ElementRole::Noise),
    ("tfoot", ElementRole::RowGroup),
    ("th", ElementRole::HeadCell),
    ("thead", ElementRole::RowGroup),
    ("time", ElementRole::Inline),
    ("tr", ElementRole::Row),
    ("tt", ElementRole::Code),
    ("u", ElementRole::Inline),
    ("ul", ElementRole::Bullets),
    ("var", ElementRole::Emphasis),
    ("video", ElementRole::Noise),
];

#[cfg(test)]
mod tests {
    use super::{ELEMENTS, ElementRole, HtmlElement};

    #[test]
    fn the_table_is_in_order() {
        assert!(ELEMENTS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(ELEMENTS.iter().all(|(name, _)| name.len() <= 10));
        assert_eq!(
            HtmlElement::named("BlockQuote").map(|element| element.role),
            Some(ElementRole::Quote)
        );
        assert_eq!(HtmlElement::named("my-element"), None);
    }
}
