//! Options of every command that runs an action graph: `distlto link`, `distlto run`, `distlto distribute`.
//!
//! One definition, so that an option is spelled and explained alike everywhere. Does not depend on the graph.

use std::any::TypeId;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::builder::{BoolishValueParser, OsStringValueParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Args, FromArgMatches};
use distlto_prepare::io_error::IoError;
use distlto_prepare::private::{self, Reach};
use distlto_prepare::warning::warn;

use distlto_executor::cache::nearest_first;
use distlto_executor::cache::store::limits::{default_size, parse_age, parse_memory, parse_size};
use distlto_executor::cache::store::{Cache, CacheLimits};
use distlto_executor::cancel::Cancel;
use distlto_executor::describe::Toolchains;
use distlto_executor::execute::remote::engine::Engine;
use distlto_executor::execute::spawn::LocalSpawner;
use distlto_executor::ledger::Ledger;
use distlto_executor::run;
use distlto_executor::schedule::Policy;
use distlto_executor::schedule::memory::Limit;
use distlto_planner::words::Word;
use distlto_record::progress::{Profile, Progress, Reporter, Style};

use crate::remote::args::RemoteArgs;
use crate::remote::connect::RemoteError;
use crate::store::{self, own_cache};

/// Where results of backend compilations are kept on disk.
#[derive(Debug, Clone, Default, Args)]
pub struct CacheArgs {
    /// The store of objects and records of links
    ///
    /// The default is the folder distlto in the user's cache folder. An object is found again wherever the same compiler
    /// compiles the same contents in the same way: in another checkout, under other names, on another machine that shares the
    /// directory. Many links may use one directory at once. Only verified objects are kept, and each is verified when it is
    /// read. See `distlto cache`.
    #[arg(long, value_name = "DIR", env = "DISTLTO_CACHE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub cache: Option<PathBuf>,
    /// Use the directory of --cache although others can write to it, and believe what they keep there
    ///
    /// Who can write to it decides what is in your programs. Without this option a directory is not used that belongs to
    /// another user than you and root, or that others can write to. See docs/caches.md.
    #[arg(long, env = "DISTLTO_CACHE_SHARED", value_parser = BoolishValueParser::new(), hide_short_help = true)]
    pub cache_shared: bool,
    /// Let the store grow to so many bytes [default: a tenth of its disk, at least 10G]; K, M, G and T
    /// stand for powers of 1024
    #[arg(long, value_name = "SIZE", value_parser = parse_size, env = "DISTLTO_CACHE_SIZE", hide_short_help = true)]
    pub cache_size: Option<u64>,
    /// Drop objects that were not used for so long from the store: 30d, 12h, 90m
    #[arg(long, value_name = "AGE", value_parser = parse_age, env = "DISTLTO_CACHE_AGE", hide_short_help = true)]
    pub cache_age: Option<Duration>,
}

