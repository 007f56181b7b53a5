//! Buck2's front end against a recorded run, against generated meta files, and against what can be wrong.
//!
//! Paths of a Buck2 action are relative to the project root, so each case runs in a directory of its own.

#[path = "buck2/cases.rs"]
mod cases;
#[path = "buck2/links.rs"]
mod links;
#[path = "buck2/project.rs"]
mod project;
#[path = "buck2/properties.rs"]
mod properties;
#[path = "buck2/recorded.rs"]
mod recorded;
