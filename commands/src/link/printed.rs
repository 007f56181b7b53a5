//! Whether a command is asked to print something, so that it has to run though there is nothing to do.
//!
//! What a compiler warns of is not asked for: that is said when it compiles. Knows the options of clang, gcc and ld.lld.

use distlto_planner::words::Word;

/// Options of drivers and linkers.
const EXACT: [&[u8]; 9] = [b"-v", b"-V", b"-H", b"-M", b"-t", b"--verbose", b"-verbose", b"--cref", b"-cref"];
/// What such options begin with.
const BEGINNINGS: [&[u8]; 6] = [b"-print-", b"--print-", b"-trace", b"--trace", b"-ftime-report", b"-y"];
/// The end of an option whose file is standard output.
const TO_STANDARD_OUTPUT: &[u8] = b"=-";

/// Whether a word of the command asks for it, be it for the linker.
pub fn is_asked_for(command: &[Word]) -> bool {
    command.iter().any(|word| match word.strip_prefix(b"-Wl,") {
        Some(words) => words.split(|&byte| byte == b',').any(asks),
        None => asks(word),
    })
}

fn asks(word: &[u8]) -> bool {
    EXACT.contains(&word)
        || BEGINNINGS.iter().any(|beginning| word.starts_with(beginning))
        || (word.starts_with(b"-") && word.ends_with(TO_STANDARD_OUTPUT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_the_linker_count_too() {
        let asked = |line: &str| {
            let words: Vec<Word> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            is_asked_for(&words)
        };
        for line in ["cc -v a.o", "cc -Wl,-O2,-t a.o", "cc -Xlinker --print-map a.o", "ld.lld -Map=- a.o"] {
            assert!(asked(line), "{line}");
        }
        for line in ["cc -O2 a.o -o v", "cc -Wl,-Map=map a.o", "cc -Wall a.c"] {
            assert!(!asked(line), "{line}");
        }
    }
}
