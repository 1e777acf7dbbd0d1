//! The host's objects on this machine: control groups, directories for temporary files, and the system's secrets. This
//! is the only module on the host's side of this crate that uses files.
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
