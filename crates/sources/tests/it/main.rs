//! Drives the native tools through `DynTool`, as a host would, against real directories.
#![expect(clippy::disallowed_methods, reason = "tests prepare and inspect real files")]
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up should stop")]

mod declarations;
mod desk;
mod file_info;
mod http;
mod list_directory;
mod paths;
mod permissions;
mod races;
mod read_file;
mod write_file;
