//! The file of link flags that Buck2 writes for all backends of a link: one argument a line.
//!
//! Reads the file and the response files it names. Does not interpret the flags.

use camino::Utf8Path;
use distlto_planner::clang::driver::find;
use distlto_planner::response::{self, ResponseError};
use distlto_planner::words::Word;
use distlto_prepare::io_error::IoError;

/// Reads a file of flags. Response files that the flags name are expanded.
pub fn read(path: &Utf8Path) -> Result<Vec<Word>, ResponseError> {
    let text = std::fs::read(path).map_err(IoError::on("read the link flags", path))?;
    response::expand(words(&text))
}

/// Splits a file's content into arguments.
///
/// Buck2 writes an argument as it is, or quoted if the build file had it so. A line with blanks outside of quotes is a
/// path with blanks, or several options that were written as one flag. It is the latter if each of its words is an
/// option or the value of one. A line that begins with a program is a command.
fn words(text: &[u8]) -> Vec<Word> {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    lines.flat_map(in_line).collect()
}

fn in_line(line: &[u8]) -> Vec<Word> {
    let words = response::tokenize(line);
    let is_option = |word: &Word| word.starts_with(b"-");
    let command = words.first().is_some_and(|first| !is_option(first));
    let takes_next = |word: &Word| find(word).is_some_and(|known| known.takes_next);
    let several =
        words.windows(2).all(|pair| is_option(&pair[1]) || takes_next(&pair[0]) || !is_option(&pair[0]));
    if command || several { words } else { vec![line.to_vec()] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        words(text.as_bytes()).into_iter().map(|word| String::from_utf8(word).expect("UTF-8 in")).collect()
    }

    #[test]
    fn a_line_is_an_argument() {
        assert_eq!(split("clang++\n-flto=thin\n\n-Wl,-z,now"), ["clang++", "-flto=thin", "-Wl,-z,now"]);
        assert_eq!(split("-O2\r\n-pie\r\n"), ["-O2", "-pie"]);
        let path = "-fprofile-sample-use=/a b/c.prof";
        assert_eq!(split(path), [path]);
        assert_eq!(split("\"-fprofile-sample-use=/a b/c.prof\""), [path]);
        assert_eq!(split("-fprofile-sample-use=\"/a b/c.prof\""), [path]);
        assert_eq!(split("'-Wl,-mllvm,-x=a b'\n\"-pie\""), ["-Wl,-mllvm,-x=a b", "-pie"]);
    }

    #[test]
    fn options_in_one_line_are_several() {
        assert_eq!(split("-O3 -pie"), ["-O3", "-pie"]);
        assert_eq!(split("-Xlinker -mllvm -Xlinker -x"), ["-Xlinker", "-mllvm", "-Xlinker", "-x"]);
        assert_eq!(split("-z now -O1"), ["-z", "now", "-O1"]);
        assert_eq!(
            split("ld.lld -pie a.o b.o -o program"),
            ["ld.lld", "-pie", "a.o", "b.o", "-o", "program"]
        );
        assert_eq!(split(""), Vec::<String>::new());
    }
}
