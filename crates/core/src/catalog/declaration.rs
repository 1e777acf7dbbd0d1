//! Layer 1: a declaration enters the catalog under names that no other tool has.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use toolpost_model::{
    ClassFact, Declaration, EffectClass, EffectOrigin, Effects, LoadingStrategy, NATIVE_NAMESPACES,
    SourceProblem, ToolId, ToolSettings, WireNaming,
};

use super::{
    Catalog,
    interface::{self, OperatorSettings, SourceSettings, SourceTrust},
    schema::Schema,
};
use crate::{catalog::SourceTools, port::SourceIndex};

/// The longest name that model providers accept.
const WIRE_NAME_LIMIT: usize = 64;

/// A tool in the catalog: its declaration with the operator's settings applied, its name on the wire and its
/// compiled schemas.
pub struct CatalogEntry {
    declaration: Declaration,
    name: Box<str>,
    pub(crate) source: SourceIndex,
    pub(crate) source_name: Arc<str>,
    /// The origin of the class and the effects of its calls.
    pub(crate) origin: EffectOrigin,
    /// The origin of the effects of a single call; `None` if the source is not trusted with them.
    pub(crate) stated_by: Option<EffectOrigin>,
    pub(crate) settings: ToolSettings,
    /// The operator's limit of concurrent calls of its source.
    pub(crate) source_concurrency: Option<usize>,
    input: Schema,
    output: Option<Schema>,
}

/// A notice about the catalog for operators.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogNotice {
    /// A tool wanted a bare name that another tool has, and got a longer one.
    #[error("`{tool}` is served as `{name}`: the name `{wanted}` belongs to `{holder}`")]
    Namespaced {
        /// The tool.
        tool: ToolId,
        /// The wanted name.
        wanted: String,
        /// The name that it got.
        name: String,
        /// The tool that has the wanted name.
        holder: ToolId,
    },
    /// A tool is in a namespace that belongs to the host or to another source.
    #[error(
        "tool `{refused}` was left out: the namespace `{}` belongs to {}",
        .refused.namespace(),
        if NATIVE_NAMESPACES.contains(&.refused.namespace()) { "the host" } else { "another source" }
    )]
    NamespaceTaken {
        /// The tool that was left out.
        refused: ToolId,
    },
    /// A mount plan's tool replaces a native tool, by the operator's setting.
    #[error("`{native}` is not served: `{by}` replaces it (`amplifier.replace_native`)")]
    NativeReplaced {
        /// The native tool.
        native: ToolId,
        /// The replacing tool.
        by: ToolId,
    },
    /// A name under `amplifier.replace_native` that replaces nothing.
    #[error(
        "`amplifier.replace_native` names `{name}`, but no module mounts a tool of that name in place of a native one"
    )]
    NothingReplaces {
        /// The name.
        name: String,
    },
    /// A rule or setting that loosens names an outside tool by its bare name, and therefore does not apply to it.
    #[error(
        "{what} does not apply to {}: an outside tool must be named by its id\n\
         hint: write {}",
        quoted_list(.meant.iter().map(ToolId::as_str)),
        quoted_list(.instead.iter().map(String::as_str))
    )]
    BareName {
        /// The rule or setting, and its place.
        what: String,
        /// The tools that have such a name.
        meant: Vec<ToolId>,
        /// The lines that would apply to them.
        instead: Vec<String>,
    },
    /// Two tools want one name; the first one keeps it.
    #[error("tool `{refused}` was left out: the name `{name}` is taken by another tool")]
    NameTaken {
        /// The tool that was left out.
        refused: ToolId,
        /// The name.
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
    /// The tool's schema is unusable.
    #[error("tool `{tool}` was left out: {reason}")]
    BadSchema {
        /// The tool.
        tool: ToolId,
        /// The fault of the schema.
        reason: String,
    },
    /// The operator's name for a tool belongs to another tool.
    #[error(
        "`{tool}` keeps the name `{kept}`: `{wanted}`, which the settings give it, is taken by another tool"
    )]
    RenameTaken {
        /// The tool.
        tool: ToolId,
        /// The operator's name.
        wanted: String,
        /// The name that it keeps.
        kept: String,
    },
    /// Settings for a tool that does not exist.
    #[error("the settings under `tools.{name}` match no tool")]
    UnusedSettings {
        /// The key.
        name: String,
    },
    /// A rule that matches no tool.
    #[error("the rule `{rule}` ({place}) matches no tool")]
    UnmatchedRule {
        /// The rule's line.
        rule: String,
        /// File and line, or the flag.
        place: String,
    },
    /// Settings for a source that does not exist.
    #[error("the settings under `sources.{name}` match no source")]
    UnusedSource {
        /// The key.
        name: String,
    },
    /// A source, or a part of one, is missing.
    #[error("{0}")]
    Unavailable(SourceProblem),
    /// A source left out some of its tools.
    #[error("{0}")]
    Source(String),
    /// A remembered rule that names no tool exactly, and whose question is no longer on record.
    #[error(
        "the remembered rule `{rule}` was dropped: it names a tool by its bare name, and the question it answers is \
         no longer on record"
    )]
    DroppedRule {
        /// The rule's line.
        rule: String,
    },
    /// The remembered rules could not be read.
    #[error("remembered rules are ignored: {0}")]
    RememberedRules(String),
}

const LISTED_NAMES: usize = 3;

/// Up to [`LISTED_NAMES`] names in backticks.
fn quoted_list<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(LISTED_NAMES);
    let mut text = names
        .take(LISTED_NAMES)
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

impl CatalogEntry {
    /// The tool's wire name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name in texts for people and models. A tool that is in no list is shown by its id.
    pub fn label(&self) -> &str {
        if self.is_listed() {
            &self.name
        } else {
            self.id().as_str()
        }
    }

