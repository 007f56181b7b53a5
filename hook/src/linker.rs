//! A linker that requests its objects: its new options, its shards in memory, and its questions.
//!
//! For each module lld writes an index shard. Directly after, on the same thread, it opens the file of its own cache
//! for the module (`InProcessThinBackend::runThinLTOBackendThread` in `llvm/lib/LTO/LTO.cpp`). The shard goes into
//! memory instead of a file, and the service supplies the other file. Without an answer the linker compiles the module
//! itself. Independent of the server.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};

use crate::program::Main;
use crate::protocol::{
    Answer, CACHE_PREFIX, JOB_FILE_SUFFIX, Question, RESOLUTIONS, RESOLUTIONS_SUFFIX, Role, SAVE_TEMPORARIES,
    SHARD_SUFFIX, TEMPORARIES_SUFFIXES,
};
use crate::service;
use crate::socket;
use crate::system::check;

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
    asked: Mutex<Asked>,
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

thread_local! {
    static SHARD: RefCell<Option<Shard>> = const { RefCell::new(None) };
}

/// Connects this process to a service; returns the replacement of its `main`. `strings` holds the cache folder, then
/// the command line. `None` if `strings` is malformed.
pub fn begin(main: Main, service: Service, strings: &[u8]) -> Option<Main> {
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
    if flags & libc::O_CREAT != 0 {
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
    let key = path.strip_prefix(linker.cache.as_slice())?.strip_prefix(b"/")?.strip_prefix(CACHE_PREFIX)?;
    if flags & libc::O_ACCMODE != libc::O_RDONLY {
        return None;
    }
    let shard = SHARD.take()?;
    match linker.ask(key, &shard.module, Some(shard.file.as_fd())).unwrap_or((Answer::Compile, None)) {
        (Answer::Object, Some(object)) => Some(Ok(object.into_raw_fd())),
        // Its cache has no such file.
        (Answer::Object | Answer::Compile | Answer::End(_), _) => None,
        (Answer::Again, _) => linker.begin_anew(),
    }
}

/// Has the service make the objects of a job file, if this process is a linker whose distributor is about to start with it.
/// The process ends if there are none.
pub fn hand_over(job_file: &[u8]) {
    let linker = LINKER.get().filter(|linker| linker.service.role == Role::Distributing);
    let Some(linker) = linker.filter(|_| job_file.ends_with(JOB_FILE_SUFFIX)) else { return };
    if !matches!(linker.ask(b"", job_file, None), Some((Answer::Object, _))) {
        // SAFETY: ends the process, whose program is not begun.
        unsafe { libc::_exit(1) }
    }
}

/// Memory in the place of a shard's file.
fn hold_shard(module: &[u8]) -> io::Result<RawFd> {
    let (file, theirs) = memory(c"index shard")?;
    SHARD.set(Some(Shard { module: module.to_owned(), file }));
    Ok(theirs)
}

/// A file in memory, and the linker's own descriptor of it.
fn memory(name: &CStr) -> io::Result<(OwnedFd, RawFd)> {
    // SAFETY: a C string; the descriptors are ours, the second is the linker's.
    unsafe {
        let file = check(libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC))?;
        let file = OwnedFd::from_raw_fd(file);
        let theirs = check(libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 0))?;
        Ok((file, theirs))
    }
}

impl Linker {
    fn lock(&self) -> MutexGuard<'_, Asked> {
        // A thread that panics ends the process.
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes memory for the linker's resolutions, which the service reads.
    fn give_resolutions(&self) -> io::Result<RawFd> {
        let (file, theirs) = memory(c"resolutions")?;
        // A service that is gone is no reason for the linker to fail.
        let _ = socket::send_packet(self.service.socket.as_fd(), &RESOLUTIONS, file.as_fd());
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

    /// Asks for an object and waits for it; `None` without an answer.
    fn ask(
        &self,
        key: &[u8],
        module: &[u8],
        shard: Option<BorrowedFd<'_>>,
    ) -> Option<(Answer, Option<OwnedFd>)> {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        let question = Question { ticket, key, module }.to_bytes()?;
        let waiting = Waiting { thread: thread::current(), answer: None };
        self.lock().waiting.insert(ticket, waiting);
        let socket = self.service.socket.as_fd();
        let sent = match shard {
            Some(shard) => socket::send_packet(socket, &question, shard),
            None => socket::send(socket, &question),
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
                // SAFETY: ends the process. Its results so far are in memory.
                Some((_, Answer::End(code), _)) => unsafe { libc::_exit(c_int::from(code)) },
                Some((ticket, answer, object)) => {
                    if let Some(waiting) = asked.waiting.get_mut(&ticket) {
                        waiting.answer = Some((answer, object));
                        waiting.thread.unpark();
                    }
                }
                None => asked.is_gone = true,
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
