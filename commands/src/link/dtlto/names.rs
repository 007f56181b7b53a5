//! What a module is called from link to link, whatever file lld has put it into for this one.
//!
//! lld writes members of archives, and the bitcode of FatLTO objects, into files beside its output, named by sequence and
//! process number. The name without those is the member's: `libx.a(m.o)`. Pure; the forms are those of `temporaries`.

use std::collections::HashMap;

use distlto_planner::dtlto::identifier;

use distlto_planner::dtlto::temporaries;

/// A module of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// Tells it from every other module of the link.
    pub label: String,
    /// The file name of the archive that holds it.
    pub archive: Option<String>,
    /// Whether lld has made the file.
    pub is_temporary: bool,
}

/// The names of modules, by path, that lld of this process hands over.
pub fn of<'p>(paths: impl Iterator<Item = &'p str>, process: Option<u32>) -> Vec<Name> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut names: Vec<Name> = paths.map(|path| one(path, process)).collect();
    for name in &mut names {
        let count = seen.entry(name.label.clone()).or_default();
        *count += 1;
        // Members of one name, be it in archives of one name.
        if *count > 1 {
            name.label = format!("{}#{count}", name.label);
        }
    }
    names
}

fn one(path: &str, process: Option<u32>) -> Name {
    let plain = || Name { label: path.to_owned(), archive: None, is_temporary: false };
    let file = path.rsplit('/').next().unwrap_or(path);
    let Some(stem) = process.and_then(|process| temporaries::unpacked(file, process)) else { return plain() };
    match identifier::members(stem).first() {
        Some(member) => Name {
            label: format!("{}({})", member.archive, member.member),
            archive: Some(member.archive.to_string()),
            is_temporary: true,
        },
        None => Name { label: stem.to_owned(), archive: None, is_temporary: true },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_called_alike_in_every_link() {
        let labels = |paths: &[&str]| -> Vec<String> {
            of(paths.iter().copied(), Some(30802)).into_iter().map(|name| name.label).collect()
        };
        assert_eq!(
            labels(&[
                "d/m.o",
                "out/liba.a(a.o at 84).2.7852.o",
                "out/liba.a(a.o at 900).3.7852.o",
                "out/fat.o.4.7852.o",
                "out/liba.a(a.o at 84).2.7853.o",
            ]),
            ["d/m.o", "liba.a(a.o)", "liba.a(a.o)#2", "fat.o", "out/liba.a(a.o at 84).2.7853.o"]
        );
    }
}
