//! The events of a run while it lasts. One trait; texts for people, and JSON lines.
//!
//! All calls come from one thread, in order, so no two texts mix. Knows nothing of scheduling.

mod eta;
mod event;
mod json;
mod line;
pub mod recorded;
pub mod reporter;
mod shell;
pub mod text;

pub use event::{Phase, Plan, Progress, ProgressEvent, ProgressStep, Silent, SlotWait, Style, UnderWay};
pub use json::JsonProgress;
pub use reporter::{Profile, Reporter};
pub use shell::TextProgress;
