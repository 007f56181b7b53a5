//! What runs and why: a real ThinLTO link run by the log alone, and logs that were torn or damaged.

use std::fs;
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use distlto_planner::digests::{Digest, FileDigests};
use distlto_planner::freshness::{self, ActionLog, RanAction, Reason};
use distlto_planner::graph::{ActionGraph, ActionId, ActionKind, Decided, FileId, Listed};
use proptest::prelude::*;

use crate::shard::toolchain;

/// A graph whose actions name their files by path.
fn add(
    graph: &mut ActionGraph,
    kind: ActionKind,
    label: &str,
    args: &[&str],
    inputs: &[&str],
    outputs: &[&str],
) -> ActionId {
    let mut files = |paths: &[&str]| -> Vec<FileId> { paths.iter().map(|path| graph.file(path)).collect() };
    let (inputs, outputs) = (files(inputs), files(outputs));
    let args = args.iter().map(|word| (*word).to_owned()).collect();
    let listed = Listed {
        kind,
        label: label.to_owned(),
        prefix: None,
        args,
        inputs,
        outputs,
        cost: 0,
        decided: Decided::default(),
    };
    let action = listed.typed(&|file| Some(graph.path(file)), &|_| true).expect("whole lists");
    graph.add(action)
}

/// The thin link, two backend compilations and the final link of `calls.c` and `called.c`.
fn link_graph() -> ActionGraph {
    let mut graph = ActionGraph::new();
    let thin = "--thinlto-index-only -e main calls.o called.o -o unused";
    let thin: Vec<_> = ["ld.lld"].into_iter().chain(thin.split(' ')).collect();
    let shards = ["calls.o.thinlto.bc", "called.o.thinlto.bc"];
    add(&mut graph, ActionKind::ThinLink, "thin link", &thin, &["calls.o", "called.o"], &shards);
    let own = ["clang", "-c", "-O2", "calls.o", "-fthinlto-index=calls.o.thinlto.bc", "-o", "calls.native.o"];
    let inputs = ["calls.o", "calls.o.thinlto.bc", "called.o"];
    add(&mut graph, ActionKind::Opt, "calls.o", &own, &inputs, &["calls.native.o"]);
    let own =
        ["clang", "-c", "-O2", "called.o", "-fthinlto-index=called.o.thinlto.bc", "-o", "called.native.o"];
    add(
        &mut graph,
        ActionKind::Opt,
        "called.o",
        &own,
        &["called.o", "called.o.thinlto.bc"],
        &["called.native.o"],
    );
    let link = ["ld.lld", "-e", "main", "calls.native.o", "called.native.o", "-o", "program"];
    add(&mut graph, ActionKind::Link, "program", &link, &["calls.native.o", "called.native.o"], &["program"]);
    graph
}

/// One run of distlto: runs what has to run, as a runner does, and gives the labels with the reasons.
fn run(dir: &Path, graph: &ActionGraph) -> Vec<(String, Reason)> {
    let state = dir.join("state");
    let (log, notes) = ActionLog::load(&state.join("log")).expect("the log can be read");
    assert_eq!(notes, Vec::<String>::new());
    let (digests, note) = FileDigests::load(&state.join("digests"), dir);
    assert_eq!(note, None);
    let mut ran = Vec::new();
    for (id, action) in graph.actions() {
        let Some(reason) = freshness::check_action(graph, id, &log, &digests).expect("files can be read")
        else {
            continue;
        };
        let args: Vec<_> = action.args.iter().map(String::as_str).collect();
        toolchain::run(dir, args[0], toolchain::NEWEST, &args[1..]);
        freshness::finished(graph, id, &log, &digests).expect("the log can be written");
        ran.push((action.label.clone(), reason));
    }
    digests.save(&state.join("digests")).expect("the cache can be written");
    ran
}

/// What a dry run says.
fn dry_run(dir: &Path, graph: &ActionGraph) -> Vec<(String, String)> {
    let (log, _) = ActionLog::load(&dir.join("state/log")).expect("the log can be read");
    let wanted: Vec<_> = graph.actions().map(|(id, _)| id).last().into_iter().collect();
    let found = freshness::check(graph, &wanted, &log, &FileDigests::new(dir)).expect("files can be read");
    let found = found.into_iter().filter_map(|(id, reason)| Some((graph.action(id).label.clone(), reason?)));
    found.map(|(label, reason)| (label, reason.to_string())).collect()
}

