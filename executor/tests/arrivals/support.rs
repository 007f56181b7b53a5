//! A directory to compile in by a script in the place of the compiler, and a run beside a thread that adds to it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use distlto_executor::cancel::Cancel;
use distlto_executor::execute::spawn::PLAIN;
use distlto_executor::run::{Arrival, Arrivals, Hooks, Made, RunOptions, arrivals, run_arriving};
use distlto_planner::graph::{ActionGraph, ActionId};
use distlto_record::progress::Silent;
use distlto_record::report::{Failure, Outcome, Report};

use crate::support::tool;

/// A test fails after this time rather than wait for ever.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Writes the module's name into `log`; waits for `go` if the module's name begins with `waits`; fails for `fails`.
pub const SCRIPT: &str = r#"
case " $* " in *' -### '*) exit 1;; esac
for word; do [ "$last" = -o ] && out=$word; last=$word; done
echo "$1" >>log
case $1 in
waits*) n=0; until [ -e go ] || [ $n -gt 10000 ]; do n=$((n + 1)); sleep 0.01; done ;;
stays*) sleep 600 ;;
esac
case $1 in
*fails*) echo 'error: on purpose' >&2; exit 1;;
*) exec cp native.o "$out" ;;
esac
"#;

/// A directory to compile in.
pub struct Place(pub tempfile::TempDir);

impl Place {
    pub fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::write(place.path("m.c"), "int f(void) { return 1; }\n").unwrap();
        fs::write(place.path("script"), SCRIPT).unwrap();
        tool(place.0.path(), &["clang-22", "-O1", "-flto=thin", "-c", "m.c", "-o", "module.o"]);
        tool(place.0.path(), &["clang-22", "-O1", "-c", "m.c", "-o", "native.o"]);
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A module of this name, to be compiled by the script.
    pub fn arrival(&self, name: &str, cost: u64) -> Arrival {
        fs::copy(self.path("module.o"), self.path(name)).unwrap();
        Arrival {
            label: name.to_owned(),
            prefix: ["/bin/sh", "script"].map(str::to_owned).into(),
            args: [name, "-o", &format!("out/{name}")].map(str::to_owned).to_vec(),
            module: name.into(),
            shard: "/dev/null".into(),
            imports: vec![],
            extra: vec![],
            object: format!("out/{name}").into(),
            dwo: None,
            cost,
        }
    }

    /// What ran, in order.
    pub fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub fn options<'a>(&'a self, cancel: &'a Cancel) -> RunOptions<'a> {
        RunOptions { directory: Some(self.0.path()), jobs: 2, ..RunOptions::new(&PLAIN, cancel, &Silent) }
    }
}

/// How an action ended, by the hook that said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Finished,
    Failed,
    Abandoned,
}

/// Tells another thread what the hooks are told.
pub struct Told {
    ends: Mutex<Sender<(ActionId, End)>>,
    running: AtomicUsize,
    pub most: AtomicUsize,
}

impl Told {
    pub fn new() -> (Self, Receiver<(ActionId, End)>) {
        let (sender, ends) = mpsc::channel();
        (Self { ends: Mutex::new(sender), running: 0.into(), most: 0.into() }, ends)
    }

    fn end(&self, id: ActionId, end: End) {
        // A test may have heard enough.
        let _ = self.ends.lock().unwrap().send((id, end));
    }
}

impl Hooks for Told {
    fn started(&self, _: ActionId) {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
    }

    fn finished(&self, id: ActionId, _: &Made<'_>) {
        self.running.fetch_sub(1, Ordering::SeqCst);
        self.end(id, End::Finished);
    }

    fn failed(&self, id: ActionId, _: &Failure) {
        self.running.fetch_sub(1, Ordering::SeqCst);
        self.end(id, End::Failed);
    }

    fn abandoned(&self, id: ActionId) {
        self.end(id, End::Abandoned);
    }
}

/// Runs what `body` adds, beside it.
pub fn beside<T>(
    options: &RunOptions<'_>,
    body: impl FnOnce(Arrivals, Receiver<(ActionId, End)>) -> T + Send,
) -> (ActionGraph, Report, T, usize)
where
    T: Send,
{
    let (arrivals, incoming) = arrivals();
    let (told, ends) = Told::new();
    thread::scope(|scope| {
        let adding = scope.spawn(move || body(arrivals, ends));
        let (graph, report) = run_arriving(incoming, options, &told);
        let most = told.most.load(Ordering::SeqCst);
        drop(told);
        (graph, report, adding.join().unwrap(), most)
    })
}

/// The outcome of each action as its hook would have said.
pub fn ends_of(report: &Report) -> BTreeMap<ActionId, End> {
    let end = |outcome: &Outcome| match outcome {
        Outcome::Done(_) => End::Finished,
        Outcome::Failed(failure) if !failure.is_interruption() => End::Failed,
        _ => End::Abandoned,
    };
    report.outcomes.iter().map(|(id, outcome)| (*id, end(outcome))).collect()
}

/// Every end that is told, once each, until nobody tells any more.
pub fn all(ends: &Receiver<(ActionId, End)>) -> BTreeMap<ActionId, End> {
    let mut all = BTreeMap::new();
    for (id, end) in ends {
        assert_eq!(all.insert(id, end), None, "{id:?} ended twice");
    }
    all
}
