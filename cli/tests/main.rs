//! All tests of the programs' command lines, in one program, since linking is the cost.

mod cache;
mod documents;
mod manual;
#[path = "../examples/manual/pages.rs"]
mod pages;
mod small_tools;
