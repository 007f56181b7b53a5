//! What lld leaves out, against lld 22 itself: an option that is warned about changes nothing, and with the
//! remedy the objects are those of lld's own LTO.

use distlto_planner::dtlto::dropped::{self, Remedy};

use super::lld::Program;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn warnings(words: &[String]) -> Vec<dropped::Dropped> {
    let words: Vec<_> = words.iter().map(|word| word.clone().into_bytes()).collect();
    dropped::of_words(&words).expect("a link line")
}

#[test]
fn the_remedies_give_the_objects_of_lld() {
    let program = Program::compile(&["-g"]);
    for line in [
        "-no-pie",
        "-mllvm -relocation-model=static -pie",
        "-pie -mllvm -inline-threshold=1",
        "-pie -plugin-opt=-inline-threshold=1",
        "-pie -mllvm -code-model=large",
        "-pie -mllvm -debugger-tune=sce",
        "-pie --lto-basic-block-sections=all",
        "-pie --lto-basic-block-sections=all --lto-unique-basic-block-section-names",
        "-pie --lto-basic-block-address-map",
        "-pie --lto-cs-profile-generate",
        "-pie -plugin-opt=cs-profile-generate -plugin-opt=cs-profile-path=d/default_%m.profraw",
        "-pie --lto-cs-profile-generate --lto-cs-profile-file=x.profraw",
        "-no-pie --lto-O3 -mllvm -inline-threshold=1 --lto-basic-block-address-map",
    ] {
        let options = words(line);
        let own = program.own_objects(&options);
        assert_ne!(program.distributed_objects(&options), own, "{line}: nothing is left out");
        let found = warnings(&options);
        assert!(
            found.iter().all(|dropped| matches!(dropped.remedy, Remedy::CompilerArguments(_))),
            "{found:?}"
        );
        let remedies: Vec<_> = found.iter().flat_map(|dropped| dropped.remedy.lld_words()).collect();
        let mended = [options, remedies].concat();
        assert_eq!(program.distributed_objects(&mended), own, "{line}: {found:?}");
        assert_eq!(warnings(&mended), [], "{line}");
    }
}

#[test]
fn a_processor_is_told_for_functions_without_one() {
    // Clang names one for each function; bitcode of other compilers may not.
    let program = Program::without_attributes();
    let options = words("-pie -plugin-opt=mcpu=haswell");
    let found = warnings(&options);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_ne!(program.distributed_objects(&options), program.own_objects(&options));
    let mended = [options.clone(), found[0].remedy.lld_words()].concat();
    assert_eq!(program.distributed_objects(&mended), program.own_objects(&options));
}

#[test]
fn what_lld_passes_on_is_not_warned_about() {
    let program = Program::compile(&["-g"]);
    for line in [
        "-pie",
        "-shared -Bsymbolic",
        "-pie --lto-O3",
        "-pie --lto-O3 --lto-CGO3",
        "-pie --no-lto-pgo-warn-mismatch",
    ] {
        let options = words(line);
        assert_eq!(warnings(&options), [], "{line}");
        assert_eq!(program.distributed_objects(&options), program.own_objects(&options), "{line}");
    }
}

#[test]
fn what_cannot_be_mended_differs() {
    let program = Program::compile(&["-g", "-gsplit-dwarf"]);
    for line in ["-pie --lto-O0", "-pie --lto-CGO0", "-pie -plugin-opt=dwo_dir=dwo"] {
        let options = words(line);
        let found = warnings(&options);
        assert!(
            matches!(&found[..], [dropped::Dropped { remedy: Remedy::Advice(_), .. }]),
            "{line}: {found:?}"
        );
        assert_ne!(program.distributed_objects(&options), program.own_objects(&options), "{line}");
    }
}
