//! The compiler of a backend compilation, as the words after `--` give it: one program, a program behind others, or
//! Buck2's `wrapper --cc=COMPILER`.
//!
//! Pure. The words of a wrapper are those of Buck2's `dist_lto_opt_gnu.py`; nothing else is known of wrappers.

use miette::Diagnostic;
use thiserror::Error;

/// The option of Buck2's wrapper that names the real compiler.
const REAL: &str = "--cc=";

/// Options that the wrapper handles itself.
const OF_THE_WRAPPER: &[&str] = &["--log-fbcc", "--fbcc-create-external-debug-info=", "--show-flags"];

/// A compiler with the arguments that it always gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiler {
    /// The program, and words before its first option: `clang++`, `ccache clang++`.
    pub program: Vec<String>,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// Words that name no compiler.
#[derive(Debug, Error, Diagnostic, PartialEq, Eq)]
pub enum CompilerWordsError {
    /// There is nothing to run.
    #[error("there is no compiler after `--`")]
    #[diagnostic(code(distlto::usage), help("end the command with: -- clang++ [ARGUMENTS]"))]
    Missing,
    /// `--cc=` without a program.
    #[error("{REAL} names no compiler")]
    #[diagnostic(code(distlto::usage), help("write the compiler after it: {REAL}clang++"))]
    Nameless,
    /// More than one program.
    #[error("{REAL} names two compilers, {first} and {second}")]
    #[diagnostic(code(distlto::usage), help("name one"))]
    Two {
        /// The first one.
        first: String,
        /// The second one.
        second: String,
    },
}

/// Reads the words after `--`.
///
/// A wrapper with the compiler in `--cc=` would only run it with the other words, so it is left out. So is `env` if it
/// does nothing but look the program up.
pub fn read(words: &[String]) -> Result<Compiler, CompilerWordsError> {
    let mut named = words.iter().filter_map(|word| word.strip_prefix(REAL));
    if let Some(first) = named.next() {
        if let Some(second) = named.find(|&name| name != first) {
            return Err(CompilerWordsError::Two { first: first.to_owned(), second: second.to_owned() });
        }
        if first.is_empty() {
            return Err(CompilerWordsError::Nameless);
        }
        return Ok(Compiler { program: vec![first.to_owned()], arguments: passed_on(words) });
    }
    let words = match words {
        [env, program, ..] if env.rsplit('/').next() == Some("env") && is_program(program) => &words[1..],
        words => words,
    };
    // An option is never a program; the word after one may be its value.
    let options = words.iter().position(|word| word.starts_with('-')).unwrap_or(words.len());
    let (program, arguments) = words.split_at(options);
    match program {
        [] => Err(CompilerWordsError::Missing),
        program => Ok(Compiler { program: program.to_vec(), arguments: arguments.to_vec() }),
    }
}

/// Returns the words that the wrapper passes to the compiler. Options before the wrapper's own name are those of its
/// interpreter.
fn passed_on(words: &[String]) -> Vec<String> {
    let real = words.iter().position(|word| word.starts_with(REAL)).unwrap_or(words.len());
    let wrapper = words[..real].iter().rposition(|word| !word.starts_with('-')).map_or(0, |last| last + 1);
    let consumed = |word: &String| {
        word.starts_with(REAL) || OF_THE_WRAPPER.iter().any(|option| word.starts_with(option))
    };
    words[wrapper..].iter().filter(|word| !consumed(word)).cloned().collect()
}

/// Whether `env` would run this word, and not set a variable or take an option.
fn is_program(word: &str) -> bool {
    !word.starts_with('-') && !word.contains('=')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn words_without_one_compiler_are_errors() {
        assert_eq!(read(&[]), Err(CompilerWordsError::Missing));
        assert_eq!(read(&words("-O2")), Err(CompilerWordsError::Missing));
        assert_eq!(read(&words("fbcc --cc=")), Err(CompilerWordsError::Nameless));
        assert!(matches!(read(&words("fbcc --cc=a --cc=b")), Err(CompilerWordsError::Two { .. })));
        assert!(read(&words("fbcc --cc=a --cc=a")).is_ok());
    }
}
