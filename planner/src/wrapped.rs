//! `--wrap=f` where `__real_f` is called and nothing that is loaded defines `f`.
//!
//! The linker makes `f` as strong as the reference to `__real_f` is: before it compiles modules, in one step, and of their
//! objects, in two. So one of them may link what the other refuses or loads more for. What refers to a name and what
//! defines it is the linker's own account, `--trace-symbol`.
//!
//! Pure.

use crate::link_line::{Argument, options};

/// What the linker says of itself, as of what wraps a symbol.
const LINKER: &str = "<internal>";
/// Between a file and a symbol, in a line on what refers to it.
const REFERS: &str = ": reference to ";
/// In a line on a definition that counts.
const DEFINES: [&str; 3] = [": definition of ", ": shared definition of ", ": common definition of "];
/// In a line on one that does not.
const LAZY: &str = ": lazy definition of ";

/// The names that a line wraps.
pub fn names(arguments: &[Argument]) -> Vec<String> {
    let wraps = options(arguments).filter(|option| option.name == "wrap");
    wraps.filter_map(|option| option.value.clone()).collect()
}

/// The symbols that a linker is to trace for them.
pub fn traced(names: &[String]) -> Vec<String> {
    names.iter().flat_map(|name| [name.clone(), real(name)]).collect()
}

/// Whether a line of the linker's is on one of these symbols.
pub fn is_on(line: &str, symbols: &[String]) -> bool {
    let verbs = [REFERS, LAZY].into_iter().chain(DEFINES);
    let mut all = verbs.flat_map(|verb| symbols.iter().map(move |symbol| (verb, symbol)));
    all.any(|(verb, symbol)| file(line, verb, symbol).is_some())
}

/// The first wrapped name of which the real function is called and nowhere defined.
pub fn undefined<'a>(names: &'a [String], said: &[String]) -> Option<&'a str> {
    let files =
        |verb, symbol: &str| said.iter().filter_map(|line| file(line, verb, symbol)).collect::<Vec<_>>();
    let lacks = |name: &&String| {
        files(REFERS, &real(name)).into_iter().any(|file| file != LINKER)
            && DEFINES.iter().all(|verb| files(verb, name).is_empty())
    };
    names.iter().find(lacks).map(String::as_str)
}

/// The file that a line says this of.
fn file<'a>(line: &'a str, verb: &str, symbol: &str) -> Option<&'a str> {
    line.strip_suffix(symbol)?.strip_suffix(verb)
}

fn real(name: &str) -> String {
    format!("__real_{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> Option<String> {
        let said: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
        undefined(&["g".to_owned(), "f".to_owned()], &said).map(str::to_owned)
    }

    #[test]
    fn a_lazy_definition_is_none() {
        let called = ["a.o", "a.o: reference to __real_f", "d.o: lazy definition of f"];
        assert_eq!(of(&called).as_deref(), Some("f"));
        assert_eq!(of(&[&called[..], &["d.o", "d.o: definition of f"]].concat()), None);
        assert_eq!(of(&[&called[..], &["d.so: shared definition of f"]].concat()), None);
        assert_eq!(of(&[&called[..], &["<internal>: definition of f"]].concat()), None);
    }

    #[test]
    fn the_linker_itself_calls_nothing() {
        assert_eq!(of(&["<internal>: reference to f", "<internal>: reference to __real_f"]), None);
    }

    #[test]
    fn names_that_end_alike_are_others() {
        assert_eq!(of(&["a.o: reference to x__real_f"]), None);
        let both = ["a.o: reference to __real_f", "d.o: definition of of f"];
        assert_eq!(of(&both).as_deref(), Some("f"));
    }
}
