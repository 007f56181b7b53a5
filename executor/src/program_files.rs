//! The files of a program: itself and every library that the system's loader would load with it.
//!
//! Most of a compiler or linker is in libraries. The loader is asked (`INTERPRETER --list PROGRAM`), which relocates
//! and runs nothing. Does not depend on the purpose of the programs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use distlto_prepare::mutex::lock;
use distlto_prepare::regular;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, elf};

/// Whether a program is a script, which another program runs.
pub fn is_script(program: &Path) -> bool {
    let mut head = [0; 2];
    // A program that is no file cannot be run.
    let file = std::fs::File::open(program).and_then(|mut file| file.read_exact(&mut head));
    file.is_ok() && head == *b"#!"
}

/// Another program of a compiler's installation: the one of this name beside its own file.
pub fn beside(program: &Path, name: &str) -> Option<PathBuf> {
    let place = program.canonicalize().ok()?.with_file_name(name);
    place.is_file().then_some(place)
}

/// The libraries that a program's loader loads, the loader itself among them. A loader is asked once for each program.
pub fn libraries(program: &Path) -> Result<Vec<PathBuf>, String> {
    static ASKED: Mutex<BTreeMap<PathBuf, Result<Vec<PathBuf>, String>>> = Mutex::new(BTreeMap::new());
    let asked = || lock(&ASKED);
    if let Some(known) = asked().get(program) {
        return known.clone();
    }
    let found = ask(program);
    asked().insert(program.to_owned(), found.clone());
    found
}

fn ask(program: &Path) -> Result<Vec<PathBuf>, String> {
    let Some(interpreter) = interpreter(program)? else { return Ok(Vec::new()) };
    let failed = |what: String| format!("the libraries of {}: {what}", program.display());
    let mut command = Command::new(&interpreter);
    command.arg("--list").arg(program).stdin(Stdio::null());
    let output = command.output().map_err(|error| failed(format!("{}: {error}", interpreter.display())))?;
    if !output.status.success() {
        return Err(failed(format!("{} --list: {}", interpreter.display(), output.status)));
    }
    let mut found = vec![interpreter];
    for line in output.stdout.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        let place = listed(line).ok_or_else(|| failed(String::from_utf8_lossy(line).into_owned()))?;
        found.extend(place);
    }
    Ok(found)
}

/// Returns the file of a line `NAME => PLACE (ADDRESS)` or `PLACE (ADDRESS)`; the inner `None` for a library of the
/// kernel. The outer `None` for any other line, such as one for a missing library.
fn listed(line: &[u8]) -> Option<Option<PathBuf>> {
    let line = line.trim_ascii();
    let address = line.windows(4).rposition(|part| part == b" (0x")?;
    let line = &line[..address];
    let arrow = line.windows(4).position(|part| part == b" => ");
    let place = arrow.map_or(line, |at| &line[at + 4..]);
    match place {
        [b'/', ..] => Some(Some(PathBuf::from(OsString::from_vec(place.to_vec())))),
        _ if arrow.is_none() => Some(None),
        _ => None,
    }
}

/// The loader that an ELF program names; `None` for one that is linked statically.
pub fn interpreter(program: &Path) -> Result<Option<PathBuf>, String> {
    let failed = |what: &str| format!("{}: {what}", program.display());
    let (file, _) = regular::open(program).map_err(|error| failed(&error.to_string()))?;
    // Only a program's headers, which come first, are read.
    let cache = object::ReadCache::new(file);
    let not_elf = |_| failed("is not an ELF program");
    let name = match object::FileKind::parse(&cache).map_err(not_elf)? {
        object::FileKind::Elf64 => interpreter_of::<elf::FileHeader64<Endianness>, _>(&cache),
        object::FileKind::Elf32 => interpreter_of::<elf::FileHeader32<Endianness>, _>(&cache),
        _ => return Err(failed("is not an ELF program")),
    };
    Ok(name.map_err(not_elf)?.map(|name| PathBuf::from(OsString::from_vec(name))))
}

fn interpreter_of<'data, H: FileHeader, R: object::ReadRef<'data>>(
    data: R,
) -> object::Result<Option<Vec<u8>>> {
    let header = H::parse(data)?;
    let endian = header.endian()?;
    for segment in header.program_headers(endian, data)? {
        if let Some(name) = segment.interpreter(endian, data)? {
            return Ok(Some(name.to_vec()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_loader() {
        let place =
            |line: &str| listed(line.as_bytes()).map(|place| place.map(|place| place.display().to_string()));
        let found = |text: &str| Some(Some(text.to_owned()));
        assert_eq!(place("\tlinux-vdso.so.1 (0x00007fff)"), Some(None));
        assert_eq!(
            place("\tliba.so => /usr/lib/a (b) => c/liba.so (0x0000)"),
            found("/usr/lib/a (b) => c/liba.so")
        );
        assert_eq!(
            place("\t/lib64/ld-linux-x86-64.so.2 (0x00007f17d8e87000)"),
            found("/lib64/ld-linux-x86-64.so.2")
        );
        assert_eq!(place("\tlibgone.so.1 => not found"), None);
        assert_eq!(place("\tstatically linked"), None);
    }

    #[test]
    fn the_libraries_of_this_program_are_those_that_it_has_loaded() {
        let own = std::env::current_exe().expect("a program").canonicalize().expect("a file");
        let listed: Vec<_> =
            libraries(&own).expect("a list").iter().filter_map(|file| file.canonicalize().ok()).collect();
        let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
        let loaded = maps.lines().filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])));
        for loaded in
            loaded.filter(|file| file.to_string_lossy().contains(".so") && !file.starts_with("/proc"))
        {
            assert!(listed.iter().any(|file| file == loaded), "{} of {listed:?}", loaded.display());
        }
        assert!(listed.iter().any(|file| file.to_string_lossy().contains("libc.so")), "{listed:?}");
    }
}
