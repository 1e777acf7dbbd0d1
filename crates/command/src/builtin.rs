//! Builtins that change the shell for the commands after them, or evaluate their words again.

use crate::variable;

/// The effect of a builtin on the shell, which no program could have.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum BuiltinEffect {
    Nothing,
    /// It changes to this directory if it can.
    Enters(String),
    /// It changes to an unknown directory.
    EntersUnknown,
    /// Names after it may stand for other programs.
    ChangesNames,
    /// It loads code into the shell, and names after it may stand for that code.
    LoadsCode,
    /// These words are scripts or expressions.
    Evaluates(Vec<String>),
}

/// The effect of running these words in the shell. `open`: further words follow that are not known.
pub(crate) fn effect(words: &[String], open: bool) -> BuiltinEffect {
    let Some((program, arguments)) = words.split_first() else {
        return BuiltinEffect::Nothing;
    };
    match program.as_str() {
        "cd" => change_of_directory(arguments, open),
        "pushd" | "popd" => BuiltinEffect::EntersUnknown,
        "enable" if arguments.iter().any(|word| is_cluster_with(word, 'f')) => {
            BuiltinEffect::LoadsCode
        }
        "alias" | "enable" if open || !arguments.is_empty() => BuiltinEffect::ChangesNames,
        "hash" if open || arguments.iter().any(|word| is_cluster_with(word, 'p')) => {
            BuiltinEffect::ChangesNames
        }
        "shopt" if open || arguments.iter().any(|word| word == "expand_aliases") => {
            BuiltinEffect::ChangesNames
        }
        "set" if open || changes_all_commands(arguments) => BuiltinEffect::ChangesNames,
        "let" => evaluated(
            arguments
                .iter()
                .filter(|word| !crate::word::is_plain_arithmetic(word)),
        ),
        "compgen" => evaluated(arguments.iter().filter(|word| {
            ['C', 'F', 'W']
                .iter()
                .any(|letter| is_cluster_with(word, *letter))
        })),
        "jobs" => evaluated(arguments.iter().filter(|word| is_cluster_with(word, 'x'))),
        "mapfile" | "readarray" if arguments.iter().any(|word| is_cluster_with(word, 'C')) => {
            evaluated(arguments.iter())
        }
        "declare" | "typeset" | "local"
            if arguments.iter().any(|word| has_evaluating_attribute(word)) =>
        {
            evaluated(arguments.iter())
        }
        "declare" | "typeset" | "local" | "export" | "readonly" | "read" | "mapfile"
        | "readarray" | "getopts" | "unset" | "printf" | "test" | "[" | "wait" => {
            names_variables(program, arguments, open)
        }
        _ => BuiltinEffect::Nothing,
    }
}

fn change_of_directory(arguments: &[String], open: bool) -> BuiltinEffect {
    let arguments = match arguments {
        [first, rest @ ..] if first == "--" || first == "-L" => rest,
        arguments => arguments,
    };
    match arguments {
        [target] if !open && !target.starts_with('-') && !target.is_empty() => {
            BuiltinEffect::Enters(target.clone())
        }
        _ => BuiltinEffect::EntersUnknown,
    }
}

/// `set -a` exports every variable; `set -k` accepts assignments anywhere in a command.
fn changes_all_commands(arguments: &[String]) -> bool {
    let options = arguments.iter().take_while(|word| *word != "--");
    options.into_iter().any(|word| {
        is_cluster_with(word, 'a')
            || is_cluster_with(word, 'k')
            || matches!(word.as_str(), "allexport" | "keyword")
    })
}

/// For a builtin that sets or prints the variables in its arguments. Both evaluate subscripts.
fn names_variables(program: &str, arguments: &[String], open: bool) -> BuiltinEffect {
    let has_v = arguments.iter().any(|word| word == "-v");
    let sets = match program {
        "test" | "[" | "wait" => false,
        "printf" => has_v,
        _ => true,
    };
    let texts = arguments.iter().filter(|word| {
        let is_number = sets && name(word).is_some_and(variable::is_number);
        is_number
            || has_script_in_subscript(word)
            || ((sets || has_v) && has_evaluated_subscript(word))
    });
    let effect = evaluated(texts);
    if effect != BuiltinEffect::Nothing || !sets {
        return effect;
    }
    let changes = |word: &String| name(word).is_some_and(variable::changes_the_shell);
    // A word that is not literal could be any name. `export $X` itself is opaque; this makes all commands after it
    // opaque.
    if open || arguments.iter().any(changes) {
        BuiltinEffect::ChangesNames
    } else {
        BuiltinEffect::Nothing
    }
}

/// The variable that a word names, with or without a subscript or a value.
fn name(word: &str) -> Option<&str> {
    word.split(['=', '+', '[']).next()
}

fn has_script_in_subscript(word: &str) -> bool {
    word.split_once('[')
        .is_some_and(|(_, subscript)| subscript.contains(['$', '`']))
}

/// The shell looks up names in a subscript and evaluates their values in turn.
fn has_evaluated_subscript(word: &str) -> bool {
    let subscript = |(name, rest): (&str, &str)| {
        let subscript = rest.split(']').next().unwrap_or(rest);
        variable::is_name(name)
            && !matches!(subscript, "@" | "*")
            && !crate::word::is_plain_arithmetic(subscript)
    };
    word.split_once('[').is_some_and(subscript)
}

/// The shell evaluates the values of integers and references on assignment.
fn has_evaluating_attribute(word: &str) -> bool {
    is_cluster_with(word, 'i') || is_cluster_with(word, 'n')
}

fn is_cluster_with(word: &str, letter: char) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains(letter)
}

fn evaluated<'a>(words: impl Iterator<Item = &'a String>) -> BuiltinEffect {
    let texts: Vec<String> = words.cloned().collect();
    if texts.is_empty() {
        BuiltinEffect::Nothing
    } else {
        BuiltinEffect::Evaluates(texts)
    }
}
