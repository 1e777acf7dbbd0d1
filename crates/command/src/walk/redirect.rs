//! Files that the shell itself opens.

use brush_parser::ast;

use super::ScriptWalker;
use crate::analysis::{RedirectAccess, ShellRedirect, SpelledIn};
use crate::opaque::OpaqueReason;
use crate::word::{self, WordExpansion};

impl ScriptWalker {
    pub(super) fn redirects(&mut self, redirects: Option<&ast::RedirectList>) {
        for redirect in redirects.iter().flat_map(|list| &list.0) {
            self.redirect(redirect);
        }
    }

    pub(super) fn redirect(&mut self, redirect: &ast::IoRedirect) {
        match redirect {
            ast::IoRedirect::File(_, kind, target) => self.redirect_file(kind, target),
            ast::IoRedirect::HereDocument(_, document) => self.here_document(document),
            ast::IoRedirect::HereString(_, text) => self.bystander(&text.value),
            ast::IoRedirect::OutputAndError(target, _) => {
                self.open(&target.value, RedirectAccess::Write);
            }
        }
    }

    fn redirect_file(
        &mut self,
        kind: &ast::IoFileRedirectKind,
        target: &ast::IoFileRedirectTarget,
    ) {
        let access = match kind {
            ast::IoFileRedirectKind::Read | ast::IoFileRedirectKind::DuplicateInput => {
                RedirectAccess::Read
            }
            ast::IoFileRedirectKind::Write
            | ast::IoFileRedirectKind::Append
            | ast::IoFileRedirectKind::ReadAndWrite
            | ast::IoFileRedirectKind::Clobber
            | ast::IoFileRedirectKind::DuplicateOutput => RedirectAccess::Write,
        };
        match target {
            ast::IoFileRedirectTarget::Filename(word) => self.open(&word.value, access),
            ast::IoFileRedirectTarget::Fd(_) => {}
            // The target is a command, which is found like any other.
            ast::IoFileRedirectTarget::ProcessSubstitution(_, subshell) => {
                self.apart(|walker| walker.list(&subshell.list));
            }
            ast::IoFileRedirectTarget::Duplicate(word) => {
                // Bash expands this word twice, so that `>& '$(rm x)'` runs its command.
                if !word.value.bytes().all(word::is_plain) {
                    self.opaque(&word.value, OpaqueReason::Evaluated);
                    self.take_apart(word.value.trim_matches('\''));
                }
                if !is_descriptor(&word.value) {
                    self.open(&word.value, access);
                }
            }
        }
    }

    fn open(&mut self, raw: &str, access: RedirectAccess) {
        let target = self.literal(raw);
        match target.as_deref() {
            Some("/dev/null" | "/dev/stdin" | "/dev/stdout" | "/dev/stderr") => return,
            Some(path) if path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/") => {
                self.opaque(path, OpaqueReason::NetworkRedirect);
            }
            Some(_) => {}
            None => self.opaque(raw, OpaqueReason::DynamicRedirect),
        }
        let directory = self.scope.directory.clone();
        self.found.redirects.push(ShellRedirect {
            target,
            access,
            directory,
            spelled_in: None,
        });
    }

    /// A file that a program writes by an option counts like a redirection.
    pub(super) fn written_by_option(&mut self, path: &str, spelled_in: Option<SpelledIn>) {
        let directory = self.scope.directory.clone();
        let target = Some(path.to_owned());
        self.found.redirects.push(ShellRedirect {
            target,
            access: RedirectAccess::Write,
            directory,
            spelled_in,
        });
    }

    /// The parser finds the end of a here-document by other rules than bash if the delimiter is oddly quoted or lines
    /// are joined. Text to one reader would then be commands to the other, so only plain delimiters are accepted.
    fn here_document(&mut self, document: &ast::IoHereDocument) {
        let delimiter = match word::read(&document.here_end.value) {
            WordExpansion::Literal(delimiter) => delimiter,
            WordExpansion::Expanded(_) | WordExpansion::Unsure => String::new(),
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let ends_early = || document.doc.value.lines().any(|line| line == delimiter);
        if delimiter.is_empty() || !delimiter.bytes().all(plain) || ends_early() {
            self.opaque(&document.here_end.value, OpaqueReason::Ambiguous);
        }
        if document.requires_expansion {
            self.here_document_body(&document.doc.value);
        }
    }
}

/// `1`, `-` or `1-` after `>&` or `<&`.
fn is_descriptor(word: &str) -> bool {
    let digits = word.strip_suffix('-').unwrap_or(word);
    !word.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}
