//! The host that is killed and whose disk fills up, while calls go on.

use std::{
    fs::File,
    io::{self, Write as _},
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use super::{
    Dice, Home, Ledger, Served,
    traffic::{self, Target},
    verify,
};

/// The disk that fills up.
const DISK: &str = "size=48m";
/// How long calls go on before and after a fault.
const SPELL: u64 = 2_000;
/// How long the host may take to write again once there is room.
const RECOVERY: Duration = Duration::from_secs(30);
const CALLERS: usize = 3;
/// A journal of this size is cleared away: the disk is to fill up by ballast, not for good.
const LARGE_JOURNAL: u64 = 12 << 20;

pub(super) fn run(ledger: &Ledger, mut dice: Dice, end: Instant) {
    let home = Home::new();
    let data = home.workspace().parent().unwrap().join("data");
    std::fs::create_dir(&data).unwrap();
    // Dropped after the host has ended.
    let disk = SmallDisk::mount(&data, ledger);
    let mut kills = 0;
    let mut fills = 0;
    let mut lives = 1;
    while Instant::now() < end {
        let served = serve(&home, &data);
        let target = Target {
            address: served.address,
            token: token(&data),
            home: None,
        };
        let over = AtomicBool::new(false);
        let fills_up = disk.is_some() && dice.roll(3) == 0;
        thread::scope(|scope| {
            for _ in 0..CALLERS {
                let target = &target;
                let over = &over;
                let mut dice = dice.fork();
                scope.spawn(move || {
                    while !over.load(Ordering::Relaxed) {
                        traffic::keyed_calls(target, &mut dice, ledger, "faults");
                    }
                });
            }
            thread::sleep(Duration::from_millis(200 + dice.roll(SPELL)));
            if fills_up {
                fill(&data, Duration::from_millis(dice.roll(SPELL)));
                recovers(ledger, &target);
                fills += 1;
            }
            // Calls are under way now; their connections break.
            served.kill();
            kills += 1;
            over.store(true, Ordering::Relaxed);
        });
        let directory = data.to_str().unwrap();
        verify(
            ledger,
            "killed host",
            &home.run(&["journal", "verify", "--data-dir", directory]),
        );
        if std::fs::metadata(data.join("journal.db"))
            .is_ok_and(|journal| journal.len() > LARGE_JOURNAL)
        {
            clear(&data);
            lives += 1;
        }
    }
    let served = serve(&home, &data);
    let (status, said) = served.stop();
    if status.code() != Some(0) || said.contains("panicked") {
        ledger.complain(format!(
            "the killed host ended {status:?} in the end:\n{said}"
        ));
    }
    ledger.note(format!(
        "killed host: {kills} kills, {fills} full disks, {lives} data directories"
    ));
}

fn serve(home: &Home, data: &Path) -> Served {
    let data = data.to_str().unwrap();
    Served::spawn(&mut home.command(&[
        "serve",
        "--http",
        "127.0.0.1:0",
        "--mode",
        "edits",
        "--data-dir",
        data,
    ]))
}

/// Empties a data directory.
fn clear(data: &Path) {
    for entry in std::fs::read_dir(data).unwrap() {
        let path = entry.unwrap().path();
        let removed = if path.is_dir() {
            std::fs::remove_dir_all(&path)
        } else {
            std::fs::remove_file(&path)
        };
        removed.unwrap();
    }
}

fn token(data: &Path) -> String {
    std::fs::read_to_string(data.join("token"))
        .unwrap()
        .trim()
        .to_owned()
}

/// Takes all room there is for a while.
fn fill(data: &Path, time: Duration) {
    let ballast = data.join("ballast");
    let written = File::create(&ballast).and_then(|mut file| {
        let block = vec![0; 64 << 10];
        loop {
            file.write_all(&block)?;
        }
    });
    let error: io::Result<()> = written;
    assert_eq!(error.unwrap_err().kind(), io::ErrorKind::StorageFull);
    thread::sleep(time);
    std::fs::remove_file(ballast).unwrap();
}

/// Once there is room again, calls succeed again.
fn recovers(ledger: &Ledger, target: &Target<'_>) {
    let given_up = Instant::now() + RECOVERY;
    let body = r#"{"path":"after.txt","content":"x"}"#;
    loop {
        let answer = target
            .connect()
            .and_then(|mut http| http.post("/tools/write_file/call", body));
        match answer {
            Ok(answer) if answer.status == 200 && answer.json()["outcome"] == "succeeded" => return,
            answer if Instant::now() >= given_up => {
                ledger.complain(format!(
                    "the host does not recover from a full disk: {answer:?}"
                ));
                return;
            }
            _ => thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// A small disk of its own, where this user may mount one.
struct SmallDisk<'d>(&'d Path);

impl<'d> SmallDisk<'d> {
    fn mount(at: &'d Path, ledger: &Ledger) -> Option<Self> {
        // By this name the suites that count mounts know it for another test's.
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", DISK, "toolpost-soak"])
            .arg(at)
            .output();
        if mount.as_ref().is_ok_and(|output| output.status.success()) {
            // A data directory is its owner's alone.
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
            std::fs::set_permissions(at, mode).unwrap();
            return Some(Self(at));
        }
        ledger.note(format!(
            "no disk fills up in this run, as none can be mounted: {mount:?}"
        ));
        None
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}
