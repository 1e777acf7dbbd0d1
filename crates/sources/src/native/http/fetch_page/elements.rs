//! What the elements of a page are for.

/// What an element means for a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Begins a new block and means nothing else.
    Block,
    /// The page's own content, as opposed to what is around it on every page.
    Main,
    /// Content that stands for itself; what looks like a page's footer inside is part of it.
    Article,
    /// The end of a page, unless it is the end of an article.
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
    /// Text whose line breaks count.
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
    /// Part of a line that means nothing else. Remembered, so that ends find their starts.
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
    /// A line across.
    Rule,
    Image,
    /// Where relative links start from.
    Base,
}

impl Role {
    /// Whether the element has no content, and so no end.
    pub(super) fn is_void(self) -> bool {
        matches!(self, Self::Break | Self::Rule | Self::Image | Self::Base)
    }

    /// Whether the element starts a line of its own, and so ends an open paragraph.
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

/// An element that is known, by its place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Element {
    place: usize,
    pub(super) role: Role,
}

impl Element {
    /// By name, in any case. Elements nobody knows are as if they were not there.
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
const ELEMENTS: &[(&str, Role)] = &[
    ("a", Role::Link),
    ("abbr", Role::Inline),
    ("address", Role::Block),
    ("article", Role::Article),
    ("aside", Role::Block),
    ("audio", Role::Noise),
    ("b", Role::Strong),
    ("base", Role::Base),
    ("bdi", Role::Inline),
    ("bdo", Role::Inline),
    ("blockquote", Role::Quote),
    ("body", Role::Block),
    ("br", Role::Break),
    ("button", Role::Noise),
    ("canvas", Role::Noise),
    ("caption", Role::Block),
    ("center", Role::Block),
    ("cite", Role::Inline),
    ("code", Role::Code),
    ("datalist", Role::Noise),
    ("dd", Role::Definition),
    ("del", Role::Deleted),
    ("details", Role::Block),
    ("dfn", Role::Inline),
    ("dialog", Role::Noise),
    ("div", Role::Block),
    ("dl", Role::Block),
    ("dt", Role::Term),
    ("em", Role::Emphasis),
    ("fieldset", Role::Block),
    ("figcaption", Role::Block),
    ("figure", Role::Block),
    ("font", Role::Inline),
    ("footer", Role::Footer),
    ("form", Role::Block),
    ("h1", Role::Heading(1)),
    ("h2", Role::Heading(2)),
    ("h3", Role::Heading(3)),
    ("h4", Role::Heading(4)),
    ("h5", Role::Heading(5)),
    ("h6", Role::Heading(6)),
    ("header", Role::Block),
    ("hgroup", Role::Block),
    ("hr", Role::Rule),
    ("i", Role::Emphasis),
    ("img", Role::Image),
    ("ins", Role::Inline),
    ("kbd", Role::Code),
    ("label", Role::Inline),
    ("legend", Role::Block),
    ("li", Role::Item),
    ("main", Role::Main),
    ("map", Role::Noise),
    ("mark", Role::Inline),
    ("math", Role::Inline),
    ("menu", Role::Bullets),
    ("nav", Role::Noise),
    ("noscript", Role::Block),
    ("object", Role::Noise),
    ("ol", Role::Numbers),
    ("p", Role::Paragraph),
    ("pre", Role::Preformatted),
    ("q", Role::Inline),
    ("s", Role::Deleted),
    ("samp", Role::Code),
    ("search", Role::Noise),
    ("section", Role::Block),
    ("select", Role::Noise),
    ("small", Role::Inline),
    ("span", Role::Inline),
    ("strike", Role::Deleted),
    ("strong", Role::Strong),
    ("sub", Role::Inline),
    ("summary", Role::Block),
    ("sup", Role::Inline),
    ("svg", Role::Noise),
    ("table", Role::Table),
    ("tbody", Role::RowGroup),
    ("td", Role::Cell),
    ("template", Role::Noise),
    ("tfoot", Role::RowGroup),
    ("th", Role::HeadCell),
    ("thead", Role::RowGroup),
    ("time", Role::Inline),
    ("tr", Role::Row),
    ("tt", Role::Code),
    ("u", Role::Inline),
    ("ul", Role::Bullets),
    ("var", Role::Emphasis),
    ("video", Role::Noise),
];

#[cfg(test)]
mod tests {
    use super::{ELEMENTS, Element, Role};

    #[test]
    fn the_table_is_in_order() {
        assert!(ELEMENTS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(ELEMENTS.iter().all(|(name, _)| name.len() <= 10));
        assert_eq!(
            Element::named("BlockQuote").map(|element| element.role),
            Some(Role::Quote)
        );
        assert_eq!(Element::named("my-element"), None);
    }
}
