//! The objects that a linker script brings which brings nothing else.
//!
//! Such a script can be left out where its objects are named. Names are looked up as lld does (`ScriptParser::addFile`);
//! a script with a library, a name that is searched for, or any other command is left alone.

use std::fs;
use std::path::Path;

use distlto_prepare::kind::{Kind, classify_file};

use super::script::{ScriptCommand, commands};

/// How deep scripts may include scripts.
const DEEPEST: usize = 8;

/// The objects' paths as lld spells them, in order; `None` if the script is more than that.
pub fn objects(script: &Path) -> Option<Vec<String>> {
    let mut found = Vec::new();
    read(script, DEEPEST, &mut found)?;
    Some(found)
}

fn read(script: &Path, depth: usize, found: &mut Vec<String>) -> Option<()> {
    let text = fs::read_to_string(script).ok().filter(|_| depth > 0)?;
    for command in commands(&text) {
        match command {
            ScriptCommand::Input(name) => found.push(object(script, &name)?),
            ScriptCommand::Include(name) => read(Path::new(&name), depth - 1, found)?,
            ScriptCommand::Other => return None,
        }
    }
    Some(())
}

/// An object that a script names.
fn object(script: &Path, name: &str) -> Option<String> {
    if name.starts_with(['=', '-', '$']) {
        return None;
    }
    let beside =
        script.parent().filter(|parent| !parent.as_os_str().is_empty()).map(|parent| parent.join(name));
    let path = beside.filter(|path| path.exists()).unwrap_or_else(|| name.into());
    let is_object = matches!(classify_file(&path), Ok(Kind::Native(_)));
    path.into_os_string().into_string().ok().filter(|_| is_object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_with_anything_else_is_left_alone() {
        let place = tempfile::tempdir().expect("a directory");
        let path = |name: &str| place.path().join(name);
        // The header of a relocatable object for x86-64 without sections.
        let mut header = b"\x7fELF\x02\x01\x01".to_vec();
        header.resize(64, 0);
        for (at, value) in [(16, 1), (18, 62), (20, 1), (52, 64)] {
            header[at] = value;
        }
        fs::write(path("a.o"), header).expect("written");
        let of = |text: &str| {
            fs::write(path("x.ld"), text).expect("written");
            objects(&path("x.ld"))
        };
        let a = path("a.o").to_str().expect("UTF-8").to_owned();
        assert_eq!(of("/* two */ INPUT(a.o, \"a.o\") ;"), Some(vec![a.clone(), a.clone()]));
        fs::write(path("y.ld"), "GROUP(a.o AS_NEEDED(a.o))").expect("written");
        assert_eq!(of(&format!("INCLUDE {}", path("y.ld").display())), Some(vec![a.clone(), a]));
        for other in ["INPUT(a.o -lx)", "INPUT(b.o)", "INPUT(a.o) ENTRY(x)", "x = 1;", "INCLUDE"] {
            assert_eq!(of(other), None, "{other}");
        }
        assert_eq!(of(&format!("INCLUDE {}", path("x.ld").display())), None);
    }
}
