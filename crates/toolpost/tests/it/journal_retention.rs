//! The oldest records go, by `toolpost journal prune` and by a host that starts; what is left can be checked, also
//! where it was copied to.

use std::{
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde_json::Value;
use toolpost_core::{AppendStrength, Facets, Journal, Record, RecordKind};
use toolpost_model::{InvocationId, Outcome};
use toolpost_store::{JournalOptions, SqliteJournal};

use super::home::Home;

/// A data directory with the ends of calls that were made in these years.
fn old_record(home: &Home, years: &[i16]) -> PathBuf {
    let folder = home.workspace().parent().unwrap().join("record");
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(&folder)
        .unwrap();
    let journal = SqliteJournal::open(
        &folder.join("journal.db"),
        JournalOptions { max_bytes: 1 << 30 },
    )
    .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for year in years {
        let record = end(format!("{year}-06-01T00:00:00Z").parse().unwrap());
        runtime
            .block_on(journal.append(record, AppendStrength::Committed))
            .unwrap();
    }
    folder
}

fn end(at: Timestamp) -> Record {
    let body = r#"{"tool_id":"files.old","call":{"tool":"old","principal":"ann"},"result":{"outcome":"succeeded"}}"#;
    Record {
        kind: RecordKind::Ended,
        at,
        invocation_id: Some(InvocationId::new()),
        session_id: None,
        request: None,
        body: body.into(),
        facets: Some(Facets {
            tool: "files.old".into(),
            principal: "ann".into(),
            outcome: Some(Outcome::Succeeded),
            correlation: None,
        }),
    }
}

struct Old {
    home: Home,
    folder: PathBuf,
}

impl Old {
    fn new() -> Self {
        let home = Home::new();
        let folder = old_record(&home, &[2019, 2020, 2021, 2022]);
        Self { home, folder }
    }

    fn run(&self, arguments: &[&str], code: i32) -> super::home::Ran {
        let folder = self.folder.to_str().unwrap();
        self.home
            .run(&[arguments, &["--data-dir", folder]].concat())
            .expect(code)
    }

    fn json(&self, arguments: &[&str]) -> Value {
        self.run(&[arguments, &["--json"]].concat(), 0).json()
    }
}

#[test]
fn the_oldest_records_go_and_the_rest_can_be_checked() {
    let old = Old::new();
    let plan = old.json(&["journal", "prune", "--before", "2021-01-01", "--dry-run"]);
    assert_eq!(
        (&plan["records"], &plan["up_to"], &plan["dry_run"]),
        (&2.into(), &2.into(), &true.into())
    );
    assert_eq!(
        old.json(&["journal", "verify"])["records"],
        4,
        "a dry run removes nothing"
    );
    let told = old
        .run(&["journal", "prune", "--before", "2021-01-01"], 0)
        .stdout;
    assert_eq!(told, "2 records up to 2 removed\n");
    let report = old.json(&["journal", "verify"]);
    assert_eq!(
        (
            &report["clean"],
            &report["records"],
            &report["removed_up_to"]
        ),
        (&true.into(), &3.into(), &2.into())
    );
    let told = old.run(&["journal", "verify"], 0).stdout;
    assert!(
        told.contains("records up to 2 were removed by retention or `journal prune`"),
        "{told}"
    );
    let told = old
        .run(&["journal", "prune", "--before", "2021-01-01"], 0)
        .stdout;
    assert_eq!(told, "no records to remove\n");
    old.run(&["call", "echo", "message=on"], 0);
    assert_eq!(old.json(&["journal", "verify"])["clean"], true);
    // What was written just now is not old enough, whatever is said.
    let report = old.json(&["journal", "prune", "--before", "1m"]);
    assert_eq!(report["records"], 2);
    let report = old.json(&["journal", "prune", "--before", "2100-01-01"]);
    assert!(
        report["held"]["why"]
            .as_str()
            .unwrap()
            .contains("limits.session_idle"),
        "{report}"
    );
}

#[test]
fn a_prune_needs_to_know_what_goes_and_a_record() {
    let home = Home::new();
    home.run(&["journal", "prune", "--before", "1d"]).expect(1);
    let old = Old::new();
    old.run(&["journal", "prune"], 2);
    old.run(&["journal", "prune", "--before", "sometime"], 2);
}

#[test]
fn a_host_keeps_to_its_retention_when_it_starts() {
    let old = Old::new();
    let config = old.folder.join("config.yaml");
    std::fs::write(&config, "retention: { journal: { age: 365d } }\n").unwrap();
    let config = config.to_str().unwrap();
    // The same by hand: the configuration says what is due.
    let plan = old.json(&["journal", "prune", "--dry-run", "--config", config]);
    assert_eq!(plan["records"], 4);
    // Each call is a host of its own, and the work is done beside the call: one of them will have the time.
    for _ in 0..50 {
        old.run(&["call", "echo", "message=x", "--config", config], 0);
        if old.json(&["journal", "verify"])["removed_up_to"] == 4 {
            return;
        }
    }
    panic!("fifty hosts have started, and the old records are still there");
}

#[test]
fn a_copy_is_checked_where_it_lies() {
    let old = Old::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join("journal.db");
    std::fs::copy(old.folder.join("journal.db"), &copy).unwrap();
    let verify = |path: &Path, code| {
        let arguments = [
            "journal",
            "verify",
            "--json",
            "--journal",
            path.to_str().unwrap(),
        ];
        old.home.run(&arguments).expect(code)
    };
    for path in [elsewhere.path(), &copy] {
        let report = verify(path, 0).json();
        assert_eq!(
            (&report["clean"], &report["records"]),
            (&true.into(), &4.into())
        );
    }
    // The kept results were not copied with it.
    let ran = verify(&copy, 0);
    assert!(
        ran.stderr.contains("kept results were not checked"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.json()["artifacts"]["checked"], false);
    let sealed = old
        .home
        .run(&["journal", "seal", "--journal", copy.to_str().unwrap()])
        .expect(0)
        .stdout;
    assert!(sealed.starts_with("4:"), "{sealed}");
    verify(&elsewhere.path().join("nothing.db"), 1);
}

#[test]
fn kept_results_are_looked_for_beside_the_record() {
    let old = Old::new();
    let digest = "ab".repeat(32);
    let body = format!(
        r#"{{"tool_id":"files.old","call":{{"tool":"old","principal":"ann"}},"result":{{"outcome":"succeeded","artifacts":[{{"id":"art_0123456789abcdef0123456789abcdef_1","digest":"sha256:{digest}","size":3}}]}}}}"#
    );
    let journal = SqliteJournal::open(
        &old.folder.join("journal.db"),
        JournalOptions { max_bytes: 1 << 30 },
    )
    .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let append = |at: Timestamp| {
        let record = Record {
            body: body.clone(),
            ..end(at)
        };
        runtime
            .block_on(journal.append(record, AppendStrength::Committed))
            .unwrap();
    };
    append("2022-07-01T00:00:00Z".parse().unwrap());
    let report = old.json(&["journal", "verify"]);
    assert_eq!(
        (&report["clean"], &report["artifacts"]["expired"]),
        (&true.into(), &1.into()),
        "{report}"
    );
    append("2100-01-01T00:00:00Z".parse().unwrap());
    let told = old.run(&["journal", "verify"], 1).stdout;
    assert!(
        told.starts_with(&format!(
            "broken: record 5: the kept result `sha256:{digest}` is missing"
        )),
        "{told}"
    );
    old.run(&["journal", "verify", "--no-artifacts"], 0);
}

#[test]
fn a_sealed_record_that_went_is_no_sign_of_tampering_and_no_success() {
    let old = Old::new();
    let head = format!("1:{}", "ab".repeat(32));
    let report = old
        .run(&["journal", "verify", "--json", "--head", &head], 1)
        .json();
    assert_eq!(
        (&report["removed_head"], report["first_bad"].is_null()),
        (&Value::Null, false),
        "{report}"
    );
    old.run(&["journal", "prune", "--before", "2021-01-01"], 0);
    let report = old
        .run(&["journal", "verify", "--json", "--head", &head], 1)
        .json();
    assert_eq!(
        (&report["removed_head"], &report["clean"]),
        (&head.as_str().into(), &false.into())
    );
    assert_eq!(report["problems"], serde_json::json!([]));
    let told = old.run(&["journal", "verify", "--head", &head], 1).stdout;
    assert!(
        told.contains("unverified: the sealed record was removed by retention"),
        "{told}"
    );
    assert!(!told.contains("tampered"), "{told}");
}
