//! Particulars of clang: the words of its driver, and of the compiler proper that the driver runs.

pub mod cc1;
pub mod driver;
pub mod options;
