//! The owner of a file or folder: the one check of everything that is obeyed or believed.
//!
//! A file is believed if only its user and root can have made or changed it. The user's own group, which has the user's
//! name and no other member (Debian's user private groups), is nobody else. Where every folder on the way to a path
//! passes, nobody can put anything else in its place between the check and its use. Does not depend on the content of
//! files.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use nix::unistd::{Gid, Group, Uid, User};
use rustix::process::{getegid, geteuid};
use thiserror::Error;

use crate::io_error::IoError;

/// The modes that let others than the owner write.
const BY_GROUP: u32 = 0o020;
const BY_ALL: u32 = 0o002;
/// In a folder with this bit, only the folder's owner renames files of another user.
const STICKY: u32 = 0o1000;
/// Files that are made here have the folder's group.
const SET_GROUP: u32 = 0o2000;
/// More links than this are a loop, as they are to Linux.
const LINKS: usize = 40;

/// Why something is not believed.
#[derive(Debug, Error)]
pub enum Exposed {
    /// It is another user's.
    #[error("{} belongs to {}", path.display(), user_name(*owner))]
    Foreign {
        /// The path.
        path: PathBuf,
        /// The user.
        owner: u32,
    },
    /// Others can change it.
    #[error("{} can be written by {} (mode {:o})", path.display(), writers(*mode, *group), mode & 0o7777)]
    Writable {
        /// The path.
        path: PathBuf,
        /// Its mode.
        mode: u32,
        /// Its group.
        group: u32,
    },
    /// Its owner is not known.
    #[error(transparent)]
    Unknown(#[from] IoError),
}

impl Exposed {
    /// Whether others could have prepared it.
    pub fn is_of_others(&self) -> bool {
        !matches!(self, Self::Unknown(_))
    }

    /// The same as part of a sentence about a path, which is not named again.
    pub fn of(&self, path: &Path) -> String {
        let said = self.to_string();
        match self.path().filter(|_| self.is_about(path)) {
            Some(exposed) => said.replacen(&exposed.display().to_string(), "it", 1),
            None => said,
        }
    }

    /// Returns whether this path itself is exposed, rather than a folder above or the target of a link.
    pub fn is_about(&self, path: &Path) -> bool {
        let Ok(absolute) = std::path::absolute(path) else { return false };
        let resolved = || Some(absolute.parent()?.canonicalize().ok()?.join(absolute.file_name()?));
        self.path().is_some_and(|exposed| exposed == absolute || Some(exposed) == resolved().as_deref())
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Self::Foreign { path, .. } | Self::Writable { path, .. } => Some(path),
            Self::Unknown(_) => None,
        }
    }

    /// Returns a command that mends it, or advice.
    pub fn remedy(&self) -> String {
        match self {
            Self::Foreign { path, .. } => {
                format!("chown {} {} if it should be yours", uid(), path.display())
            }
            Self::Writable { path, mode, .. } => {
                let who = if mode & BY_ALL == 0 { "g-w" } else { "go-w" };
                format!("chmod {who} {} if nobody else is to write there", path.display())
            }
            Self::Unknown(_) => "check the path and its permissions".to_owned(),
        }
    }
}

/// How far above a folder the check goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Up to the root.
    Whole,
    /// Not at all: a user who can write to the folder above can replace the outputs of the build there anyway.
    Last,
}

/// Whether only the user and root can have put a file or folder there and can change it.
pub fn check(path: &Path, reach: Reach) -> Result<(), Exposed> {
    let absolute = std::path::absolute(path).map_err(IoError::on("look at", path))?;
    match (reach, absolute.parent(), absolute.file_name()) {
        (Reach::Last, Some(above), Some(name)) => {
            // Where it lies is not looked at, but for links, which lead from there.
            walk(above.canonicalize().map_err(IoError::on("look at", above))?, Path::new(name), Part::Last)
        }
        _ => walk(PathBuf::new(), &absolute, Part::Last),
    }
}

/// The same of a file or folder that is open already, so that nobody can put another one in its place.
pub fn check_open(path: &Path, found: &Metadata) -> Result<(), Exposed> {
    judge(path, found, Part::Last)
}

