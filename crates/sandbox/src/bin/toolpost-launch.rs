//! A binary that is only a launcher, for programs that cannot call [`toolpost_sandbox::launch_if_asked`] in their own
//! `main`.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolpost_sandbox::launch_if_asked();
    ExitCode::from(2)
}
