//! All tests of the programs' command lines, in one program: linking one is what costs.

mod cache;
mod small_tools;
