//! The command line of lld for Windows (`lld-link`), with ELF's names for the options that change code.
//!
//! An option begins with `/` or `-`, in capitals or not, and has its value after a colon. On other systems than Windows
//! a word with a slash is a path, unless it is an option that the linker's help lists (`ArgParser::parse` in
//! `lld/COFF/DriverUtils.cpp`). `createConfig` in `lld/COFF/LTO.cpp` has the effects. Pure.

use super::help::Help;
use crate::link_line::{Argument, LinkLineError, LinkOption, options, utf8};
use crate::words::{Word, lossy};

/// ELF's name of the option that names the program.
const OUTPUT: &str = "output";

/// The linker's own names of options, and ELF's.
const COUNTERPARTS: [(&str, &str); 9] = [
    ("out", OUTPUT),
    ("machine", "emulation"),
    ("lldltocache", "thinlto-cache-dir"),
    ("lldsavetemps", "save-temps"),
    ("dwodir", "plugin-opt=dwo_dir"),
    ("linkrepro", "reproduce"),
    ("linkreprofullpathrsp", "reproduce"),
    ("reproduce", "reproduce"),
    ("mllvm", "mllvm"),
];
/// Parts of `/opt:`, and ELF's names of options with the same value.
const LEVELS: [(&str, &str); 3] =
    [("lldltocgo=", "lto-CGO"), ("lldltojobs=", "thinlto-jobs="), ("lldlto=", "lto-O")];
/// Options on LTO that both linkers have by one name begin so.
const SHARED: [&str; 2] = ["lto-", "thinlto-"];

/// The name of the option that makes the linker write an archive, which it is before all others.
pub const LIBRARY: &str = "-lib";

/// Reads the words of a link line after the linker's own name.
pub fn arguments(words: &[Word], help: &Help) -> Result<Vec<Argument>, LinkLineError> {
    let mut arguments = Vec::new();
    for word in words {
        if !is_option(word, help) {
            arguments.push(Argument::Input(word.clone()));
            continue;
        }
        let word = utf8(word.clone())?;
        let (name, value) = parts(&word);
        let option = |name: String, value: Option<&str>| {
            let value = value.map(str::to_owned);
            Argument::Option(LinkOption { name, value, words: vec![word.clone()] })
        };
        let known = COUNTERPARTS.iter().find(|(own, _)| *own == name);
        match (known, &*name, value) {
            (None, "opt", Some(parts)) => {
                let level = |part: &str| {
                    let (own, name) = LEVELS.iter().find(|(own, _)| part.starts_with(own))?;
                    Some(option(format!("{name}{}", &part[own.len()..]), None))
                };
                arguments.extend(parts.to_ascii_lowercase().split(',').filter_map(level));
            }
            (None, "lldemit", Some(kind)) => {
                arguments.push(option(format!("lto-emit-{}", kind.to_ascii_lowercase()), None));
            }
            (None, "lto-pgo-warn-mismatch", Some(_)) => arguments.push(option(format!("no-{name}"), None)),
            (Some((_, "plugin-opt=dwo_dir")), _, Some(value)) => {
                arguments.push(option(format!("plugin-opt=dwo_dir={value}"), None));
            }
            (Some((_, name)), _, value) => arguments.push(option((*name).to_owned(), value)),
            (None, name, value) if SHARED.iter().any(|begin| name.starts_with(begin)) => {
                arguments.push(option(name.to_owned(), value));
            }
            // A name that ELF's table does not have.
            (None, name, value) => arguments.push(option(format!("-{name}"), value)),
        }
    }
    if !options(&arguments).any(|option| option.name == OUTPUT) {
        let value = implied_output(&arguments);
        let option = |value| {
            Argument::Option(LinkOption { name: OUTPUT.to_owned(), value: Some(value), words: vec![] })
        };
        arguments.extend(value.map(option));
    }
    Ok(arguments)
}

/// The name of a program without the option for it: that of the first input (`getOutputPath` in `lld/COFF/Driver.cpp`).
fn implied_output(arguments: &[Argument]) -> Option<String> {
    let first = arguments.iter().find_map(|argument| match argument {
        Argument::Input(path) => Some(lossy(path)),
        Argument::Option(option) if option.name == "-wholearchive" => option.value.clone(),
        _ => None,
    })?;
    let name = first.rsplit(['/', '\\']).next()?;
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let is = |name: &str| options(arguments).any(|option| option.name == name);
    let extension = if is("-dll") {
        "dll"
    } else if is("-driver") {
        "sys"
    } else {
        "exe"
    };
    Some(format!("{stem}.{extension}"))
}

fn is_option(word: &Word, help: &Help) -> bool {
    match word.first() {
        Some(b'-') => word.len() > 1,
        Some(b'/') => help.has(&parts(&lossy(word)).0),
        _ => false,
    }
}

/// Name and value.
fn parts(word: &str) -> (String, Option<&str>) {
    let text = word.trim_start_matches(['-', '/']);
    let (name, value) = text.split_once(':').map_or((text, None), |(name, value)| (name, Some(value)));
    (name.to_ascii_lowercase(), value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link_line::LinkLine;

    const HELP: &str = "OPTIONS:\n  /Brepro  Hash\n  /dll  Library\n  /out:<value>  Path\n  /opt:<value>  More\n  /debug  D\n  /debug:<value>  D\n";

    fn line(line: &str) -> LinkLine {
        let words: Vec<Word> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        let read = arguments(&words, &Help::read(HELP)).expect("a line");
        LinkLine::of(words, read)
    }

    #[test]
    fn paths_are_no_options() {
        let read = line("/OUT:p.exe /x/a.obj b.obj -libpath:/x /debug/c.obj /debug");
        assert_eq!(read.output(), "p.exe");
        let inputs = read.arguments().iter().filter(|argument| matches!(argument, Argument::Input(_)));
        let expected = ["/x/a.obj", "b.obj", "/debug/c.obj"];
        assert!(inputs.eq(&expected.map(|path| Argument::Input(path.into()))), "{:?}", read.arguments());
    }

    #[test]
    fn the_first_input_names_the_output() {
        assert_eq!(line("-x /a/b.c.obj d.obj").output(), "b.c.exe");
        assert_eq!(line("-wholearchive:b.lib d.obj /dll").output(), "b.dll");
    }

    #[test]
    fn other_bytes_do_not_make_an_option_an_input() {
        let read = |word: &[u8]| arguments(&[word.to_vec()], &Help::read(HELP));
        let error = read(b"/out:\xff.exe").expect_err("an option has to be text");
        assert_eq!(error.to_string(), "the link line's \"/out:\u{fffd}.exe\" is not UTF-8");
        let path = read(b"/x/\xff.obj").expect("a path need not be text");
        assert_eq!(path.first(), Some(&Argument::Input(b"/x/\xff.obj".to_vec())));
    }

    #[test]
    fn options_have_elfs_names() {
        let read = line(
            "/opt:ref,LLDLTO=3,lldltojobs=2 /opt:lldltocgo=1 -mllvm:-x -lldemit:LLVM -lto-pgo-warn-mismatch:no /brepro \
             -thinlto-distributor:d -dwodir:w /opt:noref",
        );
        let names: Vec<_> = options(read.arguments()).map(|option| option.name.as_str()).collect();
        let expected = [
            "lto-O3",
            "thinlto-jobs=2",
            "lto-CGO1",
            "mllvm",
            "lto-emit-llvm",
            "no-lto-pgo-warn-mismatch",
            "-brepro",
            "thinlto-distributor",
            "plugin-opt=dwo_dir=w",
        ];
        assert_eq!(names, expected);
    }
}
