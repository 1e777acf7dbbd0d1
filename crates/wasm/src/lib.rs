//! WebAssembly components as tools: the world `amplifier:modules/tool`, without any authority of its own.
#![warn(missing_docs)]
