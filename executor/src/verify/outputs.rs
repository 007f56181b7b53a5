//! After a command: its exit status, its standard error, and every byte range its outputs point at.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitStatus;

use distlto_prepare::io_error::IoError;
use distlto_prepare::kind::{Kind, classify};
use object::{Object, ObjectSection, ObjectSymbol};

use super::{Expectation, Refusal, Refused, contents, versions, zeros};
use crate::execute::capture::Captured;
use crate::execute::process::signal_name;
use crate::output::{Output, Role};

/// Accepts or refuses the result of a command. `module` is the module id; `expected` the requirements on its object.
pub fn check_result(
    module: &str,
    status: ExitStatus,
    stderr: &Captured,
    outputs: &[Output<'_>],
    expected: &Expectation,
) -> Result<(), Refused> {
    let compiled = outputs.iter().any(|written| written.role == Role::Object);
    check_status(status, stderr, compiled).map_err(Refused::about(module))?;
    for written in outputs {
        check_output(written, expected).map_err(Refused::about(module))?;
    }
    Ok(())
}

fn check_status(status: ExitStatus, stderr: &Captured, compiled: bool) -> Result<(), Refusal> {
    let errors = stderr.errors();
    if let Some((signal, name)) = signal_name(status) {
        return Err(Refusal::Signal { signal, name, errors });
    }
    let failed = !status.success() || (compiled && !errors.is_empty());
    if let Some((producer, reader)) = versions::too_old(&errors).filter(|_| failed) {
        return Err(Refusal::TooOld { producer, reader });
    }
    if !status.success() {
        // A status without a code and without a signal does not occur on Unix.
        return Err(Refusal::Exit { code: status.code().unwrap_or(1), errors });
    }
    match errors.into_iter().next() {
        // A linker with an option to tolerate errors prints them and exits 0.
        Some(text) if compiled => Err(Refusal::BackendError { text }),
        _ => Ok(()),
    }
}

fn check_output(written: &Output<'_>, expected: &Expectation) -> Result<(), Refusal> {
    let output = || written.place.clone();
    let metadata = match fs::metadata(&written.file) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound && written.role == Role::DwoIfAny => {
            return Ok(());
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Refusal::NoOutput { output: output() });
        }
        Err(error) => return Err(IoError::on("look at", &written.file)(error).into()),
    };
    if written.role == Role::Any {
        return Ok(());
    }
    if metadata.is_file() && metadata.len() == 0 {
        if written.role == Role::DwoIfAny {
            return Ok(());
        }
        return Err(Refusal::EmptyOutput { output: output() });
    }
    if written.role == Role::File {
        return Ok(());
    }
    if !metadata.is_file() {
        let detail = "it is not a file".to_owned();
        return Err(Refusal::Malformed { output: output(), detail });
    }
    let bytes = fs::read(&written.file).map_err(IoError::on("read", &written.file))?;
    match written.role {
        Role::Object => check_object(&bytes, &written.place, expected),
        // Debug information is of the same machine, and defines nothing.
        _ => check_object(&bytes, &written.place, &Expectation { contents: None, ..*expected }),
    }
}

/// Accepts or refuses the bytes of a native object; `output` is its place, for messages.
pub fn check_object(bytes: &[u8], output: &Path, expected: &Expectation) -> Result<(), Refusal> {
    if bytes.is_empty() {
        return Err(Refusal::EmptyOutput { output: output.to_owned() });
    }
    let malformed = |detail: String| Refusal::Malformed { output: output.to_owned(), detail };
    match classify(bytes) {
        // An object that carries bitcode beside its code is native code all the same.
        Kind::Native(found) | Kind::FatLto(found) if expected.native.is_none_or(|native| native == found) => {
        }
        found @ Kind::Other if looks_native(bytes) => {
            return Err(malformed(format!("its headers cannot be read ({found})")));
        }
        found => {
            let expected = expected.native;
            return Err(Refusal::WrongKind { output: output.to_owned(), found, expected });
        }
    }
    let file = object::File::parse(bytes).map_err(|error| malformed(error.to_string()))?;
    let mut sections = 0;
    for section in file.sections() {
        sections += 1;
        section.data().map_err(|error| {
            let name = section.name().unwrap_or("?");
            malformed(format!("section {name} lies outside of its {} bytes: {error}", bytes.len()))
        })?;
    }
    if sections == 0 {
        return Err(malformed("it has no sections".to_owned()));
    }
    for symbol in file.symbols() {
        symbol.name_bytes().map_err(|error| malformed(format!("symbol {}: {error}", symbol.index().0)))?;
    }
    if let Some(damage) = zeros::damage(&file, bytes) {
        return Err(malformed(format!("it has {damage}")));
    }
    match expected.contents.as_ref().and_then(|contents| contents::missing(&file, contents)) {
        Some(lacks) => Err(Refusal::MissingContents { output: output.to_owned(), lacks }),
        None => Ok(()),
    }
}

/// Whether bytes begin as an object of a known format does.
fn looks_native(bytes: &[u8]) -> bool {
    object::FileKind::parse(bytes).is_ok() || bytes.starts_with(b"\x7fELF")
}