    /// Whether models can find it in a list or by a search.
    pub(crate) fn is_listed(&self) -> bool {
        match self.declaration.loading {
            LoadingStrategy::Eager | LoadingStrategy::Deferred => true,
            LoadingStrategy::Internal | LoadingStrategy::Companion => false,
        }
    }

    /// The declaration.
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

    /// The class of all its calls, if it is fixed and from a trusted origin.
    pub(crate) fn fixed_class(&self) -> Option<EffectClass> {
        match self.declaration.interface.safety.class {
            ClassFact::Always(class) => Some(Effects::of(class).as_stated_by(self.origin).class),
            ClassFact::ByInput => None,
        }
    }

    /// The class that a list shows: the fixed one, or the worst possible one if it depends on the input.
    pub fn listed_class(&self) -> EffectClass {
        let stated = self.declaration.interface.safety.class.worst();
        Effects::of(stated).as_stated_by(self.origin).class
    }

    /// Every name a call may use: wire name, id, aliases.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        [&*self.name, self.id().as_str()]
            .into_iter()
            .chain(self.declaration.aliases.iter().map(String::as_str))
    }
}

/// Names, configures and compiles a declaration, or returns the reason why it cannot be admitted.
pub(super) fn admit(
    mut declaration: Declaration,
    from: &SourceTools,
    settings: &dyn OperatorSettings,
    of_source: &SourceSettings,
    catalog: &Catalog,
) -> Result<(CatalogEntry, Vec<CatalogNotice>), CatalogNotice> {
    let id = declaration.tool_id.clone();
    let chosen = settings.of(&declaration, &from.name).unwrap_or_default();
    let name = wire_name(&id, from.naming, catalog).map_err(|name| CatalogNotice::NameTaken {
        refused: id.clone(),
        name,
    })?;

    let (free, lost): (Vec<_>, Vec<_>) = std::mem::take(&mut declaration.aliases)
        .into_iter()
        .partition(|alias| catalog.get(alias).is_none());
    declaration.aliases = free;
    let mut notices: Vec<CatalogNotice> = lost
        .into_iter()
        .map(|alias| CatalogNotice::AliasTaken {
            tool: id.clone(),
            alias,
        })
        .collect();
    let name = match chosen.surface.name.clone() {
        None => {
            notices.extend(namespaced(&id, from.naming, &name, catalog));
            name
        }
        Some(wanted) if catalog.get(&wanted).is_some() => {
            notices.push(CatalogNotice::RenameTaken {
                tool: id.clone(),
                wanted,
                kept: name.clone(),
            });
            name
        }
        Some(wanted) => {
            // Rules match a tool by its id and its aliases. Operators also write rules with the wire name that they
            // see, so it becomes an alias.
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
    let input = input.with_sensitive(&chosen.input.sensitive);
    let output = declaration
        .output
        .schema
        .clone()
        .map(Schema::new)
        .transpose()
        .map_err(bad_schema)?;
    let entry = CatalogEntry {
        origin: if chosen.permission.class.is_some() {
            EffectOrigin::Operator
        } else {
            stated
        },
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

/// The name of the tool if there were no others. A bare name with a `__` could be the namespaced name of another
/// source's tool, so such a tool is namespaced too.
pub(super) fn wanted_name(id: &ToolId, naming: WireNaming) -> String {
    match naming {
        WireNaming::Bare if !id.name().contains("__") => legal(id.name()),
        WireNaming::Bare | WireNaming::Namespaced => legal(&id.wire_form()),
    }
}

/// The tool's name without a setting of the operator, or the name that is taken.
fn wire_name(id: &ToolId, naming: WireNaming, catalog: &Catalog) -> Result<String, String> {
    let wanted = wanted_name(id, naming);
    // A bare name that is taken is namespaced before it is refused: nothing is ever overwritten.
    let names = [wanted.clone(), legal(&id.wire_form())];
    let free = names.into_iter().find(|name| catalog.get(name).is_none());
    free.filter(|_| catalog.get(id.as_str()).is_none())
        .ok_or(wanted)
}

/// The notice for a tool that did not get the name it wanted.
fn namespaced(
    id: &ToolId,
    naming: WireNaming,
    name: &str,
    catalog: &Catalog,
) -> Option<CatalogNotice> {
    let wanted = wanted_name(id, naming);
    let holder = catalog
        .get(&wanted)
        .filter(|_| wanted != name)?
        .id()
        .clone();
    Some(CatalogNotice::Namespaced {
        tool: id.clone(),
        wanted,
        name: name.to_owned(),
        holder,
    })
}

/// A name that every model provider accepts: letters, digits, `_` and `-`, at most 64. Other characters are replaced
/// and a hash of the original is added, so that two names never become one; the id keeps the original.
fn legal(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.len() <= WIRE_NAME_LIMIT && name.chars().all(fits) {
        return name.to_owned();
    }
    let digest = Sha256::digest(name.as_bytes());
    let suffix: String = digest[..4]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let stem: String = name
        .chars()
        .map(|c| if fits(c) { c } else { '_' })
        .take(WIRE_NAME_LIMIT - 9)
        .collect();
    format!("{stem}_{suffix}")
}

#[cfg(test)]
mod tests {
    use super::legal;

    #[test]
    fn wire_names_are_legal_and_distinct() {
        assert_eq!(legal("read_file"), "read_file");
        let dotted = legal("a.b");
        let scored = legal("a_b");
        assert_ne!(dotted, scored);
        let long = legal(&"x".repeat(200));
        assert_eq!(long.len(), 64);
        assert_ne!(long, legal(&"x".repeat(201)));
    }
}
