//! Uploads: each blob once, split as the server wants, gone on with where they were cut.

use std::time::Duration;

use distlto_reapi::blob::Blob;
use distlto_reapi::method::Method;
use distlto_reapi::options::Compression;
use distlto_reapi::{Digest, Error};
use distlto_reapi_server::{Break, CommittedSize, Cut};

use crate::help::{Tested, at_once, client, content, failed, runtime, server, until, wait};

#[test]
fn each_blob_goes_up_once_whoever_lists_it() -> Tested {
    let server = server(|faults| faults.batch_limit = 65_536);
    let client_ = client(&server, |_| ());
    let folder = tempfile::tempdir()?;
    let mut blobs = Vec::new();
    for number in 0..60 {
        // Every tenth one is large.
        let bytes = content(number, if number % 10 == 0 { 100_000 } else { 1000 });
        let path = folder.path().join(number.to_string());
        std::fs::write(&path, &bytes)?;
        // Some lie in a file, some in memory.
        let file = Blob::file(Digest::of(&bytes), path);
        blobs.push(if number % 2 == 0 { file } else { Blob::new(bytes) });
    }
    let upload = |task: usize| {
        let (client, mut blobs) = (client_.clone(), blobs.clone());
        blobs.rotate_left(task * 7);
        blobs.extend(blobs.clone());
        async move { client.upload(blobs).await }
    };
    at_once((0..8).map(upload))?;
    let counts = server.counts();
    assert_eq!((counts.blobs_uploaded, counts.blobs_uploaded_again, counts.digests_asked), (60, 0, 60));
    let size: u64 = blobs.iter().map(|blob| blob.digest().size).sum();
    assert_eq!(counts.blob_bytes_uploaded, size);
    let known = client_.statistics().snapshot();
    assert_eq!((known.blobs_up, known.bytes_up, known.wire_up), (60, size, size));
    assert_eq!(known.calls.get(&Method::Write), Some(&6));
    // It asks nothing of what it knows, and another client finds everything there.
    wait(client_.upload(blobs.clone()))?;
    assert_eq!(client_.statistics().snapshot(), known);
    wait(client(&server, |_| ()).upload(blobs))?;
    assert_eq!(server.counts().blobs_uploaded, 60);
    Ok(())
}

#[test]
fn batches_keep_to_the_limits() -> Tested {
    // The server refuses batches that are larger than it says, and messages of more than 4 MiB.
    for limit in [65_536, 0, 4_193_280, i64::MAX] {
        let server = server(|faults| faults.batch_limit = limit);
        let client = client(&server, |_| ());
        let size = if limit == 65_536 { 3000 } else { 300_000 };
        let blobs: Vec<_> = (0..40).map(|seed| Blob::new(content(seed, size))).collect();
        let tiny: Vec<_> = (0..400_u32).map(|seed| Blob::new(seed.to_le_bytes().to_vec())).collect();
        let digests: Vec<_> = blobs.iter().chain(&tiny).map(Blob::digest).collect();
        wait(client.upload(blobs.into_iter().chain(tiny)))?;
        assert_eq!(wait(client.missing(digests.clone()))?, []);
        client.forget(digests.clone());
        assert_eq!(wait(client.missing(digests))?, []);
        let counts = server.counts();
        assert_eq!((counts.blobs_uploaded, counts.of("Write")), (440, 0), "{limit}");
        assert!(counts.of("BatchUpdateBlobs") < 16, "{counts:?}");
    }
    Ok(())
}

#[test]
fn a_batch_that_is_too_large_for_what_is_between_goes_as_streams() -> Tested {
    let server = server(|faults| (faults.batch_limit, faults.message_limit) = (0, 1 << 20));
    let client = client(&server, |_| ());
    let blob = Blob::new(content(1, 3 << 20));
    wait(client.upload([blob.clone()]))?;
    assert_eq!(server.counts().of("Write"), 1);
    assert_eq!(wait(client.missing([blob.digest()]))?, []);
    Ok(())
}

#[test]
fn only_what_is_there_is_remembered() -> Tested {
    let server = server(|_| ());
    let client = client(&server, |_| ());
    let (one, other) = (Blob::new("one"), Blob::new("other"));
    let digests = [one.digest(), other.digest()];
    wait(client.upload([one.clone()]))?;
    assert_eq!(wait(client.missing(digests))?, [other.digest()]);
    // Somebody else uploads it.
    wait(self::client(&server, |_| ()).upload([other.clone()]))?;
    assert_eq!(wait(client.missing(digests))?, []);
    // The server loses them, which the client cannot know.
    server.evict_all()?;
    assert_eq!(wait(client.missing(digests))?, []);
    client.forget([one.digest()]);
    assert_eq!(wait(client.missing(digests))?, [one.digest()]);
    wait(client.upload([one.clone(), other]))?;
    assert_eq!(server.counts().blobs_uploaded, 3);
    Ok(())
}

