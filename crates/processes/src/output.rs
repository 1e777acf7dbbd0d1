//! The output of processes as people and models may see it.

mod clean;
mod events;

pub use self::{
    clean::{PrintableText, clean, rendered, whole_characters},
    events::OutputEvents,
};
