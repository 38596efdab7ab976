//! A command written as one string: split into words by POSIX rules, and never given to a shell.

use super::problem::Problem;

/// What is special to a shell outside of quotes, and literal nowhere in a command that is accepted.
const SHELL_SIGNS: [char; 12] = ['|', '&', ';', '<', '>', '$', '`', '*', '?', '[', '~', '\\'];

/// What stays special to a shell inside double quotes.
const SIGNS_IN_DOUBLE_QUOTES: [char; 2] = ['$', '`'];

/// The words of a command.
///
/// # Errors
/// It is empty, a quote is not closed, or it looks as if a shell should read it; the message names the argv form.
pub fn split(text: &str) -> Result<Vec<String>, Problem> {
    let words = shell_words::split(&checked(text)?)
        .map_err(|_| Problem::new("command_not_parseable", "a quote in the command is not closed"))?;
    if words.is_empty() {
        return Err(Problem::new("command_is_empty", "the command has no words"));
    }
    Ok(words)
}

/// The command with its comment signs quoted, when no shell is needed to read it: to us a comment sign is a letter.
fn checked(text: &str) -> Result<String, Problem> {
    let mut quote = None;
    let mut is_escaped = false;
    let mut between_words = true;
    let mut safe = String::with_capacity(text.len());
    for sign in text.chars() {
        let is_shell = match quote {
            None => SHELL_SIGNS.contains(&sign),
            Some('"') => !is_escaped && SIGNS_IN_DOUBLE_QUOTES.contains(&sign),
            Some(_) => false,
        };
        if is_shell {
            return Err(needs_shell(sign));
        }
        if quote.is_none() && between_words && sign == '#' {
            safe.push_str("'#'");
        } else {
            safe.push(sign);
        }
        between_words = quote.is_none() && matches!(sign, ' ' | '\t' | '\n');
        let is_quote = !is_escaped && matches!(sign, '\'' | '"');
        is_escaped = quote == Some('"') && sign == '\\' && !is_escaped;
        if is_quote {
            quote = match quote {
                None => Some(sign),
                Some(open) if open == sign => None,
                open => open,
            };
        }
    }
    Ok(safe)
}

fn needs_shell(sign: char) -> Problem {
    Problem::new(
        "command_requires_shell",
        format!(
            "the command holds `{sign}`, which only a shell would read: quote it, or write \
             argv = [\"program\", \"argument\"]"
        ),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::split;

    fn check(text: &str, expected: Result<&[&str], &str>) {
        let found = split(text).map_err(|problem| problem.code);
        let expected = expected.map(|words| words.iter().map(|word| (*word).to_owned()).collect());
        assert_eq!(found, expected.map_err(str::to_owned), "{text:?}");
    }

    #[test]
    fn words_are_split_as_posix_says() {
        check("notify-send done", Ok(&["notify-send", "done"]));
        check("a  'b c'\td\ne", Ok(&["a", "b c", "d", "e"]));
        check(r#"say "it's" 'a|b' x"#, Ok(&["say", "it's", "a|b", "x"]));
        check(r#"say "a \"b\" c""#, Ok(&["say", "a \"b\" c"]));
        check(r#"say "\$5""#, Ok(&["say", "$5"]));
        check("curl {payload}", Ok(&["curl", "{payload}"]));
        check("a #b c", Ok(&["a", "#b", "c"]));
        check("# a", Ok(&["#", "a"]));
        check("a#b '#'", Ok(&["a#b", "#"]));
        check("'' x", Ok(&["", "x"]));
    }

    #[test]
    fn what_looks_as_if_it_needs_a_shell_is_refused() {
        let shell = Err("command_requires_shell");
        for text in [
            "a | b",
            "a && b",
            "a; b",
            "a > f",
            "a < f",
            "a &",
            "a $(b)",
            "a `b`",
            "a $HOME",
            "a $",
            "*.sh",
            "a ?",
            "a [bc]",
            "~/bin/x",
            "a\\ b",
            r#"a "$HOME""#,
            "a \"`b`\"",
            "echo 'it' $X",
            r#"a "\\$X""#,
            "'a'|b",
            "\"a\";b",
        ] {
            check(text, shell);
        }
        check("", Err("command_is_empty"));
        check(" \n\t", Err("command_is_empty"));
        check("a 'b", Err("command_not_parseable"));
        check("a \"b", Err("command_not_parseable"));
    }

    proptest! {
        /// The judge here is written apart from the code: it takes quoted parts away and looks at what is left.
        #[test]
        fn nothing_that_a_shell_would_act_on_gives_words(text in r#"[a-z '"|&;<>$`*?~\\\[#{}()\n]{0,24}"#) {
            if split(&text).is_ok() {
                let mut left = String::new();
                let mut signs = text.chars();
                while let Some(sign) = signs.next() {
                    match sign {
                        '\'' => { signs.by_ref().find(|sign| *sign == '\''); }
                        '"' => while let Some(inner) = signs.next() {
                            match inner {
                                '"' => break,
                                '\\' => { signs.next(); }
                                inner => prop_assert!(inner != '$' && inner != '`', "{text:?}"),
                            }
                        },
                        other => left.push(other),
                    }
                }
                prop_assert!(!left.contains(['|', '&', ';', '<', '>', '$', '`', '*', '?', '[', '~', '\\']), "{text:?}");
            }
        }

        /// Words that were quoted come back as they were, whatever is in them.
        #[test]
        fn quoted_words_come_back_as_they_were(words in proptest::collection::vec("[^\0']{0,12}", 1..5)) {
            let text: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            prop_assert_eq!(split(&text.join(" ")), Ok(words));
        }
    }
}
