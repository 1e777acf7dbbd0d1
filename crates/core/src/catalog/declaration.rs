//! Layer 1: a declaration takes its place in the catalog under names that no other tool has.

use std::{collections::HashMap, sync::Arc};

use sha2::{Digest, Sha256};
use toolpost_model::{
    ClassFact, Declaration, EffectClass, EffectOrigin, Effects, Naming, SourceProblem, ToolId,
};

use super::{
    interface::{self, OperatorSettings, SourceSettings, SourceTrust, ToolSettings},
    schema::Schema,
};
use crate::{catalog::SourceTools, port::SourceIndex};

/// The longest name model providers accept.
const WIRE_NAME_LIMIT: usize = 64;

/// A tool in the catalog: its declaration with the operator's settings applied, its name on the wire and its
/// compiled schemas.
pub struct Entry {
    declaration: Declaration,
    name: Box<str>,
    pub(crate) source: SourceIndex,
    pub(crate) source_name: Arc<str>,
    /// Who vouches for the class and effects of its calls.
    pub(crate) origin: EffectOrigin,
    /// Who states the effects of a single call; `None` where nobody is listened to.
    pub(crate) stated_by: Option<EffectOrigin>,
    /// What the operator set for it.
    pub(crate) settings: ToolSettings,
    /// How many calls of its source the operator lets run at the same time.
    pub(crate) source_concurrency: Option<usize>,
    input: Schema,
    output: Option<Schema>,
}

/// Something an operator should know about the catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogNotice {
    /// Two tools want one name; the first one keeps it.
    #[error("tool `{refused}` was left out: the name `{name}` is taken by another tool")]
    NameTaken {
        /// The tool that was left out.
        refused: ToolId,
        /// The name both want.
        name: String,
    },
    /// An alias was dropped because the name belongs to another tool.
    #[error("the alias `{alias}` of `{tool}` was dropped: the name is taken")]
    AliasTaken {
        /// The tool that keeps its other names.
        tool: ToolId,
        /// The alias.
        alias: String,
    },
    /// A schema no call could be checked against.
    #[error("tool `{tool}` was left out: {reason}")]
    BadSchema {
        /// The tool.
        tool: ToolId,
        /// What is wrong with its schema.
        reason: String,
    },
    /// A name the operator gave is another tool's.
    #[error(
        "`{tool}` keeps the name `{kept}`: `{wanted}`, which the settings give it, is taken by another tool"
    )]
    RenameTaken {
        /// The tool.
        tool: ToolId,
        /// The name it was to get.
        wanted: String,
        /// The name it has.
        kept: String,
    },
    /// Settings for a tool nobody offers.
    #[error("the settings under `tools.{name}` fit no tool")]
    UnusedSettings {
        /// The key.
        name: String,
    },
    /// A rule that speaks of no tool there is.
    #[error("the rule `{rule}` ({place}) fits no tool")]
    UnmatchedRule {
        /// The rule's line.
        rule: String,
        /// File and line, or the flag.
        place: String,
    },
    /// Settings for a source that is not there.
    #[error("the settings under `sources.{name}` fit no source")]
    UnusedSource {
        /// The key.
        name: String,
    },
    /// A source, or a part of one, is not there.
    #[error("{0}")]
    Unavailable(SourceProblem),
    /// Tools that a source lists are left out.
    #[error("{0}")]
    Source(String),
    /// What was remembered from approvals could not be read.
    #[error("nothing that was remembered from approvals counts: {0}")]
    RememberedRules(String),
}

impl Entry {
    /// The name callers use.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is.
    pub fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    /// The stable id.
    pub fn id(&self) -> &ToolId {
        &self.declaration.tool_id
    }

    /// The compiled input schema.
    pub fn input(&self) -> &Schema {
        &self.input
    }

    /// The compiled output schema, where one is promised.
    pub fn output(&self) -> Option<&Schema> {
        self.output.as_ref()
    }

    /// The class all of its calls have, where that is known and vouched for.
    pub(crate) fn fixed_class(&self) -> Option<EffectClass> {
        match self.declaration.interface.safety.class {
            ClassFact::Always(class) => Some(Effects::of(class).as_stated_by(self.origin).class),
            ClassFact::ByInput => None,
        }
    }

    /// Every name a call may use: wire name, id, aliases.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        [&*self.name, self.id().as_str()]
            .into_iter()
            .chain(self.declaration.aliases.iter().map(String::as_str))
    }
}