/// How actions run, and how much is printed.
#[derive(Debug, Clone, Default, Args)]
pub struct RunArgs {
    /// Those of these options that the command line or a configuration file has. Read first: reading an option takes it away.
    #[command(flatten)]
    pub given: Given,
    /// Run at most N jobs at once [default: one per processor]
    ///
    /// A link line's --thinlto-jobs says so too.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), env = "DISTLTO_JOBS", hide_env = true)]
    pub jobs: Option<u16>,
    /// Run the rest after a failure
    ///
    /// Without it nothing is started after the first failure. The final link runs in neither case.
    #[arg(short, long, env = "DISTLTO_KEEP_GOING", hide_env = true, value_parser = BoolishValueParser::new())]
    pub keep_going: bool,
    /// Limit the total memory of running jobs, such as 8G
    ///
    /// K, M, G and T stand for powers of 1024, and 50% for a part of this machine's memory. All are those of every link that runs on this machine at the same time, which
    /// wait for each other. What a job takes is estimated from its size and from what earlier runs measured; a larger one runs
    /// alone. Without this option the jobs take what is available, within the limits of control groups.
    #[arg(long, value_name = "SIZE", value_parser = parse_memory, env = "DISTLTO_MEMORY", hide_env = true)]
    pub memory: Option<u64>,
    /// Keep the time and memory of jobs in this file, for the estimates of the next run
    #[arg(long, value_name = "FILE", env = "DISTLTO_HISTORY", hide_short_help = true)]
    pub history: Option<PathBuf>,
    /// Where results are kept on disk.
    #[command(flatten)]
    pub cache: CacheArgs,
    /// Print each action and a summary; -vv prints commands too
    #[arg(short, long, action = ArgAction::Count, conflicts_with = "quiet", env = "DISTLTO_VERBOSE", hide_env = true)]
    pub verbose: u8,
    /// Print failures and the compilers' warnings, and nothing else
    #[arg(short, long, env = "DISTLTO_QUIET", hide_env = true, value_parser = BoolishValueParser::new())]
    pub quiet: bool,
    /// Print events as JSON lines on standard output
    #[arg(long, env = "DISTLTO_JSON", hide_env = true, value_parser = BoolishValueParser::new())]
    pub json: bool,
    /// Do not compare the module hashes that index shards record with those of the modules
    ///
    /// A recorded hash that differs means that a module is not the one that the thin link read, and is refused: an object
    /// made from it could lack functions. Modules and shards that record none pass anyway. This is for producers that record
    /// something else than the hash of the module on disk, such as tools that change bitcode after the thin link and keep what
    /// it decided valid. Whose shard it is and that imports are bitcode is checked all the same.
    #[arg(long, env = "DISTLTO_NO_VERIFY_HASHES", value_parser = BoolishValueParser::new(), hide_short_help = true)]
    pub no_verify_hashes: bool,
    /// Write a trace for Perfetto or about:tracing to this file
    ///
    /// Also if the run fails or is interrupted. A line for each job at a time, with the thin link and the final link above.
    #[arg(long, value_name = "FILE", env = "DISTLTO_TRACE", hide_env = true)]
    pub trace: Option<PathBuf>,
    /// Servers that may run actions.
    #[command(flatten)]
    pub remote: RemoteArgs,
}

/// The options of [`RunArgs`] as a command line or a configuration file has them, for another process that runs actions of this one.
#[derive(Debug, Clone, Default)]
pub struct Given(Vec<Word>);

impl Given {
    /// The words, with absolute paths.
    pub fn words(&self) -> impl Iterator<Item = Word> {
        self.0.iter().cloned()
    }
}

impl Args for Given {
    fn augment_args(command: clap::Command) -> clap::Command {
        command
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        command
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let command = RunArgs::augment_args(clap::Command::new(""));
        let mut words = Vec::new();
        for arg in command.get_arguments() {
            let (id, Some(name)) = (arg.get_id().as_str(), arg.get_long()) else { continue };
            // The environment is passed on as it is.
            if !matches!(matches.value_source(id), Some(ValueSource::CommandLine | ValueSource::DefaultValue))
            {
                continue;
            }
            if !arg.get_action().takes_values() {
                let times = match arg.get_action() {
                    ArgAction::Count => matches.get_count(id).into(),
                    _ => matches.get_flag(id).into(),
                };
                words.extend(std::iter::repeat_n(format!("--{name}").into_bytes(), times));
                continue;
            }
            let is_path = arg.get_value_parser().type_id() == TypeId::of::<PathBuf>();
            for value in matches.get_raw(id).into_iter().flatten() {
                // The other process may run elsewhere.
                let absolute = is_path.then(|| std::path::absolute(value).ok()).flatten();
                let value = absolute.map_or_else(|| value.to_owned(), PathBuf::into_os_string);
                words.push([format!("--{name}=").as_bytes(), value.as_encoded_bytes()].concat());
            }
        }
        Ok(Self(words))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The servers of a run, and the ledger, which notes those that do not answer.
#[derive(Clone)]
pub struct Servers {
    /// Caches and engines.
    pub engine: Option<Arc<Engine>>,
    ledger: Option<Ledger>,
}

/// The servers of one link, connected to on first use.
pub struct LinkServers<'a> {
    args: &'a RunArgs,
    cancel: &'a Cancel,
    connected: OnceLock<Servers>,
}

impl<'a> LinkServers<'a> {
    /// Connects to none yet.
    pub fn new(args: &'a RunArgs, cancel: &'a Cancel) -> Self {
        Self { args, cancel, connected: OnceLock::new() }
    }

