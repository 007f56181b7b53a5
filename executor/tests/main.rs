//! All tests of the executor with real processes and compilers, in one program, since linking is the cost.

mod action;
mod arrivals;
mod cache_store;
mod estimate;
mod processes;
mod schedule;
mod support;
mod zeros;
