//! A configuration that cannot be read: where it is wrong, and what would be right.

use super::home::Home;

#[test]
fn mistakes_are_shown_where_they_are() {
    for (name, text) in [
        ("config_unknown_key", "mode: plan\nruls: []\n"),
        ("config_bad_mode", "mode: free\n"),
        ("config_bad_rule", "rules:\n  - deny shell.*\n  - permit write_file\n"),
        ("config_not_yaml", "mode: [plan\n"),
        ("config_wrong_type", "limits:\n  queue: many\n"),
        ("config_several", "mode: free\nlimits:\n  queue: 0\n  deadline: soon\n"),
        ("config_token_in_the_clear", "tokens:\n  - name: ci\n    sha256: tp_secret-token-in-the-clear\n"),
    ] {
        let home = Home::new();
        home.write("toolpost.yaml", text);
        let ran = home.check(name, &["tools"]).expect(2);
        assert_eq!(ran.stdout, "", "{name}");
        assert!(ran.stderr.contains("--> toolpost.yaml"), "{name}: {}", ran.stderr);
        assert!(!ran.stderr.contains("tp_secret"), "what may be a token is not shown");
        for command in [&["serve", "--http", "127.0.0.1:0"][..], &["call", "echo", "message=x"], &["trust"]] {
            home.run(command).expect(2);
        }
    }
}

#[test]
fn the_record_can_be_read_whatever_the_workspace_says() {
    let home = Home::new();
    home.run(&["call", "echo", "message=x"]).expect(0);
    home.write("toolpost.yaml", "ruls: []\n");
    home.run(&["call", "echo", "message=x"]).expect(2);
    assert!(home.run(&["journal", "tail"]).expect(0).stdout.contains("host.echo succeeded"));
    home.run(&["journal", "verify"]).expect(0);
}

#[test]
fn a_file_given_by_name_is_named_in_its_mistakes() {
    let home = Home::new();
    home.write("mine.yaml", "htp: {}\n");
    home.check("config_by_name", &["tools", "--config", "mine.yaml"]).expect(2);
}

#[test]
fn settings_for_no_tool_are_pointed_out() {
    let home = Home::new();
    home.write("mine.yaml", "tools: { raed_file: { enabled: false } }\n");
    home.check("config_unused_settings", &["call", "echo", "message=x", "--config", "mine.yaml"]).expect(0);
}
