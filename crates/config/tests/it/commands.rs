//! Tools made of a command line: what is written, and what people see when it is wrong.

use insta::assert_snapshot;
use serde_json::{Number, json};
use toolpost_config::{
    CommandConfig, CommandOutput, CommandTemplateConfig, ConfigFile, ConfigLayer, HostConfig,
    LayerTrust, ParameterConfig, ParameterKind, TemplatePieceConfig, config_example,
};
use toolpost_model::{EffectClass, RuleOrigin, SandboxProfile};

fn resolved(text: &str) -> Vec<CommandConfig> {
    let parsed = ConfigFile::parse(text, "toolpost.yaml").unwrap();
    let layer = ConfigLayer::new(parsed, LayerTrust::Trusted, RuleOrigin::Cli);
    HostConfig::resolve(&[layer]).unwrap().0.commands
}

fn one(inner: &str) -> String {
    format!("commands: {{ x: {{ description: d, {inner} }} }}")
}

fn check(text: &str, message: &str, hint: Option<&str>) {
    let errors = ConfigFile::parse(text, "t").unwrap_err();
    let error = errors.iter().next().unwrap();
    assert_eq!(
        (error.message.as_str(), error.hint.as_deref()),
        (message, hint),
        "{text}"
    );
    assert!(error.line > 0 && error.column > 0, "{errors}");
    assert_eq!(errors.iter().count(), 1, "{errors}");
}

fn template(pieces: &[TemplatePieceConfig]) -> CommandTemplateConfig {
    CommandTemplateConfig {
        condition: None,
        pieces: pieces.to_vec(),
    }
}

fn text(text: &str) -> TemplatePieceConfig {
    TemplatePieceConfig::Text(text.to_owned())
}

fn parameter(name: &str) -> TemplatePieceConfig {
    TemplatePieceConfig::Parameter(name.to_owned())
}

#[test]
fn what_is_left_out_has_its_default() {
    let expected = CommandConfig {
        name: "x".to_owned(),
        description: "d".to_owned(),
        argv: vec![template(&[text("ls")])],
        parameters: Vec::new(),
        stdin: None,
        working_directory: None,
        profile: None,
        class: EffectClass::Execute,
        environment: Vec::new(),
        output: CommandOutput::Text,
        success_codes: vec![0],
        max_output: None,
        place: "toolpost.yaml:1".to_owned(),
    };
    assert_eq!(resolved(&one("argv: [ls]")), [expected]);
}

#[test]
fn each_key_reaches_its_own_setting() {
    let commands = resolved(config_example());
    let names: Vec<&str> = commands
        .iter()
        .map(|command| command.name.as_str())
        .collect();
    assert_eq!(names, ["count_words", "deploy", "top_lines"]);
    let [count_words, deploy, top_lines] = <[CommandConfig; 3]>::try_from(commands).unwrap();
    let path = ParameterConfig {
        name: "path".to_owned(),
        description: Some("The file to count in.".to_owned()),
        kind: ParameterKind::Path,
        default: None,
        required: true,
        allow_dash: false,
    };
    assert_eq!(count_words.parameters, [path]);
    assert_eq!(count_words.argv[2], template(&[parameter("path")]));
    assert_eq!(
        (count_words.class, count_words.profile),
        (EffectClass::Read, Some(SandboxProfile::ReadOnly))
    );
    let stages = ParameterKind::Enum(vec!["test".to_owned(), "live".to_owned()]);
    assert_eq!(deploy.parameters[0].kind, stages);
    let count = ParameterConfig {
        name: "count".to_owned(),
        description: None,
        kind: ParameterKind::Integer {
            minimum: Some(1),
            maximum: Some(1000),
        },
        default: Some(json!(10)),
        required: false,
        allow_dash: false,
    };
    assert_eq!(top_lines.parameters[0], count);
    let reverse = &top_lines.parameters[1];
    assert_eq!(
        (&reverse.kind, reverse.required),
        (&ParameterKind::Boolean, false)
    );
    let condition = CommandTemplateConfig {
        condition: Some("reverse".to_owned()),
        pieces: vec![text("-r")],
    };
    assert_eq!(top_lines.argv[5], condition);
    let words = &top_lines.parameters[2];
    let pattern = ParameterKind::String {
        pattern: Some("(?s).*\\S.*".to_owned()),
    };
    assert_eq!((&words.kind, words.allow_dash), (&pattern, true));
    assert_eq!(top_lines.stdin, Some(template(&[parameter("text")])));
    assert_eq!(top_lines.working_directory.as_deref(), Some(".".as_ref()));
    assert_eq!(
        (top_lines.output, top_lines.success_codes),
        (CommandOutput::Lines, vec![0, 141])
    );
    assert_eq!(top_lines.max_output, Some(1 << 20));
    assert_eq!(top_lines.environment, ["TZ"]);
}

