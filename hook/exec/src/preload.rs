//! The functions that start programs, which pass a fitting environment on.
//!
//! They are called in signal handlers, and between fork(2) or vfork(2) and exec(3). So nothing here allocates, locks or
//! changes memory that a parent shares: the real functions are looked up when the library is loaded, and a changed
//! environment lies on the stack, or in pages of its own if it is large. The environment of other programs is passed on
//! as it is. glibc gives constructors the arguments of the program; musl does not.

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::mem::{MaybeUninit, transmute};
use core::panic::PanicInfo;
use core::ptr::{null, null_mut};
use core::slice;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::environment::{LIBRARY_NAME, Libraries, Preloaded, SERVICE, STATIC_LINKER, Text};
use crate::kind::{self, Kind};

type Strings = *const *const c_char;
type Exec = unsafe extern "C" fn(*const c_char, Strings, Strings) -> c_int;
type Spawn =
    unsafe extern "C" fn(*mut c_int, *const c_char, *const c_void, *const c_void, Strings, Strings) -> c_int;

unsafe extern "C" {
    static environ: Strings;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn __errno_location() -> *mut c_int;
    fn abort() -> !;
    fn access(path: *const c_char, mode: c_int) -> c_int;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn pread(file: c_int, bytes: *mut c_void, size: usize, at: c_long) -> isize;
    fn close(file: c_int) -> c_int;
    fn readlink(path: *const c_char, target: *mut c_char, size: usize) -> isize;
    fn mmap(
        at: *mut c_void,
        size: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        from: c_long,
    ) -> *mut c_void;
    fn munmap(at: *mut c_void, size: usize) -> c_int;
}

/// Values of Linux and of both libcs, the same on every architecture.
const RTLD_DEFAULT: *mut c_void = null_mut();
const RTLD_NEXT: *mut c_void = -1_isize as *mut c_void;
const X_OK: c_int = 1;
const R_OK: c_int = 4;
/// For reading, with O_CLOEXEC, and O_NONBLOCK, since a pipe without a writer is not to be waited for.
const READING: c_int = 0o2_004_000;
const PROT_READ_WRITE: c_int = 3;
const MAP_PRIVATE_ANONYMOUS: c_int = 0x22;

const PRELOAD: &[u8] = b"LD_PRELOAD=";
/// A path with its NUL (limits.h).
const PATH: usize = 4096;
/// The longest content of `LD_PRELOAD` that is changed.
const LIST: usize = 2048;
/// Strings of vectors that lie on the stack.
const STRINGS: usize = 256;
/// Words before those of a linker that another program asks for.
const ANNOUNCED: usize = 2;

/// The machine of this process in the header of a program (elf(5)); zero where that is not compared.
const MACHINE: u16 = if cfg!(target_arch = "x86_64") {
    62
} else if cfg!(target_arch = "aarch64") {
    183
} else {
    0
};

// core names the personality of unwinding, which panics that abort do not need. zig's linker has no --defsym.
core::arch::global_asm!(
    ".globl rust_eh_personality",
    ".hidden rust_eh_personality",
    ".set rust_eh_personality, 0"
);

#[panic_handler]
fn panicked(_: &PanicInfo<'_>) -> ! {
    // SAFETY: takes no argument.
    unsafe { abort() }
}

/// A function that this library replaces.
struct Real {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Real {
    const fn new(name: &'static CStr) -> Self {
        Self { name, found: AtomicPtr::new(null_mut()) }
    }

    /// The next definition after this library's. Only a constructor that runs before [`start`] looks it up here.
    fn find(&self) -> *mut c_void {
        let known = self.found.load(Ordering::Relaxed);
        if !known.is_null() {
            return known;
        }
        // SAFETY: a C string.
        let found = unsafe { dlsym(RTLD_NEXT, self.name.as_ptr()) };
        if found.is_null() {
            // Not reached: each libc has these functions.
            // SAFETY: takes no argument.
            unsafe { abort() }
        }
        self.found.store(found, Ordering::Relaxed);
        found
    }

