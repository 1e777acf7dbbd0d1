//! The launcher from the outside: real processes in real confines.

mod bench_of_jobs;
mod files;
mod leaks;
mod limits;
mod locks;
mod network;
mod roles;
mod running;
mod secrets;
mod tiers;
mod trees;
