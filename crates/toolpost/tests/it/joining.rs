//! Several hosts in one folder: the second one joins the first, and lives on when the first one ends.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    dice::Dice,
    home::Home,
    piped::{Ending, PipedAgent, Spoken},
    served::Served,
};

/// A busy machine may take longer than the two seconds in which a host is replaced.
const REPLACED_WITHIN: Duration = Duration::from_secs(10);

fn records(home: &Home) -> Vec<Value> {
    let lines = home
        .run(&["journal", "tail", "--json", "-n", "1000"])
        .expect(0)
        .stdout;
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn starts(home: &Home) -> usize {
    records(home)
        .iter()
        .filter(|record| record["kind"] == "host_started")
        .count()
}

/// The process that holds the data directory.
fn holder(home: &Home) -> Option<u32> {
    std::fs::read_to_string(home.data_dir().join("lock"))
        .unwrap()
        .trim()
        .parse()
        .ok()
}

/// Waits until something is so.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("never: {what}");
}

#[test]
fn joining_agents_share_one_host_and_outlive_it() {
    for ending in [Ending::Kill, Ending::Terminate, Ending::CloseInput] {
        let home = Home::new();
        let mut first = PipedAgent::start(&home, Spoken::Mcp, &[]);
        let mut others = [
            PipedAgent::start(&home, Spoken::A2e, &[]),
            PipedAgent::start(&home, Spoken::Mcp, &[]),
            PipedAgent::start(&home, Spoken::A2e, &[]),
        ];
        first.check_echo("first");
        for other in &mut others {
            other.check_echo("joined");
        }
        assert_eq!(
            (starts(&home), holder(&home)),
            (1, Some(first.pid())),
            "one host for all of them"
        );
        first.end(ending);
        for other in &mut others {
            let took = other.check_echo("after the first");
            assert!(took < REPLACED_WITHIN, "{ending:?}: {took:?}");
        }
        assert_eq!(
            starts(&home),
            2,
            "one of them is the host, and the others have joined it"
        );
        let (mut hosts, mut guests): (Vec<_>, Vec<_>) = others
            .into_iter()
            .partition(|other| holder(&home) == Some(other.pid()));
        hosts.pop().unwrap().end(ending);
        for guest in &mut guests {
            guest.check_echo("after the second");
        }
        for guest in guests {
            assert!(guest.end(Ending::CloseInput).success());
        }
        home.run(&["journal", "verify"]).expect(0);
    }
}

#[test]
fn joining_goes_on_while_hosts_are_killed_at_random() {
    let home = Home::new();
    let mut dice = Dice(7);
    let mut spoken = [Spoken::Mcp, Spoken::A2e].into_iter().cycle();
    let mut agents: Vec<PipedAgent> = (0..3)
        .map(|_| PipedAgent::start(&home, spoken.next().unwrap(), &[]))
        .collect();
    for round in 0..5 {
        until("somebody holds the directory", || holder(&home).is_some());
        let held_by = holder(&home);
        let victim = agents
            .iter()
            .position(|agent| Some(agent.pid()) == held_by)
            .unwrap();
        agents.remove(victim).end(*dice.pick(&[
            Ending::Kill,
            Ending::Terminate,
            Ending::CloseInput,
        ]));
        agents.push(PipedAgent::start(&home, spoken.next().unwrap(), &[]));
        for agent in &mut agents {
            agent.check_echo(&format!("round {round}"));
        }
    }
    home.run(&["journal", "verify"]).expect(0);
}

#[test]
fn joining_a_host_on_the_network_and_taking_its_place() {
    let home = Home::new();
    let served = Served::start(&home, &[]);
    let mut agents = [Spoken::Mcp, Spoken::A2e].map(|spoken| PipedAgent::start(&home, spoken, &[]));
    for agent in &mut agents {
        agent.check_echo("joined");
    }
    assert_eq!(holder(&home), Some(served.pid()));
    let refused = served.connect(&home).post("/join", "{}").unwrap();
    assert_eq!(refused.status, 404, "nobody joins over the network");
    served.stop();
    for agent in &mut agents {
        let took = agent.check_echo("alone");
        assert!(took < REPLACED_WITHIN, "{took:?}");
    }
    assert_eq!(
        home.run(&["call", "echo", "message=hi"]).expect(0).stdout,
        "hi\n"
    );
}

#[test]
fn joining_with_other_settings_is_refused_by_name() {
    let home = Home::new();
    let mut first = PipedAgent::start(&home, Spoken::A2e, &["--mode", "edits"]);
    first.check_echo("hi");
    let refused = PipedAgent::start(
        &home,
        Spoken::Mcp,
        &["--mode", "plan", "--deny", "class:network"],
    );
    let message = refused.welcome["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("(mode, rules)") && message.contains("--data-dir"),
        "{message}"
    );
    assert!(!refused.end(Ending::CloseInput).success());

    let mut refused = PipedAgent::start(
        &home,
        Spoken::A2e,
        &["--mode", "edits", "--sandbox", "read-only"],
    );
    let reason = refused.welcome["reason"].as_str().unwrap();
    assert_eq!(refused.welcome["ok"], false);
    assert!(
        reason.contains("(sandbox)") && reason.contains("--data-dir"),
        "{reason}"
    );
    assert_eq!(refused.next(), None, "a session that is refused is over");
    assert!(!refused.wait().success());

    let data_dir = home.workspace().with_file_name("own-data");
    let own = ["--mode", "plan", "--data-dir", data_dir.to_str().unwrap()];
    PipedAgent::start(&home, Spoken::Mcp, &own).check_echo("a host of its own");
    first.check_echo("still there");
}

