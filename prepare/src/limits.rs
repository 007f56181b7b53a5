//! Limits of the system that a process has reached: processes and threads, open files, memory. Names the limit and a
//! remedy.
//!
//! EMFILE and ENFILE speak for themselves. EAGAIN and ENOMEM have other meanings too, so the starter of a process or a
//! thread marks them with [`SystemLimit::on_start`]; see fork(2), pthread_create(3) and execve(2). Does not depend on the
//! program started.

use std::error::Error;
use std::io;

use memchr::memmem;
use rustix::io::Errno;

/// The exhausted resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SystemLimit {
    /// Processes and threads.
    #[error("no more processes or threads may be started (Resource temporarily unavailable)")]
    Processes,
    /// Memory for a process or a thread.
    #[error("there is no memory for another process or thread (Cannot allocate memory)")]
    Memory,
    /// File descriptors of this process.
    #[error("Too many open files")]
    Files,
    /// Open files of the whole system.
    #[error("Too many open files in system")]
    AllFiles,
}

/// Messages of programs that stop at such a limit: libc's texts, and a shell's.
const TEXTS: [(&[u8], SystemLimit); 4] = [
    (b"Resource temporarily unavailable", SystemLimit::Processes),
    (b"Cannot fork", SystemLimit::Processes),
    (b"Too many open files in system", SystemLimit::AllFiles),
    (b"Too many open files", SystemLimit::Files),
];

impl SystemLimit {
    /// The class of errors that come of it.
    pub const CLASS: &'static str = "distlto::limit";

    /// Marks why a process or a thread was not started.
    pub fn on_start(error: io::Error) -> io::Error {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::AGAIN) => Self::Processes.into(),
            Some(Errno::NOMEM) => Self::Memory.into(),
            _ => error,
        }
    }

    /// Returns the resource that an operation lacked.
    pub fn of_io(error: &io::Error) -> Option<Self> {
        let marked = error.get_ref().and_then(|inner| inner.downcast_ref::<Self>()).copied();
        marked.or_else(|| match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::MFILE) => Some(Self::Files),
            Some(Errno::NFILE) => Some(Self::AllFiles),
            // A library may have wrapped the system's error.
            _ => error.get_ref()?.source()?.downcast_ref().and_then(Self::of_io),
        })
    }

    /// Returns the limit that caused an error of this program.
    pub fn of(error: &dyn Error) -> Option<Self> {
        let causes = std::iter::successors(error.source(), |&cause| cause.source());
        causes.filter_map(|cause| cause.downcast_ref()).find_map(Self::of_io)
    }

    /// Returns the resource that a failed program lacked, by its output.
    pub fn in_output(text: &[u8]) -> Option<Self> {
        TEXTS.iter().find(|(known, _)| memmem::find(text, known).is_some()).map(|&(_, limit)| limit)
    }

    /// Returns the limit and the remedy.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Processes => {
                "raise the limit of processes (RLIMIT_NPROC, `ulimit -u`) or that of the container or control group \
                 (pids.max), or run less beside this"
            }
            Self::Memory => {
                "free memory, raise the limit of the container or control group, or run less beside this"
            }
            Self::Files => "raise the limit of open files (RLIMIT_NOFILE, `ulimit -n`)",
            Self::AllFiles => "raise the system's limit of open files (fs.file-max), or run less beside this",
        }
    }
}

impl From<SystemLimit> for io::Error {
    fn from(limit: SystemLimit) -> Self {
        Self::other(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit;
    use crate::io_error::IoError;

    #[test]
    fn an_error_names_the_limit_that_it_comes_of() {
        let open = |errno: Errno| IoError::on("read", "file")(io::Error::from(errno));
        assert_eq!(SystemLimit::of(&open(Errno::MFILE)), Some(SystemLimit::Files));
        assert!(exit::text(&open(Errno::MFILE)).contains("RLIMIT_NOFILE"));
        assert_eq!(exit::code_of(&open(Errno::NFILE)), exit::LIMIT);
        // EAGAIN here may be a lock, or a silent socket.
        assert_eq!(SystemLimit::of(&open(Errno::AGAIN)), None);
        assert_eq!(exit::code_of(&open(Errno::AGAIN)), 4);
        let started = IoError::on("start", "a thread")(SystemLimit::on_start(Errno::AGAIN.into()));
        assert!(exit::text(&started).contains("RLIMIT_NPROC"));
        assert_eq!(SystemLimit::of_io(&SystemLimit::on_start(Errno::NOENT.into())), None);
    }

    #[test]
    fn a_program_that_failed_says_what_it_lacked() {
        let lld = b"LLVM ERROR: pthread_create failed: Resource temporarily unavailable\n";
        assert_eq!(SystemLimit::in_output(lld), Some(SystemLimit::Processes));
        assert_eq!(SystemLimit::in_output(b"sh: 1: Cannot fork\n"), Some(SystemLimit::Processes));
        assert_eq!(SystemLimit::in_output(b"error: a: Too many open files\n"), Some(SystemLimit::Files));
        assert_eq!(SystemLimit::in_output(b"ld.lld: error: undefined symbol: fork\n"), None);
    }
}