fn labels(ran: &[(String, Reason)]) -> Vec<&str> {
    ran.iter().map(|(label, _)| label.as_str()).collect()
}

fn compile(dir: &Path, calls: &[&str], called: &[&str]) {
    toolchain::compile(dir, toolchain::NEWEST, "calls.c", "calls.o", &[&["-flto=thin"], calls].concat());
    toolchain::compile(dir, toolchain::NEWEST, "called.c", "called.o", &[&["-flto=thin"], called].concat());
}

#[test]
fn a_real_link_runs_what_changed_and_nothing_else() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let mut graph = link_graph();
    compile(dir, &[], &[]);
    let all = ["thin link", "calls.o", "called.o", "program"];
    assert_eq!(labels(&run(dir, &graph)), all);
    assert_eq!(run(dir, &graph), []);

    // Same content, other times.
    compile(dir, &[], &[]);
    assert_eq!(run(dir, &graph), []);
    assert_eq!(dry_run(dir, &graph), []);

    // The caller changes: what it calls is not compiled again, as its shard stays as it was.
    compile(dir, &["-DBIAS=5"], &[]);
    let ran = run(dir, &graph);
    assert_eq!(labels(&ran), ["thin link", "calls.o", "program"]);
    assert_eq!(ran[0].1, Reason::InputChanged("calls.o".into()));

    // An output that someone else wrote, and one that is gone.
    fs::write(dir.join("called.native.o"), "junk").expect("a file");
    fs::remove_file(dir.join("program")).expect("the program is there");
    let sentences = [
        ("called.o".to_owned(), "its output called.native.o was changed by something else".to_owned()),
        ("program".to_owned(), "its output program is missing".to_owned()),
    ];
    assert_eq!(dry_run(dir, &graph), sentences);
    assert_eq!(labels(&run(dir, &graph)), ["called.o", "program"]);

    // The dry run cannot know that the thin link will write the same shards.
    fs::remove_file(dir.join("called.o.thinlto.bc")).expect("the shard is there");
    let said = dry_run(dir, &graph);
    assert_eq!(said[0], ("thin link".to_owned(), "its output called.o.thinlto.bc is missing".to_owned()));
    assert_eq!(said[1], ("calls.o".to_owned(), "it reads what thin link writes, which runs".to_owned()));
    assert_eq!(said.len(), 4);
    assert_eq!(labels(&run(dir, &graph)), ["thin link"]);

    // A changed command, and inputs that come and go.
    let mut other = ActionGraph::new();
    for (id, action) in graph.actions() {
        let path = |id: FileId| graph.path(id).as_str();
        let (mut inputs, outputs): (Vec<_>, Vec<_>) =
            (action.inputs().map(path).collect(), action.outputs().map(path).collect());
        let mut args: Vec<_> = graph.command(id);
        match action.label.as_str() {
            "called.o" => args.push("-fno-plt"),
            "calls.o" => inputs[2] = "profile",
            _ => {}
        }
        add(&mut other, action.kind(), &action.label, &args, &inputs, &outputs);
    }
    graph = other;
    fs::write(dir.join("profile"), "").expect("a file");
    let changed = Reason::InputsChanged {
        added: vec!["profile".into()],
        removed: vec!["called.o".into()],
        changed: Vec::new(),
    };
    let said = dry_run(dir, &graph);
    assert_eq!(said[0].1, changed.to_string());
    assert_eq!(changed.to_string(), "it also reads profile and no longer reads called.o");
    assert_eq!(said[1].1, "its command changed");
}

/// A log of `count` actions, each with an output, an input of its own and one that all share.
fn records(count: usize, round: u8) -> Vec<RanAction> {
    let digest = |text: String| Digest::of(text.as_bytes());
    (0..count)
        .map(|index| RanAction {
            command: digest(format!("command {index} {round}")),
            inputs: vec![
                (format!("in {index}\nline\\").into(), digest(format!("{index} {round}"))),
                ("shared".into(), digest("shared".to_owned())),
            ],
            outputs: vec![(format!("out{index}").into(), digest(format!("output {index} {round}")))],
        })
        .collect()
}

