//! The server as a program: its flags, its URL, and what it says at its end.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use distlto_reapi_server::plain::{Plain, Wanted};
use tonic::Code;

#[test]
fn flags_are_workers_and_faults() -> Result<(), Box<dyn std::error::Error>> {
    let mut server = Command::new(env!("CARGO_BIN_EXE_reapi-server"))
        .args(["--worker", "name=quick,slots=2,OSFamily=linux", "--worker", "name=slow,delay=1000000"])
        .args([
            "--refuse",
            "UNAVAILABLE:GetActionResult:always",
            "--cut-reads",
            "1:2:end",
            "--batch-limit",
            "0",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut url = String::new();
    BufReader::new(server.stdout.take().ok_or("no output")?).read_line(&mut url)?;
    let client = Plain::new(url.trim())?;
    let wanted = Wanted {
        words: &["sh", "-c", "echo content > out"],
        outputs: &["out"],
        environment: &[("PATH", "/usr/bin:/bin")],
        platform: &[("OSFamily", "linux")],
        ..Wanted::default()
    };
    let result = client.run(&wanted)?.result.ok_or("no result")?;
    assert_eq!(result.execution_metadata.ok_or("no metadata")?.worker, "quick");
    let digest = result.output_files[0].digest.clone().ok_or("no digest")?;
    assert_eq!(client.download(&digest)?, b"co");
    assert_eq!(client.download(&digest)?, b"content\n");
    for _ in 0..3 {
        let refused = client.cached(&digest).map_err(|status| status.code());
        assert_eq!(refused.err(), Some(Code::Unavailable));
    }
    let id = rustix::process::Pid::from_child(&server);
    rustix::process::kill_process(id, rustix::process::Signal::TERM)?;
    assert!(server.wait()?.success());
    let mut said = String::new();
    server.stderr.take().ok_or("no output")?.read_to_string(&mut said)?;
    assert!(said.contains("refused: 3"), "{said}");
    Ok(())
}
