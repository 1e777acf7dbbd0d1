use std::path::{Path, PathBuf};

use toolpost_model::{AppliedSandbox, ResourceAccess, SandboxProfile, SandboxTier};
use toolpost_sandbox::{CommandExit, Confines, SandboxRoot};

use super::{SandboxRefusalKind, SandboxedRunContext, guess};
use crate::shell::shown::OutputExcerpt;

const FAILED: CommandExit = CommandExit {
    code: Some(1),
    signal: None,
    out_of_memory: false,
};

fn confines(profile: SandboxProfile) -> Confines {
    let root = |path: &str, access| SandboxRoot {
        path: PathBuf::from(path),
        access,
    };
    Confines {
        profile,
        roots: vec![
            root("/w", ResourceAccess::Write),
            root("/lib2", ResourceAccess::Read),
        ],
        protected: vec![PathBuf::from("/w/.git"), PathBuf::from("/w/toolpost.yaml")],
        masked: vec![PathBuf::from("/data")],
        ..Confines::default()
    }
}

fn applied() -> AppliedSandbox {
    AppliedSandbox {
        tier: SandboxTier::A,
        requested: SandboxProfile::WorkspaceWrite,
        fs_write: vec!["/w".to_owned()],
        fs_read: "system+roots".to_owned(),
        protected: Vec::new(),
        masked: 1,
        net: "none(netns)".to_owned(),
        landlock_abi: None,
        seccomp: true,
        caps: "none".to_owned(),
        userns: false,
        pids: None,
        memory: None,
        missing: Vec::new(),
        protected_created: Vec::new(),
    }
}

fn guessed(
    profile: SandboxProfile,
    output: &str,
    ended: CommandExit,
) -> Option<(SandboxRefusalKind, Option<String>)> {
    let confines = confines(profile);
    let applied = applied();
    let scene = SandboxedRunContext {
        confines: &confines,
        applied: &applied,
        directory: Path::new("/w/src"),
    };
    let shown = OutputExcerpt {
        head: output.to_owned(),
        cut: None,
        lossy: false,
    };
    let refusal = guess(&shown, ended, &scene)?;
    assert!(
        refusal.message.starts_with("looks like") || refusal.kind == SandboxRefusalKind::Memory,
        "{refusal:?}"
    );
    Some((refusal.kind, refusal.path))
}

#[test]
fn complaints_that_the_confines_explain_are_explained() {
    use SandboxRefusalKind::{
        Disk, HiddenPath, Network, OutsidePath, Processes, ProtectedPath, ReadOnlyPath, SystemCall,
    };
    let check = |output: &str, kind: SandboxRefusalKind, path: Option<&str>| {
        let guessed = guessed(SandboxProfile::WorkspaceWrite, output, FAILED);
        assert_eq!(guessed, Some((kind, path.map(str::to_owned))), "{output}");
    };
    check(
        "touch: cannot touch '/etc/x': Read-only file system",
        OutsidePath,
        Some("/etc/x"),
    );
    check(
        "bash: line 1: /usr/x: Permission denied\n",
        OutsidePath,
        Some("/usr/x"),
    );
    check(
        "bash: line 1: ../../opt/x: Read-only file system",
        OutsidePath,
        Some("/opt/x"),
    );
    check(
        "OSError: [Errno 30] Read-only file system: '/etc/x'\n",
        OutsidePath,
        Some("/etc/x"),
    );
    check(
        "mkdir: cannot create directory ‘/a b’: Permission denied",
        OutsidePath,
        Some("/a b"),
    );
    check(
        "fatal: Unable to create '/w/.git/index.lock': Read-only file system",
        ProtectedPath,
        Some("/w/.git/index.lock"),
    );
    check(
        "error: could not lock config file ../.git/config: Read-only file system",
        ProtectedPath,
        Some("/w/.git/config"),
    );
    check(
        "cp: cannot create regular file '/lib2/a': Permission denied",
        ReadOnlyPath,
        Some("/lib2/a"),
    );
    check(
        "cat: /data/token: Permission denied",
        HiddenPath,
        Some("/data/token"),
    );
    check(
        "curl: (6) Could not resolve host: example.com",
        Network,
        None,
    );
    check(
        "connect: Network is unreachable\nmake: *** [all] Error 1\n",
        Network,
        None,
    );
    check(
        "curl: (7) Failed to connect to localhost port 3000: Connection refused",
        Network,
        None,
    );
    check("ping: socket: Operation not permitted", Network, None);
    check(
        "mount: only root can do that: Operation not permitted",
        SystemCall,
        None,
    );
    check(
        "cat: write error: '/tmp/x': No space left on device",
        Disk,
        None,
    );
    check(
        "bash: fork: retry: Resource temporarily unavailable",
        Processes,
        None,
    );
}

#[test]
fn what_the_confines_do_not_explain_is_left_alone() {
    let check = |output: &str| {
        assert_eq!(
            guessed(SandboxProfile::WorkspaceWrite, output, FAILED),
            None,
            "{output}"
        );
    };
    check("");
    check("error[E0308]: mismatched types");
    check("bash: line 1: ./script.sh: Permission denied");
    check("cat: /w/secret.txt: Permission denied");
    check("bash: line 1: /tmp/x: Permission denied");
    check("write: No space left on device");
    check("psql: connect to db.example: Connection refused");
    let output = "touch: cannot touch '/etc/x': Read-only file system";
    assert_eq!(
        guessed(
            SandboxProfile::WorkspaceWrite,
            output,
            CommandExit {
                code: Some(0),
                ..FAILED
            }
        ),
        None
    );
    assert_eq!(guessed(SandboxProfile::None, output, FAILED), None);
}

#[test]
fn profile_and_signals_count_too() {
    let in_root = "touch: cannot touch '/w/x': Read-only file system";
    let guess_at = |profile, ended| guessed(profile, in_root, ended).map(|(kind, _)| kind);
    assert_eq!(
        guess_at(SandboxProfile::ReadOnly, FAILED),
        Some(SandboxRefusalKind::ReadOnlyPath)
    );
    let signal = |signal| CommandExit {
        code: None,
        signal: Some(signal),
        out_of_memory: false,
    };
    assert_eq!(
        guess_at(SandboxProfile::WorkspaceWrite, signal(31)),
        Some(SandboxRefusalKind::SystemCall)
    );
    assert_eq!(
        guess_at(SandboxProfile::WorkspaceWrite, signal(25)),
        Some(SandboxRefusalKind::Disk)
    );
    let out_of_memory = CommandExit {
        out_of_memory: true,
        ..signal(9)
    };
    assert_eq!(
        guess_at(SandboxProfile::WorkspaceWrite, out_of_memory),
        Some(SandboxRefusalKind::Memory)
    );
}
