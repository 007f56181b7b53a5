//! The link line of a thin link, and which options are for which step.
//!
//! Pure. It is the user's line with its inputs in another form and without the options that belong to another step. Members of unpacked archives stand between `--start-lib` and `--end-lib`, which keeps archive semantics.

use crate::inputs::{LinkInputs, Slot};
use crate::link_line::LinkOption;
use crate::linker::options::step;
use crate::options::LinkStep;

/// A link line in the making, which opens and closes `--start-lib` as laziness changes.
#[derive(Default)]
pub(crate) struct LineWriter {
    pub(crate) words: Vec<String>,
    in_lib: bool,
}

impl LineWriter {
    pub(crate) fn input(&mut self, words: &[String], lazy: bool) {
        self.set_lazy(lazy);
        self.words.extend_from_slice(words);
    }

    pub(crate) fn path(&mut self, path: &str, lazy: bool) {
        self.set_lazy(lazy);
        self.words.push(path.to_owned());
    }

    fn set_lazy(&mut self, lazy: bool) {
        if lazy != self.in_lib {
            self.words.push(if lazy { "--start-lib" } else { "--end-lib" }.to_owned());
            self.in_lib = lazy;
        }
    }

    pub(crate) fn finish(mut self) -> Vec<String> {
        self.set_lazy(false);
        self.words
    }
}

/// The thin link's words: the inputs, and the options that decide what is loaded and imported.
pub fn thin_words(inputs: &LinkInputs) -> Vec<String> {
    let mut line = LineWriter::default();
    for slot in &inputs.slots {
        match slot {
            Slot::Option(option) if is_grouping(option) || step(option) != LinkStep::Every => {}
            Slot::Option(option) => line.words.extend_from_slice(&option.words),
            Slot::Other { input, lazy } => line.input(&input.words, *lazy),
            Slot::Module { input, lazy } => line.path(&input.id, *lazy),
            Slot::Archive { index, lazy } => {
                for member in &inputs.archives[*index].members {
                    line.path(&member.path, *lazy);
                }
            }
        }
    }
    let mut words = line.finish();
    words.extend(misplaced_groups(inputs));
    words
}

/// The line's groups, if they do not fit together: the linker says what is wrong with them, and needs no inputs for that.
fn misplaced_groups(inputs: &LinkInputs) -> Vec<String> {
    let groups = inputs.slots.iter().filter_map(|slot| match slot {
        Slot::Option(option) if is_grouping(option) => Some(option),
        _ => None,
    });
    let mut open = None;
    let mut words = Vec::new();
    let mut fits = true;
    for option in groups {
        words.extend_from_slice(&option.words);
        match option.name.strip_prefix("start-") {
            Some(kind) => fits &= open.replace(kind.to_owned()).is_none(),
            None => fits &= open.take().is_some_and(|kind| option.name.strip_prefix("end-") == Some(&kind)),
        }
    }
    if fits { Vec::new() } else { words }
}

/// Groups are written anew; `--start-group` means nothing to ld.lld, and may not hold `--start-lib`.
pub(crate) fn is_grouping(option: &LinkOption) -> bool {
    matches!(option.name.as_str(), "start-lib" | "end-lib" | "start-group" | "end-group")
}

/// Whether the final link has a use for an option.
pub(crate) fn is_for_final(option: &LinkOption) -> bool {
    matches!(step(option), LinkStep::Every | LinkStep::Final)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::inputs::{MemberInput, MemberOrigin, ModuleInput, NativeInput, OtherInput, UnpackedArchive};
    use crate::link_line::{Argument, parse};
    use crate::module::{Module, SummaryKind};

    fn module() -> Module {
        Module {
            producer: String::new(),
            triple: String::new(),
            source_name: String::new(),
            hash: None,
            summary: SummaryKind::ThinLto,
            unified: false,
            split_unit: false,
            instructions: None,
        }
    }

    /// `m*.o` are modules, `x*.a` unpacked archives of two modules and one native object, other `.o` and `.a` native ones.
    pub(crate) fn inputs(line: &str) -> LinkInputs {
        let arguments = parse(line.split(' ').map(|word| word.as_bytes().to_vec())).expect("a link line");
        let (mut inputs, mut in_lib, mut whole) = (LinkInputs::default(), false, false);
        for argument in arguments {
            let slot = match argument {
                Argument::Option(option) => {
                    in_lib = option.name == "start-lib" || (in_lib && option.name != "end-lib");
                    whole = option.name == "whole-archive" || (whole && option.name != "no-whole-archive");
                    Slot::Option(option)
                }
                Argument::Library(name) => other(format!("-l{name}"), in_lib),
                Argument::Input(word) => {
                    let name = String::from_utf8(word).expect("UTF-8");
                    if name.starts_with('x') {
                        let member = |stem: &str, module| MemberInput {
                            path: format!("{name}/{stem}.o"),
                            origin: MemberOrigin::Member(format!("{stem}.o")),
                            module,
                        };
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
                        other(name, in_lib)
                    }
                }
            };
            inputs.slots.push(slot);
        }
        inputs
    }

    fn other(word: String, lazy: bool) -> Slot {
        let native = match word.rsplit('.').next() {
            Some("o") => NativeInput::Object,
            Some("a") => NativeInput::Archive,
            _ => NativeInput::Else,
        };
        Slot::Other { input: OtherInput { words: vec![word.clone()], path: word, native }, lazy }
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
    fn groups_that_do_not_fit_are_left_to_the_linker() {
        let line = "m1.o --start-group x.a --start-group -( -) -ly --end-group --end-group";
        assert_eq!(
            thin_words(&inputs(line)).join(" "),
            "m1.o --start-lib x.a/1.o x.a/n.o x.a/2.o --end-lib -ly --start-group --start-group -( -) --end-group --end-group"
        );
        assert_eq!(thin_words(&inputs("m1.o --start-lib m2.o")).join(" "), "m1.o --start-lib m2.o --end-lib");
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
