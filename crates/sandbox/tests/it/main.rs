//! The launcher from the outside: real processes in real confines.

mod bench_of_jobs;
mod running;
