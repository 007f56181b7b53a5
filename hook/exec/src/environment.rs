//! The two variables of a build's processes, and how they change for a program that is started.
//!
//! `LD_PRELOAD` (ld.so(8)) has this library, and for links a second one, the hook. A hook behind this library is for one
//! program, which is a linker or a driver. A hook in front of it is for all processes, since a link is observed as a
//! whole. Allocates nothing, and depends on no process.

/// The file name of this library.
pub const LIBRARY_NAME: &str = "libdistlto_exec.so";
/// The file name of the hook, in the folder of this library.
pub const HOOK: &str = "libdistlto_hook.so";
/// The program in that folder that starts a linker without libraries. Its arguments are the linker's path, and the words
/// that it was started with.
pub const STATIC_LINKER: &str = "distlto-static-linker";
/// The variable that names the folder of the service.
pub const SERVICE: &str = "DISTLTO_SERVICE";

/// The libraries for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Libraries {
    /// Neither: the program cannot load them, or nobody is there to talk to.
    None,
    /// This library.
    Inherited,
    /// The hook too.
    Hook,
}

/// The content of `LD_PRELOAD`.
#[derive(Debug, Clone, Copy)]
pub struct Preloaded<'a>(pub &'a [u8]);

/// A string that is put together in memory of a caller.
pub struct Text<'m> {
    memory: &'m mut [u8],
    length: usize,
}

impl<'m> Text<'m> {
    /// An empty one.
    pub fn new(memory: &'m mut [u8]) -> Self {
        Self { memory, length: 0 }
    }

    /// Adds bytes; `None` if there is no room for them.
    pub fn push(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.length.checked_add(bytes.len())?;
        let place = self.memory.get_mut(self.length..end)?;
        for (place, byte) in place.iter_mut().zip(bytes) {
            *place = *byte;
        }
        self.length = end;
        Some(())
    }
}

/// Whether a byte separates entries.
fn separates(byte: &u8) -> bool {
    matches!(byte, b':' | b' ')
}

/// The folder, if an entry is a library of this name.
fn folder_of<'a>(entry: &'a [u8], library: &str) -> Option<&'a [u8]> {
    entry.strip_suffix(library.as_bytes())?.strip_suffix(b"/")
}

impl<'a> Preloaded<'a> {
    fn entries(self) -> impl Iterator<Item = &'a [u8]> {
        self.0.split(separates)
    }

    /// The folder of this library; `None` if it is not among the entries.
    pub fn folder(self) -> Option<&'a [u8]> {
        self.entries().find_map(|entry| folder_of(entry, LIBRARY_NAME))
    }

    /// Whether the hook is among them.
    pub fn has_hook(self) -> bool {
        self.entries().any(|entry| folder_of(entry, HOOK).is_some())
    }

    /// Whether all processes have the hook.
    pub fn is_observed(self) -> bool {
        let own = |entry: &&[u8]| [LIBRARY_NAME, HOOK].iter().any(|name| folder_of(entry, name).is_some());
        self.entries().find(own).is_some_and(|first| folder_of(first, HOOK).is_some())
    }

    /// Writes the entries for a program; `None` if there is no room for them. The other entries stay as they are.
    pub fn with(self, libraries: Libraries, text: &mut Text<'_>) -> Option<()> {
        let start = text.length;
        let folder = self.folder()?;
        let in_front = self.is_observed() && libraries == Libraries::Hook;
        let hook = |text: &mut Text<'_>| {
            text.push(folder)?;
            text.push(b"/")?;
            text.push(HOOK.as_bytes())?;
            text.push(b":")
        };
        if in_front {
            hook(text)?;
        }
        let mut rest = self.0;
        while !rest.is_empty() {
            let length = rest.iter().position(separates).unwrap_or(rest.len());
            let (entry, after) = rest.split_at_checked(length)?;
            let (separator, after) = after.split_at_checked(after.len().min(1))?;
            rest = after;
            if folder_of(entry, HOOK).is_some() {
                continue;
            }
            if folder_of(entry, LIBRARY_NAME).is_some() {
                if libraries == Libraries::None {
                    continue;
                }
                text.push(entry)?;
                text.push(b":")?;
                if libraries == Libraries::Hook && !in_front {
                    hook(text)?;
                }
                continue;
            }
            text.push(entry)?;
            text.push(separator)?;
        }
        if text.length > start && text.memory.get(text.length - 1).is_some_and(separates) {
            text.length -= 1;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Libraries, Preloaded, Text};

    const EXEC: &str = "/x/libdistlto_exec.so";
    const BOTH: &str = "/x/libdistlto_exec.so:/x/libdistlto_hook.so";

    fn with(list: &str, libraries: Libraries) -> String {
        let mut memory = [0; 200];
        let mut text = Text::new(&mut memory);
        Preloaded(list.as_bytes()).with(libraries, &mut text).expect("room");
        let length = text.length;
        String::from_utf8_lossy(&memory[..length]).into_owned()
    }

    #[test]
    fn the_hook_is_added_behind_this_library() {
        assert_eq!(with(EXEC, Libraries::Hook), BOTH);
        assert_eq!(with(BOTH, Libraries::Hook), BOTH);
        assert_eq!(with(&format!("{EXEC}:/u/a.so b.so"), Libraries::Hook), format!("{BOTH}:/u/a.so b.so"));
        assert_eq!(with(&format!("/u/a.so {EXEC}"), Libraries::Hook), format!("/u/a.so {BOTH}"));
    }

    #[test]
    fn other_programs_do_not_keep_it() {
        assert_eq!(with(&format!("{BOTH}:/u/a.so"), Libraries::Inherited), format!("{EXEC}:/u/a.so"));
        assert_eq!(with(&format!("{BOTH}:/u/a.so"), Libraries::None), "/u/a.so");
        assert_eq!(with(BOTH, Libraries::None), "");
        assert_eq!(with(&format!("/u/a.so:{EXEC}"), Libraries::None), "/u/a.so");
    }

    #[test]
    fn an_observed_link_keeps_it_in_front() {
        let observed = "/x/libdistlto_hook.so:/x/libdistlto_exec.so";
        assert!(Preloaded(observed.as_bytes()).is_observed());
        assert!(!Preloaded(BOTH.as_bytes()).is_observed());
        assert_eq!(with(observed, Libraries::Hook), observed);
        assert_eq!(with(observed, Libraries::None), "");
        assert_eq!(with(observed, Libraries::Inherited), EXEC);
    }

    #[test]
    fn too_little_room_is_an_error() {
        let mut memory = [0; 10];
        assert!(Preloaded(EXEC.as_bytes()).with(Libraries::Hook, &mut Text::new(&mut memory)).is_none());
    }
}
