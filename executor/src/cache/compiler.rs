//! Which compiler it is: the content of its program and of every library that it loads, and of what is run before it.
//!
//! The program is the one that the driver's `-###` names, resolved through wrappers and symbolic links; a wrapper's own
//! content counts too. The libraries are those that the system's loader would load (`INTERPRETER --list PROGRAM`), since
//! most of a compiler is in them, and LLVM folds constants with the system's mathematics. Their digests are remembered by
//! device, inode, size and times, so a compiler that is replaced by one of the same size and time is noticed by its inode
//! or its change time. Names do not count: a key hits where the same compiler lies elsewhere.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use camino::Utf8PathBuf;
use distlto_planner::digests::{Digest, FileDigests};
use distlto_planner::front::in_search_path;
use distlto_prepare::blobs;
use distlto_prepare::check::Bad;
use distlto_prepare::regular;
use distlto_prepare::write::IoError;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, elf};

use super::framed::Framed;

/// Where the digests of compilers are remembered, beside the results.
const REMEMBERED: &str = "compilers-v1";

/// Knows compilers by their files.
#[derive(Debug)]
pub struct Compilers {
    digests: FileDigests,
    remembered: PathBuf,
}

impl Compilers {
    /// With digests that earlier runs remembered in a cache's directory. Such that cannot be used cost only time.
    pub fn new(cache: &Path) -> Self {
        let remembered = cache.join(REMEMBERED);
        let (digests, _) = FileDigests::load(&remembered, Path::new(""));
        Self { digests, remembered }
    }

    /// Forgets files of compilers that are gone or were replaced, and says how many.
    pub fn prune(cache: &Path) -> Result<usize, IoError> {
        FileDigests::prune(&cache.join(REMEMBERED), Path::new(""))
    }

    /// What is wrong with what is remembered, which is removed unless told to `keep` it.
    pub fn check(cache: &Path, keep: bool) -> Option<Bad> {
        let path = cache.join(REMEMBERED);
        let (_, problem) = FileDigests::load(&path, Path::new(""));
        let problem = problem?;
        if !keep {
            // What stays is never believed.
            let _ = blobs::remove(&path);
        }
        Some(Bad { path, problem })
    }

    /// Remembers the digests for later runs.
    pub fn save(&self) -> Result<(), IoError> {
        self.digests.save(&self.remembered)
    }

    /// Stands for a compiler. `words` are those of the driver's command, of which all before the first option are
    /// programs; `program` is what it runs in the end. An error says what cannot be found out.
    pub fn identity(&self, words: &[&str], program: &Path, directory: &Path) -> Result<Digest, String> {
        let mut files = vec![program.to_owned()];
        files.extend(libraries(program)?);
        let before = words.iter().take_while(|word| !word.starts_with('-'));
        let wrappers = before.filter_map(|word| place_of(word, directory)).filter(|place| place != program);
        files.extend(wrappers);
        let files = files
            .into_iter()
            .map(Utf8PathBuf::try_from)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| format!("{}: the path is not UTF-8", error.as_path().display()))?;
        let mut framed = Framed::new("distlto compiler 1");
        for digest in self.digests.digest_all(&files) {
            framed.content("file", &digest.map_err(|error| error.to_string())?);
        }
        Ok(framed.finish())
    }
}

/// The file that runs for a word of a command; `None` for a word that names no file.
fn place_of(word: &str, directory: &Path) -> Option<PathBuf> {
    let place = directory.join(word);
    let found = if word.contains('/') || place.is_file() { place } else { in_search_path(Path::new(word))? };
    found.canonicalize().ok().filter(|found| found.is_file())
}

/// The libraries that a program's loader loads, the loader itself among them.
fn libraries(program: &Path) -> Result<Vec<PathBuf>, String> {
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

/// The file of a line `NAME => PLACE (ADDRESS)` or `PLACE (ADDRESS)`; nothing inside for what the kernel provides.
/// `None` for a line that says something else, as that a library is not found.
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
fn interpreter(program: &Path) -> Result<Option<PathBuf>, String> {
    let failed = |what: &str| format!("{}: {what}", program.display());
    let (file, _) = regular::open(program).map_err(|error| failed(&error.to_string()))?;
    // A program's headers, which come first, are all that is read.
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
