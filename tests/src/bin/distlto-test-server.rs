//! `distlto-test-server`: `reapi-server` beside the tests of this crate, which stop and kill it as no server in their own process
//! can be.

fn main() -> anyhow::Result<()> {
    distlto_reapi_server::program::main()
}
