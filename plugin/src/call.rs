//! One call of the plugin as values of our own: every pointer of the linker's is followed here and nowhere else.
//!
//! What C allows to check is checked: null and misaligned pointers, counts that no memory can hold, text that is not
//! UTF-8, empty names. A wild pointer cannot be told from a good one. Knows nothing of files.

use std::ffi::{CStr, c_char};

use camino::Utf8PathBuf;
use miette::Diagnostic;
use thiserror::Error;

use crate::interface;

/// More entries than any link has; a larger count is a mistake, such as a size that was never set.
const MOST: usize = 1 << 24;

/// What the linker passed and no linker can mean.
#[derive(Debug, Error, Diagnostic)]
#[error("the linker passed {what} {problem}")]
#[diagnostic(
    code(distlto::bad_input),
    help("{}", if self.about_text { TEXT_HELP } else { "the linker and this plugin disagree on the interface: see dtlto_plugin.h" })
)]
pub struct CallError {
    /// The field or argument, with the node's number and module.
    what: String,
    /// What is wrong with it.
    problem: String,
    about_text: bool,
}

const TEXT_HELP: &str = "rename the file or its directory so that the name is UTF-8";

/// Everything that the linker passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// `<Name>[:<detail>]`.
    pub name: String,
    /// Options of code generation, without the compiler.
    pub arguments: Vec<String>,
    /// The compilations, in the linker's order.
    pub nodes: Vec<BackendNode>,
}

/// One backend compilation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendNode {
    /// The module's name in index shards.
    pub module: String,
    /// The file with its content.
    pub path: Utf8PathBuf,
    /// That file's size in bytes.
    pub size: u64,
    /// Its index shard.
    pub shard: Utf8PathBuf,
    /// The native object.
    pub object: Utf8PathBuf,
    /// The identifiers of the modules it imports from.
    pub imports: Vec<String>,
    /// What to compile for.
    pub triple: String,
}

/// Copies what a linker passed.
///
/// # Safety
///
/// Pointers that are neither null nor misaligned lead to what `dtlto_plugin.h` says, and none of it changes meanwhile.
pub unsafe fn read(
    config: &interface::Config,
    nodes: (usize, *const *const interface::Node),
    arguments: (usize, *const *const c_char),
) -> Result<Call, CallError> {
    // SAFETY: the caller's promise, passed on; so below.
    let name = unsafe { text(config.DbsName, || "DbsName".to_owned()) }?;
    // SAFETY: see above.
    let arguments = unsafe { texts(arguments, "argv", |at| format!("argv[{at}]")) }?;
    // SAFETY: see above.
    let pointers = unsafe { list(nodes.0, nodes.1, || "nodes".to_owned()) }?;
    let node = |(at, &pointer): (usize, &*const interface::Node)| {
        let what = || format!("nodes[{at}]");
        check(pointer, what)?;
        // SAFETY: neither null nor misaligned, so the caller promises a node.
        unsafe { node(&*pointer, at) }
    };
    let nodes = pointers.iter().enumerate().map(node).collect::<Result<_, _>>()?;
    Ok(Call { name, arguments, nodes })
}

/// # Safety
///
/// That of [`read`].
unsafe fn node(node: &interface::Node, at: usize) -> Result<BackendNode, CallError> {
    let filled = |pointer, field: &str, module: &str| {
        let what = || match module {
            "" => format!("{field} of nodes[{at}]"),
            module => format!("{field} of nodes[{at}] ({module})"),
        };
        // SAFETY: the caller's promise.
        let text = unsafe { text(pointer, what) }?;
        if text.is_empty() { Err(CallError::new(what(), "that is empty")) } else { Ok(text) }
    };
    let module = filled(node.ModuleId, "ModuleId", "")?;
    let imports = (node.ImportsListSize, node.ImportsList);
    let list_name = format!("ImportsList of nodes[{at}] ({module})");
    Ok(BackendNode {
        path: filled(node.ModulePath, "ModulePath", &module)?.into(),
        size: u64::try_from(node.ModuleSize).unwrap_or(u64::MAX),
        shard: filled(node.SummaryIndexPath, "SummaryIndexPath", &module)?.into(),
        object: filled(node.NativeObjectPath, "NativeObjectPath", &module)?.into(),
        // SAFETY: the caller's promise.
        imports: unsafe { texts(imports, &list_name, |import| format!("import {import} in {list_name}")) }?,
        triple: filled(node.TargetTriple, "TargetTriple", &module)?,
        module,
    })
}

/// # Safety
///
/// That of [`read`].
unsafe fn texts(
    (count, pointer): (usize, *const *const c_char),
    what: &str,
    entry: impl Fn(usize) -> String,
) -> Result<Vec<String>, CallError> {
    // SAFETY: the caller's promise.
    let pointers = unsafe { list(count, pointer, || what.to_owned()) }?;
    // SAFETY: the caller's promise.
    pointers.iter().enumerate().map(|(at, &pointer)| unsafe { text(pointer, || entry(at)) }).collect()
}

/// # Safety
///
/// That of [`read`].
unsafe fn list<'a, T>(
    count: usize,
    pointer: *const T,
    what: impl Fn() -> String,
) -> Result<&'a [T], CallError> {
    if count == 0 {
        return Ok(&[]);
    }
    if count > MOST {
        return Err(CallError::new(what(), format!("of {count} entries; the most there can be is {MOST}")));
    }
    check(pointer, what)?;
    // SAFETY: not null, aligned, of a size that memory can hold; the caller promises as many entries.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// # Safety
///
/// That of [`read`].
unsafe fn text(pointer: *const c_char, what: impl Fn() -> String) -> Result<String, CallError> {
    check(pointer, &what)?;
    // SAFETY: not null; the caller promises text that ends in NUL.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map(str::to_owned).map_err(|_| CallError {
        about_text: true,
        ..CallError::new(what(), format!("{:?}, which is not UTF-8", text.to_string_lossy()))
    })
}

fn check<T>(pointer: *const T, what: impl Fn() -> String) -> Result<(), CallError> {
    if pointer.is_null() {
        return Err(CallError::new(what(), "as a null pointer"));
    }
    if !pointer.is_aligned() {
        return Err(CallError::new(what(), "at a misaligned address"));
    }
    Ok(())
}

impl CallError {
    fn new(what: String, problem: impl Into<String>) -> Self {
        Self { what, problem: problem.into(), about_text: false }
    }
}
