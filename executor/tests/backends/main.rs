//! Backend compilations by real compilers, and by scripts that misbehave as compilers do.

mod common;
mod silent_failures;
