//! Python modules through a whole host: written in the style of real ones, run by the real launcher, with the stand-in
//! and with `amplifier-core` itself.

mod approval;
mod calls;
mod hooks;
mod loading;
mod results;
mod sessions;
pub(crate) mod stage;
mod stopping;
mod unruly;
mod work;