/// Makes a folder with all above it unless it is there, and checks it. Nobody else can write to files made in it, under
/// any umask.
pub fn claim(folder: &Path, reach: Reach) -> Result<(), Exposed> {
    if folder.symlink_metadata().is_err() {
        let absolute = std::path::absolute(folder).map_err(IoError::on("look at", folder))?;
        let there = absolute.ancestors().skip(1).find(|above| above.symlink_metadata().is_ok());
        // A link of another user could have it made anywhere.
        if let (Some(there), Reach::Whole) = (there, reach) {
            walk(PathBuf::new(), there, Part::Way)?;
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(folder)
            .map_err(IoError::on("create directory", folder))?;
    }
    match check(folder, reach) {
        Err(exposed) if exposed.is_about(folder) && shut_if_empty(folder, &exposed) => check(folder, reach)?,
        checked => checked?,
    }
    Ok(close(folder).map_err(IoError::on("change the mode of", folder))?)
}

/// Shuts others out of a folder of one's own that they could write to. If it is empty then, they have prepared nothing: build
/// systems make such folders for the outputs of an action.
fn shut_if_empty(folder: &Path, exposed: &Exposed) -> bool {
    let Exposed::Writable { mode, .. } = exposed else { return false };
    let is_ours = folder.symlink_metadata().is_ok_and(|found| found.is_dir() && found.uid() == uid());
    let shut = || fs::set_permissions(folder, fs::Permissions::from_mode(mode & 0o7755));
    is_ours && shut().is_ok() && fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

/// Shuts others out of a folder of one's own where the umask lets them write to files made in it.
fn close(folder: &Path) -> io::Result<()> {
    let found = folder.metadata()?;
    let is_ours = found.uid() == uid();
    if is_ours && found.mode() & 0o077 != 0 && umask_lets_write(&found) {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

fn umask_lets_write(folder: &Metadata) -> bool {
    // Where the system does not say it: asking would change it for all threads.
    let umask = umask().unwrap_or(0);
    let group = if folder.mode() & SET_GROUP == 0 { getegid().as_raw() } else { folder.gid() };
    umask & BY_ALL == 0 || (umask & BY_GROUP == 0 && own_group() != Some(group))
}

/// That of this process (proc_pid_status(5)).
fn umask() -> Option<u32> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(value.trim(), 8).ok()
}

/// The part of a path that is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// A folder or link on the way.
    Way,
    /// The end of it.
    Last,
}

/// Follows a path from a folder, and looks at each folder, each link and the end.
fn walk(mut place: PathBuf, path: &Path, end: Part) -> Result<(), Exposed> {
    let reversed = |path: &Path| {
        path.components().rev().map(|part| part.as_os_str().to_owned()).collect::<Vec<OsString>>()
    };
    let mut left = reversed(path);
    let mut links = 0;
    while let Some(name) = left.pop() {
        if name == Component::ParentDir.as_os_str() {
            // The way so far has no links.
            place.pop();
            continue;
        }
        place.push(name);
        let found = place.symlink_metadata().map_err(IoError::on("look at", &place))?;
        let part = if left.is_empty() { end } else { Part::Way };
        judge(&place, &found, part)?;
        if found.is_symlink() {
            links += 1;
            let target =
                if links > LINKS { Err(io::Error::other("too many links")) } else { place.read_link() };
            left.extend(reversed(&target.map_err(IoError::on("look at", &place))?));
            place.pop();
        }
    }
    Ok(())
}

fn judge(path: &Path, found: &Metadata, part: Part) -> Result<(), Exposed> {
    let (owner, mode, group) = (found.uid(), found.mode(), found.gid());
    let is_known = owner == uid() || owner == 0;
    // In a user namespace root's folders above have the owner that all have who are not in it.
    if !is_known && (part == Part::Last || strangers() != Some(owner)) {
        return Err(Exposed::Foreign { path: path.to_owned(), owner });
    }
    if found.is_symlink() || (part == Part::Way && mode & STICKY != 0) {
        return Ok(());
    }
    let is_shared = || own_group() != Some(group) || has_access_list(path);
    if mode & BY_ALL != 0 || (mode & BY_GROUP != 0 && is_shared()) {
        return Err(Exposed::Writable { path: path.to_owned(), mode, group });
    }
    Ok(())
}

/// Whether the bits of the group are those of others too (acl(5)).
#[cfg(target_os = "linux")]
fn has_access_list(path: &Path) -> bool {
    // It is longer than this.
    let mut start = [0_u8; 1];
    let found = rustix::fs::getxattr(path, "system.posix_acl_access", &mut start);
    matches!(found, Ok(_) | Err(rustix::io::Errno::RANGE))
}

#[cfg(not(target_os = "linux"))]
fn has_access_list(_: &Path) -> bool {
    false
}

fn uid() -> u32 {
    geteuid().as_raw()
}

/// The group that is this user's alone.
fn own_group() -> Option<u32> {
    static GROUP: OnceLock<Option<u32>> = OnceLock::new();
    *GROUP.get_or_init(|| {
        let user = User::from_uid(Uid::from_raw(uid())).ok()??;
        let group = Group::from_gid(user.gid).ok()??;
        let is_alone = group.name == user.name && group.mem.iter().all(|member| *member == user.name);
        is_alone.then_some(group.gid.as_raw())
    })
}

/// Returns the owner of all files that belong to nobody in this user namespace, if it is one (user_namespaces(7)).
fn strangers() -> Option<u32> {
    let id: u32 = fs::read_to_string("/proc/sys/kernel/overflowuid").ok()?.trim().parse().ok()?;
    let map = fs::read_to_string("/proc/self/uid_map").ok()?;
    let is_mapped = |line: &str| {
        let mut numbers = line.split_ascii_whitespace().map(|number| number.parse::<u64>().unwrap_or(0));
        let (first, _, count) = (numbers.next(), numbers.next(), numbers.next());
        let first = first.unwrap_or(0);
        (first..first + count.unwrap_or(0)).contains(&id.into())
    };
    (!map.lines().any(is_mapped)).then_some(id)
}

fn user_name(uid: u32) -> String {
    match User::from_uid(Uid::from_raw(uid)) {
        _ if strangers() == Some(uid) => "a user whom this container does not know".to_owned(),
        Ok(Some(user)) => format!("the user {} ({uid})", user.name),
        _ => format!("the user {uid}"),
    }
}

fn writers(mode: u32, group: u32) -> String {
    if mode & BY_ALL != 0 {
        return "all users".to_owned();
    }
    match Group::from_gid(Gid::from_raw(group)) {
        Ok(Some(known)) => format!("the group {} ({group})", known.name),
        _ => format!("the group {group}"),
    }
}
