//! Blobs that vanish: the error says which, and the caller can mend it.

use distlto_reapi::blob::Blob;
use distlto_reapi::execute::ExecuteOptions;
use distlto_reapi::{Client, Digest, DigestMessage, Error};
use distlto_reapi_server::Missing;

use crate::help::{Prepared, Tested, client, failed, output, prepare, server, wait};

const COPY: &str = "cat in > out";

fn execute(client: &Client, prepared: &Prepared) -> Result<distlto_reapi::execute::ExecutedAction, Error> {
    wait(client.execute(prepared.encoded.digest(), &ExecuteOptions::default(), |_| ()))
}

fn lost(error: &Error) -> Option<&[Digest]> {
    if let Error::Lost { digests, .. } = error { Some(digests) } else { None }
}

#[test]
fn an_input_that_vanished_is_told_in_each_way() -> Tested {
    let server = server(|_| ());
    let client = client(&server, |_| ());
    let ways = [Missing::Details, Missing::Precondition, Missing::Internal, Missing::NotFound];
    for (salt, (how, as_error)) in (0_u8..).zip(ways.into_iter().flat_map(|how| [(how, false), (how, true)]))
    {
        server.change(|faults| (faults.missing, faults.missing_as_error) = (how, as_error));
        let prepared = prepare(COPY, &[b'i', salt], |action| action.salt = vec![salt]);
        // The server has it when it is asked, and loses it before the action runs.
        wait(client.upload(prepared.blobs.clone()))?;
        server.evict(&prepared.input.digest().message())?;
        wait(client.upload(prepared.blobs.clone()))?;
        let error = failed(execute(&client, &prepared));
        let expected = match how {
            Missing::Details => vec![prepared.input.digest()],
            Missing::Precondition | Missing::Internal | Missing::NotFound => vec![],
        };
        assert_eq!(lost(&error), Some(&expected[..]), "{how:?} {as_error}: {error:?}");
        client.forget(prepared.blobs.iter().map(Blob::digest));
        wait(client.upload(prepared.blobs.clone()))?;
        assert_eq!(wait(client.download(output(&execute(&client, &prepared)?.result)))?, [b'i', salt][..]);
        assert_eq!(server.counts().blobs_uploaded_again, 0);
    }
    Ok(())
}

#[test]
fn an_action_that_was_never_there_is_told() -> Tested {
    for as_error in [false, true] {
        let server = server(|faults| faults.missing_as_error = as_error);
        let client = client(&server, |_| ());
        let prepared = prepare(COPY, b"input", |_| ());
        let error = failed(execute(&client, &prepared));
        assert_eq!(lost(&error), Some(&[prepared.encoded.digest()][..]), "{error:?}");
    }
    Ok(())
}

#[test]
fn a_server_that_says_a_blob_is_there_is_caught() -> Tested {
    let server = server(|faults| faults.deny_missing = 1);
    let client = client(&server, |_| ());
    let prepared = prepare(COPY, b"input", |_| ());
    wait(client.upload(prepared.blobs.clone()))?;
    assert_eq!(server.counts().blobs_uploaded, 0);
    assert!(lost(&failed(execute(&client, &prepared))).is_some());
    client.forget(prepared.blobs.iter().map(Blob::digest));
    wait(client.upload(prepared.blobs.clone()))?;
    assert_eq!(execute(&client, &prepared)?.result.exit_code, 0);
    Ok(())
}

#[test]
fn a_cached_result_whose_blob_is_gone_is_run_again() -> Tested {
    let server = server(|_| ());
    let client = client(&server, |_| ());
    let prepared = prepare(COPY, b"input", |_| ());
    wait(client.upload(prepared.blobs.clone()))?;
    execute(&client, &prepared)?;
    server.change(|faults| faults.hollow_results = 1);
    let action = prepared.encoded.digest();
    let hollow = wait(client.action_result(action, Vec::new()))?.ok_or("it is cached")?;
    let error = failed(wait(client.download(output(&hollow))));
    assert_eq!(lost(&error), Some(&[output(&hollow)][..]));
    // The output is the input here, which is gone with it.
    client.forget(prepared.blobs.iter().map(Blob::digest));
    wait(client.upload(prepared.blobs.clone()))?;
    let options = ExecuteOptions { skip_cache_lookup: true, ..Default::default() };
    let executed = wait(client.execute(action, &options, |_| ()))?;
    assert!(!executed.cached);
    assert_eq!(wait(client.download(output(&executed.result)))?, "input");
    Ok(())
}

#[test]
fn a_platform_that_is_refused_is_no_mystery() -> Tested {
    let server = server(|faults| faults.refuse_platforms = true);
    let client = client(&server, |_| ());
    let nowhere = vec![("OSFamily".to_owned(), "none".to_owned())];
    let prepared = prepare(COPY, b"input", |action| action.platform = nowhere);
    wait(client.upload(prepared.blobs.clone()))?;
    let error = failed(execute(&client, &prepared));
    // Servers say the same of blobs without naming them: the message has to tell.
    assert_eq!(lost(&error), Some(&[][..]));
    assert!(error.to_string().contains("no worker has this platform"), "{error}");
    Ok(())
}
