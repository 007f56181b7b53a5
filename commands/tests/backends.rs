//! Backend compilations by real compilers, and by scripts that misbehave as compilers do.

mod attributes;
mod buck2;
mod buck2_darwin;
mod cancelled;
mod command_line;
mod common;
mod contents;
mod elsewhere;
mod memory;
mod misbehaving;
mod runs;
mod scarce;
mod silent_failures;
