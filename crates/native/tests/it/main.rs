//! Drives the native tools through `DynTool`, as a host would, against real directories.
#![expect(
    clippy::disallowed_methods,
    reason = "tests prepare and inspect real files"
)]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up should stop"
)]

mod apply_patch;
mod calls;
mod commands;
mod declarations;
mod delete_file;
mod desk;
mod edit_file;
mod file_info;
mod glob;
mod grep;
mod grep_bounds;
mod http;
mod kept;
mod list_directory;
mod move_file;
mod patch_garbage;
mod paths;
mod permissions;
mod planting;
mod protection;
mod races;
mod read_file;
mod results;
mod roots;
mod workers;
mod write_file;
