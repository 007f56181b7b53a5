//! A linker that requests its objects: its new options, its shards in memory, and its questions.
//!
//! For each module lld writes an index shard. Directly after, on the same thread, it opens the file of its own cache
//! for the module (`InProcessThinBackend::runThinLTOBackendThread` in `llvm/lib/LTO/LTO.cpp`). The shard goes into
//! memory instead of a file. If the last link had an object for the same key and shard, the linker gets that, and the
//! service is not asked. Otherwise the service has the object, or the linker compiles the module on this thread: it writes
//! a temporary file and renames it to that of its cache (`llvm/lib/Support/Caching.cpp`). The file is in memory, and goes
//! to the service.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::program::Main;
use crate::protocol::{
    Answer, CACHE_PREFIX, Compiled, ENDED, IMPORTED_SUFFIX, JOB_FILE_SUFFIX, KeptObject, Question,
    RESOLUTIONS, RESOLUTIONS_SUFFIX, Role, SAVE_TEMPORARIES, SHARD_SUFFIX, TEMPORARIES_SUFFIXES, shard_hash,
};
use crate::service;
use crate::socket;
use crate::system::check;
use crate::trace;

/// How the name of a temporary file in a ThinLTO cache ends.
const OBJECT_SUFFIX: &[u8] = b".tmp.o";

/// How long a linker waits for its own end after its service has gone.
const MOMENT: Duration = Duration::from_millis(200);

static LINKER: OnceLock<Linker> = OnceLock::new();

/// The service of a linker.
pub struct Service {
    /// The connection.
    pub socket: OwnedFd,
    /// The folder of the service's socket.
    pub folder: CString,
    /// This linker's role.
    pub role: Role,
}

struct Linker {
    /// The program's own.
    main: Main,
    /// The command line that the linker gets. Lives for ever.
    words: Vec<CString>,
    service: Service,
    /// The folder of its cache.
    cache: Vec<u8>,
    /// The command line that the process was started with.
    argv: AtomicPtr<*mut c_char>,
    next: AtomicU32,
    /// Whether it writes temporaries that nobody reads.
    saves_temporaries: bool,
    /// Whether the service has the linker's resolutions.
    has_resolved: AtomicBool,
    /// Whether objects were asked for or opened since the service heard that there are all.
    has_objects: AtomicBool,
    /// Whether the service knows that the linker ends.
    has_ended: AtomicBool,
    kept: Kept,
    asked: Mutex<Asked>,
}

/// The objects of the last link.
#[derive(Default)]
struct Kept {
    /// See [`KeptObject`].
    objects: Vec<u8>,
    /// Where they are.
    folder: String,
}

/// Questions without a fetched answer.
#[derive(Default)]
struct Asked {
    waiting: BTreeMap<u32, Waiting>,
    /// Whether a thread reads answers, its own and those of others.
    is_read: bool,
    /// Whether the service is gone.
    is_gone: bool,
}

struct Waiting {
    thread: Thread,
    answer: Option<(Answer, Option<OwnedFd>)>,
}

/// A shard that a thread has written, or is about to.
struct Shard {
    module: Vec<u8>,
    file: OwnedFd,
}

/// A module that a thread compiles.
struct Backend {
    ticket: u32,
    /// The time of the thread when it began, in microseconds.
    begun: u64,
    /// The object, once the linker writes it.
    object: Option<OwnedFd>,
    /// The module after its imports, once the linker writes it.
    imported: Option<OwnedFd>,
}

