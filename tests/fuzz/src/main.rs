//! Every parser of what distlto is given, for libFuzzer: `cargo xtask fuzz` builds and runs it, and names the parser in
//! `DISTLTO_FUZZ`. What any of them makes of any bytes is a value or an error, in bounded time and memory.

#![no_main]

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use camino::Utf8Path;
use distlto_commands::inspect;
use distlto_commands::link_description::LinkDescription;
use distlto_planner::dependency_file::DependencyFile;
use distlto_planner::emit::dot;
use distlto_planner::emit::ninja::{self, NinjaOptions};
use distlto_planner::graph::{self, ActionGraph};
use distlto_planner::resolution::Resolutions;
use distlto_planner::slices::SliceRequest;
use distlto_planner::{buck2, contents, driver, dtlto, module, processor, references, response, shard};
use distlto_prepare::unpack::{LinkerType, Unpack, unpack};
use distlto_prepare::{json, kind};
use distlto_record::inspect::Inspection;
use distlto_record::page::TimeTrace;
use distlto_record::run::RunRecord;
use libfuzzer_sys::fuzz_target;

/// What reads bytes.
type Parser = fn(&[u8]);

/// The parsers, as they are named on the command line.
const PARSERS: [(&str, Parser); 10] = [
    ("archive", archive),
    ("buck2", of_buck2),
    ("graph", of_graph),
    ("job-file", job_file),
    ("module", of_module),
    ("native", native),
    ("record", record),
    ("shard", of_shard),
    ("text", text),
    ("thing", thing),
];

fuzz_target!(|bytes: &[u8]| parser()(bytes));

fn parser() -> Parser {
    static PARSER: OnceLock<Parser> = OnceLock::new();
    *PARSER.get_or_init(|| {
        let asked = std::env::var("DISTLTO_FUZZ").expect("DISTLTO_FUZZ names a parser");
        PARSERS.iter().find(|(name, _)| *name == asked).expect("DISTLTO_FUZZ names a known parser").1
    })
}

/// Bytes as a file, for what reads files.
fn as_file(bytes: &[u8], read: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let file = folder.path().join("file");
    fs::write(&file, bytes).expect("room for temporary files");
    read(&file);
}

fn archive(bytes: &[u8]) {
    as_file(bytes, |archive| {
        let directory = archive.with_file_name("members");
        let _ = unpack(&Unpack {
            linker: LinkerType::Gnu,
            archive,
            directory: &directory,
            architecture: None,
            fat_lto: true,
        });
    });
}

fn of_buck2(bytes: &[u8]) {
    let path = Path::new("meta");
    let _ = buck2::meta::read(path, bytes);
    let _ = buck2::darwin::read(path, bytes, true);
    let _ = buck2::trace::Trace::read(bytes, &|_| true);
}

fn of_graph(bytes: &[u8]) {
    if let Ok(graph) = graph::json::read(bytes) {
        emit(&graph);
    }
}

/// In every form that can say it.
fn emit(graph: &ActionGraph) {
    let _ = dot::write(graph, &mut Vec::new());
    let opt_program = "distlto-opt".to_owned();
    let _ = ninja::render(graph, &NinjaOptions { opt_program, build_directory: None, manifest: None });
}

fn job_file(bytes: &[u8]) {
    let _ = dtlto::read(bytes, "job.json");
}

fn of_module(bytes: &[u8]) {
    let _ = references::read(bytes);
    let _ = module::read(bytes);
    let _ = contents::required(bytes, None, "m.o");
    let _ = processor::read(bytes);
}

fn native(bytes: &[u8]) {
    kind::classify(bytes);
    kind::is_whole(bytes);
    kind::bitcode_of(bytes);
}

fn record(bytes: &[u8]) {
    if let Ok(run) = json::read::<RunRecord>(bytes) {
        let _ = Inspection::of("program", &[], &[run]).to_string();
    }
    let _ = TimeTrace::read("trace", bytes);
}

fn of_shard(bytes: &[u8]) {
    if let Ok(read) = shard::read(bytes)
        && let Some(own) = read.modules.first()
    {
        let completed =
            shard::complete(bytes, &own.path, |_, guids| guids.iter().map(|guid| !guid).collect());
        // What is completed is read like what it was made of.
        assert!(
            completed.is_err()
                || completed.is_ok_and(|bytes| shard::read(&bytes).is_ok_and(|found| found == read))
        );
    }

    let _ = shard::read(bytes);
    let _ = shard::own_symbols(bytes, "m.o");
    let _ = shard::rename(bytes, |path| Some([path, b"2"].concat()));
    if let Ok(canonical) = shard::canonical(bytes) {
        shard::decisions(&canonical.bytes).expect("what is canonical is a shard");
    }
}

fn text(bytes: &[u8]) {
    let resolutions = Resolutions::read(bytes, "_");
    resolutions.modules().for_each(|module| drop(resolutions.of(module).count()));

    let _ = DependencyFile::parse(bytes);
    driver::parse(bytes);
    response::split_quoted(bytes);
    let words = response::tokenize(bytes);
    let again = response::tokenize(&response::content(words.iter().map(Vec::as_slice)));
    assert_eq!(words, again, "words that are written are read");
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = SliceRequest::read(text);
    }
}

/// Whatever is named on the command line of `inspect`.
fn thing(bytes: &[u8]) {
    as_file(bytes, |file| {
        let Some(file) = Utf8Path::from_path(file) else { return };
        if let Ok(seen) = LinkDescription::find(file, None) {
            let inspection = Inspection::of(&seen.output, &seen.modules, &seen.runs);
            inspect::answers(&seen, &inspection);
            distlto_prepare::json_lines::line(&inspection);
        }
    });
}
