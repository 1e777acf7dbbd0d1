//! What the host finds on this machine and leaves on it: control groups, directories for temporary files, secrets of
//! the system. The one door of this crate to files, on the host's side.
#![expect(
    clippy::disallowed_methods,
    reason = "this module is the crate's door to files"
)]

mod cgroups;
mod name;
mod scratch;
mod secrets;

pub(crate) use cgroups::{CgroupPurpose, Cgroups, JobCgroup};
pub(crate) use name::HostName;
pub(crate) use scratch::ScratchFolder;
pub(crate) use secrets::system_secrets;
