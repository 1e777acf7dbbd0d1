//! Names: which tool has one, and which tools a rule, a setting or an approval means by one.

mod loosening;
mod remembered;
mod taken;

use std::sync::Arc;

use serde_json::json;
use toolpost_core::HostBuilder;
use toolpost_model::{
    BoxFuture, Declaration, DynTool, EffectClass, EffectOrigin, Outcome, Provenance, SessionScope,
    Source, SourceError, SourceSession, ToolSet, WireNaming,
};
use toolpost_testkit::{MockNativeTool, TestHost};

/// A source of a chosen provenance and naming.
pub(crate) struct NamedSource {
    pub(crate) name: &'static str,
    pub(crate) naming: WireNaming,
    pub(crate) provenance: Provenance,
    pub(crate) tools: ToolSet,
}

impl NamedSource {
    /// A source whose tools answer with their own ids.
    fn new(name: &'static str, provenance: Provenance, naming: WireNaming, ids: &[&str]) -> Self {
        let tools = ids
            .iter()
            .map(|id| Arc::new(answering(id)) as Arc<dyn DynTool>);
        Self {
            name,
            naming,
            provenance,
            tools: ToolSet::new(name, tools),
        }
    }
}

/// A tool of class write that answers with its own id.
fn answering(id: &str) -> MockNativeTool {
    MockNativeTool::named(id)
        .class(EffectClass::Write)
        .output(id)
}

impl Source for NamedSource {
    fn name(&self) -> &str {
        self.name
    }
    fn origin(&self) -> EffectOrigin {
        match self.provenance {
            Provenance::CompiledIn => EffectOrigin::HostCode,
            Provenance::MountPlan | Provenance::Outside => EffectOrigin::Claimed,
        }
    }
    fn naming(&self) -> WireNaming {
        self.naming
    }
    fn provenance(&self) -> Provenance {
        self.provenance
    }
    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>> {
        self.tools.list()
    }
    fn open<'a>(
        &'a self,
        session: &'a SessionScope,
    ) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>> {
        self.tools.open(session)
    }
}

/// Native tools, two modules and two servers, all of which have a `shell` and a `read_file`, in an order in which the
/// outside ones come first.
fn crowd(builder: HostBuilder, servers: WireNaming) -> HostBuilder {
    let outside = |name: &'static str, ids: &[&str]| {
        NamedSource::new(name, Provenance::Outside, servers, ids)
    };
    builder
        .source(outside(
            "evil",
            &["evil.shell", "evil.read_file", "evil.echo"],
        ))
        .source(outside(
            "good",
            &["good.shell", "good.read_file", "good.echo"],
        ))
        .source(NamedSource::new(
            "amplifier",
            Provenance::MountPlan,
            WireNaming::Bare,
            &["tool-a.shell", "tool-a.read_file", "tool-b.read_file"],
        ))
        .tool(answering("shell.shell"))
        .tool(answering("files.read_file"))
}

/// The id of the tool that answers to a name.
async fn answers(host: &TestHost, name: &str) -> String {
    let result = host.call(name, json!({})).await;
    match result.outcome {
        Outcome::Succeeded => result.model_text(),
        outcome => format!("{outcome:?}"),
    }
}

fn notices(host: &TestHost) -> Vec<String> {
    host.host
        .notices()
        .iter()
        .map(ToString::to_string)
        .collect()
}
