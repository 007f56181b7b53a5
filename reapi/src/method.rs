//! The calls of the API that this client makes, by name.

use std::fmt;

/// A call of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are the API's")]
pub enum Method {
    GetCapabilities,
    FindMissingBlobs,
    BatchUpdateBlobs,
    BatchReadBlobs,
    Read,
    Write,
    QueryWriteStatus,
    GetActionResult,
    UpdateActionResult,
    Execute,
    WaitExecution,
    CancelOperation,
}

impl Method {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 12] = [
        Self::GetCapabilities,
        Self::FindMissingBlobs,
        Self::BatchUpdateBlobs,
        Self::BatchReadBlobs,
        Self::Read,
        Self::Write,
        Self::QueryWriteStatus,
        Self::GetActionResult,
        Self::UpdateActionResult,
        Self::Execute,
        Self::WaitExecution,
        Self::CancelOperation,
    ];
}

impl fmt::Display for Method {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}
