//! Processes that share one machine's memory by a ledger: seen by each other, killed, many at once, and in places that cannot
//! be a ledger's. Then real links: two within a budget for one and a half, and three that nobody gave a budget.
//!
//! The processes without compilers are `distlto-test-ledger`.

mod books;
mod links;
