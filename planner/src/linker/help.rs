//! The options of a linker as its `--help` lists them: names, and the form of their values.
//!
//! A line of the help begins with two spaces, the option with its dashes, and its values: `-o <path>`, `-l<name>`,
//! `--icf=[none,all]`, `-platform_version <platform> <min_version> <sdk_version>` (`OptTable::printHelp` in
//! `llvm/lib/Option/OptTable.cpp`). COFF's linker has slashes for dashes: `/out:<value>`. Pure.

use serde::{Deserialize, Serialize};

use crate::link_line::{Argument, LinkLineError, LinkOption, utf8};
use crate::words::{Word, lossy};

/// The options of one linker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Help {
    options: Vec<HelpOption>,
}

/// One line of a help.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct HelpOption {
    /// Without dashes.
    name: String,
    value: Form,
}

/// How an option takes its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Form {
    None,
    /// In so many words that follow.
    Words(usize),
    /// After `=`.
    Equals,
    /// In the rest of the word.
    Joined,
}

impl Help {
    /// Reads the text.
    pub fn read(text: &str) -> Self {
        Self { options: text.lines().filter_map(listed).collect() }
    }

    /// Whether an option is listed, by its name without dashes, in capitals or not.
    pub fn has(&self, name: &str) -> bool {
        self.options.iter().any(|option| option.name.eq_ignore_ascii_case(name))
    }

    fn named<'h>(&'h self, name: &'h str) -> impl Iterator<Item = &'h HelpOption> {
        self.options.iter().filter(move |option| option.name == name)
    }

    /// Reads the words of a link line after the linker's own name.
    pub fn arguments(&self, words: &[Word]) -> Result<Vec<Argument>, LinkLineError> {
        let mut arguments = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if !word.starts_with(b"-") || word == b"-" {
                arguments.push(Argument::Input(word.clone()));
                continue;
            }
            let word = utf8(word.clone())?;
            let name = word.trim_start_matches('-');
            let (name, value, count) = self.shape(name);
            let (name, mut value) = (name.to_owned(), value.map(str::to_owned));
            let mut all = vec![word];
            for _ in 0..count {
                let Some(next) = words.next() else {
                    return Err(LinkLineError::ValueMissing { option: lossy(all[0].as_bytes()) });
                };
                let next = utf8(next.clone())?;
                value.get_or_insert_with(|| next.clone());
                all.push(next);
            }
            arguments.push(match value {
                Some(library) if name == "l" => Argument::Library(library),
                value => Argument::Option(LinkOption { name, value, words: all }),
            });
        }
        Ok(arguments)
    }

    /// Returns the name of an option, its value in the same word, and how many words follow. An option that is not
    /// listed is a flag, or has a value after `=`.
    fn shape<'w>(&self, word: &'w str) -> (&'w str, Option<&'w str>, usize) {
        let forms: Vec<Form> = self.named(word).map(|option| option.value).collect();
        let following = |form: &Form| match form {
            Form::Words(count) => Some(*count),
            _ => None,
        };
        if let Some(count) = forms.iter().find_map(following) {
            return (word, None, count);
        }
        match forms[..] {
            // As `-mllvm X`, where the help has `--mllvm=<value>` alone.
            [Form::Equals] => return (word, None, 1),
            [] => {}
            _ => return (word, None, 0),
        }
        if let Some((name, value)) = word.split_once('=') {
            return (name, Some(value), 0);
        }
        let begins = |option: &&HelpOption| match option.value {
            Form::Joined => word.starts_with(&option.name),
            // One letter may have its value in the same word.
            Form::Words(1) => option.name.len() == 1 && word.starts_with(&option.name),
            _ => false,
        };
        match self.options.iter().filter(begins).max_by_key(|option| option.name.len()) {
            Some(option) => (&word[..option.name.len()], Some(&word[option.name.len()..]), 0),
            None => (word, None, 0),
        }
    }
}

fn listed(line: &str) -> Option<HelpOption> {
    const DASHES: [char; 2] = ['-', '/'];
    let text = line.strip_prefix("  ").filter(|text| text.starts_with(DASHES))?.trim_start_matches(DASHES);
    let end = text.find([' ', '=', ':', '<', '[']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let value = match rest.as_bytes() {
        [b'=', ..] => Form::Equals,
        [b':' | b'<' | b'[', ..] => Form::Joined,
        // The description follows after the last value.
        _ => match rest.split(' ').skip(1).take_while(|word| word.starts_with('<')).count() {
            0 => Form::None,
            count => Form::Words(count),
        },
    };
    (!name.is_empty()).then(|| HelpOption { name: name.to_owned(), value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_value_and_other_bytes_are_errors() {
        let help = Help::read("  -o <path>  Path\n  -L <dir>  Dir\n");
        assert!(matches!(help.arguments(&[b"-o".to_vec()]), Err(LinkLineError::ValueMissing { .. })));
        assert!(matches!(help.arguments(&[b"-L\xff".to_vec()]), Err(LinkLineError::NotUtf8 { .. })));
        let read = help.arguments(&[b"\xff.o".to_vec()]).expect("an input");
        assert_eq!(read, [Argument::Input(b"\xff.o".to_vec())]);
    }
}
