//! The output of processes, prepared for people and models.

mod clean;
mod events;

pub use self::{
    clean::{PrintableText, clean, rendered, whole_characters},
    events::OutputEvents,
};
