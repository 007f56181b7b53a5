//! A compiler's heap: settings of glibc's malloc at a compiler's start (`GLIBC_TUNABLES`, "Memory Allocation
//! Tunables").
//!
//! Huge pages spare a compiler most of its page faults. Another libc ignores the variable, and glibc before 2.35
//! ignores the first setting. If the kernel allows huge pages for nobody, the first setting has no effect. Knows
//! nothing of processes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The variable.
pub const VARIABLE: &str = "GLIBC_TUNABLES";

/// Values for settings that the user has not set. The second and the third are the limits that malloc reaches by itself
/// in a process that frees large blocks. Without them every compiler would return memory that it needs again, and the
/// kernel would clear it again.
const SETTINGS: [(&str, &str); 4] = [
    ("glibc.malloc.hugetlb", "1"),
    ("glibc.malloc.mmap_threshold", "33554432"),
    ("glibc.malloc.trim_threshold", "67108864"),
    ("glibc.malloc.top_pad", "1048576"),
];

/// The value for a compiler that inherits this process's environment; `None` where the user has tuned malloc.
pub fn tunables() -> Option<OsString> {
    let is_tuned = |(name, _): (OsString, OsString)| name.as_bytes().starts_with(b"MALLOC_");
    (!std::env::vars_os().any(is_tuned)).then(|| completed(&std::env::var_os(VARIABLE).unwrap_or_default()))
}

/// A list of settings, and after them those of ours that it lacks.
fn completed(own: &OsStr) -> OsString {
    let set = || own.as_bytes().split(|&byte| byte == b':').filter(|setting| !setting.is_empty());
    let name = |setting: &[u8]| setting.split(|&byte| byte == b'=').next().map(<[u8]>::to_vec);
    let ours = SETTINGS
        .iter()
        .filter(|(ours, _)| !set().any(|own| name(own).is_some_and(|own| own == ours.as_bytes())));
    let ours = ours.map(|(name, value)| format!("{name}={value}").into_bytes());
    OsString::from_vec(set().map(<[u8]>::to_vec).chain(ours).collect::<Vec<_>>().join(&b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_has_set_stays() {
        let ours = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432:\
                    glibc.malloc.trim_threshold=67108864:glibc.malloc.top_pad=1048576";
        assert_eq!(completed(OsStr::new("")), ours);
        let (_, rest) = ours.split_once(':').unwrap();
        for own in ["glibc.malloc.hugetlb=2:glibc.rtld.nns=3", "glibc.rtld.nns=3:glibc.malloc.hugetlb=0"] {
            assert_eq!(completed(OsStr::new(own)), format!("{own}:{rest}").as_str());
        }
    }
}
