//! `authorities` of all trusted layers, by name. An entry of a higher origin replaces another, so the policy comes
//! last. An untrusted file defines none.

use crate::{AuthorityConfig, AuthorityReachConfig, LayerTrust, LocatedValue};

use super::LayerMerge;

impl LayerMerge<'_> {
    pub(super) fn authorities(
        &mut self,
        authorities: &mut Vec<AuthorityConfig>,
        written: &[LocatedValue<AuthorityConfig>],
    ) {
        for LocatedValue {
            value: authority,
            at,
        } in written
        {
            match self.layer.standing {
                LayerTrust::Trusted => {
                    let whole = self.with_whole_files(authority);
                    authorities.retain(|earlier| earlier.name != authority.name);
                    authorities.push(whole);
                }
                // It would receive calls, run a program of the project's choice and vote on calls.
                LayerTrust::Untrusted | LayerTrust::LastGood => {
                    self.ignored(
                        "authorities",
                        *at,
                        &format!("authorities: {}", authority.name),
                    );
                }
            }
        }
    }

    /// A word of a command that begins as a relative path is a file beside the configuration.
    fn with_whole_files(&self, authority: &AuthorityConfig) -> AuthorityConfig {
        let mut whole = authority.clone();
        match &mut whole.reach {
            AuthorityReachConfig::Endpoint { .. } => {}
            AuthorityReachConfig::Program {
                command,
                files,
                writable,
                ..
            } => {
                files.extend(self.make_files_whole(command));
                for path in writable {
                    *path = self.layer.beneath(path);
                }
            }
        }
        whole
    }
}