    /// # Safety
    ///
    /// The function has the type of execve(2).
    unsafe fn exec(&self) -> Exec {
        // SAFETY: by the caller's contract.
        unsafe { transmute::<*mut c_void, Exec>(self.find()) }
    }

    /// # Safety
    ///
    /// The function has the type of posix_spawn(3).
    unsafe fn spawn(&self) -> Spawn {
        // SAFETY: by the caller's contract.
        unsafe { transmute::<*mut c_void, Spawn>(self.find()) }
    }
}

static EXECVE: Real = Real::new(c"execve");
static EXECVPE: Real = Real::new(c"execvpe");
static POSIX_SPAWN: Real = Real::new(c"posix_spawn");
static POSIX_SPAWNP: Real = Real::new(c"posix_spawnp");

/// Defines functions that start a program with the environment that fits it.
macro_rules! replace {
    ($($name:ident($($argument:ident: $type:ty),*) in $environment:expr; $real:ident.$kind:ident($($given:ident),*) for $path:ident, $argv:ident, $searches:literal)*) => { $(
        /// # Safety
        ///
        /// As for the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // SAFETY: the caller's contract is that of the function, which has this type.
            unsafe {
                let start = |$path, $argv, environment| $real.$kind()($($given),*, environment);
                start_program($path, $argv, $environment, $searches, &start)
            }
        }
    )* };
}

replace! {
    execv(path: *const c_char, argv: Strings) in environ; EXECVE.exec(path, argv) for path, argv, false
    execve(path: *const c_char, argv: Strings, environment: Strings) in environment; EXECVE.exec(path, argv) for path, argv, false
    execvp(path: *const c_char, argv: Strings) in environ; EXECVPE.exec(path, argv) for path, argv, true
    execvpe(path: *const c_char, argv: Strings, environment: Strings) in environment; EXECVPE.exec(path, argv) for path, argv, true
    posix_spawn(process: *mut c_int, path: *const c_char, actions: *const c_void, attributes: *const c_void, argv: Strings, environment: Strings) in environment; POSIX_SPAWN.spawn(process, path, actions, attributes, argv) for path, argv, false
    posix_spawnp(process: *mut c_int, path: *const c_char, actions: *const c_void, attributes: *const c_void, argv: Strings, environment: Strings) in environment; POSIX_SPAWNP.spawn(process, path, actions, attributes, argv) for path, argv, true
}

/// Calls the real function for a program's path, arguments and environment.
type Start<'a> = &'a dyn Fn(*const c_char, Strings, Strings) -> c_int;

/// Starts a program by `start`, with `environment` or another one. `searches` for a name along `PATH`.
///
/// # Safety
///
/// The strings are as exec(3) takes them.
unsafe fn start_program(
    path: *const c_char,
    argv: Strings,
    environment: Strings,
    searches: bool,
    start: Start<'_>,
) -> c_int {
    // SAFETY: the caller's contract; the address is that of this thread's errno.
    unsafe {
        let errno = *__errno_location();
        let change = change_for(path, argv, environment, searches);
        *__errno_location() = errno;
        match change {
            None => start(path, argv, environment),
            Some(change) => change.start(path, argv, environment, start),
        }
    }
}

/// How a program is started.
struct Change<'a> {
    list: Preloaded<'a>,
    libraries: Libraries,
    /// Whether it is a linker that loads no library, so that another program asks the service in its place.
    is_announced: bool,
}

/// Returns the change of the environment for a program; `None` if it has what it needs.
///
/// # Safety
///
/// As for [`start_program`].
unsafe fn change_for<'a>(
    path: *const c_char,
    argv: Strings,
    environment: Strings,
    searches: bool,
) -> Option<Change<'a>> {
    if path.is_null() || environment.is_null() {
        return None;
    }
    // SAFETY: the caller's contract.
    unsafe {
        let [mut list, mut service] = [None; 2];
        for string in strings(environment) {
            let bytes = CStr::from_ptr(string).to_bytes_with_nul();
            if let Some(value) = bytes.strip_prefix(PRELOAD) {
                list.get_or_insert(value);
            } else if let Some(value) = value_of(bytes, SERVICE) {
                service.get_or_insert(value);
            }
        }
        let list = Preloaded(list?.strip_suffix(&[0])?);
        list.folder()?;
        let change = chosen(path, argv, list, service, searches);
        let has = if list.has_hook() { Libraries::Hook } else { Libraries::Inherited };
        (change.libraries != has || change.is_announced).then_some(change)
    }
}

