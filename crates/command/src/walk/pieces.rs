//! Words that are not literal: the commands that run while the shell expands them.

use brush_parser::ast;
use brush_parser::word::{
    Parameter, ParameterExpr, WordPiece, WordPieceWithSource, parse as parse_word, parse_heredoc,
};

use super::ScriptWalker;
use crate::opaque::OpaqueReason;
use crate::parse;
use crate::word::{self, WordExpansion};

impl ScriptWalker {
    /// A word outside of a command's words, such as the list of a `for`. It may be dynamic if all commands in it are
    /// found.
    pub(super) fn bystander(&mut self, raw: &str) {
        let reading = word::read(raw);
        self.understood(raw, reading);
    }

    /// Returns the text of a literal word. For any other word, finds the commands in it and notes it as opaque.
    pub(super) fn literal(&mut self, raw: &str) -> Option<String> {
        match word::read(raw) {
            WordExpansion::Literal(word) => Some(word),
            WordExpansion::Expanded(scripts) => {
                self.scripts(&scripts);
                None
            }
            WordExpansion::Unsure => {
                self.take_apart(raw);
                None
            }
        }
    }

    /// The body of a here-document without quotes around its delimiter.
    pub(super) fn here_document_body(&mut self, body: &str) {
        let reading = word::read_here_document(body);
        if reading == WordExpansion::Unsure {
            self.opaque(body, OpaqueReason::Ambiguous);
            if let Some(pieces) =
                parse::may_take_apart(body).then(|| parse_heredoc(body, &parse::OPTIONS))
            {
                self.pieces(&pieces.unwrap_or_default());
            }
        } else {
            self.understood(body, reading);
        }
    }

    fn understood(&mut self, raw: &str, reading: WordExpansion) {
        match reading {
            WordExpansion::Literal(_) => {}
            // Inside a substitution the parser drops comments, and this reader cannot check where they end.
            WordExpansion::Expanded(scripts) if !scripts.is_empty() && self.has_hash => {
                self.opaque(raw, OpaqueReason::Ambiguous);
                self.scripts(&scripts);
            }
            WordExpansion::Expanded(scripts) => self.scripts(&scripts),
            WordExpansion::Unsure => {
                self.opaque(raw, OpaqueReason::Ambiguous);
                self.take_apart(raw);
            }
        }
    }

    fn scripts(&mut self, scripts: &[String]) {
        for script in scripts {
            self.substitution(script);
        }
    }

    /// Finds commands in a word that is opaque in any case, so that denies match them.
    pub(super) fn take_apart(&mut self, raw: &str) {
        if !parse::may_take_apart(raw) {
            return;
        }
        if let Ok(pieces) = parse_word(raw, &parse::OPTIONS) {
            self.pieces(&pieces);
        }
    }

    fn pieces(&mut self, pieces: &[WordPieceWithSource]) {
        for piece in pieces {
            match &piece.piece {
                WordPiece::Text(_)
                | WordPiece::SingleQuotedText(_)
                | WordPiece::AnsiCQuotedText(_)
                | WordPiece::TildeExpansion(_)
                | WordPiece::EscapeSequence(_) => {}
                WordPiece::DoubleQuotedSequence(pieces)
                | WordPiece::GettextDoubleQuotedSequence(pieces) => {
                    self.pieces(pieces);
                }
                WordPiece::ParameterExpansion(expression) => self.parameter(expression),
                WordPiece::CommandSubstitution(script)
                | WordPiece::BackquotedCommandSubstitution(script) => {
                    self.substitution(script);
                }
                WordPiece::ArithmeticExpression(ast::UnexpandedArithmeticExpr { value }) => {
                    self.inner(value);
                }
            }
        }
    }

    /// A word inside a word. Each is shorter than the outer one, which bounds the recursion.
    fn inner(&mut self, raw: &str) {
        if raw.contains(['$', '`']) {
            self.take_apart(raw);
        }
    }

    fn parameter(&mut self, expression: &ParameterExpr) {
        match expression {
            ParameterExpr::Parameter { parameter, .. }
            | ParameterExpr::ParameterLength { parameter, .. }
            | ParameterExpr::Transform { parameter, .. } => self.subscript(parameter),
            ParameterExpr::UseDefaultValues {
                parameter,
                default_value: word,
                ..
            }
            | ParameterExpr::AssignDefaultValues {
                parameter,
                default_value: word,
                ..
            }
            | ParameterExpr::IndicateErrorIfNullOrUnset {
                parameter,
                error_message: word,
                ..
            }
            | ParameterExpr::UseAlternativeValue {
                parameter,
                alternative_value: word,
                ..
            }
            | ParameterExpr::RemoveSmallestSuffixPattern {
                parameter,
                pattern: word,
                ..
            }
            | ParameterExpr::RemoveLargestSuffixPattern {
                parameter,
                pattern: word,
                ..
            }
            | ParameterExpr::RemoveSmallestPrefixPattern {
                parameter,
                pattern: word,
                ..
            }
            | ParameterExpr::RemoveLargestPrefixPattern {
                parameter,
                pattern: word,
                ..
            }
            | ParameterExpr::UppercaseFirstChar {
                parameter,
                pattern: word,
                ..
            }
            | ParameterExpr::UppercasePattern {
                parameter,
                pattern: word,
                ..
            }
            | ParameterExpr::LowercaseFirstChar {
                parameter,
                pattern: word,
                ..
            }
            | ParameterExpr::LowercasePattern {
                parameter,
                pattern: word,
                ..
            } => {
                self.subscript(parameter);
                self.inner(word.as_deref().unwrap_or_default());
            }
            ParameterExpr::Substring {
                parameter,
                offset,
                length,
                ..
            } => {
                self.subscript(parameter);
                self.inner(&offset.value);
                self.inner(length.as_ref().map_or("", |length| &length.value));
            }
            ParameterExpr::ReplaceSubstring {
                parameter,
                pattern,
                replacement,
                ..
            } => {
                self.subscript(parameter);
                self.inner(pattern);
                self.inner(replacement.as_deref().unwrap_or_default());
            }
            ParameterExpr::VariableNames { .. } | ParameterExpr::MemberKeys { .. } => {}
        }
    }

    fn subscript(&mut self, parameter: &Parameter) {
        match parameter {
            Parameter::NamedWithIndex { index, .. } => self.inner(index),
            Parameter::Positional(_)
            | Parameter::Special(_)
            | Parameter::Named(_)
            | Parameter::NamedWithAllIndices { .. } => {}
        }
    }
}
