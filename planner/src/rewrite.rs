//! The two link lines of a distributed link, the thin link's and the final link's; and the one of a link whose backends
//! the linker hands to a distributor.
//!
//! Pure. Each is the user's line with its inputs in another form and without the options that belong to another
//! step. Members of unpacked archives stand between `--start-lib` and `--end-lib`, which keeps archive semantics.
//! In the final link a native object takes the place of each loaded module.

use std::collections::HashSet;

use crate::elf::options::step;
use crate::inputs::{Inputs, Slot, UnpackedArchive};
use crate::link_line::LinkOption;
use crate::options::Step;

/// What a thin link said about the modules.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Ids of the modules that have a shard, in link order.
    pub indexed: Vec<String>,
    /// Every file that the linker loaded, as `--trace` spells it.
    pub loaded: HashSet<String>,
}

/// What becomes of one bitcode input in the final link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// A backend compiles it: its object takes its place.
    Object,
    /// Its code is in the object of regular LTO.
    Merged,
    /// No symbol needs it; it stays where it is, and what a backend's own calls need can still be loaded.
    Unloaded,
}

/// What becomes of every bitcode input.
#[derive(Debug, Default)]
pub struct Fates {
    indexed: HashSet<String>,
    loaded: HashSet<String>,
}

impl Fates {
    /// Reads them off a thin link's outcome.
    pub fn of(outcome: &Outcome) -> Self {
        Self { indexed: outcome.indexed.iter().cloned().collect(), loaded: outcome.loaded.clone() }
    }

    /// The fate of a bitcode input; `lazy` if only a symbol can load it.
    pub fn of_module(&self, id: &str, lazy: bool) -> Fate {
        if self.indexed.contains(id) {
            Fate::Object
        } else if lazy && !self.loaded.contains(id) {
            Fate::Unloaded
        } else {
            Fate::Merged
        }
    }

    /// Whether the linker loaded a file.
    pub fn is_loaded(&self, path: &str) -> bool {
        self.loaded.contains(path)
    }
}

/// A link line in the making, which opens and closes `--start-lib` as laziness changes.
#[derive(Default)]
struct Line {
    words: Vec<String>,
    in_lib: bool,
}

impl Line {
    fn input(&mut self, words: &[String], lazy: bool) {
        self.set_lazy(lazy);
        self.words.extend_from_slice(words);
    }

    fn path(&mut self, path: &str, lazy: bool) {
        self.set_lazy(lazy);
        self.words.push(path.to_owned());
    }

    fn set_lazy(&mut self, lazy: bool) {
        if lazy != self.in_lib {
            self.words.push(if lazy { "--start-lib" } else { "--end-lib" }.to_owned());
            self.in_lib = lazy;
        }
    }

    fn finish(mut self) -> Vec<String> {
        self.set_lazy(false);
        self.words
    }
}

/// The thin link's words: the inputs, and the options that decide what is loaded and imported.
pub fn thin_words(inputs: &Inputs) -> Vec<String> {
    bitcode_words(inputs, |option| step(option) != Step::Every)
}

/// The words of a link that runs its backends itself or through a distributor: the user's line without its output, and
/// with members in the places of their archives, so that a module id names a file.
pub fn whole_words(inputs: &Inputs) -> Vec<String> {
    bitcode_words(inputs, |option| option.name == "output")
}

/// The line with its modules, without some of its options.
fn bitcode_words(inputs: &Inputs, left_out: impl Fn(&LinkOption) -> bool) -> Vec<String> {
    let mut line = Line::default();
    for slot in &inputs.slots {
        match slot {
            Slot::Option(option) if is_grouping(option) || left_out(option) => {}
            Slot::Option(option) => line.words.extend_from_slice(&option.words),
            Slot::Other { words, lazy } => line.input(words, *lazy),
            Slot::Module { input, lazy } => line.path(&input.id, *lazy),
            Slot::Archive { index, lazy } => {
                for member in &inputs.archives[*index].members {
                    line.path(&member.path, *lazy);
                }
            }
        }
    }
    line.finish()
}

/// The final link's words. `object_of` names a module's native object; `merged` is the object of regular LTO.
pub fn final_words(
    inputs: &Inputs,
    fates: &Fates,
    object_of: impl Fn(&str) -> String,
    merged: Option<&str>,
) -> Vec<String> {
    let mut line = Line::default();
    let mut merged_at = None;
    let mut place = |line: &mut Line, id: &str, lazy: bool| match fates.of_module(id, lazy) {
        Fate::Object => {
            line.path(&object_of(id), false);
            merged_at = Some(line.words.len());
        }
        Fate::Merged => {
            line.set_lazy(false);
            merged_at = Some(line.words.len());
        }
        Fate::Unloaded => line.path(id, true),
    };
    for slot in &inputs.slots {
        match slot {
            Slot::Option(option) if is_grouping(option) || !is_for_final(option) => {}
            Slot::Option(option) => line.words.extend_from_slice(&option.words),
            Slot::Other { words, lazy } => line.input(words, *lazy),
            Slot::Module { input, lazy } => place(&mut line, &input.id, *lazy),
            Slot::Archive { index, lazy } => {
                let UnpackedArchive { members, .. } = &inputs.archives[*index];
                for member in members {
                    match member.module {
                        Some(_) => place(&mut line, &member.path, *lazy),
                        // In-process LTO has loaded a native member before it optimises the reference away.
                        None => line.path(&member.path, *lazy && !fates.is_loaded(&member.path)),
                    }
                }
            }
        }
    }
    let mut words = line.finish();
    if let Some(merged) = merged {
        // After the last module, where no group is open.
        words.insert(merged_at.unwrap_or(words.len()), merged.to_owned());
    }
    words
}

