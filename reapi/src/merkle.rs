//! A tree of `Directory` messages in canonical form: the inputs of an action, and the digest of the root.
//!
//! Canonical as `remote_execution.proto` demands: each name once, sorted by bytes, so that one tree has one digest. Knows
//! nothing of files on a disk.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use miette::Diagnostic;
use prost::Message;
use prost::bytes::Bytes;
use thiserror::Error;

use crate::blob::Blob;
use crate::digest::{Digest, DigestMessage};
use crate::proto;

/// Why a path cannot be in a tree.
#[derive(Debug, Clone, PartialEq, Eq, Error, Diagnostic)]
pub enum TreeError {
    /// It is not a clean relative path.
    #[error("`{path}` cannot be in an input tree: {why}")]
    #[diagnostic(help("name it relative to the root of the tree, without `.`, `..` and empty components"))]
    Path {
        /// The path.
        path: String,
        /// The problem.
        why: &'static str,
    },
    /// Something else has the name.
    #[error("`{path}` is in the input tree already, as {known}")]
    #[diagnostic(help("two inputs with one name need one content; a file cannot be a directory as well"))]
    Conflict {
        /// The path, or the part of it that something else has.
        path: String,
        /// The kind of the known entry.
        known: &'static str,
    },
}

/// A tree that is being put together.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    nodes: BTreeMap<String, Node>,
}

#[derive(Debug, Clone)]
enum Node {
    File { digest: Digest, executable: bool },
    Directory(Tree),
}

impl Node {
    fn kind(&self) -> &'static str {
        match self {
            Self::File { executable: false, .. } => "a file with other content or mode",
            Self::File { executable: true, .. } => "an executable file with other content or mode",
            Self::Directory(_) => "a directory",
        }
    }
}

/// A tree that is complete. Cheap to clone.
#[derive(Debug, Clone)]
pub struct BuiltTree(Arc<Directory>);

#[derive(Debug)]
struct Directory {
    digest: Digest,
    bytes: Bytes,
    children: Vec<BuiltTree>,
}

impl Tree {
    /// A tree with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file. Adding the same file again changes nothing.
    pub fn add_file(&mut self, path: &str, digest: Digest, executable: bool) -> Result<(), TreeError> {
        let (parent, name) = self.parent(path)?;
        match parent.nodes.entry(name.to_owned()) {
            Entry::Vacant(free) => {
                free.insert(Node::File { digest, executable });
                Ok(())
            }
            Entry::Occupied(known) => match known.get() {
                Node::File { digest: of, executable: mode } if (*of, *mode) == (digest, executable) => Ok(()),
                other => Err(TreeError::Conflict { path: path.to_owned(), known: other.kind() }),
            },
        }
    }

    /// The directory that holds `path`, and the name in it.
    fn parent<'path>(&mut self, path: &'path str) -> Result<(&mut Self, &'path str), TreeError> {
        check(path)?;
        let Some((parents, name)) = path.rsplit_once('/') else { return Ok((self, path)) };
        let mut tree = self;
        let mut end = 0;
        for part in parents.split('/') {
            end += part.len();
            tree = tree.child(part, &path[..end])?;
            end += 1;
        }
        Ok((tree, name))
    }

    fn child(&mut self, name: &str, path: &str) -> Result<&mut Self, TreeError> {
        // Looked up first, so that a name is copied only for a new directory.
        if !self.nodes.contains_key(name) {
            self.nodes.insert(name.to_owned(), Node::Directory(Self::default()));
        }
        match self.nodes.get_mut(name) {
            Some(Node::Directory(tree)) => Ok(tree),
            other => {
                let known = other.map_or("nothing", |node| node.kind());
                Err(TreeError::Conflict { path: path.to_owned(), known })
            }
        }
    }

    /// Encodes every directory.
    pub fn build(&self) -> BuiltTree {
        let mut message = proto::Directory::default();
        let mut children = Vec::new();
        for (name, node) in &self.nodes {
            let child = match node {
                Node::File { digest, executable } => {
                    message.files.push(proto::FileNode {
                        name: name.clone(),
                        digest: Some(digest.message()),
                        is_executable: *executable,
                        node_properties: None,
                    });
                    continue;
                }
                Node::Directory(tree) => tree.build(),
            };
            let digest = Some(child.digest().message());
            message.directories.push(proto::DirectoryNode { name: name.clone(), digest });
            children.push(child);
        }
        let bytes = Bytes::from(message.encode_to_vec());
        BuiltTree(Arc::new(Directory { digest: Digest::of(&bytes), bytes, children }))
    }
}

fn check(path: &str) -> Result<(), TreeError> {
    let bad = |why| Err(TreeError::Path { path: path.to_owned(), why });
    if path.starts_with('/') {
        return bad("it is absolute");
    }
    for part in path.split('/') {
        match part {
            "" => return bad("a component of it is empty"),
            "." => return bad("it holds `.`"),
            ".." => return bad("it holds `..`"),
            part if part.contains('\0') => return bad("it holds a zero byte"),
            _ => {}
        }
    }
    Ok(())
}

impl BuiltTree {
    /// The name of the root.
    pub fn digest(&self) -> Digest {
        self.0.digest
    }

    /// Returns every `Directory` message once, the root first, for upload beside the files.
    pub fn blobs(&self) -> Vec<Blob> {
        let mut seen = HashSet::new();
        let mut blobs = Vec::new();
        let mut open = vec![self];
        while let Some(tree) = open.pop() {
            if seen.insert(tree.digest()) {
                blobs.push(Blob::named(tree.digest(), tree.0.bytes.clone()));
                open.extend(tree.0.children.iter().rev());
            }
        }
        blobs
    }
}
