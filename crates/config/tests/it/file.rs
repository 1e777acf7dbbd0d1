//! What may be read from disk.
#![expect(
    clippy::disallowed_methods,
    reason = "the test makes the files it reads"
)]

use std::{fs, path::Path};

use toolpost_config::read_config;

fn check(path: &Path, expected: Result<&str, &str>) {
    match (read_config(path), expected) {
        (Ok(text), Ok(expected)) => assert_eq!(text, expected),
        (Err(error), Err(part)) => {
            let shown = error.to_string();
            assert!(shown.starts_with(part), "{shown}");
            assert!(
                shown.contains(&format!("--> {}", path.display())),
                "{shown}"
            );
        }
        (found, expected) => panic!("{found:?} instead of {expected:?}"),
    }
}

#[test]
fn only_small_regular_text_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    check(&file("good.yaml", b"mode: plan\n"), Ok("mode: plan\n"));
    check(
        &file("full.yaml", &vec![b'#'; 1 << 20]),
        Ok(&"#".repeat(1 << 20)),
    );
    check(
        &file("large.yaml", &vec![b'#'; (1 << 20) + 1]),
        Err("the file is larger than the limit of 1MiB"),
    );
    check(
        &file("binary.yaml", b"mode: \xff\n"),
        Err("the file is not UTF-8 text"),
    );
    check(folder.path(), Err("not a regular file"));
    check(Path::new("/dev/null"), Err("not a regular file"));
    let missing = folder.path().join("missing.yaml");
    check(&missing, Err("the file cannot be read: "));
    assert!(read_config(&missing).unwrap_err().is_missing_file());
    assert!(!read_config(folder.path()).unwrap_err().is_missing_file());
}