/// Groups are written anew; `--start-group` means nothing to ld.lld, and may not hold `--start-lib`.
fn is_grouping(option: &LinkOption) -> bool {
    matches!(option.name.as_str(), "start-lib" | "end-lib" | "start-group" | "end-group")
}

fn is_for_final(option: &LinkOption) -> bool {
    matches!(step(option), Step::Every | Step::Final)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::{MemberInput, ModuleInput};
    use crate::link_line::{Argument, parse};
    use crate::module::{Module, Summary};

    fn module() -> Module {
        Module {
            producer: String::new(),
            triple: String::new(),
            source_name: String::new(),
            hash: None,
            summary: Summary::ThinLto,
            unified: false,
            split_unit: false,
            instructions: None,
        }
    }

    /// `m*.o` are modules, `x*.a` unpacked archives of two modules and one native object, the rest as it stands.
    fn inputs(line: &str) -> Inputs {
        let arguments = parse(line.split(' ').map(|word| word.as_bytes().to_vec())).expect("a link line");
        let (mut inputs, mut in_lib, mut whole) = (Inputs::default(), false, false);
        for argument in arguments {
            let slot = match argument {
                Argument::Option(option) => {
                    in_lib = option.name == "start-lib" || (in_lib && option.name != "end-lib");
                    whole = option.name == "whole-archive" || (whole && option.name != "no-whole-archive");
                    Slot::Option(option)
                }
                Argument::Library(name) => Slot::Other { words: vec![format!("-l{name}")], lazy: in_lib },
                Argument::Input(word) => {
                    let name = String::from_utf8(word).expect("UTF-8");
                    if name.ends_with(".a") {
                        let member =
                            |stem: &str, module| MemberInput { path: format!("{name}/{stem}.o"), module };
                        let members =
                            vec![member("1", Some(module())), member("n", None), member("2", Some(module()))];
                        inputs.archives.push(UnpackedArchive {
                            path: name.clone(),
                            directory: name,
                            sources: Vec::new(),
                            members,
                        });
                        Slot::Archive { index: inputs.archives.len() - 1, lazy: !whole }
                    } else if name.starts_with('m') {
                        Slot::Module { input: ModuleInput { id: name, module: module() }, lazy: in_lib }
                    } else {
                        Slot::Other { words: vec![name], lazy: in_lib }
                    }
                }
            };
            inputs.slots.push(slot);
        }
        inputs
    }

    fn outcome(indexed: &[&str], loaded: &[&str]) -> Fates {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        Fates::of(&Outcome { indexed: owned(indexed), loaded: owned(loaded).into_iter().collect() })
    }

    #[test]
    fn archives_become_groups_and_groups_vanish() {
        let inputs = inputs(
            "-o out crt.o m1.o --start-group x.a -ly --end-group --start-lib m2.o n.o --end-lib -Map m.map",
        );
        assert_eq!(
            thin_words(&inputs).join(" "),
            "crt.o m1.o --start-lib x.a/1.o x.a/n.o x.a/2.o --end-lib -ly --start-lib m2.o n.o --end-lib"
        );
    }

    #[test]
    fn a_whole_link_keeps_every_option_but_the_output() {
        let inputs = inputs("-o out m1.o --start-group x.a --end-group --thinlto-jobs=3 -Map m.map -lc");
        assert_eq!(
            whole_words(&inputs).join(" "),
            "m1.o --start-lib x.a/1.o x.a/n.o x.a/2.o --thinlto-jobs=3 -Map m.map --end-lib -lc"
        );
    }

    #[test]
    fn objects_take_the_places_of_loaded_modules() {
        let inputs = inputs(
            "-o out crt.o m1.o x.a --start-lib m2.o n.o m3.o --end-lib -lc --thinlto-jobs=3 -Map m.map",
        );
        let fates = outcome(&["m1.o", "x.a/2.o", "m3.o"], &["m1.o", "x.a/2.o", "x.a/n.o", "m3.o"]);
        let words = final_words(&inputs, &fates, |id| format!("obj/{id}"), None);
        assert_eq!(
            words.join(" "),
            "crt.o obj/m1.o --start-lib x.a/1.o --end-lib x.a/n.o obj/x.a/2.o --start-lib m2.o n.o --end-lib \
             obj/m3.o -lc -Map m.map"
        );
    }

    #[test]
    fn regular_lto_code_is_linked_once_where_modules_are() {
        let inputs = inputs("m1.o mfull.o --start-lib mfull2.o mlazy.o --end-lib -lc");
        let fates = outcome(&["m1.o"], &["m1.o", "mfull.o", "mfull2.o"]);
        let words = final_words(&inputs, &fates, |id| format!("obj/{id}"), Some("lto.o"));
        assert_eq!(words.join(" "), "obj/m1.o lto.o --start-lib mlazy.o --end-lib -lc");
    }

    #[test]
    fn a_whole_archive_is_loaded_member_by_member() {
        let inputs = inputs("--whole-archive x.a --no-whole-archive m1.o");
        assert_eq!(
            thin_words(&inputs).join(" "),
            "--whole-archive x.a/1.o x.a/n.o x.a/2.o --no-whole-archive m1.o"
        );
    }
}
