//! Servers and networks that fail for a while, or for good.

use std::time::{Duration, Instant};

use distlto_reapi::blob::Blob;
use distlto_reapi::execute::ExecuteOptions;
use distlto_reapi::method::Method;
use distlto_reapi::{Client, Digest, Error};
use distlto_reapi_server::{Break, Cut, Options, Refusal, Server};
use tonic::Code;

use crate::help::{
    Tested, at_once, client, content, failed, options, output, prepare, runtime, server, until, wait,
};

/// Everything that a link does, once: uploads of both kinds, an execution, downloads of both kinds.
async fn everything(client: &Client, salt: u8) -> Result<(), Error> {
    // Nothing of it is known from another one.
    let prepared = prepare(&format!("cat in > out # {salt}"), &content(salt.into(), 6 << 20), |_| ());
    client.upload(prepared.blobs.clone()).await?;
    let action = prepared.encoded.digest();
    assert_eq!(client.action_result(action, Vec::new()).await?, None);
    let executed = client.execute(action, &ExecuteOptions::default(), |_| ()).await?;
    client.update_action_result(action, executed.result.clone()).await?;
    let found = client.download(output(&executed.result)).await?;
    assert_eq!(Digest::of(&found), prepared.input.digest());
    let command = client.download(prepared.encoded.command.digest()).await?;
    assert_eq!(Digest::of(&command), prepared.encoded.command.digest());
    Ok(())
}

/// The same so many times at once.
fn everything_at_once(client: &Client, times: u8) -> Tested {
    let one = |salt| {
        let client = client.clone();
        async move { everything(&client, salt).await }
    };
    at_once((0..times).map(one)).map(drop)
}

#[test]
fn each_method_is_tried_again() -> Tested {
    let transient =
        [Code::Unavailable, Code::ResourceExhausted, Code::Aborted, Code::DeadlineExceeded, Code::Internal];
    for (salt, code) in (0..).zip(transient) {
        let methods = [
            "GetCapabilities",
            "FindMissingBlobs",
            "BatchUpdateBlobs",
            "Write",
            "GetActionResult",
            "Execute",
            "UpdateActionResult",
            "BatchReadBlobs",
            "Read",
        ];
        let refuse = |method: &&str| Refusal { code, method: (*method).to_owned(), calls: 2, after: 0 };
        let server = server(|faults| faults.refuse = methods.iter().map(refuse).collect());
        let client = client(&server, |_| ());
        wait(everything(&client, salt))?;
        let known = client.statistics().snapshot();
        assert_eq!((known.retries, server.counts().refused), (18, 18), "{code:?}");
        // The connection was good.
        assert_eq!(known.channels, 1);
    }
    Ok(())
}

#[test]
fn a_connection_may_end_gracefully_at_any_time() -> Tested {
    for streams in [1, 3, 10] {
        let server = server(|faults| faults.goaway_after = Some(streams));
        let client = client(&server, |_| ());
        everything_at_once(&client, 12)?;
        assert!(client.statistics().snapshot().channels > 1);
        assert_eq!(server.counts().all_executed(), 12);
    }
    Ok(())
}

#[test]
fn streams_may_be_refused() -> Tested {
    let server = server(|faults| faults.refuse_streams = 5);
    let client = client(&server, |_| ());
    wait(everything(&client, 1))?;
    let known = client.statistics().snapshot();
    // Each one is left for another connection.
    assert_eq!((known.retries, known.channels), (5, 6));
    Ok(())
}

#[test]
fn everything_may_break_at_once() -> Tested {
    let server = server(|faults| {
        let code = [Code::Unavailable, Code::ResourceExhausted, Code::Aborted];
        // Every second call or so, for a while.
        let refusal =
            |after| Refusal { code: code[after as usize % 3], method: String::new(), calls: 1, after };
        faults.refuse = (1..40).map(refusal).collect();
        faults.goaway_after = Some(7);
        faults.wrong_bytes = 2;
        faults.wait_not_found = 2;
        let cut = |after, how| Some(Cut { streams: 12, after, how });
        faults.cut_reads = cut(1 << 20, Break::Connection);
        faults.cut_writes = cut(1 << 20, Break::Connection);
        faults.cut_executions = cut(1, Break::Connection);
    });
    let client = client(&server, |_| ());
    everything_at_once(&client, 10)?;
    let counts = server.counts();
    assert!(counts.refused >= 20 && client.statistics().snapshot().retries > counts.refused, "{counts:?}");
    Ok(())
}

#[test]
fn a_server_may_be_started_again() -> Tested {
    let mut server = server(|_| ());
    let client = client(&server, |_| ());
    for (empty, salt) in [(false, 1), (true, 2)] {
        server.stop();
        let (other, before) = (client.clone(), client.statistics().snapshot().retries);
        let task = runtime().spawn(async move { everything(&other, salt).await });
        until("some tries", || client.statistics().snapshot().retries >= before + 4);
        if empty {
            server.resume_empty()?
        } else {
            server.resume()?
        }
        wait(task)??;
    }
    Ok(())
}