/// The value of an environment's string if it is that of this variable.
fn value_of<'s>(string: &'s [u8], name: &str) -> Option<&'s [u8]> {
    string.strip_prefix(name.as_bytes())?.strip_prefix(b"=")
}

/// Chooses how a program is started. `service` is a C string.
///
/// # Safety
///
/// As for [`start_program`].
unsafe fn chosen<'a>(
    path: *const c_char,
    argv: Strings,
    list: Preloaded<'a>,
    service: Option<&[u8]>,
    searches: bool,
) -> Change<'a> {
    let with = |libraries| Change { list, libraries, is_announced: false };
    // The command has ended, or the program runs as another user or with other files.
    // SAFETY: a C string.
    let is_there = service.is_some_and(|service| unsafe { access(service.as_ptr().cast(), X_OK) } == 0);
    if !is_there || !is_readable(list) {
        return with(Libraries::None);
    }
    // SAFETY: the caller's contract.
    let (path, kind) = unsafe {
        let mut words = strings(argv).map(|word| CStr::from_ptr(word).to_bytes());
        let name = words.next().unwrap_or_default();
        (CStr::from_ptr(path), kind::of(name, words))
    };
    let wants_hook = kind != Kind::Other || list.is_observed();
    let program = match searches && !path.to_bytes().contains(&b'/') {
        true => search(path.to_bytes(), wants_hook),
        false => Program::of(path, wants_hook),
    };
    match program {
        Some(Program::Foreign) => with(Libraries::None),
        Some(Program::Static | Program::OtherLibc) if kind == Kind::Linker => {
            Change { is_announced: true, ..with(Libraries::Inherited) }
        }
        Some(Program::OtherLibc) => with(Libraries::Inherited),
        _ if wants_hook => with(Libraries::Hook),
        _ => with(Libraries::Inherited),
    }
}

/// Whether this library's file can be read.
fn is_readable(list: Preloaded<'_>) -> bool {
    let mut memory = [0; PATH];
    let file = beside(list, LIBRARY_NAME, &mut memory);
    // SAFETY: a C string.
    file.is_some_and(|file| unsafe { access(file.as_ptr(), R_OK) } == 0)
}

/// The path of a file in the folder of this library; `None` without room for it.
fn beside<'m>(list: Preloaded<'_>, name: &str, memory: &'m mut [u8]) -> Option<&'m CStr> {
    let mut text = Text::new(memory);
    text.push(list.folder()?)?;
    text.push(b"/")?;
    text.push(name.as_bytes())?;
    text.push(&[0])?;
    CStr::from_bytes_until_nul(memory).ok()
}

/// Whether a program can load these libraries.
#[derive(Clone, Copy)]
enum Program {
    /// By glibc's loader, or one that was not looked at. Or it is a script.
    Native,
    /// It has no loader. Its children may load them.
    Static,
    /// Its loader is another libc's, which has not all that the hook needs.
    OtherLibc,
    /// It is of another machine or word size.
    Foreign,
}

impl Program {
    /// Looks at a program's file; `None` for one that cannot be read. Only `whole` looks for its loader.
    fn of(path: &CStr, whole: bool) -> Option<Self> {
        // SAFETY: a C string.
        let file = unsafe { open(path.as_ptr(), READING) };
        if file < 0 {
            return None;
        }
        let program = Self::read(file, whole);
        // SAFETY: a descriptor of this function.
        unsafe { close(file) };
        program
    }