/// The graph that these records are of, with files that fit the records of a round.
fn files_for(dir: &Path, count: usize, round: u8) -> ActionGraph {
    let mut graph = ActionGraph::new();
    let write = |path: &str, text: String| fs::write(dir.join(path), text).expect("a file");
    write("shared", "shared".to_owned());
    for index in 0..count {
        let (input, output) = (format!("in {index}\nline\\"), format!("out{index}"));
        write(&input, format!("{index} {round}"));
        write(&output, format!("output {index} {round}"));
        add(&mut graph, ActionKind::Opt, &output, &[&input], &[&input, "shared"], &[&output]);
    }
    graph
}

/// Records every action of a graph, with the log's own words, as if all had run.
fn finish_all(dir: &Path, graph: &ActionGraph, log: &ActionLog) {
    let digests = FileDigests::new(dir);
    for (id, _) in graph.actions() {
        freshness::finished(graph, id, log, &digests).expect("the log can be written");
    }
}

fn fresh(dir: &Path, graph: &ActionGraph, log: &ActionLog) -> Vec<bool> {
    let wanted: Vec<_> = graph.actions().map(|(id, _)| id).collect();
    let found = freshness::check(graph, &wanted, log, &FileDigests::new(dir)).expect("files can be read");
    found.into_iter().map(|(_, reason)| reason.is_none()).collect()
}

#[test]
fn a_torn_log_loses_what_was_written_last_and_nothing_else() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let path = dir.join("log");
    let graph = files_for(dir, 6, 0);
    finish_all(dir, &graph, &ActionLog::load(&path).expect("no log").0);
    let whole = fs::read(&path).expect("a log");
    // An action is recorded when its line is whole, be it without its newline.
    let mut end = 0;
    let mut actions = Vec::new();
    for line in whole.split_inclusive(|&byte| byte == b'\n') {
        end += line.len();
        actions.extend((line.get(9) == Some(&b'A')).then_some(end - 1));
    }
    assert_eq!(actions.len(), 6);
    for length in 0..=whole.len() {
        fs::write(&path, &whole[..length]).expect("a file");
        let (log, notes) = ActionLog::load(&path).expect("the log can be read");
        assert_eq!(notes, Vec::<String>::new(), "a torn end is no damage, at {length}");
        let found = fresh(dir, &graph, &log);
        let expected: Vec<_> = actions.iter().map(|&end| end <= length).collect();
        assert_eq!(found, expected, "at {length}");
        // What is appended to it is whole again.
        let last = graph.actions().map(|(id, _)| id).last().expect("an action");
        freshness::finished(&graph, last, &log, &FileDigests::new(dir)).expect("the log can be written");
        let (log, notes) = ActionLog::load(&path).expect("the log can be read");
        assert_eq!(notes, Vec::<String>::new(), "mended, at {length}");
        let after = fresh(dir, &graph, &log);
        assert_eq!((&after[..5], after[5]), (&found[..5], true), "at {length}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn a_damaged_log_never_makes_a_stale_action_fresh(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        stale in 0usize..5,
    ) {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = dir.path();
        let path = dir.join("log");
        let graph = files_for(dir, 5, 0);
        finish_all(dir, &graph, &ActionLog::load(&path).expect("no log").0);
        fs::write(dir.join(format!("in {stale}\nline\\")), "edited").expect("a file");
        let mut bytes = fs::read(&path).expect("a log");
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        fs::write(&path, &bytes).expect("a file");
        let (log, _) = ActionLog::load(&path).expect("the log can be read");
        let found = fresh(dir, &graph, &log);
        prop_assert!(!found[stale]);
    }

    #[test]
    fn random_bytes_are_no_log(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        let lines = [b"distlto action log 2\n", &bytes[..]].concat();
        for bytes in [&bytes, &lines] {
            fs::write(&path, bytes).expect("a file");
            let (log, _) = ActionLog::load(&path).expect("the log can be read");
            for record in records(3, 0) {
                log.append(&record).expect("the log can be written");
            }
            let (_, notes) = ActionLog::load(&path).expect("the log can be read");
            prop_assert_eq!(notes, Vec::<String>::new());
        }
    }
}

