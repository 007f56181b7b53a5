//! The files that a linker script loads when it stands for a library: `INPUT`, `GROUP` and `AS_NEEDED`.
//!
//! Pure. Parses enough of the language to find names; lld's `ScriptParser` has the rules. Callers resolve the names.

/// Commands with names of files in parentheses.
const LOADING: [&str; 3] = ["INPUT", "GROUP", "AS_NEEDED"];

/// A command of a script, as far as files matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptCommand {
    /// A file to load; `-lNAME` stays so.
    Input(String),
    /// Another script.
    Include(String),
    /// Anything else.
    Other,
}

/// The files that a script names, in order; `-lNAME` stays so.
pub fn inputs(text: &str) -> Vec<String> {
    let input = |command| match command {
        ScriptCommand::Input(name) => Some(name),
        ScriptCommand::Include(_) | ScriptCommand::Other => None,
    };
    commands(text).into_iter().filter_map(input).collect()
}

/// Returns a script's commands, in order.
pub fn commands(text: &str) -> Vec<ScriptCommand> {
    let mut found = Vec::new();
    // For each open parenthesis, whether names in it are files.
    let mut loading: Vec<bool> = Vec::new();
    let mut last = String::new();
    let mut tokens = tokens(text).into_iter();
    while let Some(token) = tokens.next() {
        let is_loading = LOADING.contains(&token.as_str());
        match token.as_str() {
            "(" => loading.push(LOADING.contains(&last.as_str())),
            ")" => {
                loading.pop();
            }
            "," => {}
            ";" if loading.is_empty() => {}
            _ if is_loading && loading.last().is_none_or(|loading| *loading) => {}
            "INCLUDE" if loading.is_empty() => {
                let name =
                    tokens.next().map(|name| ScriptCommand::Include(name.trim_matches('"').to_owned()));
                found.push(name.unwrap_or(ScriptCommand::Other));
            }
            name if loading.last() == Some(&true) => {
                found.push(ScriptCommand::Input(name.trim_matches('"').to_owned()));
            }
            _ => found.push(ScriptCommand::Other),
        }
        last = token;
    }
    found
}

/// Words, parentheses and commas; comments are left out, quotes kept.
fn tokens(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if c == '#' {
            rest.find('\n').unwrap_or(rest.len())
        } else if c.is_whitespace() {
            c.len_utf8()
        } else {
            let length = match c {
                '(' | ')' | ',' | ';' | '{' | '}' => 1,
                '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
                _ => {
                    let ends = |c: char| c.is_whitespace() || "(),;{}\"".contains(c);
                    rest.find(ends).unwrap_or(rest.len())
                }
            };
            found.push(rest[..length].to_owned());
            length
        };
        rest = &rest[length..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_scripts_end() {
        for text in ["GROUP(", "\"x", "/* x", "INPUT)))(a", "", "(\"", "é(ü"] {
            let _ = inputs(text);
        }
        assert_eq!(inputs("GROUP(a"), ["a"]);
    }
}
