//! Tests that need a process to themselves: the test starts its own binary again, for itself alone, with a role to
//! play, and says what must come of it.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const ROLE: &str = "TOOLPOST_TEST_ROLE";

/// The role this process was started for, if it was started by another test.
pub(crate) fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// This test again, in a process of its own, with this role.
pub(crate) fn again(test: &str, role: &str) -> Command {
    command(std::env::current_exe().unwrap(), test, role)
}

fn command(program: PathBuf, test: &str, role: &str) -> Command {
    let mut command = Command::new(program);
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .stdin(Stdio::null());
    command
}

/// The same as an ordinary user, from a place such a user can read.
pub(crate) fn again_as_nobody(test: &str, place: &std::path::Path) -> Command {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = place.join("test");
    let launcher = place.join("launcher");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    std::fs::copy(crate::bench_of_jobs::launcher_program(), &launcher).unwrap();
    let mut command = command(program, test, launcher.to_str().unwrap());
    command.uid(65534).gid(65534).current_dir("/");
    command
}

/// Runs it and passes its failure on.
#[track_caller]
pub(crate) fn must_succeed(mut command: Command) {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{}\n{}\n{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
}
