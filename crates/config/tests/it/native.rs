//! Folders, protected paths, the sandbox, the network and code: what is written, and what people see when it is
//! wrong.

use std::time::Duration;

use insta::assert_snapshot;
use toolpost_config::{
    CodeConfig, ConfigFile, ConfigLayer, CredentialConfig, CredentialSource, HostConfig,
    LayerTrust, ProtectConfig, RootConfig, SandboxConfig, config_example,
};
use toolpost_model::{ResourceAccess, RuleOrigin, SandboxProfile};

fn resolved(text: &str) -> HostConfig {
    let parsed = ConfigFile::parse(text, "toolpost.yaml").unwrap();
    let layer =
        ConfigLayer::new(parsed, LayerTrust::Trusted, RuleOrigin::Cli).relative_to("/etc/toolpost");
    HostConfig::resolve(&[layer]).unwrap().0
}

fn check(text: &str, place: &str, message: &str, hint: Option<&str>) {
    let errors = ConfigFile::parse(text, "t").unwrap_err();
    let error = errors.iter().next().unwrap();
    let found = (
        format!("{}:{}", error.line, error.column),
        error.message.as_str(),
        error.hint.as_deref(),
    );
    assert_eq!(found, (place.to_owned(), message, hint), "{text}");
    assert_eq!(errors.iter().count(), 1, "{errors}");
}

#[test]
fn each_key_reaches_its_own_setting() {
    let config = resolved(
        "sandbox: { profile: network, require: true, readable: [sdk, /opt/x], environment: [JAVA_HOME], \
         memory: 17MiB, processes: 2, tmp: 3MiB, file_size: 4KiB, open_files: 50, lifetime: 3h }\n\
         protect: { defaults: false, git: false, paths: ['deploy/**', '**/*.pem'] }\n\
         code: { tools: [read_file], memory: 18MiB, calls: 7, python3: false }\n",
    );
    let sandbox = SandboxConfig {
        profile: SandboxProfile::Network,
        require: true,
        readable: vec!["/etc/toolpost/sdk".into(), "/opt/x".into()],
        environment: vec!["JAVA_HOME".to_owned()],
        memory: 17 << 20,
        processes: 2,
        tmp: 3 << 20,
        file_size: 4 << 10,
        open_files: 50,
        lifetime: Duration::from_secs(3 * 3600),
    };
    assert_eq!(config.sandbox, sandbox);
    let paths = vec!["deploy/**".to_owned(), "**/*.pem".to_owned()];
    assert_eq!(
        config.protect,
        ProtectConfig {
            defaults: false,
            git: false,
            paths
        }
    );
    let tools = vec!["read_file".parse().unwrap()];
    assert_eq!(
        config.code,
        CodeConfig {
            tools,
            memory: 18 << 20,
            calls: 7,
            python3: false
        }
    );
}

#[test]
fn the_example_is_what_it_says() {
    let config = resolved(config_example());
    let roots = [
        ("/etc/toolpost/../lib", ResourceAccess::Read),
        ("/etc/toolpost/../shared", ResourceAccess::Write),
    ];
    assert_eq!(
        config.roots,
        roots.map(|(path, access)| RootConfig {
            path: path.into(),
            access
        })
    );
    assert_eq!(config.network.private, ["http://127.0.0.1:8080/"]);
    let [github, _, shop] = config.network.credentials.as_slice() else {
        panic!("{:?}", config.network.credentials);
    };
    let expected = CredentialConfig {
        name: "github".to_owned(),
        source: CredentialSource::File("/etc/toolpost/./github-token".into()),
        header: "Authorization".to_owned(),
        scheme: Some("Bearer".to_owned()),
        urls: vec!["https://api.github.com/".to_owned()],
        tools: Vec::new(),
        place: github.place.clone(),
    };
    assert_eq!(*github, expected);
    assert!(
        github.place.starts_with("toolpost.yaml:"),
        "{}",
        github.place
    );
    assert_eq!(
        shop.source,
        CredentialSource::Variable("SHOP_TOKEN".to_owned())
    );
    assert_eq!(
        (shop.header.as_str(), shop.scheme.as_deref()),
        ("X-Api-Key", None)
    );
}

