//! All tests of the programs' command lines, in one program, since linking is the cost.

mod cache;
mod small_tools;
