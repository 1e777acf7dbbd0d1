//! Which commands usually reach other machines.

use toolpost_command::analyze;

const REACHING: &[&str] = &[
    "curl https://a.example/",
    "/usr/bin/wget -q a.example",
    "ssh host uptime",
    "scp a host:b",
    "rsync -a x host:y",
    "rsync rsync://host/x y",
    "git push",
    "git -C x push --force origin main",
    "git -c a=b fetch --all",
    "git clone https://a.example/x",
    "git submodule update --init",
    "npm ci",
    "npm --prefix x install",
    "pip install -r requirements.txt",
    "cargo +nightly install ripgrep",
    "apt-get -y install jq",
    "docker pull alpine",
    "gh pr list",
    "go mod download",
];

const STAYING: &[&str] = &[
    "ls",
    "git status",
    "git commit -m push",
    "git log --grep=push",
    "git remote -v",
    "rsync -a x/ y/",
    "cargo test",
    "npm test",
    "make",
    "docker ps",
    "echo curl",
    "curlew x",
    "git $x",
];

#[test]
fn programs_and_subcommands_that_reach_other_machines_are_known() {
    let reaches = |text: &str| {
        analyze(text)
            .commands
            .iter()
            .any(|command| command.reaches_network())
    };
    let wrong: Vec<&&str> = REACHING.iter().filter(|text| !reaches(text)).collect();
    assert!(wrong.is_empty(), "taken for local: {wrong:?}");
    let wrong: Vec<&&str> = STAYING.iter().filter(|text| reaches(text)).collect();
    assert!(wrong.is_empty(), "taken for remote: {wrong:?}");
    assert!(reaches("cd x && sudo git push"), "behind another command");
}
