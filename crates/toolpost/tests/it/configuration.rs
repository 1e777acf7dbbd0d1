//! A configuration that cannot be read: where it is wrong, and what would be right.

use super::home::{Home, Ran};

#[test]
fn mistakes_are_shown_where_they_are() {
    for (name, text) in [
        ("config_unknown_key", "mode: plan\nruls: []\n"),
        ("config_bad_mode", "mode: free\n"),
        (
            "config_bad_rule",
            "rules:\n  - deny shell.*\n  - permit write_file\n",
        ),
        ("config_not_yaml", "mode: [plan\n"),
        ("config_wrong_type", "limits:\n  queue: many\n"),
        (
            "config_several",
            "mode: free\nlimits:\n  queue: 0\n  deadline: soon\n",
        ),
        (
            "config_token_in_the_clear",
            "tokens:\n  - name: ci\n    sha256: tp_secret-token-in-the-clear\n",
        ),
    ] {
        let home = Home::new();
        home.write("toolpost.yaml", text);
        let ran = home.check(name, &["tools"]).expect(2);
        assert_eq!(ran.stdout, "", "{name}");
        assert!(
            ran.stderr.contains("--> toolpost.yaml"),
            "{name}: {}",
            ran.stderr
        );
        assert!(
            !ran.stderr.contains("tp_secret"),
            "what may be a token is not shown"
        );
        for command in [
            &["serve", "--http", "127.0.0.1:0"][..],
            &["call", "echo", "message=x"],
            &["trust"],
        ] {
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
    assert!(
        home.run(&["journal", "tail"])
            .expect(0)
            .stdout
            .contains("host.echo succeeded")
    );
    home.run(&["journal", "verify"]).expect(0);
}

#[test]
fn a_file_given_by_name_is_named_in_its_mistakes() {
    let home = Home::new();
    home.write("mine.yaml", "htp: {}\n");
    home.check("config_by_name", &["tools", "--config", "mine.yaml"])
        .expect(2);
}

#[test]
fn settings_for_no_tool_are_pointed_out() {
    let home = Home::new();
    home.write("mine.yaml", "tools: { raed_file: { enabled: false } }\n");
    home.check(
        "config_unused_settings",
        &["call", "echo", "message=x", "--config", "mine.yaml"],
    )
    .expect(0);
}

#[test]
fn paths_on_the_command_line_are_those_of_the_current_folder() {
    let home = Home::new();
    home.write("a.txt", "here\n");
    let folder = home.workspace().parent().unwrap().canonicalize().unwrap();
    std::fs::create_dir(folder.join("elsewhere")).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        Ran::from(
            command
                .current_dir(folder.join("elsewhere"))
                .output()
                .unwrap(),
        )
        .expect(0)
    };
    let place = ["--workspace", "../workspace", "--data-dir", "../data"];
    let all = |words: &[&'static str]| [words, &place].concat();
    let data = folder.join("data");
    let told = folder.display();
    let doctor = run(&[
        "doctor",
        "--workspace",
        "../workspace",
        "--data-dir",
        "new/record",
    ])
    .stdout;
    assert!(
        doctor.contains(&format!(
            "`{told}/elsewhere/new/record` will be created in `{told}/elsewhere`"
        )),
        "{doctor}"
    );
    assert!(
        run(&all(&["call", "read_file", "path=a.txt"]))
            .stdout
            .contains("here")
    );
    assert!(data.is_dir());
    assert!(
        run(&all(&["doctor"]))
            .stdout
            .contains(&format!("good  record         {}", data.display()))
    );
    assert!(
        run(&all(&["journal", "tail"]))
            .stdout
            .contains("files.read_file succeeded")
    );
    run(&all(&["tools"]));
    let pasted = run(&[
        "connect",
        "claude-desktop",
        "--workspace",
        "../workspace",
        "--data-dir",
        "../later",
    ])
    .stdout;
    assert!(pasted.contains(&format!("\"{told}/later\"")), "{pasted}");
}

#[test]
fn paths_in_a_file_are_those_of_its_folder() {
    let home = Home::new();
    let folder = home.workspace().parent().unwrap().canonicalize().unwrap();
    for name in ["elsewhere", "settings", "more"] {
        std::fs::create_dir(folder.join(name)).unwrap();
    }
    std::fs::write(folder.join("more/b.txt"), "there\n").unwrap();
    let text = "workspace: ../workspace\ndata_dir: ../data\nroots:\n  - path: ../more\n";
    std::fs::write(folder.join("settings/host.yaml"), text).unwrap();
    let run = |arguments: &[&str]| {
        let all = [arguments, &["--config", "../settings/host.yaml"]].concat();
        Ran::from(
            home.command(&all)
                .current_dir(folder.join("elsewhere"))
                .output()
                .unwrap(),
        )
        .expect(0)
    };
    let file = format!("path={}/more/b.txt", folder.display());
    assert!(run(&["call", "read_file", &file]).stdout.contains("there"));
    let doctor = run(&["doctor"]).stdout;
    assert!(
        doctor.contains(&format!("good  record         {}/data\n", folder.display())),
        "{doctor}"
    );
    assert!(
        run(&["journal", "tail"])
            .stdout
            .contains("files.read_file succeeded")
    );
}
