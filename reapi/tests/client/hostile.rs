//! Servers that fill or hold a client: sizes that nothing has, blobs without an end, a byte now and then, silence.
//!
//! Each has to end in an error. Times are those of the options, and no test looks at how long something took but far above.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use distlto_reapi::blob::Blob;
use distlto_reapi::{Client, Digest, DigestMessage, Error, Options, proto};
use distlto_reapi_server::{Break, Cut, Server};

use crate::help::{Tested, client, content, failed, output_of, server, wait};

/// How long a client is patient here.
const PATIENCE: Duration = Duration::from_secs(1);
/// What no machine makes of that.
const FOR_EVER: Duration = Duration::from_secs(90);

/// A client that is patient for that long, of a server that has a blob, which no batch holds.
fn with_blob() -> Result<(Server, Client, Blob), Box<dyn std::error::Error + Send + Sync>> {
    let server = server(|faults| faults.batch_limit = 1500);
    let blob = Blob::new(content(1, 200_000));
    wait(client(&server, |_| ()).upload([blob.clone()]))?;
    let client = client(&server, |options| {
        options.give_up_after(PATIENCE);
        // It errs only after that.
        options.connect_time = FOR_EVER;
    });
    Ok((server, client, blob))
}

#[test]
fn what_is_too_large_is_not_asked_for() -> Tested {
    let server = server(|_| ());
    let client = client(&server, |options| options.largest_blob = 1 << 20);
    let huge = Digest { hash: [1; 32], size: 1 << 40 };
    let error = failed(wait(client.download(huge)));
    assert!(matches!(error, Error::TooLarge { size: 0x100_0000_0000, limit: 0x10_0000, .. }), "{error:?}");
    let folder = tempfile::tempdir()?;
    let error = failed(wait(client.download_output(&output_of(huge, false), &folder.path().join("file"))));
    assert!(matches!(error, Error::TooLarge { .. }), "{error:?}");
    assert_eq!(folder.path().read_dir()?.count(), 0);
    let one_more = Digest { hash: [1; 32], size: (1 << 20) + 1 };
    for result in [
        proto::ActionResult { stderr_digest: Some(one_more.message()), ..Default::default() },
        proto::ActionResult { stderr_raw: vec![b'x'; (1 << 20) + 1], ..Default::default() },
    ] {
        let error = failed(wait(client.stderr(&result)));
        assert!(matches!(error, Error::TooLarge { .. }), "{error:?}");
    }
    assert_eq!((server.counts().of("Read"), server.counts().of("BatchReadBlobs")), (0, 0));
    let result = proto::ActionResult { stderr_raw: vec![b'x'; 1 << 20], ..Default::default() };
    assert_eq!(wait(client.stderr(&result))?.len(), 1 << 20);
    Ok(())
}

#[test]
fn no_more_comes_than_the_digest_says() -> Tested {
    let (server, client, blob) = with_blob()?;
    server.change(|faults| faults.endless_reads = 1);
    // Once may be an accident.
    assert_eq!(wait(client.download(blob.digest()))?.len(), 200_000);
    server.change(|faults| faults.endless_reads = u32::MAX);
    let error = failed(wait(client.download(blob.digest())));
    assert!(matches!(&error, Error::Corrupt { found, .. } if found == "it is longer"), "{error:?}");
    let received = client.statistics().snapshot().wire_down;
    assert!(received < 4 << 20, "{received} bytes");
    Ok(())
}

#[test]
fn a_byte_now_and_then_is_not_enough() -> Tested {
    let (server, client, blob) = with_blob()?;
    let begun = Instant::now();
    server.change(|faults| {
        faults.read_message = 1;
        faults.message_delay = Duration::from_millis(20);
    });
    let error = failed(wait(client.download(blob.digest())));
    assert!(error.is_silence(), "{error:?}");
    // Nor is one of each try.
    server.change(|faults| {
        faults.cut_reads = Some(Cut { streams: u32::MAX, after: 1, how: Break::Status });
    });
    let error = failed(wait(client.download(blob.digest())));
    assert!(error.is_silence(), "{error:?}");
    assert!(begun.elapsed() < FOR_EVER, "{:?}", begun.elapsed());
    Ok(())
}

#[test]
fn silence_has_an_end_for_every_call() -> Tested {
    type Change = fn(&mut distlto_reapi_server::Faults);
    let trickles: Change = |faults| faults.trickle = Duration::from_millis(100);
    let silent: Change = |faults| faults.freeze = true;
    for change in [silent, trickles] {
        let (server, client, blob) = with_blob()?;
        let begun = Instant::now();
        server.change(change);
        let result = proto::ActionResult { exit_code: 1, ..Default::default() };
        let (large, small, up, up_large, get, update) = wait(async {
            tokio::join!(
                client.download(blob.digest()),
                client.download(Digest::of(b"small")),
                client.upload([Blob::new("small")]),
                client.upload([Blob::new(content(2, 6 << 20))]),
                client.action_result(blob.digest(), Vec::new()),
                client.update_action_result(blob.digest(), result),
            )
        });
        let downloads = [failed(large), failed(small)];
        let others = [failed(up), failed(up_large), failed(get), failed(update)];
        for error in downloads.into_iter().chain(others) {
            assert!(error.is_silence(), "{error:?}");
            assert_eq!(error.endpoint().map(|server| server.to_string()), Some(server.url()));
        }
        assert!(begun.elapsed() < FOR_EVER, "{:?}", begun.elapsed());
    }
    Ok(())
}

/// The time of the first try is part of the time for retries, whichever of this side's limits ended it.
#[test]
fn silence_in_the_middle_of_an_answer_counts() -> Tested {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for mut stream in listener.incoming().flatten() {
            let length = stream.read(&mut [0; 4096]);
            let begun = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1234");
            held.push((stream, length, begun));
        }
    });
    let mut options = Options::new(&url)?;
    options.connect_time = FOR_EVER;
    options.retry_time = PATIENCE * 2;
    options.call_timeout = PATIENCE;
    let client = wait(Client::connect(options))?;
    let error = failed(wait(client.download(Digest::of(b"123456789"))));
    assert!(matches!(&error, Error::Unreachable { failed } if failed.tries == 2), "{error:?}");
    Ok(())
}
