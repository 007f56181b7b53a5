//! Words of an action's command for the files of other build programs: quoted for a shell, and without the words that
//! such a file expresses otherwise. Pure.

use crate::graph::Action;
use crate::words::shell_quote;

/// Returns the number of words of a link's command on the command line: its program and, where that runs the linker,
/// its options up to the linker that follows `--`. The flavour of a generic lld, which it looks for before it opens
/// response files, stands there too, and an empty word with all before it, because LLVM's response files drop empty
/// words.
pub fn words_outside_response_file(words: &[&str]) -> usize {
    let linker = words.iter().position(|word| *word == "--").map_or(1, |dashes| dashes + 2);
    let flavour = if words.get(linker).is_some_and(|word| *word == "-flavor") { 2 } else { 0 };
    let empty = words.iter().rposition(|word| word.is_empty());
    (linker + flavour).max(empty.map_or(0, |empty| empty + 1)).min(words.len())
}

/// The words of a backend compilation that are the module's own, without those that name its module, shard
/// and object, which the program that runs it takes as options.
pub fn own_flags<'a>(
    action: &'a Action,
    module: &'a str,
    shard: &'a str,
    out: &'a str,
) -> impl Iterator<Item = &'a str> {
    let mut left = action.args.as_slice();
    std::iter::from_fn(move || {
        loop {
            let (word, rest) = left.split_first()?;
            let next: Vec<&str> = rest.iter().take(2).map(String::as_str).collect();
            let named = match (word.as_str(), next.as_slice()) {
                ("-x", ["ir", input]) if *input == module => 3,
                ("-o", [output, ..]) if *output == out => 2,
                (word, _) if word == module => 1,
                (word, _) if word.strip_prefix("-o") == Some(out) => 1,
                (word, _) if word.strip_prefix("-fthinlto-index=") == Some(shard) => 1,
                (word, _) => {
                    left = rest;
                    return Some(word);
                }
            };
            left = left.get(named..)?;
        }
    })
}

/// A command for the shell.
pub fn command_line(words: &[&str]) -> String {
    let Some((first, rest)) = words.split_first() else { return String::new() };
    let mut line = program(first);
    for word in rest {
        line.push(' ');
        line.push_str(&shell_quote(word));
    }
    line
}

/// A command's first word for the shell, which would take `a=b` for an assignment.
pub fn program(word: &str) -> String {
    let quoted = shell_quote(word);
    if word.contains('=') && quoted == word { format!("'{word}'") } else { quoted }
}
