//! The final link's line: what the thin link loaded, then the user's line without it, then what was not loaded.
//!
//! The linker must not resolve symbols again in another way than it did in the thin link. A module's object lacks what the
//! module did not have to define, so a lazy member met early on would be loaded though nobody needs it; and a member that
//! only optimised-away code referred to would not be loaded at all. So every loaded file comes first, none of them lazy, in
//! the order that `load_order` gives. Shared libraries and scripts follow where their options stand: beside definitions
//! their place makes no difference. What was not loaded stands last and lazily, for the calls that LTO adds; there shared
//! libraries win over members, as they do over lazy symbols in one link. Pure.

use std::collections::HashSet;

use crate::fates::{Fates, ModuleFate};
use crate::inputs::{LinkInputs, NativeInput, Slot};
use crate::rewrite::{LineWriter, is_for_final, is_grouping};

/// The final link's words, without its output. `first` are those of the loaded files, `slots` the parts of the line that
/// are among them.
pub fn final_words(
    inputs: &LinkInputs,
    fates: &Fates,
    first: &[String],
    slots: &HashSet<usize>,
) -> Vec<String> {
    let mut line = LineWriter::default();
    line.input(first, false);
    let mut unloaded = LineWriter::default();
    for (at, slot) in inputs.slots.iter().enumerate() {
        match slot {
            Slot::Option(option) if is_grouping(option) || !is_for_final(option) => {}
            Slot::Option(option) => line.words.extend_from_slice(&option.words),
            Slot::Other { .. } if slots.contains(&at) => {}
            Slot::Other { input, lazy } => match input.native {
                NativeInput::Archive => unloaded.path(&input.path, false),
                NativeInput::Object if *lazy => unloaded.path(&input.path, true),
                _ => line.input(&input.words, *lazy),
            },
            Slot::Module { input, lazy } => {
                if fates.of_module(&input.id, *lazy) == ModuleFate::Unloaded {
                    unloaded.path(&input.id, true);
                }
            }
            Slot::Archive { index, .. } => {
                let members = &inputs.archives[*index].members;
                members
                    .iter()
                    .filter(|member| !fates.is_loaded(&member.path))
                    .for_each(|member| unloaded.path(&member.path, true));
            }
        }
    }
    let mut words = line.finish();
    let unloaded = unloaded.finish();
    if !unloaded.is_empty() {
        words.extend(neutral(inputs));
        words.extend(unloaded);
    }
    words
}

/// Words after which a file is taken for what it is, and of an archive only what is needed.
fn neutral(inputs: &LinkInputs) -> Vec<String> {
    let has = |name: &str| {
        inputs.slots.iter().any(|slot| matches!(slot, Slot::Option(option) if option.name == name))
    };
    let whole = has("whole-archive").then_some("--no-whole-archive");
    let format = has("format").then_some("--format=default");
    whole.into_iter().chain(format).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fates::ThinLinkOutcome;
    use crate::rewrite::tests::inputs;

    fn fates(indexed: &[&str], loaded: &[&str]) -> Fates {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        Fates::of(&ThinLinkOutcome { indexed: owned(indexed), loaded: owned(loaded) })
    }

    #[test]
    fn what_was_loaded_comes_first_and_what_was_not_comes_last() {
        let inputs = inputs(
            "-o out n1.o --as-needed -ly m1.o x.a n.a --start-lib m2.o n2.o m3.o --end-lib --whole-archive \
             --no-whole-archive -lc --thinlto-jobs=3 -Map m.map",
        );
        let fates = fates(&["m1.o", "x.a/2.o", "m3.o"], &["n1.o", "m1.o", "x.a/2.o", "x.a/n.o", "m3.o"]);
        let first = ["n1.o", "obj/m1.o"].map(str::to_owned);
        let slots = HashSet::from([1]);
        assert_eq!(
            final_words(&inputs, &fates, &first, &slots).join(" "),
            "n1.o obj/m1.o --as-needed -ly --whole-archive --no-whole-archive -lc -Map m.map --no-whole-archive \
             --start-lib x.a/1.o --end-lib n.a --start-lib m2.o n2.o --end-lib"
        );
    }
}
