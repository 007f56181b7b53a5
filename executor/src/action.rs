//! An action by content: command, environment, inputs by digest, outputs, platform. Nothing else affects its result.
//!
//! Its names are canonical: the same work has the same description in any folder, on any machine and for any linker
//! process. Its key is the digest of its REAPI Action ([`Description::encode`]), so that a local cache and a remote one
//! have one key. The description is complete: another machine can execute it. Independent of caches and executors.

use std::borrow::Cow;

use distlto_planner::digests::Digest;
use distlto_reapi::action::{Action, EncodedAction};
use distlto_reapi::merkle::{BuiltTree, Tree, TreeError};

use crate::output::Role;

/// An action to execute.
#[derive(Debug, Clone)]
pub struct Description<'a> {
    /// The command's words; the first one is the program. It runs in the root of the inputs.
    pub words: Vec<Cow<'a, str>>,
    /// Variables that the command reads, in any order.
    pub environment: &'a [(String, String)],
    /// Its inputs, in any order; one file may be named more than once.
    pub inputs: Vec<ActionInput<'a>>,
    /// Its outputs by the command's names, with the required kind of each, in the order of the job.
    pub outputs: Vec<(Cow<'a, str>, Role)>,
    /// Required properties of a worker, in any order.
    pub platform: &'a [(String, String)],
    /// Anything else that affects its result: the compiler, which is no input.
    pub salt: Vec<u8>,
}

/// A file that a command reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionInput<'a> {
    /// Its path below the root of the inputs.
    pub name: Cow<'a, str>,
    /// Of its content.
    pub digest: Digest,
    /// Whether it is a program.
    pub is_executable: bool,
    /// Where its content is.
    pub content: InputContent<'a>,
}

/// Where the content of an input is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputContent<'a> {
    /// In this file, relative to the directory of the job.
    File(Cow<'a, str>),
    /// Here.
    Bytes(Vec<u8>),
}

/// An action in the messages of the Remote Execution API.
#[derive(Debug, Clone)]
pub struct Encoded {
    /// The Action and the Command.
    pub action: EncodedAction,
    /// The tree of inputs.
    pub tree: BuiltTree,
}

impl Encoded {
    /// Of the Action: the key.
    pub fn digest(&self) -> Digest {
        self.action.digest()
    }
}

impl Description<'_> {
    /// Encodes the action. Fails if the inputs cannot be in one tree: a file where another one's directory is, one path
    /// with two contents, or a path that leads out of the root.
    pub fn encode(&self) -> Result<Encoded, TreeError> {
        let Self { words, environment, inputs, outputs, platform, salt } = self;
        let mut tree = Tree::new();
        for ActionInput { name, digest, is_executable, content: _ } in inputs {
            tree.add_file(name, *digest, *is_executable)?;
        }
        let tree = tree.build();
        let action = Action {
            environment: environment.to_vec(),
            output_paths: outputs.iter().map(|(path, _)| path.clone().into_owned()).collect(),
            platform: platform.to_vec(),
            salt: salt.clone(),
            ..Action::new(words.iter().map(|word| word.clone().into_owned()).collect(), tree.digest())
        };
        Ok(Encoded { action: action.encode(), tree })
    }
}
