//! `reapi-server`: the server of this crate as a program.

fn main() -> anyhow::Result<()> {
    distlto_reapi_server::program::main()
}
