//! The common part of all native tools' declarations.

use std::sync::Arc;

use schemars::JsonSchema;
use toolpost_model::{ClassFact, Declaration, EffectClass, RiskLevel, ToolId, ToolKind, schema_of};

use super::literal;

/// Declares a tool with the defaults of its namespace and class. `In` and `Out` give the schemas.
pub(super) fn declare<In: JsonSchema, Out: JsonSchema>(
    kind: ToolKind,
    namespace: &str,
    name: &str,
    description: &str,
    class: EffectClass,
) -> Declaration {
    let mut declaration = Declaration::new(literal(ToolId::new(namespace, name)), description);
    declaration.kind = kind;
    declaration.toolkit = namespace.to_owned();
    declaration.input.schema = Arc::new(schema_of::<In>());
    declaration.output.schema = Some(Arc::new(schema_of::<Out>()));
    let interface = &mut declaration.interface;
    interface.safety.class = ClassFact::Always(class);
    interface.permission.risk = risk_of(class);
    interface.execution.idempotent = class == EffectClass::Read;
    declaration
}

/// The risk of a tool of this class.
pub(super) fn risk_of(class: EffectClass) -> RiskLevel {
    match class {
        EffectClass::Read => RiskLevel::Low,
        EffectClass::Write | EffectClass::Network => RiskLevel::Medium,
        EffectClass::Execute | EffectClass::Unknown => RiskLevel::High,
    }
}

/// Whether a count is left out of a result.
pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}
