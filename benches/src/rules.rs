//! The cost of a decision: many rules beside none, in the same run.

use std::{hint::black_box, time::Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use toolpost_core::{PathBaseFolders, PermissionFacts, Policy, PolicyEngine, PolicySpec};
use toolpost_model::{
    ArgumentKind, ArgumentMeaning, Arguments, Declaration, EffectClass, Effects, PermissionInput,
    PermissionMode, Principal, Provenance, ResourceAccess, ResourceKey, Rule, RuleOrigin,
    SandboxProfile,
};

use crate::rounds::Pairs;

const ROUNDS: usize = 7;
const DECISIONS: u32 = 2_000;
/// Enough for each kind of selector to grow with the number of rules.
const RULES: [usize; 2] = [100, 10_000];

pub(crate) async fn run() -> anyhow::Result<()> {
    let without = Policy::in_mode(PermissionMode::Default);
    for count in RULES {
        let began = Instant::now();
        let with = policy(count)?;
        println!(
            "{count} rules compiled in {:.1} ms",
            began.elapsed().as_secs_f64() * 1_000.0
        );
        for call in calls()? {
            // The first decision about a tool selects the rules that apply to it.
            black_box(with.decide(&call.facts()));
            let pairs =
                Pairs::take(ROUNDS, || time(&with, &call), || time(&without, &call)).await?;
            pairs.tell(
                &format!("{} under {count} rules, beside none", call.name),
                "µs",
            );
        }
    }
    Ok(())
}

fn policy(count: usize) -> anyhow::Result<Policy> {
    let line = |n: usize| match n % 8 {
        0 => format!("allow shell(prog{n} sub *)"),
        1 => format!("deny shell(tool{n} --force *)"),
        2 => format!("allow fs.write(src/mod{n}/**)"),
        3 => format!("deny fs.read(/opt/keys{n}/**)"),
        4 => format!("ask net(POST https://api{n}.example.com/v1/*)"),
        5 => format!("allow mcp.server{n}.get"),
        6 => format!("deny fs.read(**/secret{n}.key)"),
        _ => format!("ask write_file(cfg{n}/*.yaml)"),
    };
    let rule = |n: usize| Rule::parse(&line(n), RuleOrigin::User, "rules.yaml");
    let rules = (0..count).map(rule).collect::<Result<_, _>>()?;
    let places = PathBaseFolders {
        workspace: Some("/w".into()),
        ..PathBaseFolders::default()
    };
    let spec = PolicySpec {
        mode: PermissionMode::Default,
        rules,
        places,
        ..PolicySpec::default()
    };
    Policy::compile(spec).map_err(|problems| anyhow::anyhow!("{problems:?}"))
}

struct MadeCall {
    name: &'static str,
    declaration: Declaration,
    input: PermissionInput,
    effects: Effects,
    principal: Principal,
}

impl MadeCall {
    fn of(
        name: &'static str,
        tool: &str,
        arguments: Value,
        effects: Effects,
    ) -> anyhow::Result<Self> {
        let mut declaration = Declaration::new(tool.parse()?, "");
        declaration.provenance = Provenance::CompiledIn;
        if tool == "shell.shell" {
            declaration.interface.permission.arguments =
                vec![ArgumentMeaning::of("command", ArgumentKind::Command)];
        }
        let input = PermissionInput::new(Arguments::from_value(arguments));
        Ok(Self {
            name,
            declaration,
            input,
            effects,
            principal: Principal::agent("agent"),
        })
    }

    fn facts(&self) -> PermissionFacts<'_> {
        PermissionFacts {
            declaration: &self.declaration,
            input: Some(&self.input),
            effects: &self.effects,
            principal: &self.principal,
            opinions: &[],
            delegated: &[],
            at: Timestamp::UNIX_EPOCH,
        }
    }
}

fn calls() -> anyhow::Result<[MadeCall; 4]> {
    let run = || Effects::of(EffectClass::Execute).confined_by(SandboxProfile::WorkspaceWrite);
    let command = |text: &str| json!({ "command": text });
    let write = Effects::of(EffectClass::Write)
        .using(ResourceKey::path("/w/src/a.rs"), ResourceAccess::Write);
    Ok([
        MadeCall::of("`git push`", "shell.shell", command("git push"), run())?,
        MadeCall::of(
            "four commands",
            "shell.shell",
            command("cd x && git log --oneline | head -5 && ls"),
            run(),
        )?,
        MadeCall::of(
            "a write",
            "files.write_file",
            json!({ "path": "src/a.rs" }),
            write,
        )?,
        MadeCall::of(
            "a tool of no class",
            "mcp.other.thing",
            json!({}),
            Effects::unknown(),
        )?,
    ])
}

/// Microseconds of one decision.
async fn time(policy: &Policy, call: &MadeCall) -> anyhow::Result<f64> {
    let facts = call.facts();
    let began = Instant::now();
    for _ in 0..DECISIONS {
        black_box(policy.decide(&facts));
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / f64::from(DECISIONS))
}