#[test]
fn a_network_that_is_cut_is_left() -> Tested {
    let server = server(|_| ());
    let client = client(&server, |options| options.call_timeout = Duration::from_secs(2));
    wait(client.upload([Blob::new("first")]))?;
    let before = client.statistics().snapshot();
    server.change(|faults| faults.freeze = true);
    let other = client.clone();
    let blobs = [Blob::new("second"), Blob::new(content(1, 6 << 20))];
    let task = runtime().spawn(async move { other.upload(blobs).await });
    until("two tries", || client.statistics().snapshot().retries >= before.retries + 2);
    server.change(|faults| faults.freeze = false);
    wait(task)??;
    assert!(client.statistics().snapshot().channels > before.channels);
    Ok(())
}

#[test]
fn a_stream_that_moves_is_not_silent() -> Tested {
    // Each message is late by a small part of what a call may be, and all of them together by more than that.
    let limit = Duration::from_secs(4);
    let server = server(|faults| faults.message_delay = Duration::from_millis(50));
    let client = client(&server, |options| options.call_timeout = limit);
    let blob = Blob::new(content(1, 6 << 20));
    wait(client.upload([blob.clone()]))?;
    let begun = Instant::now();
    assert_eq!(wait(client.download(blob.digest()))?.len(), 6 << 20);
    assert!(begun.elapsed() > limit);
    assert_eq!(client.statistics().snapshot().retries, 0);
    Ok(())
}

#[test]
fn a_server_that_is_gone_is_an_error_in_time() -> Tested {
    let mut server = server(|_| ());
    let limit = Duration::from_millis(300);
    let client = client(&server, |options| options.retry_time = limit);
    let prepared = prepare("true", b"", |_| ());
    server.stop();
    let shown = server.url();
    let errors = [
        failed(wait(client.upload([Blob::new("blob")]))),
        failed(wait(client.upload([Blob::new(content(1, 6 << 20))]))),
        failed(wait(client.download(Digest::of(b"blob")))),
        failed(wait(client.download(Digest { hash: [0; 32], size: 1 << 30 }))),
        failed(wait(client.execute(prepared.encoded.digest(), &ExecuteOptions::default(), |_| ()))),
    ];
    for error in errors {
        let text = error.to_string();
        let Error::Unreachable { failed } = error else { panic!("{error:?}") };
        assert!(failed.elapsed >= limit && failed.tries > 1, "{failed:?}");
        assert!(text.starts_with(&shown) && text.contains("UNAVAILABLE"), "{text}");
    }
    let mut nobody = options(&server);
    nobody.connect_time = limit;
    assert!(matches!(failed(wait(Client::connect(nobody))), Error::Unreachable { .. }));
    Ok(())
}

#[test]
fn what_will_not_pass_is_not_tried_again() -> Tested {
    for code in [Code::InvalidArgument, Code::PermissionDenied, Code::Unimplemented, Code::OutOfRange] {
        let refusal = Refusal { code, method: "FindMissingBlobs".to_owned(), calls: u32::MAX, after: 0 };
        let server = server(|faults| faults.refuse = vec![refusal]);
        let client = client(&server, |_| ());
        let error = failed(wait(client.upload([Blob::new("blob")])));
        assert_eq!((error.code(), server.counts().of("FindMissingBlobs")), (Some(code), 1), "{error:?}");
    }
    let server = server(|_| ());
    let mut options = options(&server);
    options.instance = "main".to_owned();
    let error = failed(wait(Client::connect(options)));
    assert!(error.to_string().contains("INVALID_ARGUMENT: there is no instance \"main\""), "{error}");
    Ok(())
}

#[test]
fn long_streams_leave_room_for_short_calls() -> Tested {
    let server = server(|faults| faults.hold = true);
    let client = client(&server, |options| options.streams_per_connection = 4);
    let tasks: Vec<_> = (0..20)
        .map(|salt| {
            let prepared = prepare("cat in > out", &[salt], |_| ());
            let client = client.clone();
            runtime().spawn(async move {
                client.upload(prepared.blobs.clone()).await?;
                client.execute(prepared.encoded.digest(), &ExecuteOptions::default(), |_| ()).await
            })
        })
        .collect();
    until("all in the queue", || server.counts().of("Execute") == 20);
    wait(client.upload([Blob::new("blob")]))?;
    let channels = client.statistics().snapshot().channels;
    assert!((5..=10).contains(&channels), "{channels} connections for 20 streams");
    assert_eq!(server.counts().connections, channels);
    server.change(|faults| faults.hold = false);
    for task in tasks {
        assert_eq!(wait(task)??.result.exit_code, 0);
    }
    Ok(())
}

#[test]
fn an_instance_has_its_name_everywhere() -> Tested {
    let instance = Options { instance: "a/b".to_owned(), ..Options::default() };
    let server = Server::start(instance, Default::default())?;
    let client = client(&server, |options| options.instance = "a/b".to_owned());
    wait(everything(&client, 1))?;
    let calls = client.statistics().snapshot().calls;
    assert!(calls.contains_key(&Method::Write) && calls.contains_key(&Method::Read));
    Ok(())
}
