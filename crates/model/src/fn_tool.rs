//! A tool from a closure over a typed argument struct.

use std::{future::Future, marker::PhantomData, sync::Arc};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    CallContext, ClassFact, Declaration, EffectClass, Tool, ToolCall, ToolFailure, ToolId,
    ToolIdError, ToolOutput,
};

/// A tool made of a closure. The input schema comes from the argument type.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolpost_model::{EffectClass, FnTool, ToolFailure};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Add { a: i64, b: i64 }
///
/// let add = FnTool::named("demo.add")?
///     .describe("Adds two whole numbers")
///     .class(EffectClass::Read)
///     .run(|args: Add, _| async move { Ok::<_, ToolFailure>((args.a + args.b).to_string()) });
/// # Ok::<(), toolpost_model::ToolIdError>(())
/// ```
pub struct FnTool<A, F> {
    declaration: Declaration,
    run: F,
    arguments: PhantomData<fn(A)>,
}

/// A [`FnTool`] without its closure yet.
pub struct FnToolBuilder {
    declaration: Declaration,
}

impl FnTool<(), ()> {
    /// Begins a tool named `namespace.name`.
    pub fn named(id: &str) -> Result<FnToolBuilder, ToolIdError> {
        let id: ToolId = id.parse()?;
        Ok(FnToolBuilder {
            declaration: Declaration::new(id, ""),
        })
    }
}

impl FnToolBuilder {
    /// The description for the model.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.declaration.description = description.into();
        self
    }

    /// Its effect class. By default it is unknown: the host then asks a person and runs the tool alone.
    #[must_use]
    pub fn class(mut self, class: EffectClass) -> Self {
        self.declaration.interface.safety.class = ClassFact::Always(class);
        self
    }

    /// Changes other parts of the declaration.
    #[must_use]
    pub fn declare(mut self, change: impl FnOnce(&mut Declaration)) -> Self {
        change(&mut self.declaration);
        self
    }

    /// Sets the closure and completes the tool.
    pub fn run<A, F, Fut, O>(mut self, run: F) -> FnTool<A, F>
    where
        A: DeserializeOwned + JsonSchema + 'static,
        F: Fn(A, CallContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ToolFailure>> + Send,
        O: Into<ToolOutput>,
    {
        self.declaration.input.schema = Arc::new(schema_of::<A>());
        FnTool {
            declaration: self.declaration,
            run,
            arguments: PhantomData,
        }
    }
}

impl<A, F, Fut, O> Tool for FnTool<A, F>
where
    A: DeserializeOwned + JsonSchema + 'static,
    F: Fn(A, CallContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, ToolFailure>> + Send,
    O: Into<ToolOutput>,
{
    fn declaration(&self) -> Declaration {
        self.declaration.clone()
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let arguments = call
            .input
            .to::<A>()
            .map_err(|error| ToolFailure::invalid(error.to_string()))?;
        (self.run)(arguments, call.context).await.map(Into::into)
    }
}

/// The JSON Schema of an argument type: no unknown fields, no titles that only repeat the type's name.
pub fn schema_of<A: JsonSchema>() -> Value {
    let generator = schemars::generate::SchemaSettings::draft2020_12()
        .with(|s| s.meta_schema = None)
        .into_generator();
    let mut schema = generator.into_root_schema_for::<A>().to_value();
    if let Some(object) = schema.as_object_mut() {
        object.remove("title");
        let is_object = object.get("type").and_then(Value::as_str) == Some("object");
        if is_object && !object.contains_key("additionalProperties") {
            object.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
    }
    schema
}
