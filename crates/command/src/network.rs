//! Commands that usually reach other machines.
//!
//! The permission layer records the answer with its decision, so that a reader of the record need not know every
//! program. It is not a boundary: a command that is not listed may reach the network, too. The sandbox decides whether
//! it can.

use std::sync::OnceLock;

use crate::{analysis::SimpleCommand, pattern::CommandPattern};

/// Programs that only work over the network, and such subcommands of other programs. Downloads of builds and tests are
/// not here: `cargo build` reaches the network only if a dependency is missing.
const REACHING: &[&str] = &[
    "{curl,wget,http,https,xh,aria2c,lynx,w3m} *",
    "{ssh,slogin,autossh,mosh,scp,sftp,sshfs,ftp,lftp,telnet,nc,ncat,netcat} *",
    "{ping,dig,nslookup,host,whois,traceroute,tracepath,mtr,nmap} *",
    "{gh,glab,aws,gcloud,az,gsutil,doctl,flyctl,heroku,vercel,netlify} *",
    "kubectl *",
    "git {clone,fetch,pull,push,ls-remote,fetch-pack,send-pack,send-email} *",
    "git remote {update,prune} *",
    "git submodule {add,update} *",
    "git lfs {fetch,pull,push} *",
    "hg {clone,pull,push,incoming,outgoing} *",
    "svn {checkout,co,update,up,commit,ci,export} *",
    "{npm,pnpm,yarn,bun} {install,i,ci,add,update,upgrade,publish,login,audit,outdated,view} *",
    "{pip,pip3,pipx} {install,download,search,index} *",
    "uv {add,sync,lock,publish} *",
    "uv pip {install,sync,compile} *",
    "cargo {install,fetch,update,add,publish,search,login,yank,owner} *",
    "{gem,bundle,composer,brew,conda,mamba,poetry} {install,update,upgrade,add,publish,push,search} *",
    "go {get,install} *",
    "go mod {download,tidy} *",
    "{apt,apt-get,dnf,yum,apk,pacman,zypper} {update,install,upgrade,full-upgrade,dist-upgrade,add,search} *",
    "{docker,podman} {pull,push,login,search} *",
    "{docker,podman} image {pull,push} *",
];

fn reaching() -> &'static [CommandPattern] {
    static PATTERNS: OnceLock<Vec<CommandPattern>> = OnceLock::new();
    PATTERNS.get_or_init(|| {
        REACHING
            .iter()
            .filter_map(|text| text.parse().ok())
            .collect()
    })
}

impl SimpleCommand {
    /// Whether it usually reaches other machines: `curl`, `git push`. Both answers can be wrong. A remote of git may be
    /// a folder, and programs that are not listed may use the network.
    pub fn reaches_network(&self) -> bool {
        !self.opaque
            && (reaching().iter().any(|pattern| pattern.catches(self))
                || self.copies_over_network())
    }

    /// `rsync` and similar programs reach another machine if an operand names one: `host:path`, `rsync://host/path`.
    fn copies_over_network(&self) -> bool {
        let is_program = |word: &String| word.rsplit('/').next() == Some("rsync");
        let names_host = |word: &&String| {
            let before = word.split('/').next().unwrap_or_default();
            !word.starts_with('-') && before.contains(':')
        };
        self.words.first().is_some_and(is_program)
            && self.words.iter().skip(1).any(|word| names_host(&word))
    }
}

#[cfg(test)]
mod tests {
    use super::{REACHING, reaching};

    #[test]
    fn every_line_of_the_table_is_a_pattern() {
        assert_eq!(reaching().len(), REACHING.len());
    }
}
