//! All tests of the server by raw stubs, in one program, since linking is the cost.

mod actions;
mod faults;
mod program;
mod streams;
