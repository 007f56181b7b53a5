//! Actions as a good server runs them: real commands, their results, the cache, workers and platforms.

use std::process::Command;
use std::time::Duration;

use bazel_remote_apis::google::longrunning::{
    CancelOperationRequest, GetOperationRequest, operations_client::OperationsClient,
};
use distlto_reapi_server::plain::{Plain, Wanted};
use distlto_reapi_server::{Faults, Options, Server, Worker};
use tonic::Code;

type Tested = Result<(), Box<dyn std::error::Error>>;

fn server(options: Options) -> Result<(Server, Plain), Box<dyn std::error::Error>> {
    let server = Server::start(options, Faults::default())?;
    let client = Plain::new(&server.url())?;
    Ok((server, client))
}

fn shell<'a>(words: &'a [&'a str]) -> Wanted<'a> {
    Wanted { words, environment: &[("PATH", "/usr/bin:/bin")], ..Wanted::default() }
}

#[test]
fn a_compilation_is_run_once_and_makes_what_it_makes_here() -> Tested {
    let (server, client) = server(Options::default())?;
    let source = b"int twice(int x) { return 2 * x; }\n";
    let words = ["clang-22", "-c", "-O2", "twice.c", "-o", "out/twice.o"];
    let inputs: [(&str, &[u8]); 1] = [("twice.c", source)];
    let wanted = Wanted { inputs: &inputs, outputs: &["out/twice.o"], ..shell(&words) };
    let first = client.run(&wanted)?;
    let result = first.result.ok_or("no result")?;
    assert_eq!((result.exit_code, first.cached_result), (0, false));
    let object = result.output_files[0].digest.clone().ok_or("no digest")?;
    let here = tempfile::tempdir()?;
    std::fs::write(here.path().join("twice.c"), source)?;
    std::fs::create_dir(here.path().join("out"))?;
    assert!(Command::new(words[0]).args(&words[1..]).current_dir(here.path()).status()?.success());
    let object_here = std::fs::read(here.path().join("out/twice.o"))?;
    assert_eq!(client.download(&object)?, object_here);

    let second = client.run(&wanted)?;
    assert!(second.cached_result);
    assert_eq!(second.result.as_ref(), Some(&result));
    let counts = server.counts();
    assert_eq!((counts.all_executed(), counts.cache_hits), (1, 1));
    assert_eq!(counts.blobs_uploaded_again, 4, "the second run uploads all again");
    for again in [4, 5] {
        client.upload(std::slice::from_ref(&object_here))?;
        assert_eq!(server.counts().blobs_uploaded_again, again, "only the worker had the object before");
    }
    let metadata = result.execution_metadata.ok_or("no metadata")?;
    assert_eq!(metadata.worker, "worker");
    assert!(metadata.queued_timestamp.is_some() && metadata.worker_completed_timestamp.is_some());
    Ok(())
}

#[test]
fn a_command_sees_its_own_environment_and_says_what_it_says() -> Tested {
    let (_server, client) = server(Options::default())?;
    let words = ["sh", "-c", "env; echo wrong >&2; exit 3"];
    let result = client.run(&shell(&words))?.result.ok_or("no result")?;
    let (out, error) = client.said(&result)?;
    assert_eq!((result.exit_code, error.as_str()), (3, "wrong\n"));
    // A shell adds the folder that it is in, and what it counts of itself.
    let own = |line: &&str| !["PWD=", "SHLVL=", "_=", "OLDPWD="].iter().any(|name| line.starts_with(name));
    assert_eq!(out.lines().filter(own).collect::<Vec<_>>(), ["PATH=/usr/bin:/bin"]);
    // Failures are not kept.
    assert_eq!(
        client.cached(&client.describe(&shell(&words))?).map_err(|status| status.code()),
        Err(Code::NotFound)
    );
    Ok(())
}

#[test]
fn outputs_are_files_folders_and_links_and_may_be_absent() -> Tested {
    let (_server, client) = server(Options::default())?;
    let script = "mkdir tree; echo a > tree/a; ln -s a tree/b; ln -s tree link; echo x > in; echo 1 > program; \
                  chmod +x program";
    let outputs = ["tree", "link", "absent/file", "program", "in"];
    let inputs: [(&str, &[u8]); 1] = [("in", b"input")];
    let words = ["sh", "-c", script];
    let wanted = Wanted { outputs: &outputs, inputs: &inputs, ..shell(&words) };
    let result = client.run(&wanted)?.result.ok_or("no result")?;
    assert_eq!(result.output_directories.len(), 1);
    assert_eq!(result.output_symlinks[0].target, "tree");
    let files: Vec<_> =
        result.output_files.iter().map(|file| (file.path.as_str(), file.is_executable)).collect();
    assert_eq!(files, [("program", true), ("in", false)]);
    // A command that overwrites its input leaves the blob as it was.
    let input = distlto_reapi_server::digest_of(b"input");
    assert_eq!(client.download(&input)?, b"input");
    Ok(())
}

#[test]
fn an_action_that_takes_too_long_ends() -> Tested {
    let (_server, client) = server(Options::default())?;
    let wanted =
        Wanted { timeout: Some(Duration::from_millis(100)), ..shell(&["sh", "-c", "sleep 1000 & wait"]) };
    let status = client.run(&wanted)?.status.ok_or("no status")?;
    assert_eq!(Code::from_i32(status.code), Code::DeadlineExceeded);
    Ok(())
}

#[test]
fn workers_take_what_their_platform_allows() -> Tested {
    let platform = |value: &str| vec![("toolchain".to_owned(), value.to_owned())];
    let workers = vec![
        Worker { platform: platform("one"), ..Worker::new("first", 1) },
        Worker { platform: platform("two"), ..Worker::new("second", 1) },
    ];
    let (server, client) = server(Options { workers, ..Options::default() })?;
    for (value, expected) in [("one", "first"), ("two", "second")] {
        let platform = [("toolchain", value)];
        let result =
            client.run(&Wanted { platform: &platform, ..shell(&["true"]) })?.result.ok_or("no result")?;
        assert_eq!(result.execution_metadata.ok_or("no metadata")?.worker, expected);
    }
    // A platform that nobody has waits, or is refused.
    let platform = [("toolchain", "three")];
    let action = client.describe(&Wanted { platform: &platform, ..shell(&["true"]) })?;
    let mut waiting = client.begin(&action)?;
    assert!(client.next(&mut waiting)?.is_some_and(|operation| !operation.done));
    server.change(|faults| faults.refuse_platforms = true);
    assert_eq!(client.begin(&action).map_err(|status| status.code()).err(), Some(Code::FailedPrecondition));
    Ok(())
}

#[test]
fn what_a_lost_worker_ran_is_run_by_another() -> Tested {
    let slow = Worker { delay: Duration::from_secs(1000), ..Worker::new("slow", 1) };
    let workers = vec![slow, Worker::new("quick", 1)];
    let (server, client) = server(Options { workers, ..Options::default() })?;
    // One of two equal actions comes to each worker; the quick one could take both only after it has ended one.
    server.change(|faults| faults.hold = true);
    let action = client.describe(&shell(&["sleep", "0.2"]))?;
    let mut streams = [client.begin(&action)?, client.begin(&action)?];
    server.change(|faults| faults.hold = false);
    for stream in &mut streams {
        // Queued, then executing.
        assert!(client.next(stream)?.is_some_and(|operation| !operation.done));
        assert!(client.next(stream)?.is_some_and(|operation| !operation.done));
    }
    server.lose_worker("slow");
    for stream in streams {
        let result = client.end(stream)?.result.ok_or("no result")?;
        assert_eq!(result.execution_metadata.ok_or("no metadata")?.worker, "quick");
    }
    assert_eq!(server.counts().all_executed(), 2);
    Ok(())
}

#[test]
fn an_operation_is_asked_about_and_cancelled() -> Tested {
    let (server, client) = server(Options::default())?;
    let mut stub = OperationsClient::new(client.channel.clone());
    for held in [true, false] {
        server.change(|faults| faults.hold = held);
        let action = client.describe(&shell(&["sleep", "1000"]))?;
        let mut stream = client.begin(&action)?;
        let name = client.next(&mut stream)?.ok_or("no message")?.name;
        if !held {
            // The worker has it.
            assert!(client.next(&mut stream)?.is_some_and(|operation| !operation.done));
        }
        let found = client.wait(stub.get_operation(GetOperationRequest { name: name.clone() }))?.into_inner();
        assert_eq!((found.name.as_str(), found.done), (name.as_str(), false));
        client.wait(stub.cancel_operation(CancelOperationRequest { name }))?;
        let status = client.end(stream)?.status.ok_or("no status")?;
        assert_eq!(Code::from_i32(status.code), Code::Cancelled);
    }
    assert_eq!(server.counts().all_executed(), 0);
    Ok(())
}

#[test]
fn equal_actions_are_one_where_a_switch_says_so() -> Tested {
    let (server, client) = server(Options::default())?;
    server.change(|faults| (faults.hold, faults.merge) = (true, true));
    let action = client.describe(&shell(&["true"]))?;
    let streams = [client.begin(&action)?, client.begin(&action)?];
    server.change(|faults| faults.hold = false);
    for stream in streams {
        assert_eq!(client.end(stream)?.result.ok_or("no result")?.exit_code, 0);
    }
    assert_eq!(server.counts().all_executed(), 1);
    Ok(())
}