/// Names, configures and compiles a declaration, or says why it cannot be taken.
pub(super) fn admit(
    mut declaration: Declaration,
    from: &SourceTools,
    settings: &dyn OperatorSettings,
    of_source: &SourceSettings,
    taken: &HashMap<Box<str>, u32>,
) -> Result<(Entry, Vec<CatalogNotice>), CatalogNotice> {
    let id = declaration.tool_id.clone();
    let mut chosen = settings.of(&id, &from.name).unwrap_or_default();
    chosen.hidden |= of_source.hidden;
    let name = wire_name(&id, from.naming, taken)
        .map_err(|name| CatalogNotice::NameTaken { refused: id.clone(), name })?;

    let (free, lost): (Vec<_>, Vec<_>) = std::mem::take(&mut declaration.aliases)
        .into_iter()
        .partition(|alias| !taken.contains_key(alias.as_str()));
    declaration.aliases = free;
    let mut notices: Vec<CatalogNotice> =
        lost.into_iter().map(|alias| CatalogNotice::AliasTaken { tool: id.clone(), alias }).collect();
    let name = match chosen.name.clone() {
        None => name,
        Some(wanted) if taken.contains_key(wanted.as_str()) => {
            notices.push(CatalogNotice::RenameTaken { tool: id.clone(), wanted, kept: name.clone() });
            name
        }
        Some(wanted) => {
            // Rules know a tool by its id and its aliases, and somebody will write one with the name they see.
            if wanted != id.name() && !declaration.aliases.contains(&wanted) {
                declaration.aliases.push(wanted.clone());
            }
            wanted
        }
    };

    let stated = interface::heard(of_source.trust, from.origin, &mut declaration);
    interface::apply(&chosen, &mut declaration);
    let bad_schema = |reason: super::SchemaError| CatalogNotice::BadSchema {
        tool: id.clone(),
        reason: reason.to_string(),
    };
    let input = Schema::new(Arc::clone(&declaration.input.schema)).map_err(bad_schema)?;
    let input = input.with_sensitive(&chosen.sensitive);
    let output = declaration.output.schema.clone().map(Schema::new).transpose().map_err(bad_schema)?;
    let entry = Entry {
        origin: if chosen.class.is_some() { EffectOrigin::Operator } else { stated },
        stated_by: (of_source.trust != Some(SourceTrust::None)).then_some(stated),
        declaration,
        name: name.into(),
        source: from.source,
        source_name: Arc::clone(&from.name),
        settings: chosen,
        source_concurrency: of_source.concurrency,
        input,
        output,
    };
    Ok((entry, notices))
}

/// The name a tool gets unless the operator gives it one, or the name that is taken.
fn wire_name(id: &ToolId, naming: Naming, taken: &HashMap<Box<str>, u32>) -> Result<String, String> {
    let namespaced = || legal(&id.wire_form());
    let wanted = match naming {
        Naming::Bare => legal(id.name()),
        Naming::Namespaced => namespaced(),
    };
    // A bare name that is taken is namespaced before it is refused: nothing is ever overwritten.
    let free = [wanted.clone(), namespaced()].into_iter().find(|name| !taken.contains_key(name.as_str()));
    free.filter(|_| !taken.contains_key(id.as_str())).ok_or(wanted)
}

/// A name every model provider takes: letters, digits, `_` and `-`, at most 64. What does not fit is replaced
/// and a hash of the original added, so that two names never become one; the id keeps the original.
fn legal(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.len() <= WIRE_NAME_LIMIT && name.chars().all(fits) {
        return name.to_owned();
    }
    let digest = Sha256::digest(name.as_bytes());
    let suffix: String = digest[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    let stem: String =
        name.chars().map(|c| if fits(c) { c } else { '_' }).take(WIRE_NAME_LIMIT - 9).collect();
    format!("{stem}_{suffix}")
}

#[cfg(test)]
mod tests {
    use super::legal;

    #[test]
    fn wire_names_are_legal_and_distinct() {
        assert_eq!(legal("read_file"), "read_file");
        let (dotted, scored) = (legal("a.b"), legal("a_b"));
        assert_ne!(dotted, scored);
        let long = legal(&"x".repeat(200));
        assert_eq!(long.len(), 64);
        assert_ne!(long, legal(&"x".repeat(201)));
    }
}
