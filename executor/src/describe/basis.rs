//! All that decides a backend compilation besides its IR: the stem, which changes with neither shard nor imports, and
//! the decisions of the thin link.
//!
//! Together with that IR, as it is after the import step, they make the precise key (see `docs/design/precise.md`). Knows nothing of
//! how the IR is had.

use std::borrow::Cow;
use std::path::PathBuf;

use distlto_planner::digests::Digest;

use super::Described;
use super::framed::Framed;
use crate::action::Description;
use crate::execute::cc1::TemplateWord;

/// Parts of a precise key.
#[derive(Debug, Clone)]
pub struct Basis {
    /// The module's own bitcode, the compiler, its command and environment, and every other input but shard and
    /// imports.
    pub stem: Digest,
    /// The whole canonical shard but for the table of modules and their hashes.
    pub decisions: Digest,
    /// The compiler's file.
    pub compiler: PathBuf,
    /// Values of its `-mllvm` options, which the import step gets too.
    pub options: Vec<String>,
}

impl Described<'_> {
    /// Returns the action by which caches find the result of this IR, independent of the files that it comes from.
    /// Nobody executes it; its digest is the precise key. `merged` is the IR after the import step.
    pub fn precise(&self, basis: &Basis, merged: &Digest) -> Option<Self> {
        let mut salt = Framed::new("distlto precise 1");
        salt.content("stem", &basis.stem);
        salt.content("decisions", &basis.decisions);
        salt.content("merged", merged);
        let action = Description {
            words: vec![Cow::Borrowed("distlto-precise")],
            environment: &[],
            inputs: Vec::new(),
            outputs: self.action.outputs.clone(),
            platform: self.action.platform,
            salt: salt.finish().hash.to_vec(),
        };
        let encoded = action.encode().ok()?;
        let (local_only, directory) = (self.local_only.clone(), self.directory);
        Some(Self { action, encoded, local_only, basis: None, directory })
    }
}

/// The words after each `-mllvm` of a `-cc1` command.
pub fn llvm_options(arguments: &[TemplateWord]) -> Vec<String> {
    let pairs = arguments.windows(2).filter_map(|pair| match pair {
        [TemplateWord::Word(option), TemplateWord::Word(value)] if option == b"-mllvm" => {
            String::from_utf8(value.clone()).ok()
        }
        _ => None,
    });
    pairs.collect()
}
