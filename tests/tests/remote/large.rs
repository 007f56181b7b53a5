//! Modules that no message of four megabytes holds, and what a link uploads against what it reads.

use std::fs;

use anyhow::{Result, ensure};
use distlto_reapi_server::{Faults, Options, Server};
use distlto_tests::run::succeed;

use super::program::{Checkout, Running, compile, warnings};

/// Text that does not shrink below a half.
fn noise(size: usize, seed: u64) -> String {
    let mut state = seed;
    let letter = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'0' + (state >> 33) as u8 % 74).to_string().replace('\\', "/").replace('?', "!")
    };
    (0..size).map(letter).collect()
}

#[test]
fn modules_above_the_limit_of_messages_go_up_once() -> Result<()> {
    // The limit of the server is gRPC's; its batches are smaller.
    let server = Server::start(Options::default(), Faults::default())?;
    let checkout = Checkout::new()?;
    let mut inputs: Vec<String> = Vec::new();
    for number in 1..=2 {
        let text = format!(
            "const char data{number}[] = \"{}\";\nint large{number}(int x) {{ return data{number}[x]; }}\n",
            noise(6 << 20, number)
        );
        fs::write(checkout.path.join(format!("large{number}.c")), text)?;
        inputs.push(format!("large{number}"));
    }
    for number in 1..=4 {
        let text = format!(
            "int large1(int);\nint large2(int);\nint part{number}(int x) {{ return large1(x) + large2(x + {number}); }}\n"
        );
        fs::write(checkout.path.join(format!("part{number}.c")), text)?;
        inputs.push(format!("part{number}"));
    }
    let main = "int part1(int);\nint part2(int);\nint part3(int);\nint part4(int);\n\
                int main(int n, char **w) { return (part1(n) + part2(n) + part3(n) + part4(n)) & 1; }\n";
    fs::write(checkout.path.join("main.c"), main)?;
    inputs.push("main".to_owned());
    let mut size = 0;
    for name in &mut inputs {
        compile(&checkout.path, name)?;
        name.push_str(".o");
        size += fs::metadata(checkout.path.join(&name))?.len();
    }
    ensure!(size > 9 << 20, "the modules have {size} bytes");
    let local = checkout.link_of(&["-j2"], &inputs)?;
    let program = checkout.path.join("program");
    succeed(&mut { local })?;
    let expected = fs::read(&program)?;
    checkout.clear()?;

    let url = server.url();
    let link = checkout.link_of(&["-j1", "--remote", &url, "--remote-cache-mode=read-only"], &inputs)?;
    let ended = Running::start(link)?.end()?;
    ensure!(ended.output.status.success() && warnings(&ended.said()).is_empty(), "{}", ended.told());
    ensure!(fs::read(&program)? == expected, "another program");
    let counts = server.counts();
    let ratio = counts.blob_bytes_uploaded as f64 / size as f64;
    println!("{} bytes uploaded, {size} bytes of modules: {ratio:.4}", counts.blob_bytes_uploaded);
    ensure!(counts.blobs_uploaded_again == 0 && ratio <= 1.02, "{ratio}: {counts:#?}");
    ensure!(counts.of("Write") > 0 && counts.all_executed() > 0, "{counts:#?}");
    Ok(())
}
