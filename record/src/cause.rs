//! Why an action failed, as data that outlives the run.
//!
//! Made of any error of this project, so that the message, the event and the file hold one text.

use std::fmt;

use distlto_prepare::exit;
use miette::Diagnostic;
use serde::{Deserialize, Serialize};

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The action's own.
    Failed,
    /// The run ended while the action ran.
    Interrupted,
    /// A mistake in distlto.
    Internal,
}

/// Why an action failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureCause {
    /// The kind.
    pub kind: FailureKind,
    /// The class of the error, such as `distlto::bad_input`.
    pub class: String,
    /// The error.
    pub text: String,
    /// The remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl FailureCause {
    /// Returns the class, the text and the help of an error.
    pub fn of(kind: FailureKind, error: &dyn Diagnostic) -> Self {
        Self {
            kind,
            class: exit::class_of(error).unwrap_or_else(|| "distlto::failed".to_owned()),
            text: error.to_string(),
            help: exit::help_of(error),
        }
    }
}

impl fmt::Display for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for FailureCause {}

impl Diagnostic for FailureCause {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.class))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }
}