#[test]
fn what_changed_is_not_uploaded() -> Tested {
    let server = server(|faults| faults.batch_limit = 65_536);
    let folder = tempfile::tempdir()?;
    for compression in [Compression::Off, Compression::On] {
        let client = client(&server, |options| options.compression = compression);
        for size in [1000, 2_000_000] {
            let path = folder.path().join("input");
            let expected = Digest::of(&content(1, size));
            for other in
                [content(2, size), content(1, size - 1), [content(1, size), vec![0]].concat(), Vec::new()]
            {
                std::fs::write(&path, other)?;
                let error = failed(wait(client.upload([Blob::file(expected, &path)])));
                assert!(matches!(&error, Error::Changed { digest, .. } if *digest == expected), "{error:?}");
                assert!(error.to_string().contains("input"));
            }
            std::fs::remove_file(&path)?;
            let error = failed(wait(client.upload([Blob::file(expected, &path)])));
            assert!(matches!(error, Error::Io { .. }), "{error:?}");
            assert_eq!(wait(client.missing([expected]))?, [expected]);
            // A failure is not remembered either.
            wait(client.upload([Blob::new(content(1, size))]))?;
            server.evict_all()?;
            client.forget([expected]);
        }
    }
    Ok(())
}

#[test]
fn another_ones_bad_file_is_not_ones_own() -> Tested {
    let server = server(|faults| faults.latency = Duration::from_millis(200));
    let client = client(&server, |_| ());
    let folder = tempfile::tempdir()?;
    let blob = Blob::new(content(1, 1000));
    // The bad one is asked for first, and read when the good one already waits for it.
    let (other, bad) = (client.clone(), Blob::file(blob.digest(), folder.path().join("nowhere")));
    let task = runtime().spawn(async move { other.upload([bad]).await });
    until("the question", || client.statistics().snapshot().calls.contains_key(&Method::FindMissingBlobs));
    wait(client.upload([blob.clone()]))?;
    assert!(matches!(failed(wait(task)?), Error::Io { .. }));
    assert_eq!(wait(client.missing([blob.digest()]))?, []);
    Ok(())
}

#[test]
fn an_upload_that_was_cut_goes_on() -> Tested {
    let size = 8 << 20;
    for how in [Break::Status, Break::Connection] {
        let server = server(|faults| {
            faults.cut_writes = Some(Cut { streams: 2, after: 3 << 20, how });
            faults.no_zstd = true;
        });
        let client = client(&server, |_| ());
        let blob = Blob::new(content(3, size));
        wait(client.upload([blob.clone()]))?;
        assert_eq!(wait(client.download(blob.digest()))?, content(3, size));
        let known = client.statistics().snapshot();
        // The second cut is of the same bytes: it fails at once.
        assert!(known.calls[&Method::QueryWriteStatus] >= 1 && known.retries >= 2, "{known:?}");
        assert_eq!(known.calls[&Method::Write], 3);
        let counts = server.counts();
        assert_eq!(counts.blobs_uploaded, 1);
        // From the beginning each time it would be 14 MiB; what was on its way at a cut is lost.
        assert!(counts.bytes_in < 12 << 20, "{known:?} {counts:?}");
    }
    Ok(())
}

#[test]
fn a_compressed_upload_begins_anew() -> Tested {
    for how in [Break::Status, Break::Connection] {
        let server = server(|faults| faults.cut_writes = Some(Cut { streams: 1, after: 100_000, how }));
        let client = client(&server, |options| options.compression = Compression::On);
        let blob = Blob::new(content(5, 8 << 20));
        wait(client.upload([blob.clone()]))?;
        let known = client.statistics().snapshot();
        assert_eq!((known.calls[&Method::Write], known.calls.get(&Method::QueryWriteStatus)), (2, None));
        assert!(known.wire_up < known.bytes_up && known.wire_up > 100_000, "{known:?}");
        assert_eq!(wait(client.download(blob.digest()))?, content(5, 8 << 20));
    }
    Ok(())
}

#[test]
fn committed_size_may_be_anything_that_servers_say() -> Tested {
    use CommittedSize::{Full, Specified, Stream, Unknown};
    for committed_size in [Specified, Full, Stream, Unknown] {
        for compression in [Compression::Off, Compression::On] {
            let server = server(|faults| faults.committed_size = committed_size);
            let client = client(&server, |options| options.compression = compression);
            wait(client.upload([Blob::new(content(7, 5 << 20))]))?;
            let counts = server.counts();
            assert_eq!(
                (counts.of("Write"), counts.blobs_uploaded),
                (1, 1),
                "{committed_size:?} {compression:?}"
            );
        }
    }
    Ok(())
}

#[test]
fn small_blobs_are_compressed_where_that_is_wanted() -> Tested {
    let server = server(|_| ());
    let client = client(&server, |options| options.compression = Compression::On);
    let blobs: Vec<_> = (0..10).map(|seed| Blob::new(content(seed, 50_000))).collect();
    wait(client.upload(blobs.clone()))?;
    for blob in &blobs {
        assert_eq!(Digest::of(&wait(client.download(blob.digest()))?), blob.digest());
    }
    let known = client.statistics().snapshot();
    assert_eq!((known.bytes_up, known.bytes_down), (500_000, 500_000));
    assert!(known.wire_up < 400_000 && known.wire_down < 400_000, "{known:?}");
    assert_eq!(server.counts().blob_bytes_uploaded, 500_000);
    Ok(())
}
