//! Where in a JSON text a reader is, as a path such as `jobs[12].inputs[3]`, and what stopped it there.
//!
//! Knows nothing of what the text is about. Serde errors carry a message only, so a problem with a type of its own
//! waits here until serde's own error has come out.

use std::cell::RefCell;
use std::fmt::{self, Write};

use serde::de::Error;

use super::error::{Failure, Problem};

/// One step into a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Field(&'static str),
    Index(usize),
}

/// A place in a JSON text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Place(pub Vec<Step>);

impl Place {
    /// `jobs[12].inputs[3]`.
    pub fn of_job(job: usize, list: &'static str, index: usize) -> Self {
        Self(vec![Step::Field("jobs"), Step::Index(job), Step::Field(list), Step::Index(index)])
    }

    /// `jobs[12].inputs`.
    pub fn of_list(job: usize, list: &'static str) -> Self {
        Self(vec![Step::Field("jobs"), Step::Index(job), Step::Field(list)])
    }

    /// `common.modules[3]`.
    pub fn of_common(list: &'static str, index: usize) -> Self {
        Self(vec![Step::Field("common"), Step::Field(list), Step::Index(index)])
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) if at == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        if self.0.is_empty() { f.write_str("the whole text") } else { Ok(()) }
    }
}

/// What the seeds of one reader share.
#[derive(Debug, Default)]
pub(super) struct Context {
    place: RefCell<Place>,
    problem: RefCell<Option<Problem>>,
}

impl Context {
    pub fn enter(&self, step: Step) {
        self.place.borrow_mut().0.push(step);
    }

    /// Called when what was entered has been read; after an error the place stays, to be told.
    pub fn leave(&self) {
        self.place.borrow_mut().0.pop();
    }

    /// A serde error that stands for this problem.
    pub fn fail<E: Error>(&self, problem: Problem) -> E {
        *self.problem.borrow_mut() = Some(problem);
        E::custom("")
    }

    /// What stopped the reader, and where.
    pub fn failure(self, error: &serde_json::Error) -> Failure {
        let problem = self.problem.into_inner().unwrap_or_else(|| {
            let mut message = error.to_string();
            let mut position = String::new();
            // Writing to a String does not fail.
            let _ = write!(position, " at line {} column {}", error.line(), error.column());
            if message.ends_with(&position) {
                message.truncate(message.len() - position.len());
            }
            match error.classify() {
                serde_json::error::Category::Eof => Problem::Truncated { message },
                serde_json::error::Category::Data => Problem::WrongType { message },
                _ => Problem::NotJson { message },
            }
        });
        Failure {
            place: self.place.into_inner(),
            position: Some((error.line(), error.column())),
            problem: Box::new(problem),
        }
    }
}