#[test]
fn arguments_need_no_quotes_where_yaml_reads_numbers() {
    let argv = &resolved(&one("argv: [head, -n, 5, 1.50, true]"))[0].argv;
    let shown: Vec<String> = argv.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["head", "-n", "5", "1.50", "true"]);
}

#[test]
fn parameters_are_needed_unless_they_have_a_default() {
    for (entry, required) in [
        ("{}", true),
        ("{ default: a }", false),
        ("{ required: false }", false),
        ("{ required: true }", true),
        ("{ required: false, default: a }", false),
    ] {
        let command = resolved(&one(&format!(
            "argv: [a, '{{p}}'], parameters: {{ p: {entry} }}"
        )))
        .remove(0);
        assert_eq!(command.parameters[0].required, required, "{entry}");
        assert_eq!(
            command.parameters[0].kind,
            ParameterKind::String { pattern: None }
        );
    }
    let number = "argv: [a, '{p}'], parameters: { p: { type: number, minimum: 0, maximum: 1.5, default: 0.5 } }";
    let kind = ParameterKind::Number {
        minimum: Some(0.into()),
        maximum: Number::from_f64(1.5),
    };
    assert_eq!(resolved(&one(number))[0].parameters[0].kind, kind);
}

#[test]
fn slips_are_shown_where_they_are() {
    let yaml = "\
commands:
  count_words:
    description: Counts words.
    argv: [wc, -w, \"{pth}\", \"--lines={lines}\"]
    parameters:
      path: { type: path }
      lines: { type: integer, default: few }
";
    assert_snapshot!(ConfigFile::parse(yaml, "toolpost.yaml").unwrap_err(), @r#"
    `{pth}` in `commands.count_words.argv` is not a parameter of this command
     --> toolpost.yaml:4:20
      |
    4 |     argv: [wc, -w, "{pth}", "--lines={lines}"]
      |                    ^
    hint: did you mean `{path}`?

    `commands.count_words.parameters.lines.default` is `few`; it must be a whole number
     --> toolpost.yaml:7:40
      |
    7 |       lines: { type: integer, default: few }
      |                                        ^
    "#);
}

#[test]
fn argv() {
    check(
        "commands: { x: { argv: [ls] } }",
        "the key `description` is missing",
        None,
    );
    check(
        "commands: { x: { description: d } }",
        "the key `argv` is missing",
        None,
    );
    check(&one("argv: ls -l"), "expected a list", None);
    let empty = "write the program and its arguments, such as `[wc, -w, \"{path}\"]`";
    check(&one("argv: []"), "`commands.x.argv` is empty", Some(empty));
    check(
        &one("argv: [' ']"),
        "the program in `commands.x.argv` is empty",
        None,
    );
    let relative = "write a name that is found in PATH, or a path that begins with `/`";
    for program in ["./run.sh", "bin/run"] {
        let message = format!("the program `{program}` is neither a name nor an absolute path");
        check(
            &one(&format!("argv: ['{program}']")),
            &message,
            Some(relative),
        );
    }
    let chosen = "`/bin/{p}` would let the model choose the program";
    let name_it = "write the name of the program; parameters belong in its arguments";
    check(
        &one("argv: ['/bin/{p}'], parameters: { p: {} }"),
        chosen,
        Some(name_it),
    );
    let unknown = "`{other}` in `commands.x.argv` is not a parameter of this command";
    let declare = "declare `other` under `parameters`, or write `{{` for a brace";
    check(&one("argv: [a, '{other}']"), unknown, Some(declare));
    let in_stdin = "`{other}` in `commands.x.stdin` is not a parameter of this command";
    check(&one("argv: [a], stdin: '{other}'"), in_stdin, Some(declare));
    let braces = "a parameter is written `{name}`, and a brace itself `{{` or `}}`";
    let awk =
        "`{print $1}` in `commands.x.argv`: a `{` without a parameter's name and a `}` after it";
    check(&one("argv: [awk, '{print $1}']"), awk, Some(braces));
    let part = "`x{p?y}` in `commands.x.argv`: `{name?text}` is a whole argument, and its text cannot contain braces";
    check(
        &one("argv: [x, 'x{p?y}', '{p}'], parameters: { p: {} }"),
        part,
        Some(braces),
    );
    let optional = "`{p?ls}` would let the model choose the program";
    check(
        &one("argv: ['{p?ls}'], parameters: { p: {} }"),
        optional,
        Some(name_it),
    );
    let close = "`a}` in `commands.x.argv`: a `}` without a `{` before it";
    check(&one("argv: [x, 'a}']"), close, Some(braces));
    check(
        &one("argv: [x, \"a\\0b\"]"),
        "`commands.x.argv` holds a NUL character",
        None,
    );
    let unused = "the parameter `p` of `commands.x` is never used";
    let write_it = "write `{p}` where it belongs in `argv` or `stdin`, or leave it out";
    check(
        &one("argv: [x, '{{p}}'], parameters: { p: {} }"),
        unused,
        Some(write_it),
    );
}

#[test]
fn names() {
    let hint = Some("use up to 64 letters, digits and `_`, beginning with a letter");
    for bad in ["", "a-b", "a.b", "1a", "_a", "ä", "a b", &"a".repeat(65)] {
        let errors = ConfigFile::parse(
            &format!("commands: {{ '{bad}': {{ description: d, argv: [ls] }} }}"),
            "t",
        );
        let error = errors.unwrap_err().into_iter().next().unwrap();
        assert!(
            error.message.ends_with("` is not a name for a command"),
            "{error}"
        );
        assert_eq!(error.hint.as_deref(), hint, "{error}");
    }
    let parameter = "`a-b` is not a name for a parameter";
    let errors = ConfigFile::parse(&one("argv: [x], parameters: { a-b: {} }"), "t").unwrap_err();
    assert!(
        errors.iter().any(|error| error.message == parameter),
        "{errors}"
    );
    let twice =
        "commands:\n  x: { description: d, argv: [a] }\n  x: { description: d, argv: [b] }\n";
    check(
        twice,
        "the key `x` is given twice",
        Some("keep one of the two"),
    );
    let twice = one("argv: [a, '{p}'], parameters: { p: {}, p: {} }");
    check(
        &twice,
        "the key `p` is given twice",
        Some("keep one of the two"),
    );
}

#[test]
fn values_of_commands() {
    let say = "describe its effect and when to use it; the model chooses tools by this text";
    let text = "commands: { x: { description: ' ', argv: [ls] } }";
    check(text, "`commands.x.description` is empty", Some(say));
    let size = "`commands.x.max_output` is 1; it must be between 1KiB and 1GiB";
    check(&one("argv: [ls], max_output: 1"), size, None);
    let code = "`commands.x.success_codes` is 256; it must be between 0 and 255";
    check(&one("argv: [ls], success_codes: [0, 256]"), code, None);
    let none = "`commands.x.success_codes` is empty, so no run could succeed";
    check(&one("argv: [ls], success_codes: []"), none, None);
    let variable = "`LD_PRELOAD` in `commands.x.environment` is never passed to a process: it changes the code that a \
                    program runs";
    check(
        &one("argv: [ls], environment: [LD_PRELOAD]"),
        variable,
        None,
    );
    let folder = "`commands.x.working_directory` takes no parameters";
    let hint = "give the path as an argument; a parameter of type `path` stays in the workspace";
    check(
        &one("argv: [ls], working_directory: 'a/{p}'"),
        folder,
        Some(hint),
    );
    let home = "`commands.x.working_directory` is `~`, and `~` is not expanded here";
    check(
        &one("argv: [ls], working_directory: '~'"),
        home,
        Some("write the whole path"),
    );
    check(
        &one("argv: [ls], output: xml"),
        "`xml` is not one of text, json, lines",
        None,
    );
}

#[expect(clippy::too_many_lines, reason = "a table of cases")]
#[test]
fn values_of_parameters() {
    let key = "commands.x.parameters.p";
    let quotes = Some("put it in quotes");
    for (entry, message, hint) in [
        (
            "type: text",
            "`text` is not one of string, integer, number, boolean, path, enum",
            None,
        ),
        (
            "tpe: string",
            "unknown key `tpe`",
            Some("did you mean `type`?"),
        ),
        (
            "default: 5",
            "`KEY.default` is 5; it must be a text",
            quotes,
        ),
        (
            "default: [a]",
            "expected a text, a number, or true or false, found a list",
            None,
        ),
        (
            "type: path, default: true",
            "`KEY.default` is true; it must be a text",
            quotes,
        ),
        (
            "type: path, default: ''",
            "`KEY.default` is ``; it must be a text",
            quotes,
        ),
        (
            "type: boolean, default: 1",
            "`KEY.default` is 1; it must be true or false",
            None,
        ),
        (
            "type: integer, default: 1.5",
            "`KEY.default` is 1.5; it must be a whole number",
            None,
        ),
        (
            "type: integer, default: '1'",
            "`KEY.default` is `1`; it must be a whole number",
            None,
        ),
        (
            "type: number, default: x",
            "`KEY.default` is `x`; it must be a number",
            None,
        ),
        (
            "type: integer, minimum: 2, default: 1",
            "`KEY.default` is 1; it must be a number within its range",
            None,
        ),
        (
            "type: number, maximum: 2, default: 3",
            "`KEY.default` is 3; it must be a number within its range",
            None,
        ),
        (
            "type: integer, minimum: 1.5",
            "`KEY.minimum` is 1.5, which is not a whole number",
            None,
        ),
        (
            "type: integer, minimum: 3, maximum: 2",
            "`KEY.minimum` is 3, more than its maximum, which is 2",
            None,
        ),
        (
            "type: number, minimum: x",
            "expected a number, found a text",
            None,
        ),
        (
            "type: enum, values: [text, json], default: jsn",
            "`KEY.default` is `jsn`; it must be one of its values",
            Some("did you mean `json`?"),
        ),
        (
            "type: enum",
            "`KEY` has no `values`",
            Some("list the allowed texts under `values`"),
        ),
        (
            "type: enum, values: []",
            "`KEY` has no `values`",
            Some("list the allowed texts under `values`"),
        ),
        (
            "type: enum, values: [a, a]",
            "`KEY.values` contains `a` twice",
            None,
        ),
        (
            "values: [a]",
            "`KEY.values` does not apply to the type `string`",
            Some("`values` is for the type `enum`"),
        ),
        (
            "type: path, pattern: a",
            "`KEY.pattern` does not apply to the type `path`",
            Some("`pattern` is for the type `string`"),
        ),
        (
            "minimum: 1",
            "`KEY.minimum` does not apply to the type `string`",
            Some("`minimum` is for the type `integer` or `number`"),
        ),
        (
            "pattern: '('",
            "`KEY.pattern` is not a regular expression: unclosed group",
            None,
        ),
        (
            "required: true, default: a",
            "`KEY` is required, so its default would never be used",
            Some("remove one of the two"),
        ),
    ] {
        let text = one(&format!(
            "argv: [a, '{{p}}'], parameters: {{ p: {{ {entry} }} }}"
        ));
        check(&text, &message.replace("KEY", key), hint);
    }
}
