//! The list of protected places: one line each, with the reason that the approval question shows.
//!
//! A place is on the list if it runs code without the start of a build or a test (at `cd`, at a commit, when a folder
//! is opened, when a shell starts, in a pipeline), if it decides which program, registry or account a tool uses, or if
//! it instructs an agent. Files that run when the project is built, tested or started are not on it: agents are there
//! to change `package.json`, `Makefile`, `build.rs`, `conftest.py` and source files. Neither are `.gitattributes`,
//! which can only choose among filters that git's own settings define, `.editorconfig`, `.gitignore` and `.env`.

/// The effect of a change at a protected place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceEffect {
    /// It runs code, or opens access. A change always asks, regardless of rules.
    RunsCode,
    /// It instructs agents. A change asks, unless a rule allows the path or the mode is `bypass`.
    SteersAgents,
}

/// Consecutive names anywhere in a path. Everything beneath is protected with them.
#[derive(Debug)]
pub(super) struct ProtectedPlace {
    /// Names with `/` between them. In the last one `*` matches any characters.
    pub(super) path: &'static str,
    pub(super) depth: PlaceDepth,
    pub(super) effect: PlaceEffect,
    pub(super) reason: &'static str,
}

/// The position in a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlaceDepth {
    Anywhere,
    /// Only at the top of a root.
    Top,
}

const fn runs(path: &'static str, reason: &'static str) -> ProtectedPlace {
    ProtectedPlace {
        path,
        depth: PlaceDepth::Anywhere,
        effect: PlaceEffect::RunsCode,
        reason,
    }
}

const fn runs_at_top(path: &'static str, reason: &'static str) -> ProtectedPlace {
    ProtectedPlace {
        depth: PlaceDepth::Top,
        ..runs(path, reason)
    }
}

const fn steers(path: &'static str, reason: &'static str) -> ProtectedPlace {
    ProtectedPlace {
        effect: PlaceEffect::SteersAgents,
        ..runs(path, reason)
    }
}

pub(super) const VERSION_CONTROL: &str = "hooks and settings of version control run commands";
const ACCOUNT: &str = "it sets where programs connect to, and as which user";
const AGENT: &str = "it sets an agent's permissions and the programs that it starts";
const GUIDANCE: &str = "agents read it as instructions";
const HOOKS: &str = "hooks run commands at every commit";
const KEYS: &str = "keys, and permissions to use them";
const LOGIN: &str = "it starts at login";
const PIPELINE: &str = "a build pipeline runs its commands, often with secrets";
const PROJECT: &str = "an editor runs commands of its project settings";
const SHELL: &str = "a shell runs it when it starts";
const START: &str = "a program runs it when it is started in this folder";
const TOOLCHAIN: &str = "it decides which programs a build tool runs";
const VIM: &str = "an editor runs it when it is started in this folder";

/// The version control directories, which an operator can leave unprotected.
pub(super) const REPOSITORIES: [&str; 7] = [".git", ".hg", ".svn", ".jj", ".bzr", ".pijul", ".sl"];

