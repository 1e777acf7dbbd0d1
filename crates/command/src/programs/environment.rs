//! Variables that decide which programs other programs start.

use super::name_fits;

/// The meaning of a variable for the commands that get it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum VariableMeaning {
    /// Its value is a command that some programs start.
    Script,
    /// It decides which programs are found or which code they load.
    Hides,
}

/// The meaning of a variable if it can make commands start something else.
pub(crate) fn variable_meaning(name: &str) -> Option<VariableMeaning> {
    let known = |(patterns, meaning): &(&str, VariableMeaning)| {
        patterns
            .split(' ')
            .any(|pattern| name_fits(pattern, name))
            .then_some(*meaning)
    };
    VARIABLES.iter().find_map(known)
}

/// Names, separated by blanks; the comment above each group gives the reason.
const VARIABLES: &[(&str, VariableMeaning)] = &[
    // Pagers, editors and programs that ask for a password.
    (
        "PAGER GIT_PAGER MANPAGER SYSTEMD_PAGER BROWSER MANROFFSEQ",
        VariableMeaning::Script,
    ),
    (
        "EDITOR VISUAL GIT_EDITOR GIT_SEQUENCE_EDITOR SUDO_EDITOR FCEDIT",
        VariableMeaning::Script,
    ),
    (
        "GIT_ASKPASS SSH_ASKPASS SUDO_ASKPASS",
        VariableMeaning::Script,
    ),
    // Programs for connections to other machines and for comparing files.
    (
        "GIT_SSH GIT_SSH_COMMAND GIT_PROXY_COMMAND GIT_EXTERNAL_DIFF RSYNC_RSH CVS_RSH",
        VariableMeaning::Script,
    ),
    (
        "LESSOPEN LESSCLOSE FZF_DEFAULT_COMMAND NPM_CONFIG_SCRIPT_SHELL",
        VariableMeaning::Script,
    ),
    // Compilers and their wrappers.
    (
        "CC CXX LD AR RUSTC RUSTDOC RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER",
        VariableMeaning::Script,
    ),
    (
        "CARGO_TARGET_*_RUNNER CARGO_TARGET_*_LINKER CARGO_BUILD_RUSTC*",
        VariableMeaning::Script,
    ),
    // Search paths of programs, and settings of the dynamic loader.
    (
        "PATH LD_* DYLD_* GCONV_PATH GIT_EXEC_PATH",
        VariableMeaning::Hides,
    ),
    // Code that shells run at their start or for each command.
    (
        "BASH_ENV ENV SHELLOPTS BASHOPTS BASH_FUNC_* PROMPT_COMMAND PS4 SHELL",
        VariableMeaning::Hides,
    ),
    // Places of settings that name commands.
    (
        "HOME XDG_CONFIG_HOME XDG_CONFIG_DIRS ZDOTDIR GIT_CONFIG* GIT_DIR GIT_TEMPLATE_DIR",
        VariableMeaning::Hides,
    ),
    (
        "CARGO_HOME NPM_CONFIG_* RIPGREP_CONFIG_PATH PSQLRC VIMINIT EXINIT MYVIMRC",
        VariableMeaning::Hides,
    ),
    // Options that programs read from the environment.
    (
        "TAR_OPTIONS MAKEFLAGS GNUMAKEFLAGS MAKEFILES LESS LESSKEY* MANOPT",
        VariableMeaning::Hides,
    ),
    (
        "PERL5OPT PERL5DB PERL5LIB RUBYOPT NODE_OPTIONS PYTHONSTARTUP",
        VariableMeaning::Hides,
    ),
    (
        "JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS",
        VariableMeaning::Hides,
    ),
];
