//! Known causes of a difference between two ways of linking.

use std::fmt;

use serde::Serialize;

/// Why something differs, as the line has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DifferenceCause {
    /// Only the names of this comparison's directories differ.
    Place,
    /// The line asks for a build id at random, and nothing else differs.
    BuildId,
    /// The names of `.dwo` files differ, and besides them only the parts that hold them.
    SplitNames,
}

impl fmt::Display for DifferenceCause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Place => "only names of this comparison's directories differ",
            Self::SplitNames => {
                "only names of .dwo files differ: lld numbers them, and distlto names them after modules"
            }
            Self::BuildId => "only the build id differs, which the line wants at random",
        })
    }
}
