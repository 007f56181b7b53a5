//! Every job file that lld wrote is read, whatever the link was.

use std::fs;
use std::path::Path;

use camino::Utf8Path;
use distlto_planner::dtlto::{self, JobFile};

/// Name and bytes of the job files that lld wrote.
pub fn files() -> Vec<(String, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/dtlto");
    let entries = fs::read_dir(directory).expect("test data");
    let mut files: Vec<_> = entries
        .map(|entry| {
            let entry = entry.expect("an entry");
            let name = entry.file_name().into_string().expect("a name in UTF-8");
            (name, fs::read(entry.path()).expect("test data"))
        })
        .collect();
    files.sort();
    files
}

fn read(name: &str) -> JobFile {
    let (_, bytes) = files().into_iter().find(|(found, _)| found == name).expect("test data");
    dtlto::read(&bytes, name).expect("a job file")
}

#[test]
fn every_job_is_read_as_it_is_written() {
    let files = files();
    assert!(files.len() >= 28, "test data is missing");
    for (name, bytes) in files {
        let (file, placed) = dtlto::read_placed(&bytes, &name).unwrap_or_else(|error| panic!("{error}"));
        // serde_json's own tree is the oracle.
        let json: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
        let jobs = json["jobs"].as_array().expect("jobs");
        let texts = |value: &serde_json::Value| -> Vec<String> {
            let items = value.as_array().expect("an array").iter();
            items.map(|item| item.as_str().expect("a string").to_owned()).collect()
        };
        assert_eq!(placed, None, "{name}");
        assert_eq!(
            file.linker_output.as_ref().map(|path| path.as_str()),
            json["common"]["linker_output"].as_str()
        );
        assert_eq!(file.jobs.len(), jobs.len(), "{name}");
        let common = texts(&json["common"]["inputs"]);
        for (&id, job) in file.jobs.iter().zip(jobs) {
            let command = [texts(&json["common"]["args"]), texts(&job["args"])].concat();
            assert_eq!(file.graph.command(id), command, "{name}");
            let action = file.graph.action(id);
            let path = |id| file.graph.path(id).to_string();
            let (inputs, outputs): (Vec<_>, Vec<_>) =
                (action.inputs().map(path).collect(), action.outputs().map(path).collect());
            assert_eq!(inputs, [texts(&job["inputs"]), common.clone()].concat(), "{name}");
            assert_eq!(outputs, texts(&job["outputs"]), "{name}");
            assert_eq!(action.label, texts(&job["inputs"])[0]);
        }
    }
}

#[test]
fn names_that_lld_garbled_are_listed() {
    let garbled: Vec<_> = read("oddnames.json").garbled().map(ToString::to_string).collect();
    assert_eq!(garbled.len(), 3, "{garbled:?}");
    assert!(garbled.contains(&"odd dir;x/t\u{fffd}5.o".to_owned()), "{garbled:?}");
    assert_eq!(read("jobs.json").garbled().count(), 0);
}

#[test]
fn other_paths_stand_in_lists_and_commands() {
    for (name, bytes) in files() {
        let file = dtlto::read(&bytes, &name).expect("a job file");
        let place =
            |path: &Utf8Path| Utf8Path::new("other place").join(path.as_str().trim_start_matches('/'));
        let files = file.jobs.iter().flat_map(|&job| [file.shard(job), file.object(job)]);
        let other = file.with_paths(&files.map(|path| (path.to_owned(), place(path))).collect());
        assert_eq!(other.jobs, file.jobs, "{name}");
        for &job in &file.jobs {
            assert_eq!(
                (other.shard(job), other.object(job)),
                (&*place(file.shard(job)), &*place(file.object(job)))
            );
            assert_eq!(other.module(job), file.module(job));
            assert!(other.others(job).eq(file.others(job)), "{name}");
            let word = |word: &str| {
                let path = [file.shard(job), file.object(job)]
                    .into_iter()
                    .find(|path| word.ends_with(path.as_str()));
                let option = path.and_then(|path| word.strip_suffix(path.as_str()));
                path.map_or(word.to_owned(), |path| format!("{}{}", option.unwrap_or_default(), place(path)))
            };
            let expected: Vec<_> = file.graph.command(job).into_iter().map(word).collect();
            assert_eq!(other.graph.command(job), expected, "{name}");
        }
    }
}

#[test]
fn graphs_are_whole() {
    for name in ["cache-partial.json", "pgo-sample.json"] {
        let text = distlto_planner::graph::json::to_bytes(&read(name).graph);
        insta::assert_snapshot!(name, String::from_utf8(text).expect("JSON is UTF-8"));
    }
}
