//! All tests of the commands with real and misbehaving compilers, in one program: linking one is what costs.

mod backends;
mod jobs;
mod plan;
mod simulate;