    /// Layout: elf(5).
    fn read(file: c_int, whole: bool) -> Option<Self> {
        const CLASS_64: u8 = 2;
        const INTERPRETER: u64 = 3;
        const MOST: u64 = 64;
        let header: [u8; 64] = part(file, 0)?;
        if !header.starts_with(b"\x7fELF") {
            return Some(Self::Native);
        }
        let machine = number::<2>(&header, 18)?;
        if header.get(4) != Some(&CLASS_64) || MACHINE != 0 && machine != u64::from(MACHINE) {
            return Some(Self::Foreign);
        }
        if !whole {
            return Some(Self::Native);
        }
        let (table, size, count) =
            (number::<8>(&header, 32)?, number::<2>(&header, 54)?, number::<2>(&header, 56)?);
        for at in 0..count.min(MOST) {
            let entry: [u8; 40] = part(file, table.wrapping_add(at.wrapping_mul(size)))?;
            if number::<4>(&entry, 0)? == INTERPRETER {
                let name: [u8; 64] = part(file, number::<8>(&entry, 8)?)?;
                let name = name.split(|&byte| byte == 0).next()?;
                let name = name.rsplit(|&byte| byte == b'/').next()?;
                return Some(if name.starts_with(b"ld-linux") { Self::Native } else { Self::OtherLibc });
            }
        }
        Some(Self::Static)
    }
}

/// So many bytes of a file, zeroes behind its end.
fn part<const N: usize>(file: c_int, at: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let at = c_long::try_from(at).ok()?;
    // SAFETY: the pointer and the length are those of a live array.
    let read = unsafe { pread(file, bytes.as_mut_ptr().cast(), N, at) };
    (read >= 0).then_some(bytes)
}

/// A little-endian number of `N` bytes.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.get(..N)?;
    Some(bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
}

/// Looks at the program of this name that comes first in this process's `PATH`.
fn search(name: &[u8], whole: bool) -> Option<Program> {
    // SAFETY: the process's own environment.
    let directories = unsafe {
        let bytes = strings(environ).map(|string| CStr::from_ptr(string).to_bytes());
        bytes.filter_map(|bytes| value_of(bytes, "PATH")).next()?
    };
    let mut memory = [0; PATH];
    for directory in directories.split(|&byte| byte == b':') {
        let mut text = Text::new(&mut memory);
        let whole_path = text
            .push(if directory.is_empty() { b"." } else { directory })
            .and_then(|()| text.push(b"/"))
            .and_then(|()| text.push(name))
            .and_then(|()| text.push(&[0]));
        let path = whole_path.and_then(|()| CStr::from_bytes_until_nul(&memory).ok());
        if let Some(program) = path.and_then(|path| Program::of(path, whole)) {
            return Some(program);
        }
    }
    None
}