thread_local! {
    static SHARD: RefCell<Option<Shard>> = const { RefCell::new(None) };
    static BACKEND: RefCell<Option<Backend>> = const { RefCell::new(None) };
    /// A file for the next shard.
    static SPARE: RefCell<Option<OwnedFd>> = const { RefCell::new(None) };
    static SHARD_BYTES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Connects this process to a service; returns the replacement of its `main`. `strings` holds the cache folder, then
/// the command line. `kept` holds the objects of the last link. `None` if one of them is malformed.
pub fn begin(main: Main, service: Service, strings: &[u8], kept: &[u8]) -> Option<Main> {
    let mut strings = strings.split_inclusive(|&byte| byte == 0);
    let folder = strings.next()?.strip_suffix(&[0])?;
    let words: Result<Vec<CString>, _> =
        strings.map(|word| CStr::from_bytes_with_nul(word).map(CStr::to_owned)).collect();
    let words = words.ok().filter(|words| !words.is_empty())?;
    let saves_temporaries = words.iter().any(|word| word.as_bytes() == SAVE_TEMPORARIES);
    let linker = Linker {
        main,
        saves_temporaries,
        words,
        service,
        cache: folder.to_owned(),
        argv: AtomicPtr::default(),
        next: AtomicU32::new(0),
        has_resolved: AtomicBool::new(false),
        has_objects: AtomicBool::new(false),
        has_ended: AtomicBool::new(false),
        kept: if kept.is_empty() { Kept::default() } else { Kept::read(kept)? },
        asked: Mutex::default(),
    };
    LINKER.set(linker).ok()?;
    Some(run)
}

/// The linker's `main` with the service's command line, which an exception may leave.
unsafe extern "C-unwind" fn run(argc: c_int, argv: *mut *mut c_char, environment: *mut *mut c_char) -> c_int {
    let Some(linker) = LINKER.get() else {
        // Not reached: `begin` sets it.
        return 1;
    };
    linker.argv.store(argv, Ordering::Relaxed);
    let words = linker.words.iter().map(|word| word.as_ptr().cast_mut());
    let mut vector: Vec<*mut c_char> = words.chain([std::ptr::null_mut()]).collect();
    let count = c_int::try_from(linker.words.len());
    // SAFETY: these are glibc's arguments of `main`, or strings and a vector that live as long.
    unsafe {
        match count {
            Ok(count) => (linker.main)(count, vector.as_mut_ptr(), environment),
            Err(_) => (linker.main)(argc, argv, environment),
        }
    }
}

/// Opens a file for the linker. `None` for a file that the system opens.
pub fn open(path: &[u8], flags: c_int) -> Option<io::Result<RawFd>> {
    // A linker with a distributor writes its own files.
    let linker = LINKER.get().filter(|linker| linker.service.role != Role::Program)?;
    let cached = linker.cached(path);
    if let Some(name) = cached
        && linker.service.role == Role::Linker
    {
        return Some(match name.strip_prefix(CACHE_PREFIX) {
            Some(key) if flags & libc::O_CREAT == 0 => linker.object(key),
            _ if flags & libc::O_CREAT != 0 => hold_object(),
            _ => return None,
        });
    }
    if flags & libc::O_CREAT != 0 {
        // LLVM replaces each percent sign of a temporary file's path.
        if path.ends_with(OBJECT_SUFFIX) && BACKEND.with_borrow(Option::is_some) {
            return Some(hold_object());
        }
        if path.ends_with(IMPORTED_SUFFIX) && BACKEND.with_borrow(Option::is_some) {
            return Some(hold_imported());
        }
        // The job file names the shards of a distributor.
        if let Some(module) = path.strip_suffix(SHARD_SUFFIX)
            && linker.service.role != Role::Distributing
        {
            return Some(match linker.service.role {
                Role::Collector => linker.collect(module),
                _ => hold_shard(module),
            });
        }
        // Before all other written files.
        if path.ends_with(RESOLUTIONS_SUFFIX) && !linker.has_resolved.swap(true, Ordering::Relaxed) {
            return Some(linker.give_resolutions());
        }
        // A file that the command line names, such as a map, is the user's.
        let is_named = || linker.words.iter().any(|word| word.as_bytes() == path);
        if linker.saves_temporaries
            && TEMPORARIES_SUFFIXES.iter().any(|suffix| path.ends_with(suffix))
            && !is_named()
        {
            return Some(memory(c"temporary").map(|(_, theirs)| theirs));
        }
    }
    None
}

/// Whether a path that the linker renames a file to is that of an object, which then goes to the service.
pub fn keep(path: &[u8]) -> bool {
    let linker = LINKER.get().filter(|linker| linker.service.role == Role::Linker);
    let Some(linker) = linker.filter(|linker| linker.cached(path).is_some()) else { return false };
    linker.end_backend();
    true
}

/// Tells the service that the linker has all objects, if a path that it looks at is its cache, which it then prunes
/// (`pruneCache` in `llvm/lib/Support/CachePruning.cpp`). It has not read them yet, and it may have to begin anew.
pub fn has_all_objects(path: &[u8]) {
    let linker = LINKER.get().filter(|linker| linker.service.role == Role::Linker);
    let Some(linker) = linker.filter(|linker| linker.cache == path) else { return };
    // SAFETY: plain system calls.
    let is_main = unsafe { libc::gettid() == libc::getpid() };
    if !is_main || !linker.has_objects.swap(false, Ordering::Relaxed) {
        return;
    }
    linker.end_backend();
    if let Some((Answer::Again, _)) = linker.ask(b"", b"", None).1 {
        linker.begin_anew();
    }
}

/// Tells the service that the linker ends, if it has succeeded, and waits for the answer: its files are as it has left them.
pub fn end(status: c_int) {
    let linker = LINKER.get().filter(|linker| linker.service.role == Role::Linker);
    let Some(linker) = linker.filter(|_| status == 0 && trace::is_own()) else { return };
    if !linker.has_ended.swap(true, Ordering::Relaxed) {
        linker.ask(b"", ENDED, None);
    }
}

/// Has the service make the objects of a job file, if this process is a linker whose distributor is about to start with it.
/// The process ends if there are none.
pub fn hand_over(job_file: &[u8]) {
    let linker = LINKER.get().filter(|linker| linker.service.role == Role::Distributing);
    let Some(linker) = linker.filter(|_| job_file.ends_with(JOB_FILE_SUFFIX)) else { return };
    if !matches!(linker.ask(b"", job_file, None).1, Some((Answer::Object, _))) {
        // SAFETY: ends the process, whose program is not begun.
        unsafe { libc::_exit(1) }
    }
}

/// Memory in the place of a shard's file.
fn hold_shard(module: &[u8]) -> io::Result<RawFd> {
    let (file, theirs) = match SPARE.take() {
        Some(spare) => {
            // SAFETY: the descriptor is ours.
            unsafe {
                check(libc::ftruncate(spare.as_raw_fd(), 0))?;
                libc::lseek(spare.as_raw_fd(), 0, libc::SEEK_SET);
            }
            let theirs = theirs(&spare)?;
            (spare, theirs)
        }
        None => memory(c"index shard")?,
    };
    SHARD.set(Some(Shard { module: module.to_owned(), file }));
    Ok(theirs)
}

/// Memory in the place of the file for an object that this thread compiles.
fn hold_object() -> io::Result<RawFd> {
    let (file, theirs) = memory(c"object")?;
    BACKEND.with_borrow_mut(|backend| {
        if let Some(backend) = backend {
            backend.object = Some(file);
        }
    });
    Ok(theirs)
}

/// Memory in the place of the file for a module after its imports.
fn hold_imported() -> io::Result<RawFd> {
    let (file, theirs) = memory(c"imported module")?;
    BACKEND.with_borrow_mut(|backend| {
        if let Some(backend) = backend {
            backend.imported = Some(file);
        }
    });
    Ok(theirs)
}

/// The time that this thread has run, in microseconds.
fn thread_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a pointer to a live structure.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    u64::try_from(time.tv_sec * 1_000_000 + time.tv_nsec / 1000).unwrap_or(0)
}

