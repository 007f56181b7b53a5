//! A command with its outputs redirected to where they are staged.
//!
//! Knows by which options compilers name outputs, and nothing of files.

use camino::{Utf8Path, Utf8PathBuf};
use distlto_planner::clang::options::KnownWord;
use distlto_planner::clang::{cc1, driver};
use distlto_planner::options::Files;
use miette::Diagnostic;
use thiserror::Error;

use crate::output::Output;

/// A command that does not say where its outputs go.
#[derive(Debug, Error, Diagnostic)]
#[error("the command of {label} does not name its output {output} (no `-o {output}` among its words)")]
#[diagnostic(
    code(distlto::bad_input),
    help("write the action's outputs into its command exactly as in its list of outputs")
)]
pub struct UnnamedOutput {
    /// The action.
    pub label: String,
    /// The output.
    pub output: Utf8PathBuf,
}

/// The command with every staged output named where it is to be written.
///
/// An output is named by `-o OUT`, `-oOUT`, as split debug information by `-split-dwarf-output OUT`, or as optimised bitcode
/// by `-save-precodegen-ir=OUT`.
/// Only the driver's `-o` says where split debug information goes when the command is silent, and its name stands in the
/// object too; so a `.dwo` output that is not named is given to the compiler explicitly.
pub fn redirect(
    label: &str,
    words: &[impl AsRef<str>],
    outputs: &[Output<'_>],
) -> Result<Vec<String>, UnnamedOutput> {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let mut redirected: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    for &Output { name, written, .. } in outputs.iter().filter(|output| output.written != output.name) {
        let mut named = false;
        for at in 0..words.len() {
            if words[at] == name.as_str() && takes_output(&words[..at]) {
                redirected[at] = written.to_string();
                named = true;
            } else if let Some(option) = joined_with(words[at], name) {
                redirected[at] = format!("{option}{written}");
                named = true;
            }
        }
        if !named && name.extension() == Some("dwo") {
            let options = ["-split-dwarf-file", name.as_str(), "-split-dwarf-output", written.as_str()];
            let first = 1.min(words.len());
            redirected.splice(first..first, options.into_iter().flat_map(for_cc1));
            named = true;
        }
        if !named {
            return Err(UnnamedOutput { label: label.to_owned(), output: name.to_owned() });
        }
    }
    Ok(redirected)
}

/// Whether the words before an output say that it is one.
fn takes_output(before: &[&str]) -> bool {
    let last = match before {
        [.., option, "-Xclang"] | [.., option] => option,
        [] => return false,
    };
    let writes = |known: KnownWord<'_>| known.option.files == Files::Written && known.takes_next;
    [driver::find(last.as_bytes()), cc1::find(last.as_bytes())].into_iter().flatten().any(writes)
}

/// Returns the option before an output's name in the same word.
fn joined_with<'w>(word: &'w str, output: &Utf8Path) -> Option<&'w str> {
    let known = driver::find(word.as_bytes()).filter(|known| known.option.files == Files::Written)?;
    (known.value == output.as_str().as_bytes()).then(|| &word[..word.len() - known.value.len()])
}

/// A word that the driver hands to the compiler proper.
fn for_cc1(word: &str) -> [String; 2] {
    ["-Xclang".to_owned(), word.to_owned()]
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::output::Role;

    #[test]
    fn only_words_that_name_an_output_are_replaced() {
        let output = |name: &'static str, written: &'static str| {
            let (name, written) = (Utf8Path::new(name), Utf8Path::new(written));
            Output { name, role: Role::Any, written, place: PathBuf::new(), file: PathBuf::new() }
        };
        let (old, new) = ("out/a b.o", "out/tmp/a b.o");
        let outputs = [output(old, new), output("out/a b.dwo", "out/tmp/a b.dwo")];
        let words = ["cc", "-DX=out/a b.o", "out/a b.o", "-o", "out/a b.o", "-Wa,-oout/a b.o"];
        let redirected = redirect("m", &words, &outputs).unwrap();
        assert_eq!(redirected[9..], ["-DX=out/a b.o", old, "-o", new, "-Wa,-oout/a b.o"]);
        let split =
            ["-Xclang", "-split-dwarf-file", "-Xclang", "out/a b.dwo", "-Xclang", "-split-dwarf-output"];
        assert_eq!(redirected[1..7], split);
        assert_eq!(redirected[8], "out/tmp/a b.dwo");
        assert!(redirect("m", &["cc", "-o", "other.o"], &outputs).is_err());
        let in_place = [output("program", "program")];
        assert_eq!(redirect("m", &["ld", "@words"], &in_place).unwrap(), ["ld", "@words"]);
    }
}
