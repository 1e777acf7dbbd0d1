//! A source with tools that accept any object, so that arguments against the schema reach the tool's own checks.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolpost_model::{
    BoxFuture, Declaration, EffectOrigin, SessionScope, Source, SourceError, SourceFeed,
    SourceProblem, SourceSession, ToolId, WireNaming,
};

/// The tools of another source without their schemas.
pub(super) struct SchemalessSource {
    inner: Arc<dyn Source>,
    schemas: RemovedSchemas,
}

/// The removed schemas, by tool.
#[derive(Clone, Default)]
pub(super) struct RemovedSchemas(Arc<Mutex<BTreeMap<ToolId, Arc<Value>>>>);

impl RemovedSchemas {
    pub(super) fn of(&self, tool: &ToolId) -> Option<Arc<Value>> {
        self.0.lock().get(tool).cloned()
    }
}

impl SchemalessSource {
    pub(super) fn new(inner: Arc<dyn Source>, schemas: RemovedSchemas) -> Self {
        Self { inner, schemas }
    }

    fn bared(&self, mut declaration: Declaration) -> Declaration {
        let any = Arc::new(json!({ "type": "object" }));
        let schema = std::mem::replace(&mut declaration.input.schema, any);
        let mut kept = self.schemas.0.lock();
        kept.insert(declaration.tool_id.clone(), schema);
        declaration
    }
}

impl Source for SchemalessSource {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn origin(&self) -> EffectOrigin {
        self.inner.origin()
    }

    fn naming(&self) -> WireNaming {
        self.inner.naming()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>> {
        Box::pin(async move {
            let listed = self.inner.list().await?;
            Ok(listed
                .into_iter()
                .map(|declaration| self.bared(declaration))
                .collect())
        })
    }

    fn problems(&self) -> Vec<SourceProblem> {
        self.inner.problems()
    }

    fn open<'a>(
        &'a self,
        session: &'a SessionScope,
    ) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>> {
        self.inner.open(session)
    }

    fn connect(&self, feed: SourceFeed) {
        self.inner.connect(feed);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}
