//! The options of programs that start others, as far as they are needed to find the other command.

/// How the program's own options are skipped.
pub(super) struct WrapperOptionSpec {
    pub(super) names: &'static [&'static str],
    /// Letters of options without a value.
    flags: &'static str,
    /// Letters of options with a value, in the same word or the next.
    valued: &'static str,
    long_flags: &'static [&'static str],
    long_valued: &'static [&'static str],
    /// How many words before the command are not options.
    operands: usize,
    /// Whether `NAME=value` may stand before the command.
    pub(super) assigns: bool,
    /// Whether the program itself needs an allow, too.
    pub(super) stays: bool,
}

const NONE: WrapperOptionSpec = WrapperOptionSpec {
    names: &[],
    flags: "",
    valued: "",
    long_flags: &[],
    long_valued: &[],
    operands: 0,
    assigns: false,
    stays: false,
};

pub(super) const COMMAND: WrapperOptionSpec = WrapperOptionSpec { flags: "p", ..NONE };
pub(super) const EXEC: WrapperOptionSpec = WrapperOptionSpec {
    flags: "cl",
    valued: "a",
    ..NONE
};
pub(super) const FLOCK: WrapperOptionSpec = WrapperOptionSpec {
    flags: "sxeunoFv",
    valued: "wE",
    long_flags: &[
        "shared",
        "exclusive",
        "unlock",
        "nonblock",
        "nb",
        "close",
        "no-fork",
        "verbose",
    ],
    long_valued: &["timeout", "wait", "conflict-exit-code"],
    operands: 1,
    ..NONE
};
pub(super) const WATCH: WrapperOptionSpec = WrapperOptionSpec {
    flags: "dtbegcwp",
    valued: "n",
    long_flags: &[
        "differences",
        "no-title",
        "beep",
        "errexit",
        "chgexit",
        "color",
        "no-wrap",
        "precise",
    ],
    long_valued: &["interval"],
    ..NONE
};
pub(super) const XARGS: WrapperOptionSpec = WrapperOptionSpec {
    flags: "0rtpxoile",
    valued: "nPILsdEa",
    long_flags: &[
        "null",
        "no-run-if-empty",
        "verbose",
        "interactive",
        "exit",
        "open-tty",
        "replace",
        "max-lines",
    ],
    long_valued: &[
        "max-args",
        "max-procs",
        "replace",
        "max-lines",
        "max-chars",
        "delimiter",
        "arg-file",
    ],
    ..NONE
};

pub(super) const TABLE: &[WrapperOptionSpec] = &[
    WrapperOptionSpec {
        names: &[
            "nohup",
            "linux32",
            "linux64",
            "fakeroot",
            "unbuffer",
            "catchsegv",
            "dbus-run-session",
        ],
        ..NONE
    },
    WrapperOptionSpec {
        names: &["nice"],
        flags: "0123456789",
        valued: "n",
        long_valued: &["adjustment"],
        ..NONE
    },
    WrapperOptionSpec {
        names: &["ionice"],
        flags: "t",
        valued: "cn",
        long_flags: &["ignore"],
        long_valued: &["class", "classdata"],
        ..NONE
    },
    WrapperOptionSpec {
        names: &["setsid"],
        flags: "cfw",
        long_flags: &["ctty", "fork", "wait"],
        ..NONE
    },
    WrapperOptionSpec {
        names: &["timeout"],
        flags: "vfp",
        valued: "ks",
        long_flags: &["verbose", "foreground", "preserve-status"],
        long_valued: &["kill-after", "signal"],
        operands: 1,
        ..NONE
    },
    WrapperOptionSpec {
        names: &["time"],
        flags: "pv",
        long_flags: &["portability", "verbose"],
        ..NONE
    },
    WrapperOptionSpec {
        names: &["stdbuf"],
        valued: "ioe",
        long_valued: &["input", "output", "error"],
        ..NONE
    },
    WrapperOptionSpec {
        names: &["taskset"],
        flags: "ac",
        long_flags: &["all-tasks", "cpu-list"],
        operands: 1,
        ..NONE
    },
    WrapperOptionSpec {
        names: &["chrt"],
        flags: "abdforRiv",
        operands: 1,
        ..NONE
    },
    WrapperOptionSpec {
        names: &["chroot"],
        long_valued: &["userspec", "groups"],
        long_flags: &["skip-chdir"],
        operands: 1,
        stays: true,
        ..NONE
    },
    WrapperOptionSpec {
        names: &["sudo"],
        flags: "ABbEHiKknPSsVvl",
        valued: "ugphCDRTrtU",
        long_flags: &[
            "askpass",
            "background",
            "login",
            "non-interactive",
            "preserve-env",
            "set-home",
            "shell",
            "stdin",
        ],
        long_valued: &["chdir", "group", "host", "preserve-env", "prompt", "user"],
        assigns: true,
        stays: true,
        ..NONE
    },
    WrapperOptionSpec {
        names: &["doas"],
        flags: "ns",
        valued: "u",
        assigns: true,
        stays: true,
        ..NONE
    },
    WrapperOptionSpec {
        names: &["pkexec"],
        long_valued: &["user"],
        long_flags: &["disable-internal-agent"],
        stays: true,
        ..NONE
    },
    WrapperOptionSpec {
        names: &["unshare"],
        flags: "muinpUCTfrc",
        stays: true,
        ..NONE
    },
    WrapperOptionSpec {
        names: &["nsenter"],
        flags: "amuinpUCT",
        valued: "tSG",
        long_valued: &["target"],
        stays: true,
        ..NONE
    },
    WrapperOptionSpec {
        names: &["strace", "ltrace"],
        flags: "cCdfFhiqrtTvVxy",
        valued: "aeEPSsu",
        stays: true,
        ..NONE
    },
    WrapperOptionSpec {
        names: &["valgrind", "rlwrap", "xvfb-run", "firejail", "prlimit"],
        stays: true,
        ..NONE
    },
];

impl WrapperOptionSpec {
    /// The index after the program's own words; `None` after an unknown option, because any word could then be the
    /// command.
    pub(super) fn skip(&self, words: &[String]) -> Option<usize> {
        let mut at = 1;
        while let Some(option) = words
            .get(at)
            .filter(|word| word.len() > 1 && word.starts_with('-'))
        {
            at += 1;
            if option == "--" {
                break;
            }
            at += match option.strip_prefix("--") {
                Some(long) => self.long_values(long)?,
                None => self.short_values(&option[1..])?,
            };
        }
        Some(at + self.operands)
    }

    fn long_values(&self, option: &str) -> Option<usize> {
        match option.split_once('=') {
            Some((name, _)) => self.long_valued.contains(&name).then_some(0),
            None if self.long_flags.contains(&option) => Some(0),
            None => self.long_valued.contains(&option).then_some(1),
        }
    }

    fn short_values(&self, cluster: &str) -> Option<usize> {
        for (at, letter) in cluster.char_indices() {
            if self.valued.contains(letter) {
                let attached = at + letter.len_utf8() < cluster.len();
                return Some(usize::from(!attached));
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(0)
    }
}
