//! What a link line's options say of the link as a whole.

use crate::link_line::{Argument, options};
use crate::linker::options::{last, of, value};

/// Whether the linker is told to stop before the program, or to write what only it can.
pub fn writes_itself(arguments: &[Argument]) -> bool {
    options(arguments).any(|option| of(option).is_some_and(|known| known.is_whole))
}

/// The last `--thinlto-jobs=`, when it is a number.
pub fn jobs_of(arguments: &[Argument]) -> Option<usize> {
    value(last(arguments, "thinlto-jobs")?)?.parse().ok().filter(|&jobs| jobs > 0)
}