    /// Connects to them, once.
    pub fn connected(&self) -> Result<Servers, RemoteError> {
        if let Some(servers) = self.connected.get() {
            return Ok(servers.clone());
        }
        let servers = self.args.servers(self.cancel)?;
        Ok(self.connected.get_or_init(|| servers).clone())
    }
}

/// The resources that a run holds to its end, by the options of its command.
pub struct Assembly<'a> {
    args: &'a RunArgs,
    spawner: &'a LocalSpawner,
    cancel: &'a Cancel,
    store: Option<Arc<Cache>>,
    engine: Option<Arc<Engine>>,
    toolchains: Option<Toolchains>,
    ledger: Option<Ledger>,
}

impl<'a> Assembly<'a> {
    /// Connects to the servers of the options.
    pub fn new(
        args: &'a RunArgs,
        store: Option<Arc<Cache>>,
        spawner: &'a LocalSpawner,
        cancel: &'a Cancel,
    ) -> Result<Self, RemoteError> {
        Ok(Self::with_servers(args, store, args.servers(cancel)?, (spawner, cancel)))
    }

    /// The same with servers that are connected to.
    pub fn with_servers(
        args: &'a RunArgs,
        store: Option<Arc<Cache>>,
        Servers { engine, ledger }: Servers,
        (spawner, cancel): (&'a LocalSpawner, &'a Cancel),
    ) -> Self {
        let is_cached = store.is_some() || engine.is_some();
        let is_asked = args.cache.directory().is_some() || engine.is_some();
        let toolchains = is_cached.then(|| {
            let known = Toolchains::new(match &store {
                Some(store) => Some(store.directory()),
                None => own_cache(),
            });
            if is_asked { known } else { known.unasked() }
        });
        Self { args, spawner, cancel, store, engine, toolchains, ledger }
    }

    /// Where results are kept on disk.
    pub fn store(&self) -> Option<&Path> {
        self.store.as_deref().map(Cache::directory)
    }

    /// Returns the options of the run. The command keeps the measurements of actions in `history`. `implied` is a
    /// number of jobs from another source, such as the link line.
    pub fn options(
        &'a self,
        progress: &'a dyn Progress,
        history: Option<&'a Path>,
        implied: Option<usize>,
    ) -> run::RunOptions<'a> {
        let mut options = run::RunOptions::new(self.spawner, self.cancel, progress);
        options.history = history;
        self.args.apply(&mut options, implied);
        options.toolchains = self.toolchains.as_ref();
        options.caches = nearest_first(self.store.as_deref(), self.engine.as_deref());
        options.engine = self.engine.as_deref();
        options.ledger = self.ledger.as_ref();
        options
    }
}

/// By which runs on this machine know of each other. One that cannot be used is warned of.
fn ledger() -> Option<Ledger> {
    Ledger::of_environment().unwrap_or_else(|error| {
        warn(format_args!("links that run at once know nothing of this one: {error}"));
        None
    })
}

impl CacheArgs {
    /// Opens the store that only this user writes to, for a run that `cancel` ends.
    pub fn store(&self, cancel: &Cancel) -> Option<Arc<Cache>> {
        let opened = match self.directory().filter(|_| !self.cache_shared) {
            Some(_) => self.open(cancel),
            None => {
                let own = Self { cache_shared: false, ..self.clone() }.open_in(own_cache()?, cancel);
                own.map(Cache::per_directory)
            }
        };
        opened.map(Arc::new)
    }

    /// Whether the store has been made.
    pub fn has_store(&self) -> bool {
        let place = self.directory().filter(|_| !self.cache_shared).or_else(|| own_cache());
        place.is_some_and(|place| Cache::open_existing(place, CacheLimits::default()).is_ok())
    }