#[test]
fn damage_and_other_versions_are_reported() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let path = dir.join("log");
    let graph = files_for(dir, 4, 0);
    finish_all(dir, &graph, &ActionLog::load(&path).expect("no log").0);
    let text = fs::read_to_string(&path).expect("a log");
    let damaged: Vec<_> = text
        .lines()
        .enumerate()
        .map(|(i, l)| if i == 4 { l.replace(' ', "_") } else { l.to_owned() })
        .collect();
    fs::write(&path, damaged.join("\n") + "\n").expect("a file");
    let (log, notes) = ActionLog::load(&path).expect("the log can be read");
    assert_eq!(notes, [format!("{}: line 5 is damaged; its action runs again", path.display())]);
    assert_eq!(fresh(dir, &graph, &log), [false, true, true, true]);

    fs::write(&path, text.replacen("log 2", "log 1", 1)).expect("a file");
    let (log, notes) = ActionLog::load(&path).expect("the log can be read");
    assert_eq!(notes, [format!("{}: of another version, or no action log; starting afresh", path.display())]);
    assert_eq!(fresh(dir, &graph, &log), [false; 4]);
}

#[test]
fn the_last_record_counts_and_old_ones_are_dropped() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("state/log");
    let (log, _) = ActionLog::load(&path).expect("no log");
    for round in 0..40 {
        records(100, round).iter().for_each(|record| log.append(record).expect("the log can be written"));
    }
    let long = fs::metadata(&path).expect("a log").len();
    let (log, _) = ActionLog::load(&path).expect("the log can be read");
    log.append(&records(1, 39)[0]).expect("the log can be written");
    let short = fs::metadata(&path).expect("a log").len();
    assert!(short * 20 < long, "{short} of {long} bytes");
    let graph = files_for(dir.path(), 100, 39);
    let (log, notes) = ActionLog::load(&path).expect("the log can be read");
    assert_eq!(notes, Vec::<String>::new());
    // The records' commands are not the graph's, so each action is known and differs in its command only.
    let wanted: Vec<_> = graph.actions().map(|(id, _)| id).collect();
    let found =
        freshness::check(&graph, &wanted, &log, &FileDigests::new(dir.path())).expect("files can be read");
    assert!(found.iter().all(|(_, reason)| *reason == Some(Reason::CommandChanged)));
}

#[test]
fn records_come_from_many_threads() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let path = dir.join("log");
    let graph = files_for(dir, 200, 0);
    let (log, _) = ActionLog::load(&path).expect("no log");
    let digests = FileDigests::new(dir);
    let ids: Vec<_> = graph.actions().map(|(id, _)| id).collect();
    std::thread::scope(|scope| {
        for part in ids.chunks(25) {
            scope.spawn(|| {
                part.iter().for_each(|&id| freshness::finished(&graph, id, &log, &digests).expect("written"));
            });
        }
    });
    let (log, notes) = ActionLog::load(&path).expect("the log can be read");
    assert_eq!(notes, Vec::<String>::new());
    assert!(fresh(dir, &graph, &log).iter().all(|fresh| *fresh));
}

#[test]
fn a_missing_source_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let graph = files_for(dir, 2, 0);
    let (log, _) = ActionLog::load(&dir.join("log")).expect("no log");
    finish_all(dir, &graph, &log);
    fs::remove_file(dir.join("shared")).expect("a file");
    let wanted: Vec<_> = graph.actions().map(|(id, _)| id).collect();
    let error = freshness::check(&graph, &wanted, &log, &FileDigests::new(dir)).expect_err("no such input");
    assert!(error.to_string().contains("shared"), "{error}");
}

fn digest_of(digests: &FileDigests, path: &str) -> Digest {
    digests.digest(Utf8Path::new(path)).expect("the file can be read")
}

