//! The options of a link line that concern the whole link.

use crate::link_line::{Argument, last_value, options};
use crate::linker::options::{last, of, value};

/// Whether an option makes the linker stop before the program, or write files that only it can write.
pub fn writes_itself(arguments: &[Argument]) -> bool {
    options(arguments).any(|option| of(option).is_some_and(|known| known.is_whole))
}

/// Whether ld.lld links for Windows, with the linker of MinGW: by the emulation, of which `i386pep` and `arm64pe` are
/// such (`isPETargetName` in `lld/Common/DriverDispatcher.cpp`).
pub fn is_for_windows(arguments: &[Argument]) -> bool {
    last_value(arguments, "emulation").is_some_and(|name| name.ends_with("pe") || name.ends_with("pep"))
}

/// The last `--thinlto-jobs=`, when it is a number.
pub fn jobs_of(arguments: &[Argument]) -> Option<usize> {
    value(last(arguments, "thinlto-jobs")?)?.parse().ok().filter(|&jobs| jobs > 0)
}
