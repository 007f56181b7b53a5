//! The options of a link line that concern the whole link.

use crate::link_line::{Argument, options};
use crate::linker::options::{last, of, value};

/// Whether an option makes the linker stop before the program, or write files that only it can write.
pub fn writes_itself(arguments: &[Argument]) -> bool {
    options(arguments).any(|option| of(option).is_some_and(|known| known.is_whole))
}

/// The last `--thinlto-jobs=`, when it is a number.
pub fn jobs_of(arguments: &[Argument]) -> Option<usize> {
    value(last(arguments, "thinlto-jobs")?)?.parse().ok().filter(|&jobs| jobs > 0)
}
