//! Job files of DTLTO: those that lld 22 wrote, the example of the proposal of 2023, and malformed ones.
//!
//! `data/dtlto` holds job files as lld wrote them, from the links that their names say.

mod dropped;
mod golden;
mod lld;
mod malformed;
mod mutated;
mod version0;
