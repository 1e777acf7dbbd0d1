//! What holds for any text.

use proptest::prelude::*;
use toolpost_command::{Analysis, CommandPattern, SimpleCommand, analyze, suggestions};

/// Pieces of shell that mean something in some place.
const PIECES: &str = "a¦b x¦rm -rf y¦git push¦ls¦echo ¦'¦\"¦\\¦$¦$(¦)¦(¦{ ¦ }¦`¦${x¦:-¦}¦$((¦))¦[[ ¦ ]]¦;¦&&¦||¦|¦&¦\n¦#¦ ¦\t¦\
    <<EOF\n¦\nEOF\n¦<<< ¦> f¦>& ¦< ¦<(¦x=¦X=1 ¦=(¦[¦]¦*¦?¦~¦if ¦; then ¦; fi¦for i in ¦; do ¦; done¦while ¦case a in ¦\
    a) ¦;; ¦ esac¦f() ¦function ¦time ¦! ¦coproc ¦env ¦sudo ¦sh -c ¦eval ¦xargs ¦timeout 5 ¦find . -exec ¦npx ¦git rebase -x ¦PAGER=¦fd -x ¦cd x¦$'\\x41'¦\r¦\0¦é¦😀";
/// Words of commands, and of rules about them.
const WORDS: &str = "git¦push¦rm¦-rf¦-r¦--force¦x¦'a b'¦X=1¦./y¦/bin/rm¦--¦-C¦$x¦'*'¦cargo¦test¦+x";
const RULES: &str = "git¦push¦rm¦-rf¦-r¦--force¦x¦*¦{git,rm}¦X=*¦./*¦-*¦--¦-C¦cargo¦test¦*x*";

fn one_of(list: &'static str) -> impl Strategy<Value = String> {
    proptest::sample::select(list.split('¦').collect::<Vec<_>>()).prop_map(str::to_owned)
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![6 => one_of(PIECES), 1 => "[ -~]{0,6}"]
}

fn soup() -> impl Strategy<Value = String> {
    proptest::collection::vec(piece(), 0..24).prop_map(|pieces| pieces.concat())
}

/// A command that is often understood, so that properties of commands have something to say.
fn simple() -> impl Strategy<Value = String> {
    let word = prop_oneof![one_of(WORDS), "[a-z./=-]{1,4}"];
    proptest::collection::vec(word, 1..6).prop_map(|words| words.join(" "))
}

/// A script that parses: commands in the constructs that hold them.
fn script() -> impl Strategy<Value = String> {
    simple().prop_recursive(3, 12, 3, |inner| {
        let forms = "{ @; }¦(@)¦if @; then @; fi¦while @; do @; done¦for i in x; do @; done¦case x in y) @;; esac¦echo $(@)¦\
            x=$(@)¦echo \"$(@)\"¦@ | @¦@ && @¦@ || @¦@; @¦@ & @¦@ > f¦@ 2>&1¦f() { @; }¦timeout 5 @¦sudo @¦npx @¦ssh h '@'¦\
            cat <(@)¦@ # c¦cat <<EOF\n$(@)\nEOF\n¦coproc @¦[[ -n $(@) ]]¦X=1 @";
        (one_of(forms), proptest::collection::vec(inner, 3)).prop_map(|(form, parts)| {
            let mut parts = parts.into_iter();
            form.split('@').enumerate().fold(String::new(), |script, (at, text)| match at {
                0 => text.to_owned(),
                _ => script + &parts.next().unwrap_or_default() + text,
            })
        })
    })
}

fn rule() -> impl Strategy<Value = String> {
    let word = prop_oneof![one_of(RULES), "[a-z./*-]{1,4}"];
    proptest::collection::vec(word, 1..6).prop_map(|words| words.join(" "))
}

fn words(analysis: &Analysis) -> Vec<&[String]> {
    analysis
        .commands
        .iter()
        .map(|command| command.words.as_slice())
        .collect()
}