impl Change<'_> {
    /// Starts a program with its changed vectors, on the stack of this function.
    #[inline(never)]
    fn start(&self, path: *const c_char, argv: Strings, environment: Strings, start: Start<'_>) -> c_int {
        let mut vector = [MaybeUninit::uninit(); STRINGS];
        // SAFETY: vectors as exec(3) takes them.
        let [words, variables] = [argv, environment].map(|vector| unsafe { strings(vector) }.count());
        let words = if self.is_announced { words + ANNOUNCED } else { 0 };
        let count = words + variables + 2;
        if count <= STRINGS {
            return self.start_in(&mut vector, path, argv, environment, start);
        }
        // vfork's parent keeps the pages if the program starts. That is better than no room on a small stack.
        let size = count * size_of::<*const c_char>();
        // SAFETY: new pages, which are as large as the slice and unmapped at last.
        unsafe {
            let pages = mmap(null_mut(), size, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0);
            if pages as isize == -1 {
                return start(path, argv, environment);
            }
            let vector = slice::from_raw_parts_mut(pages.cast(), count);
            let started = self.start_in(vector, path, argv, environment, start);
            let errno = *__errno_location();
            munmap(pages, size);
            *__errno_location() = errno;
            started
        }
    }

    /// The same with this room for the vectors.
    fn start_in(
        &self,
        vector: &mut [MaybeUninit<*const c_char>],
        path: *const c_char,
        argv: Strings,
        environment: Strings,
        start: Start<'_>,
    ) -> c_int {
        let mut list = [0; PRELOAD.len() + LIST];
        let mut memory = [0; PATH];
        let asker = if self.is_announced { beside(self.list, STATIC_LINKER, &mut memory) } else { None };
        let mut places = vector.iter_mut();
        let words = asker.and_then(|asker| {
            // SAFETY: a vector as exec(3) takes it.
            let words = unsafe { strings(argv) };
            write([asker.as_ptr(), path].into_iter().chain(words), &mut places)
        });
        match (self.environment(environment, &mut list, &mut places), asker, words) {
            (Some(environment), Some(asker), Some(words)) => start(asker.as_ptr(), words, environment),
            (Some(environment), None, _) => start(path, argv, environment),
            _ => start(path, argv, environment),
        }
    }

    /// Writes the environment; `None` without room for the libraries.
    fn environment(
        &self,
        environment: Strings,
        list: &mut [u8],
        places: &mut slice::IterMut<'_, MaybeUninit<*const c_char>>,
    ) -> Option<Strings> {
        let mut text = Text::new(list);
        text.push(PRELOAD)?;
        self.list.with(self.libraries, &mut text)?;
        text.push(&[0])?;
        let is_empty = list.get(PRELOAD.len()) == Some(&0);
        let is_gone = self.libraries == Libraries::None;
        // SAFETY: an environment as exec(3) takes it.
        let strings = unsafe { strings(environment) }.filter_map(|string| {
            // SAFETY: one of its strings.
            let bytes = unsafe { CStr::from_ptr(string) }.to_bytes();
            match bytes.starts_with(PRELOAD) {
                true => (!is_empty).then_some(list.as_ptr().cast()),
                false => (!is_gone || value_of(bytes, SERVICE).is_none()).then_some(string),
            }
        });
        write(strings, places)
    }
}

/// Writes a vector of strings to the next places; `None` without room for it.
fn write(
    strings: impl Iterator<Item = *const c_char>,
    places: &mut slice::IterMut<'_, MaybeUninit<*const c_char>>,
) -> Option<Strings> {
    let start: Strings = places.as_slice().as_ptr().cast();
    for string in strings.chain([null()]) {
        places.next()?.write(string);
    }
    Some(start)
}

/// The strings of a vector that ends with null.
///
/// # Safety
///
/// The vector is as exec(3) takes it, or null.
unsafe fn strings(vector: Strings) -> impl Iterator<Item = *const c_char> + Clone {
    // SAFETY: the vector goes on until a null.
    let string = move |at| if vector.is_null() { null() } else { unsafe { *vector.add(at) } };
    (0..).map(string).take_while(|string| !string.is_null())
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: unsafe extern "C" fn(c_int, Strings, Strings) = start;

/// Runs when the library is loaded. A linker or driver whose parent did not call the functions of this library starts
/// again with the hook.
unsafe extern "C" fn start(_: c_int, argv: Strings, environment: Strings) {
    for real in [&EXECVE, &EXECVPE, &POSIX_SPAWN, &POSIX_SPAWNP] {
        real.find();
    }
    // SAFETY: a C string, and what glibc gives to constructors.
    unsafe {
        if dlsym(RTLD_DEFAULT, c"gnu_get_libc_version".as_ptr()).is_null() || argv.is_null() {
            return;
        }
        let mut words = strings(argv).map(|word| CStr::from_ptr(word).to_bytes());
        let name = words.next().unwrap_or_default();
        if kind::of(name, words) == Kind::Other {
            return;
        }
        let mut program = [0; PATH];
        // A relative path and a name along PATH mean the file that runs; its own link always does.
        let length = readlink(c"/proc/self/exe".as_ptr(), program.as_mut_ptr().cast(), PATH - 1);
        if length <= 0 {
            return;
        }
        let program: *const c_char = program.as_ptr().cast();
        if let Some(change) = change_for(program, argv, environment, false)
            && change.libraries == Libraries::Hook
        {
            let start = |program, argv, environment| EXECVE.exec()(program, argv, environment);
            change.start(program, argv, environment, &start);
        }
    }
}
