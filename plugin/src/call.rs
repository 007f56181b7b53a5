//! One call of the plugin as values of our own: this module follows every pointer of the linker's, and no other does.
//!
//! It makes all checks that C allows: null and misaligned pointers, counts that no memory can hold, text that is not
//! UTF-8, empty names. A wild pointer cannot be recognised.

use std::ffi::{CStr, c_char};

use crate::{Config, Node};

/// More entries than any link has; a larger count is a mistake, such as a size that was never set.
const MOST: usize = 1 << 24;

/// Everything that the linker passed: `<Name>[:<detail>]`, options of code generation, and the compilations.
#[derive(Debug)]
pub struct Call {
    pub name: String,
    pub arguments: Vec<String>,
    pub nodes: Vec<Compilation>,
}

/// One backend compilation, by names and paths.
#[derive(Debug)]
pub struct Compilation {
    pub module: String,
    pub path: String,
    pub shard: String,
    pub object: String,
    pub imports: Vec<String>,
    pub triple: String,
}

/// Copies the linker's arguments. Fails with a description of a value that no linker can mean.
///
/// # Safety
///
/// Pointers that are neither null nor misaligned lead to data as in `dtlto_plugin.h`, and none of it changes meanwhile.
pub unsafe fn read(
    config: &Config,
    (count, nodes): (usize, *const *const Node),
    arguments: (usize, *const *const c_char),
) -> Result<Call, String> {
    // SAFETY: the caller's promise, passed on.
    unsafe {
        let name = text(config.DbsName, || "DbsName".to_owned())?;
        let arguments = texts(arguments, "argv", |at| format!("argv[{at}]"))?;
        let pointers = list(count, nodes, || "nodes".to_owned())?;
        let node = |(at, &pointer): (usize, &*const Node)| {
            check(pointer, || format!("nodes[{at}]"))?;
            compilation(&*pointer, at)
        };
        let nodes = pointers.iter().enumerate().map(node).collect::<Result<_, _>>()?;
        Ok(Call { name, arguments, nodes })
    }
}

/// # Safety
///
/// That of [`read`].
unsafe fn compilation(node: &Node, at: usize) -> Result<Compilation, String> {
    let filled = |pointer, what: String| {
        // SAFETY: the caller's promise.
        let text = unsafe { text(pointer, || what.clone()) }?;
        if text.is_empty() { Err(refusal(&what, "that is empty")) } else { Ok(text) }
    };
    let module = filled(node.ModuleId, format!("ModuleId of nodes[{at}]"))?;
    let named = |field| format!("{field} of nodes[{at}] ({module})");
    let list_name = named("ImportsList");
    let imports = (node.ImportsListSize, node.ImportsList);
    Ok(Compilation {
        path: filled(node.ModulePath, named("ModulePath"))?,
        shard: filled(node.SummaryIndexPath, named("SummaryIndexPath"))?,
        object: filled(node.NativeObjectPath, named("NativeObjectPath"))?,
        // SAFETY: the caller's promise.
        imports: unsafe { texts(imports, &list_name, |import| format!("import {import} in {list_name}")) }?,
        triple: filled(node.TargetTriple, named("TargetTriple"))?,
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
) -> Result<Vec<String>, String> {
    // SAFETY: the caller's promise.
    let pointers = unsafe { list(count, pointer, || what.to_owned()) }?;
    // SAFETY: the caller's promise.
    pointers.iter().enumerate().map(|(at, &pointer)| unsafe { text(pointer, || entry(at)) }).collect()
}

/// # Safety
///
/// That of [`read`].
unsafe fn list<'a, T>(count: usize, pointer: *const T, what: impl Fn() -> String) -> Result<&'a [T], String> {
    if count == 0 {
        return Ok(&[]);
    }
    if count > MOST {
        return Err(refusal(&what(), &format!("of {count} entries; the most there can be is {MOST}")));
    }
    check(pointer, what)?;
    // SAFETY: not null, aligned, of a size that memory can hold; the caller promises as many entries.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// # Safety
///
/// That of [`read`].
unsafe fn text(pointer: *const c_char, what: impl Fn() -> String) -> Result<String, String> {
    check(pointer, &what)?;
    // SAFETY: not null; the caller promises text that ends in NUL.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map(str::to_owned).map_err(|_| {
        let (what, text) = (what(), text.to_string_lossy());
        format!(
            "the linker passed {what} {text:?}, which is not UTF-8\n  help: rename the file or its directory so that \
             the name is UTF-8"
        )
    })
}

fn check<T>(pointer: *const T, what: impl Fn() -> String) -> Result<(), String> {
    if pointer.is_null() {
        return Err(refusal(&what(), "as a null pointer"));
    }
    if !pointer.is_aligned() {
        return Err(refusal(&what(), "at a misaligned address"));
    }
    Ok(())
}

fn refusal(what: &str, problem: &str) -> String {
    format!(
        "the linker passed {what} {problem}\n  help: the linker and this plugin disagree on the interface: see \
         dtlto_plugin.h"
    )
}
