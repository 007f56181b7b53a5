//! Lines on a compiler's standard error that report a failure, even if its exit status does not.
//!
//! Established by running clang 14, 15, 16, 19 and 22 on missing, truncated, corrupted and exchanged shards and
//! imports: it prints one of [`BACKEND`], leaves an empty object and exits 0 (LLVM issue 75441).

/// How the lines begin that clang prints without the word `error:` when a ThinLTO backend fails.
pub const BACKEND: &[&str] = &[
    "Error loading index file",
    "Error running ThinLTO backend",
    "Error setting up ThinLTO save-temps",
    "Error loading imported file",
    "LLVM ERROR:",
    "PLEASE submit a bug report to",
];

/// The words that follow a diagnostic's place, the most severe first.
const SEVERITIES: &[&str] = &["fatal error: ", "error: ", "warning: ", "note: ", "remark: "];
/// How many of [`SEVERITIES`] are errors.
const ERRORS: usize = 2;

/// Returns whether a line (without its end) reports a failed compilation.
///
/// A diagnostic is `error: TEXT` or `PLACE: error: TEXT`. The first severity in the line decides, so that a warning
/// that quotes the word is a warning. Source lines that clang quotes below a diagnostic begin with a blank, or hold a
/// quotation mark before the word.
pub fn is_error(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    if line.starts_with([' ', '\t']) {
        return false;
    }
    if BACKEND.iter().any(|text| line.starts_with(text)) {
        return true;
    }
    let first = SEVERITIES
        .iter()
        .enumerate()
        .filter_map(|(rank, word)| place_of(&line, word).map(|at| (at, rank)))
        .min_by_key(|&(at, rank)| (at, rank));
    first.is_some_and(|(at, rank)| rank < ERRORS && !line[..at].contains('"'))
}

/// Where a severity stands: at the line's beginning, or after a place that ends with `: `.
fn place_of(line: &str, word: &str) -> Option<usize> {
    if line.starts_with(word) {
        return Some(0);
    }
    let after_place = format!(": {word}");
    line.find(&after_place)
}

#[cfg(test)]
mod tests {
    use super::is_error;

    #[test]
    fn texts_of_failed_compilations() {
        // Each as printed by clang 14 to 22; those marked 0 came with exit code 0.
        for line in [
            "Error loading index file 'nope.bc': No such file or directory", // 0
            "Error loading index file 'a.o.thinlto.bc': Malformed block",    // 0
            "Error running ThinLTO backend: Error loading imported file b.o : ", // 0
            "Error running ThinLTO backend: Error loading imported file b.o : Invalid bitcode signature", // 0
            "error: file too small to contain bitcode header",
            "fatal error: error in backend: Broken module found, compilation aborted!",
            "clang-22: error: no such file or directory: 'a.o'",
            "error: unable to open output file '/dev/full': 'No space left on device'",
            "<inline asm>:1:2: error: invalid instruction mnemonic 'nosuch'",
            "a dir/x.c:3:4: error: call to 'f' declared with 'error' attribute: warning: no",
            "LLVM ERROR: IO failure on output stream: No space left on device",
        ] {
            assert!(is_error(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn texts_of_good_compilations() {
        for line in [
            "",
            "warning: overriding the module target triple with i686-unknown-linux-gnu [-Woverride-module]",
            "warning: linking module 'a.o': Linking two modules of different target triples: 'b.o' is 'x'",
            "clang: warning: -Wl,foo: 'linker' input unused [-Wunused-command-line-argument]",
            "remark: <unknown>:0:0: 'b1' inlined into 'main' with (cost=-35, threshold=337) [-Rpass=inline]",
            "x.c:3:4: warning: call to 'f' declared with 'warning' attribute: error: do not [-Wattribute-warning]",
            "2 warnings generated.",
            "    3 | error: return x;",
            "  puts(\"x: error: y\");",
            "puts(\"x: error: y\");",
            "x.c:3:4: note: error: quoted",
        ] {
            assert!(!is_error(line.as_bytes()), "{line}");
        }
    }
}
