//! The user's own editor, on a file that other users cannot read.

use std::{
    fs::{OpenOptions, Permissions},
    io::{Read, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    process::{Command, Stdio},
};

use anyhow::{Context, bail};
use tokio::sync::oneshot;

use super::MAX_INPUT;

/// Lets the user edit a text, and returns the new text. A thread of its own waits for the editor, since a runtime that
/// shuts down must not wait for it.
pub(crate) async fn edit(text: String) -> anyhow::Result<String> {
    let (tell, edited) = oneshot::channel();
    std::thread::spawn(move || tell.send(edit_now(&text)));
    edited.await.context("the editor ended without a result")?
}

fn edit_now(text: &str) -> anyhow::Result<String> {
    let words = editor()?;
    let Some((program, arguments)) = words.split_first() else {
        bail!("no editor is set")
    };
    // A folder of its own, so that the editor's backup files are as private as the file.
    let private = Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new()
        .prefix("toolpost-")
        .permissions(private)
        .tempdir();
    let folder = folder.context("a temporary folder cannot be created")?;
    let path = folder.path().join("arguments.json");
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    file.write_all(text.as_bytes())?;
    drop(file);
    let mut command = Command::new(program);
    command.args(arguments).arg(&path);
    // The standard streams may be in use for a protocol or a log.
    if let Ok(terminal) = OpenOptions::new().read(true).write(true).open("/dev/tty") {
        command
            .stdin(terminal.try_clone()?)
            .stdout(terminal.try_clone()?)
            .stderr(terminal);
    } else {
        command.stdin(Stdio::null());
    }
    let status = command
        .status()
        .with_context(|| format!("the editor `{program}` cannot be started"))?;
    if !status.success() {
        bail!("the editor `{program}` failed with {status}, so the question stays open");
    }
    let mut edited = String::new();
    let file = std::fs::File::open(&path).context("the edited file does not exist")?;
    file.take(MAX_INPUT)
        .read_to_string(&mut edited)
        .context("the edited file cannot be read")?;
    Ok(edited)
}

/// `VISUAL`, else `EDITOR`, else `vi`, split into words as a shell would.
fn editor() -> anyhow::Result<Vec<String>> {
    for name in ["VISUAL", "EDITOR"] {
        let Ok(text) = std::env::var(name) else {
            continue;
        };
        if text.trim().is_empty() {
            continue;
        }
        return shlex::split(&text)
            .with_context(|| format!("`{name}` cannot be read as a command"));
    }
    Ok(vec!["vi".to_owned()])
}
