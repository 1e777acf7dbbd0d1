//! What the record tells beside calls: tools, surfaces, inputs and progress.

mod claims;
mod export;
mod identity;
mod inputs;
mod told;
mod traces;
mod world;
