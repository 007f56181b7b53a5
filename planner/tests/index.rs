//! Whole plans of real links: what the thin link and the final link are given, and that the backends and the final link,
//! run by hand, make a program that does what the linker's own ThinLTO makes.

mod inputs;
mod link;
mod names;