/// Calls a function with the hash of a shard.
fn hash_of(shard: &OwnedFd) -> Option<u64> {
    SHARD_BYTES.with_borrow_mut(|bytes| {
        if bytes.is_empty() {
            bytes.resize(64 << 10, 0);
        }
        loop {
            // SAFETY: the descriptor is ours, and the memory has that size.
            let got = unsafe { libc::pread(shard.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), 0) };
            let got = usize::try_from(got).ok()?;
            if got < bytes.len() {
                return Some(shard_hash(&bytes[..got]));
            }
            bytes.resize(bytes.len() * 2, 0);
        }
    })
}

/// A file in memory, and the linker's own descriptor of it.
fn memory(name: &CStr) -> io::Result<(OwnedFd, RawFd)> {
    // SAFETY: a C string; the descriptor is ours.
    let file = unsafe { OwnedFd::from_raw_fd(check(libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC))?) };
    let theirs = theirs(&file)?;
    Ok((file, theirs))
}

/// Another descriptor of a file, which is the linker's.
fn theirs(file: &OwnedFd) -> io::Result<RawFd> {
    // SAFETY: a plain system call.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 0) })
}

impl Kept {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (size, rest) = bytes.split_first_chunk()?;
        let (folder, objects) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*size)).ok()?)?;
        Some(Self { objects: objects.to_owned(), folder: String::from_utf8(folder.to_owned()).ok()? })
    }

    /// Opens the object of a module, if the last link had one for this key and shard; returns its place too.
    fn open(&self, key: &[u8], shard: &OwnedFd) -> Option<(OwnedFd, &[u8])> {
        if self.objects.is_empty() {
            return None;
        }
        let (digest, place) = KeptObject::find(&self.objects, key, hash_of(shard)?)?;
        let mut path = format!("{}/", self.folder);
        for (at, byte) in digest.iter().enumerate() {
            path.push_str(if at == 1 { "/" } else { "" });
            let _ = write!(path, "{byte:02x}");
        }
        let path = CString::new(path).ok()?;
        // SAFETY: a C string; the descriptor is ours.
        let file = unsafe {
            let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;
            File::from_raw_fd(check(libc::open(path.as_ptr(), flags)).ok()?)
        };
        // In its place may be a directory, or a pipe that nobody writes into.
        file.metadata().ok()?.is_file().then(|| (file.into(), place))
    }
}

