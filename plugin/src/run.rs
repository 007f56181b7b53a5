//! One call from beginning to end: options, compiler, job file, `distlto-distribute`, and its output.
//!
//! The job file's name holds the number of this process, as one of lld's does: so the child ends when this process
//! does.

use std::env;
use std::ffi::{CStr, OsStr};
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf, absolute};
use std::process::{Child, Command, Stdio};

use distlto_prepare::exit;
use distlto_prepare::io_error::IoError;
use distlto_prepare::leftovers::RunDirectory;

use crate::call::Call;
use crate::job;
use crate::options::{Options, VARIABLE};

const PROGRAM: &str = "distlto-distribute";

const IGNORES_CHILDREN: &str = "this process ignores SIGCHLD, so the system does not tell how a child ends
  help: start the linker with SIGCHLD at its default action; a parent with `trap '' CHLD` hands this on";

/// Compiles everything, and returns warnings. Leaves no child and no temporary in any case.
pub fn run(call: &Call) -> Result<String, String> {
    let environment = env::var_os(VARIABLE).unwrap_or_default();
    let not_utf8 = || format!("the environment variable {VARIABLE} is not UTF-8\n  help: unset it");
    let options = Options::parse(environment.to_str().ok_or_else(not_utf8)?, &call.name)?;
    let Some(first) = call.nodes.first() else { return Ok(String::new()) };
    if ignores_children() {
        return Err(IGNORES_CHILDREN.to_owned());
    }
    let base = env::current_dir().map_err(failed("find", "the current directory"))?;
    let job = job::text(call, &compiler(options.compiler.as_deref())?, &options.args);
    let parent = base.join(&first.object);
    let parent = parent.parent().unwrap_or(&base);
    // A later call removes it when this process is killed.
    let own = RunDirectory::make(parent).map_err(|error| plain(&exit::text(&error)))?;
    let job_file = own.path().join(format!("link.{}.dist-file.json", std::process::id()));
    fs::write(&job_file, job).map_err(failed("write", &job_file))?;
    let said = own.path().join("stderr");
    let said_file = fs::File::create(&said).map_err(failed("write", &said))?;
    let program = distributor()?;
    let mut command = Command::new(&program);
    command.args(options.words()).arg(&job_file).env_remove("DISTLTO_DISTRIBUTE_OPTIONS");
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let shown = options.verbose;
    command.stderr(if shown { Stdio::inherit() } else { Stdio::from(said_file) });
    end_with_this_process(&mut command);
    let mut running = Running(command.spawn().map_err(failed("start", &program))?);
    let status = running.0.wait().map_err(failed("wait for", &program))?;
    let text = fs::read(&said).map_err(failed("read", &said))?;
    let text = String::from_utf8_lossy(&text).replace(&*job_file.to_string_lossy(), "the linker's jobs");
    match plain(&text) {
        text if status.success() => Ok(text),
        text if text.is_empty() => {
            let help = if shown { "it has printed why" } else { "look for what ended it, and link again" };
            Err(format!("{PROGRAM} ended with {status}\n  help: {help}"))
        }
        text => Err(text),
    }
}

/// A child that is gone when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Before the child watches this process by itself, the kernel does.
fn end_with_this_process(command: &mut Command) {
    #[cfg(target_os = "linux")]
    {
        let parent = std::process::id();
        let ask = move || {
            // SAFETY: two system calls without pointers.
            let (asked, above) =
                unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM), libc::getppid()) };
            // The parent may have ended before the child asked.
            if asked != 0 || u32::try_from(above) != Ok(parent) {
                return Err(io::Error::from(io::ErrorKind::NotFound));
            }
            Ok(())
        };
        // SAFETY: between fork and exec only async-signal-safe calls are allowed, as these are.
        unsafe { command.pre_exec(ask) };
    }
}

/// Whether the system forgets children of this process as they end, so that their exit status is lost.
fn ignores_children() -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: with no new action this only writes the present one; all zeroes is a value of the type.
    let action = unsafe {
        libc::sigaction(libc::SIGCHLD, std::ptr::null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction == libc::SIG_IGN || action.sa_flags & libc::SA_NOCLDWAIT != 0
}

/// The compiler as an absolute path, since commands may run elsewhere: the one that the options name, else the clang
/// beside the linker, which is this process, else the clang in `PATH`.
fn compiler(named: Option<&str>) -> Result<String, String> {
    let linker = env::current_exe().unwrap_or_default();
    let found = match named {
        Some(path) if path.contains('/') => Some(path.into()),
        Some(name) => in_path(name),
        None => {
            Some(linker.with_file_name("clang")).filter(|clang| clang.is_file()).or_else(|| in_path("clang"))
        }
    };
    let found = found.filter(|path| path.is_file()).and_then(|path| absolute(path).ok());
    found.and_then(|path| path.into_os_string().into_string().ok()).ok_or_else(|| {
        let problem = match named {
            Some(path) if path.contains('/') => format!("the compiler {path:?} was not found"),
            Some(name) => format!("the compiler {name:?} was not found in PATH"),
            None => format!("no clang was found beside {}, nor in PATH", linker.display()),
        };
        format!(
            "{problem}\n  help: install the clang of the linker's LLVM version, in a folder whose name is UTF-8, or name it: \
             --thinlto-distribute=distlto:compiler=/usr/bin/clang-22"
        )
    })
}

/// `distlto-distribute`: beside this library, in `bin` beside the library's folder, or in `PATH`. The linker may load
/// the library by a link to it.
fn distributor() -> Result<PathBuf, String> {
    let own = own_file().unwrap_or_default();
    let mut files = vec![own.canonicalize().unwrap_or_default(), own];
    files.dedup();
    let folders = files.iter().filter_map(|file| file.parent());
    let places = folders.flat_map(|folder| [folder.join(PROGRAM), folder.join("../bin").join(PROGRAM)]);
    let places: Vec<_> = places.collect();
    let found = places.iter().find(|place| place.is_file()).cloned();
    found.or_else(|| in_path(PROGRAM)).ok_or_else(|| {
        let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
        format!(
            "there is no {PROGRAM}: looked for {} and in PATH\n  help: install it beside the plugin's library, or with \
             the library in lib and the program in bin",
            places.join(", ")
        )
    })
}

/// The file that this library was loaded from.
fn own_file() -> Option<PathBuf> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    let address: fn() -> Option<PathBuf> = own_file;
    // SAFETY: dladdr takes any address and writes the structure, for which all zeroes is a value.
    let (found, info) = unsafe {
        let found = libc::dladdr(address as *const libc::c_void, info.as_mut_ptr());
        (found, info.assume_init())
    };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the name is text that the dynamic linker keeps for as long as the library is loaded.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    absolute(Path::new(OsStr::from_bytes(name.to_bytes()))).ok()
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|place| place.is_file())
}

fn failed(operation: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> String {
    move |error| plain(&exit::text(&IoError::on(operation, path)(error)))
}

/// Returns the text of an error or warning that programs print, without the words that the linker puts before it.
fn plain(printed: &str) -> String {
    let text = printed.trim_end();
    let start =
        ["error: ", "distlto: warning: ", "distlto: "].into_iter().find(|start| text.starts_with(start));
    text[start.map_or(0, str::len)..].to_owned()
}
