//! What the tests share: a runtime, servers, clients, actions.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use distlto_reapi::action::{Action, EncodedAction};
use distlto_reapi::blob::Blob;
use distlto_reapi::merkle::Tree;
use distlto_reapi::options::Compression;
use distlto_reapi::proto::OutputFile;
use distlto_reapi::{Client, Digest, DigestMessage, Error, Options};
use distlto_reapi_server::{Faults, Server};
use tokio::runtime::{Builder, Runtime};

/// How a test ends, or a part of one.
pub type Tested<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The runtime of all clients. Servers have their own, which must not be ended inside of another one.
pub fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime can be made")
    })
}

/// Waits for a client.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    runtime().block_on(future)
}

/// Waits for all of these, which run at once.
pub fn at_once<T: Send + 'static>(
    all: impl Iterator<Item = impl Future<Output = Result<T, Error>> + Send + 'static>,
) -> Tested<Vec<T>> {
    let tasks: Vec<_> = all.map(|one| runtime().spawn(one)).collect();
    tasks.into_iter().map(|task| Ok(wait(task)??)).collect()
}

/// A server that errs as `change` says.
pub fn server(change: impl FnOnce(&mut Faults)) -> Server {
    let mut faults = Faults::default();
    change(&mut faults);
    Server::start(distlto_reapi_server::Options::default(), faults).expect("the server starts")
}

/// Options for a server on a slow machine: nothing is given up before a test wants it.
pub fn options(server: &Server) -> Options {
    let mut options = Options::new(&server.url()).expect("the server has a URL");
    (options.retry_time, options.connect_time) = (Duration::from_secs(120), Duration::from_secs(120));
    options.compression = Compression::Off;
    options
}

/// A client of a server.
pub fn client(server: &Server, change: impl FnOnce(&mut Options)) -> Client {
    let mut options = options(server);
    change(&mut options);
    wait(Client::connect(options)).expect("the server answers")
}

/// Waits until something is so.
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    for _ in 0..12_000 {
        if so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what}: not after two minutes");
}

/// Bytes that differ by `seed`, and that zstd makes shorter.
pub fn content(seed: u32, size: usize) -> Vec<u8> {
    let numbers = (0..).map(|number: u32| (number / 3).wrapping_mul(seed.wrapping_mul(2) + 1));
    numbers.flat_map(u32::to_le_bytes).take(size).collect()
}

/// An action with one input, and its blobs.
pub struct Prepared {
    pub encoded: EncodedAction,
    pub blobs: Vec<Blob>,
    pub input: Blob,
}

/// An action that runs a shell script, which finds `input` in the file `in` and makes the file `out`.
pub fn prepare(script: &str, input: &[u8], change: impl FnOnce(&mut Action)) -> Prepared {
    let input = Blob::new(input.to_vec());
    let mut tree = Tree::new();
    tree.add_file("in", input.digest(), false).expect("it is the first file");
    let tree = tree.build();
    let words = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    let mut action = Action::new(words, tree.digest());
    action.environment = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
    action.output_paths = vec!["out".to_owned()];
    change(&mut action);
    let encoded = action.encode();
    let mut blobs = tree.blobs();
    blobs.extend([input.clone(), encoded.action.clone(), encoded.command.clone()]);
    Prepared { encoded, blobs, input }
}

/// An output of an action, whose content is a blob.
pub fn output_of(digest: Digest, is_executable: bool) -> OutputFile {
    OutputFile { digest: Some(digest.message()), is_executable, ..OutputFile::default() }
}

/// The digest of the only output.
pub fn output(result: &distlto_reapi::proto::ActionResult) -> Digest {
    let digest = result.output_files.first().and_then(|file| file.digest.as_ref());
    digest.and_then(Digest::from_message).expect("the action has one output")
}

/// The entries of a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.expect("the folder can be read").file_name().to_string_lossy().into_owned()
    };
    let mut names: Vec<_> = entries.map(name).collect();
    names.sort();
    names
}

/// The error that was to come.
pub fn failed<T>(result: Result<T, Error>) -> Error {
    match result {
        Ok(_) => panic!("an error was to come"),
        Err(error) => error,
    }
}
