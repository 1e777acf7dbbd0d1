//! Amplifier's modules as sources and hooks of this host: what runs a module, whatever it is written in.

pub(crate) mod python;
