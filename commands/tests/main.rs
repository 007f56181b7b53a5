//! All tests of the commands with real and misbehaving compilers, in one program, since linking is the cost.

mod action_log;
mod backends;
mod plan;
