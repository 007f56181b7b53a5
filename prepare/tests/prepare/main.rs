//! Tests of `distlto-prepare` with archives made by real tools, and with archives no tool would make.
//!
//! The oracle for content is `llvm-ar x`; for kinds, the compiler that made the file.

mod formats;
mod hostile;
mod kinds;
mod member;
mod names;
mod private;
mod processes;
mod random;
mod rules;
mod tools;
