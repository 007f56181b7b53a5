//! The words of one backend compilation: compiler, target, flags, module, shard, output.
//!
//! Pure. The order is that of the commands ld.lld 22 hands to a DTLTO distributor, so that equal compilations have
//! equal words.

use camino::Utf8Path;

/// The parts of a backend compilation.
#[derive(Debug, Clone, Copy)]
pub struct Backend<'a> {
    /// The compiler, and arguments that the user gives verbatim; those come last among the flags, so they win.
    pub compiler: &'a [String],
    /// The target triple; nothing is said when empty.
    pub triple: &'a str,
    /// What the link line asks for.
    pub flags: &'a [String],
    /// The module, spelled as its module id.
    pub module: &'a Utf8Path,
    /// Its index shard.
    pub shard: &'a Utf8Path,
    /// The native object.
    pub output: &'a Utf8Path,
}

/// The whole command; empty when there is no compiler.
pub fn words(backend: Backend<'_>) -> Vec<String> {
    let Some((compiler, given)) = backend.compiler.split_first() else { return Vec::new() };
    let mut words = vec![compiler.clone(), "-c".to_owned()];
    // A clang that is not told compiles for its own default target, with a mere warning.
    if !backend.triple.is_empty() && !names_target(given) {
        words.push(format!("--target={}", backend.triple));
    }
    words.extend_from_slice(backend.flags);
    words.extend(given.iter().filter(|word| *word != "-c").cloned());
    // By any other suffix clang takes the module for something to link.
    if !matches!(backend.module.extension(), Some("o" | "bc")) {
        words.extend(["-x", "ir"].map(str::to_owned));
    }
    words.push(backend.module.to_string());
    words.push(format!("-fthinlto-index={}", backend.shard));
    words.extend(["-o".to_owned(), backend.output.to_string()]);
    words
}

/// Whether arguments say what target to compile for.
pub fn names_target(arguments: &[String]) -> bool {
    arguments.iter().any(|word| word.starts_with("--target=") || word == "-target" || word == "--target")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn the_words_of_a_distributor_job() {
        // Words as lld 22 wrote them for a job of a default link.
        let lld = [
            "/usr/bin/clang-22",
            "-c",
            "--target=x86_64-pc-linux-gnu",
            "-O2",
            "-faddrsig",
            "-ffunction-sections",
            "-fdata-sections",
            "-fpic",
            "-Wno-unused-command-line-argument",
            "t1.o",
            "-fthinlto-index=t1.1.25122.native.o.thinlto.bc",
            "-o",
            "t1.1.25122.native.o",
        ];
        let made = words(Backend {
            compiler: &strings(&lld[..1]),
            triple: "x86_64-pc-linux-gnu",
            flags: &strings(&lld[3..9]),
            module: "t1.o".into(),
            shard: "t1.1.25122.native.o.thinlto.bc".into(),
            output: "t1.1.25122.native.o".into(),
        });
        assert_eq!(made, lld);
    }

    #[test]
    fn what_the_user_gives_wins_and_is_not_said_twice() {
        let made = words(Backend {
            compiler: &strings(&["cc", "-c", "--target=arm", "-O3"]),
            triple: "x86_64",
            flags: &strings(&["-O2"]),
            module: "a.rcgu".into(),
            shard: "s".into(),
            output: "o".into(),
        });
        assert_eq!(made.join(" "), "cc -c -O2 --target=arm -O3 -x ir a.rcgu -fthinlto-index=s -o o");
    }
}