    /// Returns the cache that keeps results by content: the given store, or a newly opened cache that others write to.
    pub fn results(&self, store: Option<Arc<Cache>>, cancel: &Cancel) -> Option<Arc<Cache>> {
        if self.cache_shared && self.directory().is_some() { self.open(cancel).map(Arc::new) } else { store }
    }

    /// Opens the cache that is asked for, for a run that `cancel` ends. One that cannot be used costs time only, and is
    /// warned of.
    pub fn open(&self, cancel: &Cancel) -> Option<Cache> {
        self.open_in(self.directory()?, cancel)
    }

    fn open_in(&self, directory: &Path, cancel: &Cancel) -> Option<Cache> {
        let size = self.cache_size.unwrap_or_else(|| default_size(directory));
        let limits = CacheLimits { size: Some(size), age: self.cache_age };
        if !self.cache_shared
            && let Err(exposed) = private::claim(directory, Reach::Whole)
        {
            warn(format_args!(
                "the cache {} is not used: {}; {}, or give --cache-shared if you trust all who can write there",
                directory.display(),
                exposed.of(directory),
                exposed.remedy()
            ));
            return None;
        }
        match Cache::open(directory, limits) {
            Ok(store) => Some(if self.cache_shared { store.shared() } else { store }.sparing().until(cancel)),
            Err(error) => {
                warn(format_args!("the cache {} is not used: {error}", directory.display()));
                None
            }
        }
    }

    /// The folder for the records of links. A cache that others write to holds none.
    pub fn links(&self, state: Option<&str>) -> Option<String> {
        let cache = self.directory().filter(|_| !self.cache_shared);
        let is_exposed =
            |cache: &Path| private::check(cache, Reach::Whole).is_err_and(|exposed| exposed.is_of_others());
        let is_unfit = |cache: &Path| is_exposed(cache) || cache.exists() && !cache.is_dir();
        if state.is_none_or(str::is_empty) && cache.is_some_and(is_unfit) {
            // Who opens the cache says so.
            return None;
        }
        store::links(state, cache)
    }

    /// Where results are kept.
    pub fn directory(&self) -> Option<&Path> {
        self.cache.as_deref().filter(|directory| !directory.as_os_str().is_empty())
    }
}

impl RunArgs {
    /// Connects to the servers of the options.
    pub fn servers(&self, cancel: &Cancel) -> Result<Servers, RemoteError> {
        let ledger = ledger();
        let engine = self.remote.connect(cancel, ledger.as_ref())?.map(Arc::new);
        Ok(Servers { engine, ledger })
    }

    /// Says how to run. `implied` is a number of jobs that something else asks for, such as the link line.
    fn apply<'a>(&'a self, options: &mut run::RunOptions<'a>, implied: Option<usize>) {
        // Each is named, so that a new one cannot be forgotten.
        let Self {
            jobs,
            keep_going,
            memory,
            history,
            no_verify_hashes,
            // Said by `CacheArgs::open`.
            cache: _,
            // Said by `spawner`.
            // Said by `reporter`.
            verbose: _,
            quiet: _,
            json: _,
            trace: _,
            // Said by `RemoteArgs::connect`.
            remote: _,
            // For another process.
            given: _,
        } = self;
        if let Some(jobs) = jobs.map(usize::from).or(implied) {
            options.jobs = jobs.max(1);
        }
        if let Some(bytes) = *memory {
            options.memory = Limit::Bytes(bytes);
        }
        if let Some(history) = history {
            options.history = Some(history);
        }
        options.ignores_hashes = *no_verify_hashes;
        options.policy = if *keep_going { Policy::KeepGoing } else { Policy::StopAtFirstFailure };
    }

    /// Returns the spawner for compilers and linkers.
    pub fn spawner(&self) -> LocalSpawner {
        LocalSpawner::observing()
    }

    /// Returns the style of messages during the run.
    pub fn style(&self) -> Style {
        Style { json: self.json, verbose: self.verbose > 0, commands: self.verbose > 1, quiet: self.quiet }
    }

    /// Returns a reporter, which prints the progress and records it for a trace.
    pub fn reporter(&self, profile: Profile) -> Result<Reporter, IoError> {
        Reporter::new(profile, self.style(), self.trace.as_deref(), None)
    }
}
