//! Every key once, with the direction in which it is stricter. The permissions of trusted and untrusted files both
//! follow from that, so a new key cannot be forgotten for one of them.

mod amplifier;
mod authorities;
mod hooks;
mod mcp;
mod native;
mod retention;
mod tools;

pub(crate) use native::power;

use toolpost_model::{Behavior, EffectClass, PermissionMode, Rule, RuleOrigin, Selector};

use crate::{
    A2aConfig, A2aSection, A2eConfig, A2eSection, ApprovalsConfig, ApprovalsSection, ConfigLayer,
    ConfigNotice, DiscoveryConfig, DiscoverySection, FilePosition, HostConfig, HttpConfig,
    HttpSection, LayerTrust, LimitsConfig, LimitsSection, LocatedValue, TokenConfig,
};

/// Lays a file over the settings so far.
pub(crate) struct LayerMerge<'a> {
    pub(crate) layer: &'a ConfigLayer,
    /// The mode that results from the trusted files.
    pub(crate) trusted_mode: PermissionMode,
    pub(crate) notices: &'a mut Vec<ConfigNotice>,
}

impl LayerMerge<'_> {
    pub(crate) fn apply(mut self, config: &mut HostConfig) {
        let layer = self.layer;
        let file = layer.parsed.file();
        let checked = layer.parsed.checked();
        // `never-ask` alone never asks an operator, so no mode is stricter than it in every respect.
        let stricter = |now: &PermissionMode, new: &PermissionMode| {
            *now != PermissionMode::NeverAsk && now.stricter(*new) == *new
        };
        self.put("mode", &mut config.mode, file.mode, stricter);
        // A later layer cannot undo it.
        config.forbid_bypass |= file.forbid_bypass.is_some_and(|forbid| forbid.value);
        config.notes.extend(layer.note.clone());
        self.rules(&mut config.rules, &checked.rules);
        let workspace = self.given("workspace", layer.path(&file.workspace));
        self.put("workspace", &mut config.workspace, workspace, never);
        let data_dir = self.given("data_dir", layer.path(&file.data_dir));
        self.put("data_dir", &mut config.data_dir, data_dir, never);
        self.native(config);
        self.hooks(&mut config.hooks, &checked.hooks);
        self.authorities(&mut config.authorities, &checked.authorities);
        self.put(
            "http.listen",
            &mut config.http.listen,
            checked.listen,
            never,
        );
        self.http(&mut config.http, &file.http);
        self.tokens(&mut config.tokens, &checked.tokens);
        self.approvals(&mut config.approvals, &file.approvals);
        self.limits(&mut config.limits, &file.limits);
        self.retention(&mut config.retention, &file.retention);
        self.discovery(&mut config.discovery, &file.discovery);
        self.a2e(&mut config.a2e, &file.a2e);
        self.a2a(&mut config.a2a, &file.a2a);
        self.put(
            "mcp.approval_wait",
            &mut config.mcp.approval_wait,
            file.mcp.approval_wait,
            lower,
        );
        self.amplifier(&mut config.amplifier, config.sandbox.profile);
        self.tools(config);
        self.sources(config);
    }

    /// A key that only a file on the command line can set, since it decides where the other files are found.
    fn given<T>(&mut self, key: &str, written: Option<LocatedValue<T>>) -> Option<LocatedValue<T>> {
        let written = written?;
        if self.layer.standing == LayerTrust::Trusted && self.layer.origin != RuleOrigin::Cli {
            let place = self.layer.parsed.source().place(written.at);
            let message =
                format!("`{key}` is ignored: it is valid only in a file given by `--config`");
            self.notices.push(ConfigNotice {
                key: key.to_owned(),
                place,
                message,
            });
            return None;
        }
        Some(written)
    }

    /// Sets a value if the file may; an untrusted file may if `restricts(now, new)`.
    fn put<T: PartialEq>(
        &mut self,
        key: &str,
        target: &mut T,
        written: Option<LocatedValue<impl Into<T>>>,
        restricts: impl FnOnce(&T, &T) -> bool,
    ) {
        let Some(LocatedValue { value, at }) = written else {
            return;
        };
        let new = value.into();
        let allowed = match self.layer.standing {
            LayerTrust::Trusted => true,
            LayerTrust::Untrusted | LayerTrust::LastGood => restricts(target, &new),
        };
        if allowed {
            *target = new;
        } else if *target != new {
            self.ignored(key, at, key);
        }
    }

    fn ignored(&mut self, key: &str, at: FilePosition, what: &str) {
        match self.layer.standing {
            LayerTrust::Trusted | LayerTrust::Untrusted => {}
            // The layer's note reports that its other settings are ignored.
            LayerTrust::LastGood => return,
        }
        let why =
            "this file is not trusted and can only restrict; run `toolpost trust` to trust it";
        let place = self.layer.parsed.source().place(at);
        self.notices.push(ConfigNotice {
            key: key.to_owned(),
            place,
            message: format!("`{what}` is ignored: {why}"),
        });
    }

    fn rules(&mut self, rules: &mut Vec<Rule>, written: &[LocatedValue<Rule>]) {
        for LocatedValue { value: rule, at } in written {
            let origin = self.layer.origin;
            match (self.layer.standing, &rule.delegate) {
                // The vote of an authority may allow calls that the mode would ask about.
                (LayerTrust::Untrusted, Some(_)) => self.ignored("rules", *at, &rule.to_string()),
                // Its authority may be defined in the part that cannot be read, so the calls stay denied meanwhile.
                (LayerTrust::LastGood, Some(_)) => {
                    rules.push(Rule {
                        origin,
                        delegate: None,
                        ..rule.clone()
                    });
                }
                (LayerTrust::Untrusted | LayerTrust::LastGood, None) if !self.restricts(rule) => {
                    self.ignored("rules", *at, &rule.to_string());
                }
                (LayerTrust::Trusted | LayerTrust::Untrusted | LayerTrust::LastGood, _) => {
                    rules.push(Rule {
                        origin,
                        ..rule.clone()
                    });
                }
            }
        }
    }

    /// Whether a rule can only make a decision stricter.
    fn restricts(&self, rule: &Rule) -> bool {
        match rule.effect {
            Behavior::Deny => true,
            Behavior::Allow => false,
            // A mode applies only when no rule matches, and `plan` denies all calls but reads. An `ask` rule of an
            // untrusted file would turn these denials into questions, so under `plan` it counts only if it matches
            // reads alone. In the other modes a question is never looser than the mode's own decision.
            Behavior::Ask => {
                let concerned = |class: &EffectClass| match rule.selector {
                    Selector::Class(only) => only == *class,
                    Selector::Tool { .. }
                    | Selector::Reads(_)
                    | Selector::Writes(_)
                    | Selector::Reaches(_) => true,
                };
                match self.trusted_mode {
                    PermissionMode::Plan => EffectClass::ALL
                        .into_iter()
                        .filter(concerned)
                        .all(|class| class == EffectClass::Read),
                    // This mode turns questions into denials.
                    PermissionMode::NeverAsk => true,
                    PermissionMode::Default
                    | PermissionMode::Edits
                    | PermissionMode::Sandboxed
                    | PermissionMode::Bypass => true,
                }
            }
        }
    }

    fn http(&mut self, http: &mut HttpConfig, file: &HttpSection) {
        let list = |list: &Option<LocatedValue<Vec<LocatedValue<String>>>>| {
            let texts = |list: &[LocatedValue<String>]| {
                list.iter()
                    .map(|text| text.value.clone())
                    .collect::<Vec<_>>()
            };
            list.as_ref().map(|list| LocatedValue {
                value: texts(&list.value),
                at: list.at,
            })
        };
        self.put(
            "http.allowed_hosts",
            &mut http.allowed_hosts,
            list(&file.allowed_hosts),
            never,
        );
        self.put(
            "http.allowed_origins",
            &mut http.allowed_origins,
            list(&file.allowed_origins),
            never,
        );
        self.put(
            "http.body_limit",
            &mut http.body_limit,
            file.body_limit,
            never,
        );
        self.put("http.patience", &mut http.patience, file.patience, lower);
    }

    /// A later file's token replaces an earlier one of the same name.
    fn tokens(&mut self, tokens: &mut Vec<TokenConfig>, written: &[LocatedValue<TokenConfig>]) {
        for LocatedValue { value: token, at } in written {
            match self.layer.standing {
                LayerTrust::Trusted => {
                    tokens.retain(|earlier| earlier.name != token.name);
                    tokens.push(token.clone());
                }
                LayerTrust::Untrusted | LayerTrust::LastGood => {
                    self.ignored("tokens", *at, &format!("tokens: {}", token.name));
                }
            }
        }
    }

    fn approvals(&mut self, approvals: &mut ApprovalsConfig, file: &ApprovalsSection) {
        self.put(
            "approvals.timeout",
            &mut approvals.timeout,
            file.timeout,
            lower,
        );
        self.put(
            "approvals.grant_for",
            &mut approvals.grant_for,
            file.grant_for,
            lower,
        );
        self.put(
            "approvals.waiting",
            &mut approvals.waiting,
            file.waiting,
            lower,
        );
        // The place for prompts is the operator's choice.
        self.put(
            "approvals.prompt",
            &mut approvals.prompt,
            file.prompt,
            never,
        );
    }

    fn limits(&mut self, limits: &mut LimitsConfig, file: &LimitsSection) {
        self.put(
            "limits.concurrency",
            &mut limits.concurrency,
            file.concurrency,
            lower,
        );
        self.put(
            "limits.session_concurrency",
            &mut limits.session_concurrency,
            file.session_concurrency,
            lower,
        );
        self.put("limits.queue", &mut limits.queue, file.queue, lower);
        // A smaller share for others is a larger one for the author of the file.
        self.put("limits.share", &mut limits.shares.share, file.share, never);
        let reserve = &mut limits.shares.operator_reserve;
        self.put(
            "limits.operator_reserve",
            reserve,
            file.operator_reserve,
            never,
        );
        self.put("limits.streams", &mut limits.streams, file.streams, lower);
        self.put(
            "limits.processes",
            &mut limits.processes,
            file.processes,
            lower,
        );
        self.put(
            "limits.deadline",
            &mut limits.deadline,
            file.deadline,
            lower,
        );
        self.put(
            "limits.deadline_ceiling",
            &mut limits.deadline_ceiling,
            file.deadline_ceiling,
            lower,
        );
        self.put(
            "limits.inline_chars",
            &mut limits.inline_chars,
            file.inline_chars,
            lower,
        );
        self.put(
            "limits.sessions",
            &mut limits.sessions,
            file.sessions,
            lower,
        );
        self.put(
            "limits.session_idle",
            &mut limits.session_idle,
            file.session_idle,
            lower,
        );
        // Less space for the journal is not stricter: an agent could shrink the record of its own calls.
        self.put("limits.journal", &mut limits.journal, file.journal, never);
        // Nor is less space for kept results, which belong to the record.
        self.put(
            "limits.artifacts",
            &mut limits.artifacts,
            file.artifacts,
            never,
        );
        self.put(
            "limits.artifact",
            &mut limits.artifact,
            file.artifact,
            never,
        );
        self.put(
            "limits.argument_bytes",
            &mut limits.argument_bytes,
            file.argument_bytes,
            lower,
        );
    }

    fn discovery(&mut self, discovery: &mut DiscoveryConfig, file: &DiscoverySection) {
        self.put(
            "discovery.require_shown",
            &mut discovery.require_shown,
            file.require_shown,
            |_, new| *new,
        );
    }

    fn a2e(&mut self, a2e: &mut A2eConfig, file: &A2eSection) {
        self.put(
            "a2e.host_id",
            &mut a2e.host_id,
            some(file.host_id.clone()),
            never,
        );
        let negotiated = file.require_negotiated;
        self.put(
            "a2e.require_negotiated",
            &mut a2e.require_negotiated,
            negotiated,
            |_, new| *new,
        );
        // The host would write a file of the project's choice, or drop lines of the operator's file.
        for LocatedValue { value, at } in &file.import_paths {
            let path = LocatedValue {
                value: self.layer.beneath(value),
                at: *at,
            };
            self.grant(
                "a2e.import_paths",
                &mut a2e.import_paths,
                path,
                value.display(),
            );
        }
        let audit = &mut a2e.audit;
        let written = &file.audit;
        self.put(
            "a2e.audit.path",
            &mut audit.path,
            self.layer.path(&written.path),
            never,
        );
        self.put(
            "a2e.audit.max_bytes",
            &mut audit.max_bytes,
            written.max_bytes,
            never,
        );
        self.put(
            "a2e.audit.backup_count",
            &mut audit.backup_count,
            written.backup_count,
            never,
        );
    }

    fn a2a(&mut self, a2a: &mut A2aConfig, file: &A2aSection) {
        self.put("a2a.enabled", &mut a2a.enabled, file.enabled, |_, new| {
            !*new
        });
        self.put("a2a.events", &mut a2a.events, file.events, never);
        self.put("a2a.url", &mut a2a.url, some(file.url.clone()), never);
        self.put("a2a.name", &mut a2a.name, file.name.clone(), never);
        self.put(
            "a2a.description",
            &mut a2a.description,
            file.description.clone(),
            never,
        );
    }
}

/// For keys that only a trusted file may set.
fn never<T>(_: &T, _: &T) -> bool {
    false
}

/// A lower limit is a stricter one.
fn lower<T: PartialOrd>(now: &T, new: &T) -> bool {
    new < now
}

fn some<T>(written: Option<LocatedValue<T>>) -> Option<LocatedValue<Option<T>>> {
    written.map(|LocatedValue { value, at }| LocatedValue {
        value: Some(value),
        at,
    })
}
