//! A launcher and nothing else, for programs whose own `main` cannot call [`toolpost_sandbox::launch_if_asked`].

use std::process::ExitCode;

fn main() -> ExitCode {
    toolpost_sandbox::launch_if_asked();
    ExitCode::from(2)
}