impl Linker {
    fn lock(&self) -> MutexGuard<'_, Asked> {
        // A thread that panics ends the process.
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A name in the folder of the cache.
    fn cached<'p>(&self, path: &'p [u8]) -> Option<&'p [u8]> {
        path.strip_prefix(self.cache.as_slice())?.strip_prefix(b"/")
    }

    /// The object for this key of the module whose shard this thread has written. Without one the linker compiles the
    /// module, as its cache has no such file.
    fn object(&self, key: &[u8]) -> io::Result<RawFd> {
        let absent = || io::Error::from_raw_os_error(libc::ENOENT);
        // A module that could not be compiled.
        self.end_backend();
        let Shard { module, file } = SHARD.take().ok_or_else(absent)?;
        self.has_objects.store(true, Ordering::Relaxed);
        if let Some((object, place)) = self.kept.open(key, &file)
            && trace::kept(place, &module)
        {
            SPARE.set(Some(file));
            return Ok(object.into_raw_fd());
        }
        let (ticket, answer) = self.ask(key, &module, Some(file.as_fd()));
        match answer {
            Some((Answer::Object, Some(object))) => Ok(object.into_raw_fd()),
            Some((Answer::Compile, _)) => {
                trace::begin_backend(ticket);
                let begun = thread_time();
                BACKEND.set(Some(Backend { ticket, begun, object: None, imported: None }));
                Err(absent())
            }
            Some((Answer::Again, _)) => self.begin_anew(),
            Some((Answer::Object | Answer::End(_), _)) | None => Err(absent()),
        }
    }

    /// Reports the end of this thread's compilation, if there was one, to the service.
    fn end_backend(&self) {
        let Some(Backend { ticket, begun, object, imported }) = BACKEND.take() else { return };
        let is_noted = trace::end_backend();
        let cpu_us = thread_time().saturating_sub(begun);
        let report = Compiled { ticket, cpu_us, is_noted }.to_bytes();
        let socket = self.service.socket.as_fd();
        // A service that is gone is no reason for the linker to fail.
        let _ = match object {
            Some(object) => {
                let files: Vec<_> = [Some(object), imported].into_iter().flatten().collect();
                let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
                socket::send_packet(socket, &report, &files)
            }
            None => socket::send(socket, &report),
        };
    }

    /// Makes memory for the linker's resolutions, which the service reads.
    fn give_resolutions(&self) -> io::Result<RawFd> {
        let (file, theirs) = memory(c"resolutions")?;
        // A service that is gone is no reason for the linker to fail.
        let _ = socket::send_packet(self.service.socket.as_fd(), &RESOLUTIONS, &[file.as_fd()]);
        Ok(theirs)
    }

    /// A file of the service's in the place of a shard's.
    fn collect(&self, module: &[u8]) -> io::Result<RawFd> {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        let path = [&self.cache, format!("/{ticket}").as_bytes()].concat();
        let path = CString::new(path)?;
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        // SAFETY: a C string.
        let file = check(unsafe { libc::open(path.as_ptr(), flags, 0o600) })?;
        let told = Question { ticket, key: b"", module }.to_bytes().ok_or(io::ErrorKind::InvalidFilename)?;
        // A service that is gone is no reason for the linker to fail.
        let _ = socket::send(self.service.socket.as_fd(), &told);
        Ok(file)
    }

    /// Becomes the program that the process was started as.
    fn begin_anew(&self) -> ! {
        service::remember(&self.service.folder);
        // SAFETY: glibc's own vectors, which nobody changes; ends the process where that fails.
        unsafe {
            libc::execv(c"/proc/self/exe".as_ptr(), self.argv.load(Ordering::Relaxed).cast());
            libc::_exit(1)
        }
    }

    /// Asks for an object and waits for it. Returns the ticket, and no answer if there is none.
    fn ask(
        &self,
        key: &[u8],
        module: &[u8],
        shard: Option<BorrowedFd<'_>>,
    ) -> (u32, Option<(Answer, Option<OwnedFd>)>) {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        let question = Question { ticket, key, module }.to_bytes();
        (ticket, question.and_then(|question| self.answer_to(ticket, &question, shard)))
    }

    fn answer_to(
        &self,
        ticket: u32,
        question: &[u8],
        shard: Option<BorrowedFd<'_>>,
    ) -> Option<(Answer, Option<OwnedFd>)> {
        let waiting = Waiting { thread: thread::current(), answer: None };
        self.lock().waiting.insert(ticket, waiting);
        let socket = self.service.socket.as_fd();
        let sent = match shard {
            Some(shard) => socket::send_packet(socket, question, &[shard]),
            None => socket::send(socket, question),
        };
        let mut asked = self.lock();
        asked.is_gone |= sent.is_err();
        loop {
            let own = asked.waiting.get_mut(&ticket).and_then(|own| own.answer.take());
            if own.is_some() || asked.is_gone {
                asked.waiting.remove(&ticket);
                if !asked.is_read || asked.is_gone {
                    asked.wake_one();
                }
                return own;
            }
            if asked.is_read {
                drop(asked);
                thread::park();
                asked = self.lock();
                continue;
            }
            asked.is_read = true;
            drop(asked);
            let answer = self.receive();
            asked = self.lock();
            asked.is_read = false;
            match answer {
                // Any question may get this answer; no further answer follows.
                Some((_, Answer::End(code), _)) => {
                    self.has_ended.store(true, Ordering::Relaxed);
                    // SAFETY: ends the process. Its results so far are in memory.
                    unsafe { libc::_exit(c_int::from(code)) }
                }
                Some((ticket, answer, object)) => {
                    if let Some(waiting) = asked.waiting.get_mut(&ticket) {
                        waiting.answer = Some((answer, object));
                        waiting.thread.unpark();
                    }
                }
                None => {
                    asked.is_gone = true;
                    drop(asked);
                    // If the service was killed, the signal that ends this process comes a moment later.
                    thread::sleep(MOMENT);
                    asked = self.lock();
                }
            }
        }
    }

    /// The next answer to any question; `None` when there will be none.
    fn receive(&self) -> Option<(u32, Answer, Option<OwnedFd>)> {
        let mut bytes = [0; Answer::SIZE];
        let (got, objects) = socket::receive_packet(self.service.socket.as_fd(), &mut bytes).ok()?;
        let (ticket, answer) = Answer::from_bytes(bytes).filter(|_| got == bytes.len())?;
        Some((ticket, answer, objects.into_iter().next()))
    }
}

impl Asked {
    /// Has a thread that waits look for itself: somebody has to read, or nobody will be answered any more.
    fn wake_one(&self) {
        if let Some(waiting) = self.waiting.values().find(|waiting| waiting.answer.is_none()) {
            waiting.thread.unpark();
        }
    }
}