/// A command that stands in the words of another makes that one hide something.
fn is_hidden_by_another(analysis: &Analysis, command: &SimpleCommand) -> bool {
    let outer = command.spelled_in.map(|by| &analysis.commands[by.command]);
    outer.is_some_and(|outer| outer.hides.is_some() || is_hidden_by_another(analysis, outer))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_has_an_answer(text in prop_oneof![soup(), "\\PC{0,60}", proptest::collection::vec(any::<char>(), 0..40).prop_map(String::from_iter)]) {
        let analysis = analyze(&text);
        prop_assert!(analysis.commands.len() <= 512 && analysis.opaque.len() <= 1024);
        for command in &analysis.commands {
            // What is opaque is said to be, so that nobody takes the list of commands for the whole.
            prop_assert!(!command.opaque || analysis.is_opaque() || is_hidden_by_another(&analysis, command));
            prop_assert!(command.spelled_in.is_none_or(|by| by.command < analysis.commands.len()));
            prop_assert!(command.opaque || !command.words.is_empty());
            prop_assert!(!command.text.chars().any(char::is_control));
        }
        prop_assert!(!(analysis.is_opaque() && analysis.only_reads()));
    }

    #[test]
    fn joining_loses_no_command(first in script(), second in script(), join in 0..4_usize) {
        let one = analyze(&first);
        let other = analyze(&second);
        prop_assume!(!one.commands.is_empty() && !other.commands.is_empty());
        // A here-document's last line and a comment end with a line only.
        let needs_line = first.contains("<<") || first.contains('#');
        let join = if needs_line { "\n" } else { [";", " && ", " | ", "\n"][join] };
        let both = analyze(&format!("{first}{join}{second}"));
        // `a | ! b` is nothing that a shell takes, and a here-document before `((` is read in two ways. Of a text
        // that is not read at all nothing may be said but that.
        if both.commands.is_empty() {
            prop_assert!(both.is_opaque());
            return Ok(());
        }
        let found = words(&both);
        for command in words(&one).into_iter().chain(words(&other)) {
            prop_assert!(found.contains(&command), "{command:?} is not in {found:?}");
        }
        prop_assert!(both.is_opaque() || !(one.is_opaque() || other.is_opaque()));
    }

    #[test]
    fn plain_lists_are_never_opaque(
        parts in proptest::collection::vec("p[a-z]x( [a-z0-9./-]{1,5}){0,3}", 1..6),
        join in 0..5_usize,
    ) {
        let analysis = analyze(&parts.join([";", "&&", "|", "\n", " & "][join]));
        let expected: Vec<Vec<&str>> = parts.iter().map(|part| part.split(' ').collect()).collect();
        prop_assert_eq!(words(&analysis), expected);
        prop_assert!(!analysis.is_opaque(), "{:?}", analysis.opaque);
    }

    #[test]
    fn quoting_gives_back_the_word(text in "[ -~\\n]{0,30}") {
        let analysis = analyze(&format!("echo '{}'", text.replace('\'', "'\\''")));
        prop_assert_eq!(words(&analysis), vec![vec!["echo".to_owned(), text]]);
        prop_assert!(!analysis.is_opaque());
    }

    #[test]
    fn what_is_covered_is_caught(rule in rule(), text in prop_oneof![simple(), soup()]) {
        if let Ok(pattern) = rule.parse::<CommandPattern>() {
            for command in &analyze(&text).commands {
                prop_assert!(!pattern.covers(command) || pattern.catches(command), "{pattern} {command:?}");
                prop_assert!(!pattern.covers(command) || !command.opaque);
            }
        }
    }

    #[test]
    fn what_is_offered_covers(text in prop_oneof![simple(), soup(), "[a-z]{1,3} '[ -&(-~]{0,12}' \"[a-z *{},;]{0,9}\""]) {
        for command in &analyze(&text).commands {
            let offered = suggestions(command);
            prop_assert!(offered.len() <= 3);
            for pattern in offered {
                prop_assert!(pattern.covers(command) && pattern.catches(command), "{pattern} {command:?}");
                prop_assert_eq!(pattern.to_string().parse::<CommandPattern>(), Ok(pattern));
            }
        }
    }

    #[test]
    fn patterns_are_read_as_they_are_written(rule in prop_oneof![rule(), soup()]) {
        if let Ok(pattern) = rule.parse::<CommandPattern>() {
            prop_assert_eq!(pattern.to_string().parse::<CommandPattern>(), Ok(pattern));
        }
    }
}
