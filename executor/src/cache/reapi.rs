//! An action's digest as the Remote Execution API computes it, so that a local cache and a remote one have one key.
//!
//! Command, input tree and Action are messages of `remote_execution.proto` (bazelbuild/remote-apis, v2) in their canonical
//! encoding: fields in order, files, directories, variables and outputs sorted. The messages are declared here: the crate
//! that has them all cannot be built without a gRPC server, and a digest needs eight. Knows nothing of networks.
//!
//! The command runs in the input root. A compiler that is no input stands in the Action's `salt`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use distlto_planner::digests::Digest;
use prost::Message;

use crate::action::{Description, Input};

#[derive(Clone, PartialEq, Message)]
struct DigestMessage {
    #[prost(string, tag = "1")]
    hash: String,
    #[prost(int64, tag = "2")]
    size_bytes: i64,
}

#[derive(Clone, PartialEq, Message)]
struct FileNode {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    digest: Option<DigestMessage>,
    #[prost(bool, tag = "4")]
    is_executable: bool,
}

#[derive(Clone, PartialEq, Message)]
struct DirectoryNode {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    digest: Option<DigestMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct Directory {
    #[prost(message, repeated, tag = "1")]
    files: Vec<FileNode>,
    #[prost(message, repeated, tag = "2")]
    directories: Vec<DirectoryNode>,
}

/// A variable of a command, or a property of a platform.
#[derive(Clone, PartialEq, Message)]
struct Pair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Platform {
    #[prost(message, repeated, tag = "1")]
    properties: Vec<Pair>,
}

#[derive(Clone, PartialEq, Message)]
struct Command {
    #[prost(string, repeated, tag = "1")]
    arguments: Vec<String>,
    #[prost(message, repeated, tag = "2")]
    environment_variables: Vec<Pair>,
    #[prost(message, optional, tag = "5")]
    platform: Option<Platform>,
    #[prost(string, repeated, tag = "7")]
    output_paths: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Action {
    #[prost(message, optional, tag = "1")]
    command_digest: Option<DigestMessage>,
    #[prost(message, optional, tag = "2")]
    input_root_digest: Option<DigestMessage>,
    #[prost(bytes = "vec", tag = "9")]
    salt: Vec<u8>,
    #[prost(message, optional, tag = "10")]
    platform: Option<Platform>,
}

/// The messages of an action, encoded, for one who sends them somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// Of the Action: the key.
    pub digest: Digest,
    /// The Action.
    pub action: Vec<u8>,
    /// The Command.
    pub command: Vec<u8>,
    /// The directories of the input tree; the root is the last one.
    pub directories: Vec<(Digest, Vec<u8>)>,
}

/// Encodes an action. `None` if its inputs cannot be in one tree: a file where another one's directory is, one path with two
/// contents, or one that leads out of the root.
pub fn encode(described: &Description<'_>) -> Option<Encoded> {
    let Description { words, environment, inputs, outputs, platform, salt } = described;
    let mut root = Tree::default();
    for Input { name, digest, is_executable, content: _ } in inputs {
        root.add(&parts(name)?, (*digest, *is_executable))?;
    }
    let mut directories = Vec::new();
    let input_root = root.encode(&mut directories);
    let mut output_paths: Vec<String> = outputs.iter().map(|(path, _)| path.clone().into_owned()).collect();
    output_paths.sort_unstable();
    let platform = (!platform.is_empty()).then(|| Platform { properties: pairs(platform) });
    let command = Command {
        arguments: words.iter().map(|word| word.clone().into_owned()).collect(),
        environment_variables: pairs(environment),
        platform: platform.clone(),
        output_paths,
    };
    let command = command.encode_to_vec();
    let action = Action {
        command_digest: Some(message(&Digest::of(&command))),
        input_root_digest: Some(message(&input_root)),
        salt: salt.clone(),
        platform,
    };
    let action = action.encode_to_vec();
    Some(Encoded { digest: Digest::of(&action), action, command, directories })
}

fn pairs(pairs: &[(String, String)]) -> Vec<Pair> {
    let mut pairs: Vec<_> =
        pairs.iter().map(|(name, value)| Pair { name: name.clone(), value: value.clone() }).collect();
    pairs.sort_unstable_by(|one, other| (&one.name, &one.value).cmp(&(&other.name, &other.value)));
    pairs
}

fn message(digest: &Digest) -> DigestMessage {
    // No file is larger.
    DigestMessage { hash: digest.hex(), size_bytes: i64::try_from(digest.size).unwrap_or(i64::MAX) }
}

/// The components of a path below the root; `None` for one that is not.
fn parts(path: &str) -> Option<Vec<&str>> {
    let is_below = !path.split('/').any(|part| matches!(part, "" | "." | ".."));
    is_below.then(|| path.split('/').collect())
}

/// A file's content, and whether it is a program.
type File = (Digest, bool);

/// A directory of the input tree.
#[derive(Default)]
struct Tree<'a> {
    files: BTreeMap<&'a str, File>,
    directories: BTreeMap<&'a str, Tree<'a>>,
}

impl<'a> Tree<'a> {
    fn add(&mut self, path: &[&'a str], file: File) -> Option<()> {
        match path {
            [] => None,
            [name] if self.directories.contains_key(name) => None,
            [name] => match self.files.entry(name) {
                Entry::Occupied(known) => (*known.get() == file).then_some(()),
                Entry::Vacant(free) => {
                    free.insert(file);
                    Some(())
                }
            },
            [name, ..] if self.files.contains_key(name) => None,
            [name, rest @ ..] => self.directories.entry(name).or_default().add(rest, file),
        }
    }

    fn encode(&self, all: &mut Vec<(Digest, Vec<u8>)>) -> Digest {
        let node = |(name, (digest, is_executable)): (&&str, &File)| FileNode {
            name: (*name).to_owned(),
            digest: Some(message(digest)),
            is_executable: *is_executable,
        };
        let directories = self.directories.iter().map(|(name, tree)| DirectoryNode {
            name: (*name).to_owned(),
            digest: Some(message(&tree.encode(all))),
        });
        let directory =
            Directory { directories: directories.collect(), files: self.files.iter().map(node).collect() };
        let bytes = directory.encode_to_vec();
        let digest = Digest::of(&bytes);
        all.push((digest, bytes));
        digest
    }
}
