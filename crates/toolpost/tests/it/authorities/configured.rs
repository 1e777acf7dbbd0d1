//! Who may define an authority and delegate to it, and what people are told when it is wrong.

use super::{
    Office,
    stub::{Manner, StubEndpoint},
};
use crate::home::Home;

#[test]
fn an_untrusted_project_neither_defines_an_authority_nor_delegates() {
    let endpoint = StubEndpoint::new(Manner::Answers(r#"{"result": true}"#));
    let home = Home::new();
    let project = format!(
        "rules: [delegate opa write_file]\nauthorities: {{ opa: {{ url: '{}' }} }}\n",
        endpoint.url
    );
    home.write("toolpost.yaml", &project);
    let write = [
        "call",
        "write_file",
        "path=a.txt",
        "content=x",
        "--no-prompt",
    ];
    let denied = home.run(&write).expect(3);
    assert!(
        denied.stderr.contains("`authorities: opa` is ignored"),
        "{}",
        denied.stderr
    );
    assert!(
        denied
            .stderr
            .contains("`delegate opa write_file` is ignored"),
        "{}",
        denied.stderr
    );
    assert!(
        endpoint.requests().is_empty(),
        "nobody outside hears of the call"
    );
    assert_eq!(home.try_read("a.txt"), None);

    // Nor can it hand calls to an authority that a trusted file defines, or take that one's place.
    let strict = StubEndpoint::new(Manner::Answers(r#"{"result": false}"#));
    home.write_user(&format!(
        "rules: [delegate opa echo]\nauthorities: {{ opa: {{ url: '{}' }} }}\n",
        strict.url
    ));
    home.run(&write).expect(3);
    home.run(&["call", "echo", "message=x"]).expect(3);
    assert_eq!((endpoint.requests().len(), strict.requests().len()), (0, 1));

    // Trusted, it counts.
    home.write_user("");
    home.run(&["trust"]).expect(0);
    home.run(&write).expect(0);
    assert_eq!(endpoint.requests().len(), 1);
}

#[test]
fn a_flag_delegates_to_an_authority_of_a_trusted_file() {
    let endpoint = StubEndpoint::new(Manner::Answers(r#"{"result": false}"#));
    let office = Office::new(&format!(
        "authorities: {{ opa: {{ url: '{}' }} }}\n",
        endpoint.url
    ));
    office.run(&["call", "echo", "message=x"]).expect(0);
    let denied = office
        .run(&["call", "echo", "message=x", "--delegate", "opa echo"])
        .expect(3);
    assert!(
        denied.stderr.contains("the authority `opa` denies it"),
        "{}",
        denied.stderr
    );
    let unknown = office.run(&["call", "echo", "message=x", "--delegate", "oppa echo"]);
    assert_ne!(unknown.code, 0);
    assert!(
        unknown
            .stderr
            .contains("no trusted file defines that authority"),
        "{}",
        unknown.stderr
    );
    assert!(
        unknown.stderr.contains("did you mean `opa`?"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn doctor_lists_authorities_and_a_missing_program_stops_the_start() {
    let office = Office::new(
        "authorities:\n  opa: { url: 'http://127.0.0.1:8181/v1/data/x', cache: 10s }\n  desk: { command: [sh, ./desk.sh] }\n",
    );
    let missing = office.run(&["call", "echo", "message=x"]);
    assert_ne!(missing.code, 0);
    assert!(
        missing.stderr.contains("authority `desk`")
            && missing.stderr.contains("desk.sh` cannot be found"),
        "{}",
        missing.stderr
    );
    std::fs::write(
        std::path::Path::new(&office.config).with_file_name("desk.sh"),
        "exit 2",
    )
    .unwrap();
    let listed = office.run(&["doctor", "--json"]).json();
    let told: Vec<&str> = listed["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["what"] == "authority")
        .filter_map(|one| one["text"].as_str())
        .collect();
    assert_eq!(told.len(), 2, "{listed:#}");
    assert!(
        told[0].starts_with("desk: `sh ") && told[0].contains("(5s)"),
        "{told:?}"
    );
    assert!(
        told[1].starts_with("opa: http://127.0.0.1:8181/v1/data/x (5s, answers kept for 10s)"),
        "{told:?}"
    );
}

#[test]
fn an_agent_cannot_change_the_program_that_decides_unasked() {
    let home = Home::new();
    home.write("desk.sh", "echo '{\"decision\":\"allow\"}'");
    home.write(
        "toolpost.yaml",
        "mode: edits\nrules: [delegate desk echo]\nauthorities: { desk: { command: [sh, ./desk.sh] } }\n",
    );
    home.run(&["trust"]).expect(0);
    let asked = home
        .run(&[
            "call",
            "write_file",
            "path=desk.sh",
            "content=exit 0",
            "--no-prompt",
        ])
        .expect(3);
    assert!(asked.stderr.contains("needs approval"), "{}", asked.stderr);
    assert!(home.read("desk.sh").contains("allow"));
}
