//! The ThinLTO parts of split units, for `opt`, which reads no file of two modules.
//!
//! In a link with `-fwhole-program-vtables` or `-fsanitize=cfi` an object may hold two modules. A backend takes the first; the
//! second one went to regular LTO in the thin link. So an import step gets a folder in which every module of the shard is a
//! file of one module, and a shard that names those files. LLVM imports from modules in the order of their names, which
//! does not change.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, absolute};
use std::{fs, io};

use distlto_planner::module::first_of_split_unit;
use distlto_planner::shard::{self, canonical};
use distlto_prepare::io_error::IoError;

/// Inputs of an import step, as its command names them.
#[derive(Debug)]
pub struct StepInputs {
    pub module: String,
    pub shard: String,
}

/// Creates `folder` with inputs for the step of a module and returns their names; `None` if the link has no split
/// units. `folder`, `module` and `shard` are relative to `directory`.
pub fn inputs(
    module: &str,
    shard: &str,
    directory: &Path,
    folder: &str,
) -> Result<Option<StepInputs>, String> {
    let place = directory.join(shard);
    let bytes = fs::read(&place).map_err(on("read", &place))?;
    let wrong = |error| format!("{shard}: {error}");
    if !shard::read(&bytes).map_err(wrong)?.may_have_split_units() {
        return Ok(None);
    }
    let modules = canonical(&bytes).map_err(wrong)?.modules;
    let names: HashMap<Vec<u8>, String> =
        modules.into_iter().map(|module| (module.path, format!("{folder}/{}", module.name))).collect();
    let place = directory.join(folder);
    fs::create_dir_all(&place).map_err(on("create directory", &place))?;
    for (path, name) in &names {
        // The backend's inputs were checked, so this is the name of a file.
        put(&directory.join(OsStr::from_bytes(path)), &directory.join(name))?;
    }
    let renamed = shard::rename(&bytes, |path| names.get(path).map(|name| name.clone().into_bytes()));
    let shard = format!("{folder}/shard.bc");
    let place = directory.join(&shard);
    fs::write(&place, renamed.map_err(wrong)?).map_err(on("write", &place))?;
    let module = names.get(module.as_bytes()).ok_or("its shard does not name it")?;
    Ok(Some(StepInputs { module: module.clone(), shard }))
}

/// Puts a module where `opt` reads it: the first part of a split one, or a link to the whole file. `opt` reports
/// damage.
fn put(module: &Path, place: &Path) -> Result<(), String> {
    let bytes = fs::read(module).map_err(on("read", module))?;
    match first_of_split_unit(&bytes) {
        Ok(Some(part)) => fs::write(place, part).map_err(on("write", place)),
        _ => absolute(module).and_then(|module| symlink(module, place)).map_err(on("write", place)),
    }
}

fn on(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> String {
    move |error| IoError::on(operation, path)(error).to_string()
}