#[test]
fn an_agent_that_joined_cannot_reach_routes_of_the_socket() {
    let home = Home::new();
    let _first = PipedAgent::start(&home, Spoken::A2e, &[]);
    for spoken in [Spoken::Mcp, Spoken::A2e] {
        let mut agent = PipedAgent::spawn(&home, spoken, &[]);
        let request = "GET /approvals HTTP/1.1\r\nhost: localhost\r\n\r\n";
        agent.send_text(request);
        let answer = agent.next().unwrap();
        assert_eq!(
            answer.get("unreadable"),
            None,
            "an answer of the protocol: {answer}"
        );
        match spoken {
            Spoken::Mcp => assert_eq!(answer["error"]["code"], -32700, "{answer}"),
            Spoken::A2e => assert_eq!(answer["type"], "error", "{answer}"),
        }
        agent.send_text(request);
        assert!(
            !agent.next().unwrap().to_string().contains("HTTP"),
            "and so it stays"
        );
    }
}

#[test]
fn a_process_that_asks_to_join_without_an_upgrade_or_a_ticket_is_refused() {
    let home = Home::new();
    let _first = PipedAgent::start(&home, Spoken::Mcp, &[]);
    let ask = |upgrade: &str, body: &str| {
        let mut socket = UnixStream::connect(home.data_dir().join("socket")).unwrap();
        let head = format!(
            "POST /join HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n{upgrade}",
            body.len()
        );
        let connection = if upgrade.is_empty() {
            "connection: close\r\n"
        } else {
            ""
        };
        // In one piece: the host may answer and close as soon as it has read the head.
        socket
            .write_all(format!("{head}{connection}\r\n{body}").as_bytes())
            .unwrap();
        let mut answer = [0; 12];
        socket.read_exact(&mut answer).unwrap();
        String::from_utf8(answer.to_vec()).unwrap()
    };
    let upgrade = "connection: upgrade\r\nupgrade: toolpost-stdio\r\n";
    assert_eq!(ask("", "{}"), "HTTP/1.1 400");
    assert_eq!(ask(upgrade, "{}"), "HTTP/1.1 400");
    let ticket = json!({ "version": "0.0.0", "face": "mcp", "role": "agent", "settings": {} });
    assert_eq!(ask(upgrade, &ticket.to_string()), "HTTP/1.1 412");
    let session = json!({ "version": "0.0.0", "face": "a2e", "role": "agent", "settings": {}, "session": "../x" });
    assert_eq!(ask(upgrade, &session.to_string()), "HTTP/1.1 400");
}

#[test]
fn joining_agents_are_operators_only_where_the_command_line_says_so() {
    let home = Home::new();
    let mut first = PipedAgent::start(&home, Spoken::Mcp, &["--operator"]);
    first.check_echo("first");
    for (arguments, role) in [(&[][..], "agent"), (&["--operator"][..], "operator")] {
        let mut agent = PipedAgent::start(&home, Spoken::Mcp, arguments);
        agent.check_echo(role);
        let ended = records(&home)
            .into_iter()
            .rfind(|record| record["body"].get("call").is_some())
            .unwrap();
        let call = &ended["body"]["call"];
        let who = (&call["principal"], &call["role"], &call["face"]);
        assert_eq!(who, (&json!("stdio"), &json!(role), &json!("mcp-stdio")));
    }
}

#[test]
fn calls_under_way_are_answered_when_their_host_dies() {
    let home = Home::new();
    let settings = ["--mode", "bypass"];
    let first = PipedAgent::start(&home, Spoken::A2e, &settings);
    let mut agents =
        [Spoken::Mcp, Spoken::A2e].map(|spoken| PipedAgent::start(&home, spoken, &settings));
    let calls: Vec<Value> = agents
        .iter_mut()
        .map(|agent| {
            let file = format!("{:?}", agent.spoken);
            let command = format!("touch {file}; sleep 600");
            let id = agent.begin_call("shell", &json!({ "command": command }));
            until("the command runs", || home.try_read(&file).is_some());
            id
        })
        .collect();
    first.end(Ending::Kill);
    for (agent, id) in agents.iter_mut().zip(&calls) {
        let answer = agent.answer(id);
        let class = match agent.spoken {
            Spoken::Mcp => &answer["result"]["_meta"]["toolpost/class"],
            Spoken::A2e => &answer["data"]["error_class"],
        };
        assert_eq!(*class, "outcome_unknown", "{answer}");
        agent.check_echo("after that");
    }
}

#[test]
fn questions_that_wait_are_answered_after_their_host_died() {
    let home = Home::new();
    let first = PipedAgent::start(&home, Spoken::Mcp, &[]);
    let mut agent = PipedAgent::start(&home, Spoken::A2e, &[]);
    let id = agent.begin_call("write_file", &json!({ "path": "a", "content": "x" }));
    let asked = || {
        home.run(&["approvals", "list", "--json"])
            .stdout
            .contains("write_file")
    };
    until("the question waits", asked);
    first.end(Ending::Kill);
    until("the next host is there", || {
        holder(&home) == Some(agent.pid())
    });
    until("the question waits there too", asked);
    let listed = home.run(&["approvals", "list", "--json"]).expect(0).json();
    let ask = listed["approvals"][0]["ask_id"]
        .as_str()
        .unwrap()
        .to_owned();
    home.run(&["approvals", "allow", &ask]).expect(0);
    let answer = agent.answer(&id);
    assert_eq!(answer["data"]["success"], true, "{answer}");
    assert_eq!(home.read("a"), "x");
}
