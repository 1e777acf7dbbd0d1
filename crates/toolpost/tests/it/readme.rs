//! The first calls of the README, as its readers make them: from an empty home, with the output that the page shows.

use std::time::{Duration, Instant};

use super::{
    home::{Home, Ran},
    served::Served,
};

const README: &str = include_str!("../../../../README.md");
const LICENSE: &str = include_str!("../../../../LICENSE-MIT");
/// The page's stand-ins for the reader's clone and for the id of the question.
const CLONE: &str = "/home/me/toolpost";
const QUESTION: &str = "02daee5f";

/// A command of the page and the lines below it.
struct ShownCommand {
    arguments: Vec<&'static str>,
    output: String,
}

/// All commands in `console` blocks, in order.
fn shown_commands() -> Vec<ShownCommand> {
    let mut commands: Vec<ShownCommand> = Vec::new();
    let mut is_console = false;
    for line in README.lines() {
        if line.starts_with("```") {
            is_console = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| is_console) {
            let words = command.strip_prefix("target/debug/toolpost ");
            commands.push(ShownCommand {
                arguments: words
                    .expect("a command of this program")
                    .split(' ')
                    .collect(),
                output: String::new(),
            });
        } else if is_console {
            let last = commands.last_mut().expect("output follows a command");
            last.output.push_str(line);
            last.output.push('\n');
        }
    }
    commands
}

impl ShownCommand {
    fn run(&self, home: &Home, question: &str) -> Ran {
        let arguments: Vec<&str> = self
            .arguments
            .iter()
            .map(|word| if *word == QUESTION { question } else { word })
            .collect();
        home.run(&arguments)
    }

    #[track_caller]
    fn compare(&self, home: &Home, question: &str, ran: &Ran) {
        let workspace = home.workspace().canonicalize().unwrap();
        let shown = self
            .output
            .replace(QUESTION, question)
            .replace(CLONE, workspace.to_str().unwrap());
        assert_eq!((ran.code, &ran.stdout), (0, &shown), "{}", ran.stderr);
    }
}

#[test]
fn the_first_calls_of_the_readme_print_its_output() {
    let home = Home::new();
    home.write("LICENSE-MIT", LICENSE);
    let _host = Served::start(&home, &[]);
    let commands = shown_commands();
    let [read, write, list, allow] = commands.as_slice() else {
        panic!("{} commands instead of four", commands.len());
    };
    read.compare(&home, "", &read.run(&home, ""));
    // It waits for the answer below.
    let waiting = home.command(&write.arguments).spawn().unwrap();
    let patience = Instant::now() + Duration::from_secs(60);
    let listed = loop {
        let listed = list.run(&home, "");
        if !listed.stdout.is_empty() {
            break listed;
        }
        assert!(Instant::now() < patience, "no question: {}", listed.stderr);
    };
    let question = listed.stdout[..QUESTION.len()].to_owned();
    list.compare(&home, &question, &listed);
    allow.compare(&home, &question, &allow.run(&home, &question));
    let written = waiting.wait_with_output().unwrap();
    assert!(written.status.success(), "{written:?}");
    assert_eq!(home.read("hello.txt"), "hello");
}
