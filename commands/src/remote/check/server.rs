//! The declared capabilities of a server, and a test of its storage and its action cache.
//!
//! The uploaded content is unique to this check, so that no server has it already. Does not depend on compilers.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Instant;

use distlto_reapi::action::Action;
use distlto_reapi::blob::Blob;
use distlto_reapi::capabilities::Capabilities;
use distlto_reapi::merkle::Tree;
use distlto_reapi::options::Compression;
use distlto_reapi::{Client, Digest, DigestMessage, Error, proto};

use crate::report::CheckedSentences;

/// Fits into any batch.
const SMALL: usize = 1 << 10;
/// Fits into none, and passes the usual limit of a message.
const LARGE: usize = 5 << 20;

/// Checks a server that is to execute actions, or to keep results, or both. `writes` says whether results are put into its
/// action cache; `None` if that is not used.
pub async fn check(client: &Client, executes: bool, writes: Option<bool>, report: &mut CheckedSentences) {
    let options = client.options();
    let instance = match options.instance.as_str() {
        "" => String::new(),
        name => format!(", instance {name}"),
    };
    report.about(&format!("{}{instance}", options.endpoint));
    capabilities(client, executes, report);
    let is_stored = storage(client, report).await;
    let may_write = client.capabilities().action_cache_updates;
    match writes {
        _ if may_write && writes == Some(true) => {
            // Else there is nothing to name in a result.
            if is_stored {
                action_cache(client, report).await;
            }
        }
        _ if may_write => report.good("you may write its action cache, and do not, as is configured"),
        Some(true) if !executes => report.wrong(
            "you may not write its action cache: use --remote-cache-mode read-only, or ask who runs the server",
        ),
        Some(true) => report.note(
            "you may not write its action cache: it keeps its workers' results, and none of this machine's",
        ),
        _ => report.good("you may not write its action cache, and do not, as is configured"),
    }
}

fn capabilities(client: &Client, executes: bool, report: &mut CheckedSentences) {
    if client.options().endpoint.is_http() {
        report.good("it answers as a cache that speaks plain HTTP, and executes no actions");
        return;
    }
    let Capabilities {
        batch,
        count: _,
        zstd_streams,
        zstd_updates: _,
        execution,
        action_cache_updates: _,
        low,
        high,
    } = client.capabilities();
    let shown = |version: &(i32, i32, i32)| format!("{}.{}", version.0, version.1);
    report.good(&format!("it speaks versions {} to {} of the API", shown(low), shown(high)));
    report.good("it names blobs by SHA-256");
    report.good(&format!("a batch of small blobs may have {batch} bytes"));
    match (zstd_streams, client.options().compression) {
        (true, Compression::Off) => report.note("it takes blobs compressed by zstd, which is switched off"),
        (true, _) => report.good("it takes blobs compressed by zstd"),
        (false, Compression::On) => {
            report.note("it takes no blobs compressed by zstd: --remote-compression on has no effect");
        }
        (false, _) => report.note("it takes no blobs compressed by zstd"),
    }
    match (executes, execution) {
        (true, true) => report.good("it executes actions"),
        (true, false) => {
            report.wrong("it executes no actions: use it by --remote-cache, and not by --remote");
        }
        (false, true) => report.note("it executes actions, too: --remote would have it do so"),
        (false, false) => report.good("it executes no actions, and is not asked to"),
    }
}

/// Sends a small blob and a large one, and takes them back. Whether that went well.
async fn storage(client: &Client, report: &mut CheckedSentences) -> bool {
    let mut is_good = true;
    for (kind, size) in [("small", SMALL), ("large", LARGE)] {
        let blob = Blob::new(unique(size));
        let begun = Instant::now();
        if let Err(error) = client.upload([blob.clone()]).await {
            report.failed(&format!("a {kind} blob ({size} bytes) cannot be uploaded"), &error);
            is_good = false;
            continue;
        }
        let up = begun.elapsed();
        let begun = Instant::now();
        match client.download(blob.digest()).await {
            Ok(_) => report.good(&format!(
                "a {kind} blob ({size} bytes) went up in {:.3} s and came back in {:.3} s",
                up.as_secs_f64(),
                begun.elapsed().as_secs_f64()
            )),
            Err(error) => {
                report.failed(&format!("a {kind} blob that was uploaded does not come back"), &error);
                is_good = false;
            }
        }
    }
    is_good
}

/// Keeps a result of nothing, and looks it up.
async fn action_cache(client: &Client, report: &mut CheckedSentences) {
    let tree = Tree::new().build();
    let mut action = Action::new(vec!["true".to_owned()], tree.digest());
    action.salt = unique(32);
    let action = action.encode();
    let output = Blob::new(unique(32));
    let file = proto::OutputFile {
        path: "object.o".to_owned(),
        digest: Some(output.digest().message()),
        ..Default::default()
    };
    let result = proto::ActionResult { output_files: vec![file], ..Default::default() };
    let kept = async {
        let mut blobs = tree.blobs();
        blobs.extend([action.action.clone(), action.command.clone(), output.clone()]);
        client.upload(blobs).await?;
        client.update_action_result(action.digest(), result).await?;
        client.action_result(action.digest(), Vec::new()).await
    };
    match kept.await {
        Ok(Some(found)) if names(&found, output.digest()) => {
            report.good("its action cache keeps results, and gives them back");
        }
        Ok(Some(_)) => report.wrong("its action cache gives back another result than it was given"),
        Ok(None) => {
            report.wrong("its action cache takes results and does not have them: look into the server's log");
        }
        Err(error @ Error::Denied { .. }) => report.failed(
            "it says that you may write its action cache, and refuses that (--remote-cache-mode read-only)",
            &error,
        ),
        Err(error) => report.failed("its action cache keeps no result", &error),
    }
}

fn names(result: &proto::ActionResult, output: Digest) -> bool {
    let digests = result.output_files.iter().filter_map(|file| file.digest.as_ref());
    digests.filter_map(Digest::from_message).any(|digest| digest == output)
}

/// Returns unique bytes that no compressor makes smaller.
fn unique(size: usize) -> Vec<u8> {
    let random = RandomState::new();
    let words = (0..size.div_ceil(8)).flat_map(|at| random.hash_one(at).to_le_bytes());
    words.take(size).collect()
}
