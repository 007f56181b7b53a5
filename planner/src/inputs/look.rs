//! What a file of a link line is, and what its bitcode says.
//!
//! Reads one file at a time; knows nothing of how it is taken.

use std::path::{Path, PathBuf};

use distlto_prepare::input::Input;
use distlto_prepare::kind::{self, Kind};
use distlto_prepare::manifest::Manifest;
use distlto_prepare::peek::needs_unpacking;

use super::line::Named;
use super::{InputError, NativeInput};
use crate::module::{self, Module};
use crate::words::path_of;

/// What one input turned out to be.
pub enum Looked {
    /// Nothing that a backend compiles.
    Other(NativeInput),
    /// A bitcode object; `bitcode` is set where it is a part of the file only.
    Module { module: Box<Module>, bitcode: Option<Vec<u8>> },
    /// An archive with bitcode, or with members of one name.
    Archive { thin: bool },
}

/// Looks at one input. FatLTO objects are bitcode only under `--fat-lto-objects`.
pub fn look(named: &Named, fat_lto: bool) -> Result<Looked, InputError> {
    if named.binary || !named.path.is_file() {
        return Ok(Looked::Other(NativeInput::Else));
    }
    let path = &named.path;
    let bytes = Input::open(path)?;
    match kind::classify(&bytes) {
        Kind::Bitcode { .. } => {
            let module = Box::new(module_of(path, &bytes)?);
            Ok(Looked::Module { module, bitcode: None })
        }
        Kind::FatLto(_) if fat_lto => {
            let Some(bitcode) = kind::bitcode_of(&bytes) else {
                return Ok(Looked::Other(NativeInput::Object));
            };
            let module = Box::new(module_of(path, bitcode)?);
            Ok(Looked::Module { module, bitcode: Some(bitcode.to_vec()) })
        }
        // lld takes an empty file for an empty linker script, and the module is missing from the program.
        Kind::Empty if path.extension().is_some_and(|extension| extension == "o") => {
            Err(InputError::EmptyObject { path: path.clone() })
        }
        Kind::Archive { thin } if needs_unpacking(path, fat_lto)? => Ok(Looked::Archive { thin }),
        Kind::Archive { .. } => Ok(Looked::Other(NativeInput::Archive)),
        Kind::Native(_) | Kind::FatLto(_) => Ok(Looked::Other(NativeInput::Object)),
        Kind::Text => Ok(Looked::Other(NativeInput::Script)),
        _ => Ok(Looked::Other(NativeInput::Else)),
    }
}

fn module_of(path: &Path, bitcode: &[u8]) -> Result<Module, InputError> {
    module::read(bitcode).map_err(|source| InputError::Bitcode { path: path.to_owned(), source })
}

/// Reads what a bitcode file says of itself.
pub fn read_module(path: &Path) -> Result<Module, InputError> {
    module_of(path, &Input::open(path)?)
}

/// The files that unpacking an archive reads, those that no plan can name left out: the archive and, of a thin one,
/// its members' own files, which a manifest names as the archive does, percent-encoded. `name` is the archive's name in
/// the plan.
pub fn sources_of(name: &str, archive: &Path, thin: bool, manifest: &Manifest) -> Vec<String> {
    let members = manifest.members.iter().filter(|_| thin).map(|member| file_of(archive, &member.name));
    let mut files: Vec<String> = std::iter::once(PathBuf::from(name))
        .chain(members)
        .filter_map(|path: PathBuf| path.into_os_string().into_string().ok())
        .collect();
    files.sort_unstable();
    files.dedup();
    files
}

/// The file of a thin archive's member. Of one in an archive within, that archive is the file.
pub fn file_of(archive: &Path, name: &str) -> PathBuf {
    let beside = archive.parent().unwrap_or(Path::new(""));
    let path = beside.join(path_of(&percent_decoded(name)));
    match name.rsplit_once('(') {
        Some((inner, _)) if !path.exists() => beside.join(path_of(&percent_decoded(inner))),
        _ => path,
    }
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits =
            after.get(..2).filter(|_| byte == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(value) => {
                decoded.push(value);
                rest = &after[2..];
            }
            None => {
                decoded.push(byte);
                rest = after;
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_names_are_decoded() {
        assert_eq!(percent_decoded("a%FF%0Ab%25.o"), b"a\xff\nb%.o");
        assert_eq!(percent_decoded("%zz%4"), b"%zz%4");
    }
}