#[test]
fn a_credential_is_for_urls_for_tools_or_for_both() {
    let config =
        resolved("network: { credentials: { x: { env: X, tools: [commands.deploy, 'mcp.*'] } } }");
    let found = &config.network.credentials[0];
    let tools: Vec<&str> = found.tools.iter().map(|tool| tool.as_str()).collect();
    assert_eq!(
        (tools, found.urls.len()),
        (vec!["commands.deploy", "mcp.*"], 0)
    );
    for (bad, expected) in [
        ("env: X", "neither `urls` nor `tools`"),
        (
            "env: X, tools: []",
            "`network.credentials.x.tools` is empty",
        ),
        (
            "env: X, tools: ['a b']",
            "`a b` in `network.credentials.x.tools` is not the name of a tool",
        ),
    ] {
        let error = ConfigFile::parse(
            &format!("network: {{ credentials: {{ x: {{ {bad} }} }} }}"),
            "t",
        )
        .unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn schemes_follow_headers() {
    for (written, expected) in [
        ("", ("Authorization", Some("Bearer"))),
        ("header: authorization,", ("authorization", Some("Bearer"))),
        ("header: X-Key,", ("X-Key", None)),
        ("scheme: token,", ("Authorization", Some("token"))),
        ("scheme: '',", ("Authorization", None)),
        ("header: X-Key, scheme: Key,", ("X-Key", Some("Key"))),
    ] {
        let config = resolved(&format!(
            "network: {{ credentials: {{ x: {{ env: X, {written} urls: ['https://a'] }} }} }}"
        ));
        let found = &config.network.credentials[0];
        assert_eq!(
            (found.header.as_str(), found.scheme.as_deref()),
            expected,
            "{written}"
        );
    }
}

#[test]
fn beginnings_of_urls_end_behind_the_host_at_least() {
    for (written, expected) in [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/"),
        ("https://API.example.org/v1", "https://api.example.org/v1"),
        ("HTTP://[::1]/x/", "http://[::1]/x/"),
    ] {
        assert_eq!(
            resolved(&format!("network: {{ private: ['{written}'] }}"))
                .network
                .private,
            [expected]
        );
    }
    let hint =
        "write scheme and host, with or without a path, such as `http://127.0.0.1:8080/api/`";
    for bad in [
        "",
        "127.0.0.1:8080",
        "ftp://a/",
        "http://",
        "http://*.example.org/",
        "http://a/?x",
        "http://a/#x",
        "http://a/../b",
        "http://a b/",
        "http://a/ü",
        "http://a\\b/",
    ] {
        let message = format!("`{bad}` in `network.private` is not a URL prefix");
        check(
            &format!("network: {{ private: ['{bad}'] }}"),
            "1:22",
            &message,
            Some(hint),
        );
    }
    let message = "a text with `@` in `network.private` is not a URL prefix";
    check(
        "network: { private: ['http://u:hunter2@a/'] }",
        "1:22",
        message,
        Some(hint),
    );
}

#[test]
fn roots_and_protected_paths() {
    check(
        "roots: [{ pth: x }]",
        "1:11",
        "unknown key `pth`",
        Some("did you mean `path`?"),
    );
    check(
        "roots: [{ access: read }]",
        "1:11",
        "the key `path` is missing",
        None,
    );
    let words = "`rw` is not one of read, write";
    check("roots: [{ path: x, access: rw }]", "1:28", words, None);
    let home = "`roots.path` is `~/lib`, and `~` is not expanded here";
    check(
        "roots: [{ path: ~/lib }]",
        "1:17",
        home,
        Some("write the whole path"),
    );
    check(
        "roots: [{ path: '' }]",
        "1:17",
        "`roots.path` is empty",
        None,
    );
    check(
        "protect: { paths: [' '] }",
        "1:20",
        "`protect.paths` holds an empty pattern",
        None,
    );
    let hint = Some("write a relative pattern, such as `deploy/**`, or `**/name` for any depth");
    for bad in ["/etc/**", "~/x", "../x", "a/../b", "./a"] {
        let message = format!("`{bad}` in `protect.paths` is not relative to the top of a root");
        check(
            &format!("protect: {{ paths: ['{bad}'] }}"),
            "1:20",
            &message,
            hint,
        );
    }
    let errors = ConfigFile::parse("protect: { paths: ['a[', 'ok/**'] }", "t")
        .unwrap_err()
        .to_string();
    assert!(
        errors.starts_with("`a[` in `protect.paths` is not a pattern: "),
        "{errors}"
    );
}

#[test]
fn sandbox() {
    let words = "`workspace` is not one of read-only, workspace-write, network, none";
    check(
        "sandbox: { profile: workspace }",
        "1:21",
        words,
        Some("did you mean `workspace-write`?"),
    );
    let memory = "`sandbox.memory` is 1MiB; it must be between 16MiB and 1024GiB";
    check("sandbox: { memory: 1MiB }", "1:20", memory, None);
    check(
        "sandbox: { processes: 0 }",
        "1:23",
        "`sandbox.processes` is 0; it must be between 1 and 1000000",
        None,
    );
    check(
        "sandbox: { open_files: 3 }",
        "1:24",
        "`sandbox.open_files` is 3; it must be between 16 and 1000000",
        None,
    );
    check(
        "sandbox: { tmp: 0 }",
        "1:17",
        "`sandbox.tmp` is 0; it must be between 1MiB and 1024GiB",
        None,
    );
    let size = "`sandbox.file_size` is 0; it must be between 1KiB and 1048576GiB";
    check("sandbox: { file_size: 0 }", "1:23", size, None);
    let home = "`sandbox.readable` is `~/sdk`, and `~` is not expanded here";
    check(
        "sandbox: { readable: [~/sdk] }",
        "1:23",
        home,
        Some("write the whole path"),
    );
}

#[test]
fn variables_that_no_child_gets() {
    let code = "it changes the code that a program runs";
    let secret = "by its name, it holds a secret or the path to one";
    let git = "it changes the files that git reads or the programs that it runs";
    let own = "only the host sets it";
    for (name, why) in [
        ("LD_PRELOAD", code),
        ("DYLD_INSERT_LIBRARIES", code),
        ("BASH_ENV", code),
        ("ENV", code),
        ("SHELLOPTS", code),
        ("BASH_FUNC_x", code),
        ("PYTHONPATH", code),
        ("NODE_OPTIONS", code),
        ("PERL5LIB", code),
        ("RUBYOPT", code),
        ("ld_preload", code),
        ("GIT_SSH_COMMAND", git),
        ("API_KEY", secret),
        ("MY_SECRET", secret),
        ("GITHUB_TOKEN", secret),
        ("PGPASSWORD", secret),
        ("AWS_PROFILE", secret),
        ("AZURE_TENANT", secret),
        ("GOOGLE_CLOUD_PROJECT", secret),
        ("GCP_PROJECT", secret),
        ("PATH", own),
        ("HOME", own),
        ("TOOLPOST_LOG", own),
        ("SSH_AUTH_SOCK", secret),
        ("DOCKER_HOST", secret),
        ("RUSTC_WRAPPER", code),
        ("IFS", code),
    ] {
        let message =
            format!("`{name}` in `sandbox.environment` is never passed to a process: {why}");
        check(
            &format!("sandbox: {{ environment: [{name}] }}"),
            "1:26",
            &message,
            None,
        );
    }
    let names = "JAVA_HOME, GIT_AUTHOR_NAME, GIT_COMMITTER_EMAIL, http_proxy, CI";
    ConfigFile::parse(&format!("sandbox: {{ environment: [{names}] }}"), "t").unwrap();
    let not_a_name =
        |text: &str| format!("`{text}` in `sandbox.environment` is not the name of a variable");
    check(
        "sandbox: { environment: [1A] }",
        "1:26",
        &not_a_name("1A"),
        None,
    );
    check(
        "sandbox: { environment: [A-B] }",
        "1:26",
        &not_a_name("A-B"),
        None,
    );
    let hint = "write only the name; the value comes from the host's environment";
    check(
        "sandbox: { environment: [A=b] }",
        "1:26",
        &not_a_name("A=b"),
        Some(hint),
    );
}

#[test]
fn credentials() {
    let one = |inner: &str| format!("network: {{ credentials: {{ x: {{ {inner} }} }} }}");
    let urls = "urls: ['https://a/']";
    let neither = "the credential has neither a `file` nor an `env`";
    let hint = "write it into a file that only you can read, and write its path under `file`";
    check(&one(urls), "1:30", neither, Some(hint));
    let both = "the credential has a `file` and an `env`; it can only have one";
    check(
        &one(&format!("file: a, env: A, {urls}")),
        "1:30",
        both,
        None,
    );
    let nothing = "the credential has neither `urls` nor `tools`, so it is never used";
    let name_urls = "list URL prefixes under `urls`, such as `https://api.example.org/`, or tools under `tools`";
    check(&one("env: A"), "1:30", nothing, Some(name_urls));
    let empty = "`network.credentials.x.urls` is empty, so the credential could never be sent";
    check(
        &one("env: A, urls: []"),
        "1:46",
        empty,
        Some("remove it, or add an entry"),
    );
    let home = "`network.credentials.x.file` is `~/t`, and `~` is not expanded here";
    check(
        &one(&format!("file: ~/t, {urls}")),
        "1:38",
        home,
        Some("write the whole path"),
    );
    let framing = "`network.credentials.x.header` is `Host`, which cannot carry a credential";
    let header_hint = Some("write a name such as `Authorization` or `X-Api-Key`");
    check(
        &one(&format!("env: A, header: Host, {urls}")),
        "1:48",
        framing,
        header_hint,
    );
    let header = "`network.credentials.x.header` is not the name of a header";
    check(
        &one(&format!("env: A, header: 'a: b', {urls}")),
        "1:48",
        header,
        header_hint,
    );
    let scheme = "`network.credentials.x.scheme` is not a word";
    let scheme_hint = "write one word, such as `Bearer` or `token`; never the value itself";
    check(
        &one(&format!("env: A, scheme: 'a b', {urls}")),
        "1:48",
        scheme,
        Some(scheme_hint),
    );
    let name = "`a b` is not a name for a credential";
    let name_hint = Some("use up to 64 letters, digits, `_`, `-` and `.`");
    let text = format!("network: {{ credentials: {{ 'a b': {{ env: A, {urls} }} }} }}");
    check(&text, "1:34", name, name_hint);
    check(
        "network: { max_body: 3 }",
        "1:22",
        "`network.max_body` is 3; it must be between 1KiB and 1GiB",
        None,
    );
}

#[test]
fn a_credential_in_plain_is_refused_and_not_shown() {
    let text = "network:\n  credentials:\n    github:\n      token: hunter2\n      urls: [\"https://a/\"]\n";
    assert_snapshot!(ConfigFile::parse(text, "toolpost.yaml").unwrap_err(), @r"
    `token` is refused: a credential itself must not be in the file
     --> toolpost.yaml:4:7
      |
    4 |       token: *******
      |       ^
    hint: write it into a file that only you can read, and write its path under `file`
    ");
    for text in [
        "network: { credentials: { x: hunter2 } }\n",
        "network: { credentials: [hunter2] }\n",
        "network: { credentials: { x: { value: hunter2, urls: ['https://a/'] } } }\n",
        "network:\n  credentials:\n    x:\n      vlaue: hunter2\n",
        "network:\n  credentials:\n    x:\n      env: hunter2\n      urls: ['https://a/']\n",
        "network:\n  credentials:\n    x: { env: A, scheme: \"Bearer hunter2\", urls: ['https://a/'] }\n",
        "network:\n  credentials:\n    x: { env: A, header: \"X: hunter2\", urls: ['https://a/'] }\n",
        "network:\n  credentials:\n    x: { env: A, urls: ['https://u:hunter2@a/'] }\n",
    ] {
        let error = ConfigFile::parse(text, "t.yaml").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

#[test]
fn code() {
    let hint = Some("names hold letters, digits and `_-./:`, with `*` for any characters");
    for bad in ["", "a b", "class:read"] {
        let message = format!("`{bad}` in `code.tools` is not the name of a tool");
        check(
            &format!("code: {{ tools: ['{bad}'] }}"),
            "1:17",
            &message,
            hint,
        );
    }
    check(
        "code: { memory: 1MiB }",
        "1:17",
        "`code.memory` is 1MiB; it must be between 16MiB and 64GiB",
        None,
    );
    check(
        "code: { calls: 1000001 }",
        "1:16",
        "`code.calls` is 1000001; it must be between 0 and 1000000",
        None,
    );
}
