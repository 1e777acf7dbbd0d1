//! How the class of a part was derived from the arguments: commands, paths, URLs.

use toolpost_command::shortened;
use toolpost_model::{ClassFact, ClassFinding, EffectClass, ResourceAccess};

use super::{
    PermissionFacts,
    parts::{PartSubject, PermissionPart},
};

/// The finding that gave a part its class. `None` if the tool has a fixed class and the part has the same.
pub(super) fn finding(facts: &PermissionFacts<'_>, part: &PermissionPart) -> Option<ClassFinding> {
    facts.input?;
    let by_input = match facts.declaration.interface.safety.class {
        ClassFact::ByInput => true,
        ClassFact::Always(_) => part.class != facts.effects.class,
    };
    by_input.then(|| ClassFinding {
        class: part.class,
        found: found(part),
    })
}

fn found(part: &PermissionPart) -> String {
    if let Some(opaque) = &part.opaque {
        return opaque.clone();
    }
    match &part.subject {
        PartSubject::Command(command) => {
            let text = shortened(&command.text);
            match part.class {
                EffectClass::Read if command.only_steers() => {
                    format!("`{text}` only controls the shell")
                }
                EffectClass::Read => format!("`{text}` is a command that is known to only read"),
                EffectClass::Write
                | EffectClass::Network
                | EffectClass::Execute
                | EffectClass::Unknown => match command.reaches_network() {
                    true => format!("`{text}` is a command that usually reaches other machines"),
                    false => format!("`{text}` is a command that is not known to only read"),
                },
            }
        }
        PartSubject::Path {
            path,
            access: ResourceAccess::Read,
            ..
        } => {
            format!("`{}` is a path that it reads", path.as_str())
        }
        PartSubject::Path {
            path,
            access: ResourceAccess::Write,
            ..
        } => match part.class {
            EffectClass::Write => format!("`{}` is a path that it writes", path.as_str()),
            EffectClass::Read
            | EffectClass::Network
            | EffectClass::Execute
            | EffectClass::Unknown => {
                format!(
                    "`{}` is a path outside of the workspace that it writes",
                    path.as_str()
                )
            }
        },
        PartSubject::Request(request) => format!("`{request}` is a request to another machine"),
        PartSubject::Unread(_, shown) => format!("`{shown}` cannot be read beforehand"),
        PartSubject::Whole => format!("the arguments make it a call of class `{}`", part.class),
    }
}