#[rustfmt::skip]
pub(super) const PLACES: &[ProtectedPlace] = &[
    // Version control.
    runs(".git", VERSION_CONTROL),
    runs(".hg", VERSION_CONTROL),
    runs(".svn", VERSION_CONTROL),
    runs(".jj", VERSION_CONTROL),
    runs(".bzr", VERSION_CONTROL),
    runs(".pijul", VERSION_CONTROL),
    runs(".sl", VERSION_CONTROL),
    runs(".gitconfig", VERSION_CONTROL),
    runs(".hgrc", VERSION_CONTROL),
    runs(".config/git", VERSION_CONTROL),
    runs(".gitmodules", "it sets where git fetches code from"),
    // Hooks.
    runs(".githooks", HOOKS),
    runs(".husky", HOOKS),
    runs(".lefthook", HOOKS),
    runs("lefthook.*", HOOKS),
    runs(".lefthook.*", HOOKS),
    runs("lefthook-local.*", HOOKS),
    runs(".lefthook-local.*", HOOKS),
    runs(".lintstagedrc*", HOOKS),
    runs(".overcommit.yml", HOOKS),
    runs(".pre-commit-config.yaml", HOOKS),
    runs(".pre-commit-config.yml", HOOKS),
    runs(".simple-git-hooks.*", HOOKS),
    // Pipelines.
    runs(".github/workflows", PIPELINE),
    runs(".github/actions", PIPELINE),
    runs(".gitlab-ci.yml", PIPELINE),
    runs(".gitea", PIPELINE),
    runs(".forgejo", PIPELINE),
    runs(".appveyor.yml", PIPELINE),
    runs(".azure-pipelines", PIPELINE),
    runs(".buildkite", PIPELINE),
    runs(".builds", PIPELINE),
    runs(".circleci", PIPELINE),
    runs(".cirrus.yml", PIPELINE),
    runs(".drone.yml", PIPELINE),
    runs(".semaphore", PIPELINE),
    runs(".teamcity", PIPELINE),
    runs(".tekton", PIPELINE),
    runs(".travis.yml", PIPELINE),
    runs(".woodpecker", PIPELINE),
    runs(".woodpecker.yml", PIPELINE),
    runs("Jenkinsfile", PIPELINE),
    runs("appveyor.yml", PIPELINE),
    runs("azure-pipelines.yaml", PIPELINE),
    runs("azure-pipelines.yml", PIPELINE),
    runs("bitbucket-pipelines.yml", PIPELINE),
    // Editors.
    runs(".vscode", PROJECT),
    runs("*.code-workspace", PROJECT),
    runs("*.sublime-project", PROJECT),
    runs(".devcontainer", PROJECT),
    runs(".devcontainer.json", PROJECT),
    runs(".fleet", PROJECT),
    runs(".helix", PROJECT),
    runs(".idea", PROJECT),
    runs(".run", PROJECT),
    runs(".vs", PROJECT),
    runs(".zed", PROJECT),
    runs(".dir-locals.el", VIM),
    runs(".dir-locals-2.el", VIM),
    runs(".emacs", VIM),
    runs(".emacs.d", VIM),
    runs(".exrc", VIM),
    runs(".gvimrc", VIM),
    runs(".lvimrc", VIM),
    runs(".nvim.lua", VIM),
    runs(".nvimrc", VIM),
    runs(".vim", VIM),
    runs(".vimrc", VIM),
    // Agents and this host.
    runs_at_top("toolpost.yaml", "it controls the permissions of this host"),
    runs(".aider.conf.yml", AGENT),
    runs(".amazonq", AGENT),
    runs(".claude", AGENT),
    runs(".codex", AGENT),
    runs(".continue", AGENT),
    runs(".crush.json", AGENT),
    runs(".cursor", AGENT),
    runs(".factory", AGENT),
    runs(".gemini", AGENT),
    runs(".junie", AGENT),
    runs(".kiro", AGENT),
    runs(".mcp.json", AGENT),
    runs(".opencode", AGENT),
    runs(".qwen", AGENT),
    runs(".roo", AGENT),
    runs(".windsurf", AGENT),
    runs("crush.json", AGENT),
    runs("opencode.json", AGENT),
    runs("opencode.jsonc", AGENT),
    steers("AGENT.md", GUIDANCE),
    steers("AGENTS.md", GUIDANCE),
    steers("AGENTS.override.md", GUIDANCE),
    steers("CLAUDE.md", GUIDANCE),
    steers("CLAUDE.local.md", GUIDANCE),
    steers("GEMINI.md", GUIDANCE),
    steers("QWEN.md", GUIDANCE),
    steers(".clinerules", GUIDANCE),
    steers(".cursorrules", GUIDANCE),
    steers(".goosehints", GUIDANCE),
    steers(".roorules", GUIDANCE),
    steers(".windsurfrules", GUIDANCE),
    steers(".github/agents", GUIDANCE),
    steers(".github/chatmodes", GUIDANCE),
    steers(".github/copilot-instructions.md", GUIDANCE),
    steers(".github/instructions", GUIDANCE),
    steers(".github/prompts", GUIDANCE),
    // Settings of build tools.
    runs(".bazelrc", TOOLCHAIN),
    runs(".cargo/config", TOOLCHAIN),
    runs(".cargo/config.toml", TOOLCHAIN),
    runs(".config/mise", TOOLCHAIN),
    runs(".config/mise.toml", TOOLCHAIN),
    runs(".mise", TOOLCHAIN),
    runs(".mise.toml", TOOLCHAIN),
    runs(".mise.*.toml", TOOLCHAIN),
    runs("mise.toml", TOOLCHAIN),
    runs("mise.*.toml", TOOLCHAIN),
    runs(".mvn", TOOLCHAIN),
    runs(".pnpmfile.cjs", TOOLCHAIN),
    runs(".pnpmfile.mjs", TOOLCHAIN),
    runs(".tool-versions", TOOLCHAIN),
    runs(".yarn/plugins", TOOLCHAIN),
    runs(".yarn/releases", TOOLCHAIN),
    runs(".yarnrc", TOOLCHAIN),
    runs(".yarnrc.yml", TOOLCHAIN),
    runs("gradle/wrapper", TOOLCHAIN),
    runs("rust-toolchain", TOOLCHAIN),
    runs("rust-toolchain.toml", TOOLCHAIN),
    // Shells and other programs that read a file of the folder they start in.
    runs(".envrc", "a shell runs it when a user enters the folder"),
    runs(".bash_aliases", SHELL),
    runs(".bash_login", SHELL),
    runs(".bash_logout", SHELL),
    runs(".bash_profile", SHELL),
    runs(".bashrc", SHELL),
    runs(".config/fish", SHELL),
    runs(".cshrc", SHELL),
    runs(".inputrc", SHELL),
    runs(".kshrc", SHELL),
    runs(".login", SHELL),
    runs(".profile", SHELL),
    runs(".tcshrc", SHELL),
    runs(".zlogin", SHELL),
    runs(".zlogout", SHELL),
    runs(".zprofile", SHELL),
    runs(".zshenv", SHELL),
    runs(".zshrc", SHELL),
    runs(".Renviron", START),
    runs(".Rprofile", START),
    runs(".gdbinit", START),
    runs(".irbrc", START),
    runs(".lldbinit", START),
    runs(".pdbrc", START),
    runs(".psqlrc", START),
    runs(".tmux.conf", START),
    // Programs that start at a login.
    runs(".config/autostart", LOGIN),
    runs(".config/environment.d", LOGIN),
    runs(".config/systemd", LOGIN),
    runs(".local/share/systemd", LOGIN),
    runs(".pam_environment", LOGIN),
    runs(".xinitrc", LOGIN),
    runs(".xprofile", LOGIN),
    runs(".xsession", LOGIN),
    runs(".xsessionrc", LOGIN),
    // Accounts and keys.
    runs(".aws", ACCOUNT),
    runs(".curlrc", ACCOUNT),
    runs(".docker/config.json", ACCOUNT),
    runs(".kube", ACCOUNT),
    runs(".netrc", ACCOUNT),
    runs(".npmrc", ACCOUNT),
    runs(".pypirc", ACCOUNT),
    runs(".wgetrc", ACCOUNT),
    runs(".ssh", KEYS),
    runs(".gnupg", KEYS),
];
