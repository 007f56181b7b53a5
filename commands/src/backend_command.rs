//! The words of one backend compilation: compiler, target, flags, module, shard, output.
//!
//! Pure. The order is that of the commands ld.lld 22 hands to a DTLTO distributor, so that equal compilations have
//! equal words.

use camino::Utf8Path;
use distlto_planner::clang::driver::find;

/// The parts of a backend compilation.
#[derive(Debug, Clone, Copy)]
pub struct BackendParts<'a> {
    /// The compiler, and programs before it.
    pub program: &'a [String],
    /// Arguments that the user gives verbatim; those come last among the flags, so they win.
    pub given: &'a [String],
    /// The target triple; empty for the compiler's default.
    pub triple: &'a str,
    /// The flags that the link line implies.
    pub flags: &'a [String],
    /// The module, spelled as its module id.
    pub module: &'a Utf8Path,
    /// Its index shard.
    pub shard: &'a Utf8Path,
    /// The native object.
    pub output: &'a Utf8Path,
}

/// The whole command.
pub fn words(backend: BackendParts<'_>) -> Vec<String> {
    let mut words = backend.program.to_vec();
    words.push("-c".to_owned());
    // Without a target, clang compiles for its own default one, with only a warning.
    if !backend.triple.is_empty() && target_of(backend.given).is_none() {
        words.push(format!("--target={}", backend.triple));
    }
    words.extend_from_slice(backend.flags);
    words.extend(backend.given.iter().filter(|word| *word != "-c").cloned());
    // By any other suffix clang takes the module for something to link.
    if !matches!(backend.module.extension(), Some("o" | "bc")) {
        words.extend(["-x", "ir"].map(str::to_owned));
    }
    words.push(backend.module.to_string());
    words.push(format!("-fthinlto-index={}", backend.shard));
    words.extend(["-o".to_owned(), backend.output.to_string()]);
    words
}

/// The target that arguments name, the last one of several.
pub fn target_of(arguments: &[String]) -> Option<&str> {
    (0..arguments.len()).rev().find_map(|at| {
        let known = find(arguments[at].as_bytes()).filter(|known| known.option.canonical == "target")?;
        match known.takes_next {
            true => arguments.get(at + 1).map(String::as_str),
            false => std::str::from_utf8(known.value).ok(),
        }
    })
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
        let made = words(BackendParts {
            program: &strings(&lld[..1]),
            given: &[],
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
        let made = words(BackendParts {
            program: &strings(&["ccache", "cc"]),
            given: &strings(&["-c", "--target=arm", "-O3"]),
            triple: "x86_64",
            flags: &strings(&["-O2"]),
            module: "a.rcgu".into(),
            shard: "s".into(),
            output: "o".into(),
        });
        assert_eq!(made.join(" "), "ccache cc -c -O2 --target=arm -O3 -x ir a.rcgu -fthinlto-index=s -o o");
    }

    #[test]
    fn the_last_target_counts() {
        let target = |line: &str| {
            let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
            target_of(&words).map(str::to_owned)
        };
        assert_eq!(target("--target=a -g -target b -c"), Some("b".to_owned()));
        assert_eq!(target("-target a --target=b"), Some("b".to_owned()));
        assert_eq!(target("-g --target"), None);
    }
}
