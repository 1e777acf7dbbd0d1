//! `toolpost explain`: what would happen, and what did.

use super::home::Home;

#[test]
fn a_call_is_explained_before_it_is_made() {
    let home = Home::new();
    home.write("a.txt", "");
    home.check("explain_read", &["explain", "read_file", "path=a.txt"]).expect(0);
    home.check("explain_write", &["explain", "write_file", "path=x", "content=y"]).expect(3);
    let denies =
        ["explain", "write_file", "path=x", "content=y", "--mode", "bypass", "--deny", "class:write"];
    home.check("explain_denied", &denies).expect(3);
    let asks = ["explain", "write_file", "path=x", "content=y", "--ask", "write_file", "--allow", "files.*"];
    home.check("explain_rules", &asks).expect(3);
    home.check("explain_unknown", &["explain", "write_fil"]).expect(3);
    home.check("explain_outside", &["explain", "read_file", "path=/etc/passwd"]).expect(3);
    home.check("explain_json", &["explain", "--json", "read_file", "path=a.txt"]).expect(0);
    assert!(!home.workspace().join("x").exists());
    home.run(&["tools"]).expect(0);
    let nothing = home.run(&["journal", "tail"]).expect(1);
    assert!(nothing.stderr.contains("nothing was recorded"), "looking leaves no record: {}", nothing.stderr);
}

#[test]
fn a_call_is_explained_after_it_was_made() {
    let home = Home::new();
    let denied = home.run(&["call", "write_file", "path=x", "content=y", "--json"]).expect(3).json();
    let id = denied["invocation_id"].as_str().unwrap();
    let explained = home.run(&["explain", id]).expect(0);
    home.compare("explain_made", &["explain", "[ID]"], &explained);
    assert_eq!(home.run(&["journal", "show", id]).expect(0).stdout, explained.stdout, "the same story");
    let unknown = "01900000-0000-7000-8000-000000000000";
    home.check("explain_not_made", &["explain", unknown]).expect(1);
}
