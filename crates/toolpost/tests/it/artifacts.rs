//! `toolpost artifacts`: kept results found and read without a host.

use std::fs;

use serde_json::Value;

use super::home::Home;

/// A home in which one result was kept, and what is told of it.
fn used() -> (Home, Value) {
    let home = Home::new();
    home.write_user("tools: { echo: { keep: ref_only } }\n");
    let result = home
        .run(&["call", "echo", "message=nothing to see here", "--json"])
        .expect(0)
        .json();
    assert_eq!(result["disposition"], "ref_only");
    let piece = result["artifacts"][0].clone();
    (home, piece)
}

fn id(piece: &Value) -> &str {
    piece["id"].as_str().unwrap()
}

#[test]
fn a_kept_result_is_listed_and_written_whole_or_in_part() {
    let (home, piece) = used();
    let listed = home.run(&["artifacts", "list", "--json"]).expect(0).json();
    let of_text = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|line| line["id"] == piece["id"])
        .unwrap();
    assert_eq!(
        (&of_text["kept"], &of_text["name"]),
        (&Value::Bool(true), &piece["name"])
    );
    let whole = home.run(&["artifacts", "get", id(&piece)]).expect(0).stdout;
    assert!(whole.contains("nothing to see here"), "{whole}");
    assert_eq!(whole.len() as u64, piece["size"].as_u64().unwrap());
    let part = home
        .run(&["artifacts", "get", id(&piece), "--range", "0-6"])
        .expect(0)
        .stdout;
    assert_eq!(part, whole[..7]);
    let last = home
        .run(&["artifacts", "get", id(&piece), "--range", "-4"])
        .expect(0)
        .stdout;
    assert_eq!(last, whole[whole.len() - 4..]);
    home.run(&["artifacts", "get", id(&piece), "-o", "kept.txt"])
        .expect(0);
    assert_eq!(home.read("kept.txt"), whole);
    let none = home
        .run(&["artifacts", "list", "--session", "other", "--json"])
        .expect(0)
        .json();
    assert_eq!(none, Value::Array(Vec::new()));
}

#[test]
fn what_is_unknown_gone_or_damaged_is_told_and_leaves_no_file() {
    let (home, piece) = used();
    let other = id(&piece).rsplit_once('_').unwrap().0.to_owned() + "_9";
    let unknown = home.run(&["artifacts", "get", &other]).expect(1);
    assert!(
        unknown.stderr.contains("the kept result"),
        "{}",
        unknown.stderr
    );
    home.run(&["artifacts", "get", "art_1"]).expect(2);
    home.run(&["artifacts", "get", id(&piece), "--range", "9-1"])
        .expect(2);
    let hex = piece["digest"]
        .as_str()
        .unwrap()
        .strip_prefix("sha256:")
        .unwrap();
    let path = home.data_dir().join("blobs").join(&hex[..2]).join(hex);
    let mut bytes = fs::read(&path).unwrap();
    bytes[0] ^= 1;
    fs::write(&path, bytes).unwrap();
    let damaged = home
        .run(&["artifacts", "get", id(&piece), "-o", "kept.txt"])
        .expect(1);
    assert!(damaged.stderr.contains("damaged"), "{}", damaged.stderr);
    assert_eq!(home.try_read("kept.txt"), None);
    fs::remove_file(&path).unwrap();
    let gone = home.run(&["artifacts", "get", id(&piece)]).expect(1);
    assert!(gone.stderr.contains("gone"), "{}", gone.stderr);
    let listed = home.run(&["artifacts", "list"]).expect(0).stdout;
    assert!(
        listed.contains(&format!("{} ", id(&piece))) && listed.contains("gone"),
        "{listed}"
    );
    let nothing = Home::new().run(&["artifacts", "list"]).expect(1);
    assert!(
        nothing.stderr.contains("nothing was recorded"),
        "{}",
        nothing.stderr
    );
}

#[test]
fn an_operator_makes_room_by_hand() {
    let (home, piece) = used();
    let hex = piece["digest"]
        .as_str()
        .unwrap()
        .strip_prefix("sha256:")
        .unwrap();
    let path = home.data_dir().join("blobs").join(&hex[..2]).join(hex);
    let all = |json: &Value| {
        json.as_array()
            .unwrap()
            .iter()
            .filter(|line| line["kept"] == true)
            .count() as u64
    };
    let kept = all(&home.run(&["artifacts", "list", "--json"]).expect(0).json());
    // Neither what the configuration says nor this is old enough.
    for arguments in [
        &["artifacts", "prune"][..],
        &["artifacts", "prune", "--before", "1d"],
    ] {
        assert_eq!(
            home.run(arguments).expect(0).stdout,
            "no kept results are that old\n"
        );
    }
    let two_days_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(2 * 24 * 3600);
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(two_days_ago)
        .unwrap();
    let held = toolpost_store::DataDir::open(&home.data_dir()).unwrap();
    let refused = home
        .run(&["artifacts", "prune", "--before", "1d"])
        .expect(1);
    assert!(
        refused
            .stderr
            .contains("stop it, prune, and start it again"),
        "{}",
        refused.stderr
    );
    assert!(path.exists());
    drop(held);
    let report = home
        .run(&["artifacts", "prune", "--before", "1d", "--json"])
        .expect(0)
        .json();
    assert_eq!(
        (&report["removed"], &report["bytes"]),
        (&1.into(), &piece["size"])
    );
    let listed = home.run(&["artifacts", "list", "--json"]).expect(0).json();
    assert_eq!(all(&listed), kept - 1);
    home.run(&["artifacts", "prune", "--before", "sometime"])
        .expect(2);
    Home::new().run(&["artifacts", "prune"]).expect(1);
}
