//! All tests of the server by raw stubs, in one program: linking one is what costs.

mod actions;
mod faults;
mod program;
mod streams;