#[test]
fn digests_are_kept_for_files_at_rest_only() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let cache = dir.join("digests");
    fs::write(dir.join("resting"), "one").expect("a file");
    std::thread::sleep(std::time::Duration::from_millis(120));
    fs::write(dir.join("fresh"), "one").expect("a file");
    // However slow this machine is, the file was written only a moment before it is hashed.
    let moment = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    fs::File::options()
        .append(true)
        .open(dir.join("fresh"))
        .expect("a file")
        .set_modified(moment)
        .expect("a time");
    let digests = FileDigests::new(dir);
    assert_eq!(digest_of(&digests, "resting"), Digest::of(b"one"));
    assert_eq!(digest_of(&digests, "fresh"), Digest::of(b"one"));
    digests.save(&cache).expect("the cache can be written");
    let saved = fs::read(&cache).expect("a cache");
    let holds = |name: &str| saved.windows(name.len()).any(|window| window == name.as_bytes());
    assert!(holds("resting") && !holds("fresh"));

    // Within a run the first look counts; the next run sees the edit, though the size is the same.
    fs::write(dir.join("resting"), "two").expect("a file");
    assert_eq!(digest_of(&digests, "resting"), Digest::of(b"one"));
    digests.forget(Utf8Path::new("resting"));
    assert_eq!(digest_of(&digests, "resting"), Digest::of(b"two"));
    let (digests, note) = FileDigests::load(&cache, dir);
    assert_eq!(note, None);
    assert_eq!(digest_of(&digests, "resting"), Digest::of(b"two"));
}

#[test]
fn a_damaged_digest_cache_is_left_unused_with_a_reason() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let cache = dir.join("digests");
    fs::write(dir.join("file"), "one").expect("a file");
    std::thread::sleep(std::time::Duration::from_millis(120));
    let digests = FileDigests::new(dir);
    digest_of(&digests, "file");
    digests.save(&cache).expect("the cache can be written");
    let good = fs::read(&cache).expect("a cache");
    for place in 0..good.len() {
        let mut bytes = good.clone();
        bytes[place] ^= 1;
        for bytes in [&bytes[..], &good[..place]] {
            fs::write(&cache, bytes).expect("a file");
            let (digests, note) = FileDigests::load(&cache, dir);
            assert!(note.expect("a reason").contains("is not used"));
            assert_eq!(digest_of(&digests, "file"), Digest::of(b"one"));
        }
    }
}

#[test]
fn many_digests_keep_their_order() {
    let dir = tempfile::tempdir().expect("a directory");
    let paths: Vec<_> = (0..300).map(|index| Utf8PathBuf::from(format!("file{index}"))).collect();
    for path in &paths {
        fs::write(dir.path().join(path), path.as_str()).expect("a file");
    }
    let mut asked = paths.clone();
    asked.push("missing".into());
    asked.push(".".into());
    let found = FileDigests::new(dir.path()).digest_all(&asked);
    for (path, digest) in paths.iter().zip(&found) {
        assert_eq!(digest.as_ref().expect("a digest"), &Digest::of(path.as_str().as_bytes()));
    }
    let kind = |index: usize| found[index].as_ref().expect_err("no file").source.kind();
    assert_eq!(kind(300), std::io::ErrorKind::NotFound);
    assert_eq!(kind(301), std::io::ErrorKind::InvalidData);
}

#[test]
fn digests_that_nobody_asks_for_are_dropped_in_the_end() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let cache = dir.join("digests");
    fs::write(dir.join("used"), "one").expect("a file");
    fs::write(dir.join("unused"), "one").expect("a file");
    std::thread::sleep(std::time::Duration::from_millis(120));
    let digests = FileDigests::new(dir);
    digest_of(&digests, "used");
    digest_of(&digests, "unused");
    digests.save(&cache).expect("the cache can be written");
    let both = fs::read(&cache).expect("a cache");
    let run = |paths: &[&str]| {
        let (digests, note) = FileDigests::load(&cache, dir);
        assert_eq!(note, None);
        paths.iter().for_each(|path| assert_eq!(digest_of(&digests, path), Digest::of(b"one")));
        digests.save(&cache).expect("the cache can be written");
        fs::read(&cache).expect("a cache")
    };
    assert_eq!(run(&["used", "unused"]), both);
    let holds = |bytes: &[u8]| bytes.windows(6).any(|window| window == b"unused");
    for round in 1..=8 {
        assert_eq!(holds(&run(&["used"])), round < 8, "run {round}");
    }
    assert_eq!(run(&["used", "unused"]), both);
}
