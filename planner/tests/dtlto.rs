//! Job files of DTLTO: those that lld 22 wrote, the example of the proposal of 2023, and malformed ones.
//!
//! `data/dtlto` holds job files as lld wrote them, from the links that their names say.

#[path = "dtlto/dropped.rs"]
mod dropped;
#[path = "dtlto/golden.rs"]
mod golden;
#[path = "dtlto/lld.rs"]
mod lld;
#[path = "dtlto/malformed.rs"]
mod malformed;
#[path = "dtlto/mutated.rs"]
mod mutated;
#[path = "dtlto/version0.rs"]
mod version0;
