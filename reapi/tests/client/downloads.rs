//! Downloads: merged, gone on with where they were cut, and never handed over when they are wrong.

use std::os::unix::fs::PermissionsExt;

use distlto_reapi::blob::Blob;
use distlto_reapi::method::Method;
use distlto_reapi::options::Compression;
use distlto_reapi::{Digest, DigestMessage, Error};
use distlto_reapi_server::{Break, Cut};

use crate::help::{Tested, at_once, client, content, failed, names, output_of, server, wait};

#[test]
fn small_ones_come_together() -> Tested {
    let server = server(|_| ());
    let client = client(&server, |_| ());
    let blobs: Vec<_> = (0..300).map(|seed| Blob::new(content(seed, 500))).collect();
    wait(client.upload(blobs.clone()))?;
    // Two of each, at once.
    let download = |task: usize| {
        let (client, digest) = (client.clone(), blobs[task % 300].digest());
        async move { client.download(digest).await.map(|bytes| (digest, bytes)) }
    };
    for (digest, bytes) in at_once((0..600).map(download))? {
        assert_eq!(Digest::of(&bytes), digest);
    }
    let calls = server.counts().of("BatchReadBlobs");
    assert!(calls < 300, "{calls} calls for 600 downloads");
    // A blob that is gone is the affair of who asked for it.
    server.evict(&blobs[0].digest().message())?;
    let both =
        wait(async { tokio::join!(client.download(blobs[0].digest()), client.download(blobs[1].digest())) });
    assert!(both.1.is_ok());
    let error = failed(both.0);
    assert!(matches!(&error, Error::Lost { digests, .. } if *digests == [blobs[0].digest()]), "{error:?}");
    Ok(())
}

#[test]
fn what_no_batch_holds_comes_by_itself() -> Tested {
    // What the server says of batches is not what it takes.
    let server = server(|faults| faults.unsaid_batch_limit = 4000);
    let client = client(&server, |_| ());
    let blobs: Vec<_> = (0..40).map(|seed| Blob::new(content(seed, 500))).collect();
    let large = Blob::new(content(40, 5000));
    wait(client.upload(blobs.iter().chain([&large]).cloned()))?;
    let download = |blob: Blob| {
        let client = client.clone();
        async move { client.download(blob.digest()).await.map(|bytes| (blob, bytes)) }
    };
    for (blob, bytes) in at_once(blobs.into_iter().chain([large]).map(download))? {
        assert_eq!(blob.digest(), Digest::of(&bytes));
    }
    assert!(server.counts().of("Read") > 0);
    Ok(())
}

#[test]
fn large_ones_go_on_where_they_were_cut() -> Tested {
    let size = 8 << 20;
    let blob = Blob::new(content(1, size));
    for compression in [Compression::Off, Compression::On] {
        let server = server(|_| ());
        let client = client(&server, |options| options.compression = compression);
        wait(client.upload([blob.clone()]))?;
        for how in [Break::Status, Break::End, Break::Connection] {
            server.change(|faults| faults.cut_reads = Some(Cut { streams: 2, after: 300_000, how }));
            let before = client.statistics().snapshot();
            assert!(wait(client.download(blob.digest()))? == content(1, size), "{how:?}");
            let after = client.statistics().snapshot();
            assert!(after.retries >= before.retries + 2, "{how:?}");
            // Not from the beginning each time; bytes on their way may be lost with a connection.
            let moved = after.wire_down - before.wire_down;
            assert!(how == Break::Connection || moved <= size as u64 + 300_000, "{how:?}: {moved}");
            assert_eq!(after.bytes_down - before.bytes_down, size as u64);
        }
    }
    Ok(())
}

#[test]
fn what_is_wrong_is_not_handed_over() -> Tested {
    let server = server(|faults| faults.batch_limit = 65_536);
    let folder = tempfile::tempdir()?;
    for compression in [Compression::Off, Compression::On] {
        let client = client(&server, |options| options.compression = compression);
        for size in [1000, 300_000] {
            let blob = Blob::new(content(2, size));
            wait(client.upload([blob.clone()]))?;
            server.change(|faults| faults.wrong_bytes = 1);
            assert_eq!(wait(client.download(blob.digest()))?, content(2, size), "wrong once");
            let path = folder.path().join("out");
            std::fs::write(&path, "before")?;
            server.change(|faults| faults.wrong_bytes = u32::MAX);
            let errors = [
                failed(wait(client.download(blob.digest()))),
                failed(wait(client.download_output(&output_of(blob.digest(), false), &path))),
            ];
            for error in errors {
                assert!(
                    matches!(&error, Error::Corrupt { digest, .. } if *digest == blob.digest()),
                    "{error:?}"
                );
            }
            assert_eq!(std::fs::read(&path)?, b"before");
            server.change(|faults| faults.wrong_bytes = 0);
            server.evict(&blob.digest().message())?;
            let error = failed(wait(client.download_output(&output_of(blob.digest(), false), &path)));
            assert!(
                matches!(&error, Error::Lost { digests, .. } if *digests == [blob.digest()]),
                "{error:?}"
            );
            assert_eq!(
                (std::fs::read(&path)?, names(folder.path())),
                (b"before".to_vec(), vec!["out".to_owned()])
            );
            client.forget([blob.digest()]);
        }
    }
    Ok(())
}

#[test]
fn files() -> Tested {
    let server = server(|faults| faults.batch_limit = 65_536);
    let client = client(&server, |_| ());
    let folder = tempfile::tempdir()?;
    for size in [0, 1000, 300_000] {
        let blob = Blob::new(content(3, size));
        wait(client.upload([blob.clone()]))?;
        let path = folder.path().join("file");
        for executable in [false, true] {
            wait(client.download_output(&output_of(blob.digest(), executable), &path))?;
            assert_eq!(std::fs::read(&path)?, content(3, size));
            let mode = std::fs::metadata(&path)?.permissions().mode();
            assert_eq!(mode & 0o100 != 0, executable);
        }
        // Another content, which is longer.
        std::fs::write(&path, vec![1; 400_000])?;
        wait(client.download_output(&output_of(blob.digest(), false), &path))?;
        assert_eq!(std::fs::read(&path)?, content(3, size));
    }
    let nowhere = folder.path().join("nowhere/file");
    let error = failed(wait(client.download_output(&output_of(Digest::of(b""), false), &nowhere)));
    assert!(matches!(&error, Error::Io { path, .. } if *path == nowhere), "{error:?}");
    Ok(())
}

#[test]
fn the_empty_blob_is_everywhere() -> Tested {
    let server = server(|_| ());
    let client = client(&server, |_| ());
    assert_eq!(wait(client.download(Digest::of(b"")))?.len(), 0);
    let calls = client.statistics().snapshot().calls;
    assert_eq!(calls.into_keys().collect::<Vec<_>>(), [Method::GetCapabilities]);
    Ok(())
}
