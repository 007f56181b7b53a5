//! Each switch, seen by raw stubs, which retry nothing.

use std::time::{Duration, Instant};

use bazel_remote_apis::build::bazel::remote::execution::v2::{
    GetCapabilitiesRequest, UpdateActionResultRequest, WaitExecutionRequest,
    action_cache_client::ActionCacheClient, capabilities_client::CapabilitiesClient,
    execution_client::ExecutionClient,
};
use distlto_reapi_server::plain::{Plain, Wanted};
use distlto_reapi_server::{
    Authority, Break, Certificates, Cut, Faults, Missing, Options, PreconditionFailure, Refusal, Server,
    digest_of,
};
use prost::Message;
use tonic::metadata::MetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity};
use tonic::{Code, Request};

type Error = Box<dyn std::error::Error>;
type Tested = Result<(), Error>;

fn server(change: impl FnOnce(&mut Faults)) -> Result<(Server, Plain), Error> {
    let mut faults = Faults::default();
    change(&mut faults);
    let server = Server::start(Options::default(), faults)?;
    let client = Plain::new(&server.url())?;
    Ok((server, client))
}

fn echo<'a>(script: &'a [&'a str]) -> Wanted<'a> {
    Wanted {
        words: script,
        environment: &[("PATH", "/usr/bin:/bin")],
        outputs: &["out"],
        ..Wanted::default()
    }
}

const SCRIPT: [&str; 3] = ["sh", "-c", "echo content > out"];

fn code<T>(result: Result<T, tonic::Status>) -> Option<Code> {
    result.err().map(|status| status.code())
}

#[test]
fn calls_are_refused_in_bursts() -> Tested {
    let refusals: Vec<Refusal> =
        vec!["UNAVAILABLE:FindMissingBlobs:2:1".parse()?, "RESOURCE_EXHAUSTED:BatchUpdateBlobs:1".parse()?];
    let (server, client) = server(|faults| faults.refuse = refusals)?;
    let asked: Vec<_> = (0..4).map(|_| code(client.missing(&[]))).collect();
    assert_eq!(asked, [None, Some(Code::Unavailable), Some(Code::Unavailable), None]);
    assert_eq!(code(client.upload(&[])), Some(Code::ResourceExhausted));
    assert_eq!(code(client.upload(&[])), None);
    let counts = server.counts();
    assert_eq!((counts.of("FindMissingBlobs"), counts.of("BatchUpdateBlobs"), counts.refused), (4, 2, 3));
    Ok(())
}

#[test]
fn streams_are_refused_before_they_are_calls() -> Tested {
    let (server, client) = server(|faults| faults.refuse_streams = 1)?;
    let refused = client.missing(&[]).err().ok_or("it was answered")?;
    // What tonic makes of REFUSED_STREAM.
    assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
    assert_eq!(server.counts().of("FindMissingBlobs"), 0);
    client.missing(&[])?;
    Ok(())
}

#[test]
fn a_connection_ends_by_goaway_and_its_calls_end_well() -> Tested {
    let (server, client) = server(|faults| faults.goaway_after = Some(3))?;
    // The stream of an action is among those of the connection, and goes on after the GOAWAY that follows.
    server.change(|faults| faults.hold = true);
    let action = client.describe(&echo(&SCRIPT))?;
    let stream = client.begin(&action)?;
    client.missing(&[])?;
    server.change(|faults| faults.hold = false);
    assert_eq!(client.end(stream)?.result.ok_or("no result")?.exit_code, 0);
    assert_eq!(server.counts().connections, 1);
    // A client that does not see the end of its connection would use it once more.
    let again = client.missing(&[]);
    assert!(again.is_err() || server.counts().connections == 2, "{again:?} on the first connection");
    Ok(())
}

#[test]
fn blobs_vanish_and_each_answer_is_had() -> Tested {
    let (server, client) = server(|_| ())?;
    let inputs: [(&str, &[u8]); 1] = [("in", b"an input")];
    let wanted = Wanted { inputs: &inputs, ..echo(&SCRIPT) };
    let answers = [
        (Missing::Details, Code::FailedPrecondition),
        (Missing::Precondition, Code::FailedPrecondition),
        (Missing::Internal, Code::Internal),
        (Missing::NotFound, Code::NotFound),
    ];
    let input = digest_of(b"an input");
    for (missing, expected) in answers {
        for as_error in [false, true] {
            server.change(|faults| {
                (faults.missing, faults.missing_as_error, faults.evict_uploads) = (missing, as_error, 1);
            });
            // Acknowledged, and gone: inputs are uploaded first.
            let action = client.describe(&wanted)?;
            assert_eq!(client.missing(std::slice::from_ref(&input))?, std::slice::from_ref(&input));
            let (found, details) = match client.end(client.begin(&action)?) {
                Ok(response) => {
                    assert!(!as_error);
                    let status = response.status.ok_or("no status")?;
                    (Code::from_i32(status.code), status.details)
                }
                Err(status) => {
                    assert!(as_error);
                    let inner = bazel_remote_apis::google::rpc::Status::decode(status.details())?;
                    (status.code(), inner.details)
                }
            };
            assert_eq!(found, expected);
            assert_eq!(details.len(), usize::from(missing == Missing::Details));
            for detail in details {
                let failure = PreconditionFailure::decode(detail.value.as_slice())?;
                assert_eq!(failure.violations[0].subject, format!("blobs/{}/8", input.hash));
            }
        }
    }
    // An action that was never there is missing as well; and knowledge may be stale.
    let never = digest_of(b"never");
    server.change(|faults| faults.deny_missing = 1);
    assert_eq!(client.missing(std::slice::from_ref(&never))?, []);
    assert_eq!(code(client.begin(&never)), Some(Code::NotFound));
    Ok(())
}

#[test]
fn downloads_are_wrong_or_short() -> Tested {
    let (server, client) = server(|faults| faults.wrong_bytes = 1)?;
    let blob = vec![7; 200_000];
    let digest = digest_of(&blob);
    client.upload(std::slice::from_ref(&blob))?;
    let wrong = client.download(&digest)?;
    assert!(wrong.len() == blob.len() && wrong != blob);
    assert_eq!(client.download(&digest)?, blob);
    let cut = |how| Some(Cut { streams: 1, after: 100_000, how });
    server.change(|faults| faults.cut_reads = cut(Break::End));
    assert_eq!(client.download(&digest)?.len(), 100_000);
    for how in [Break::Status, Break::Connection] {
        server.change(|faults| faults.cut_reads = cut(how));
        assert!(Plain::new(&server.url())?.download(&digest).is_err(), "{how:?}");
        assert_eq!(client.download(&digest)?, blob);
    }
    Ok(())
}

#[test]
fn executions_are_cut_and_waited_for() -> Tested {
    let (server, client) = server(|faults| faults.hold = true)?;
    let action = client.describe(&echo(&SCRIPT))?;
    let wait = |name: &str| {
        let mut waiting = ExecutionClient::new(client.channel.clone());
        let request = WaitExecutionRequest { name: name.to_owned() };
        client.wait(waiting.wait_execution(request)).map(tonic::Response::into_inner)
    };
    for how in [Break::Status, Break::End, Break::Connection] {
        server.change(|faults| {
            (faults.hold, faults.cut_executions) = (true, Some(Cut { streams: 1, after: 1, how }));
        });
        let broken = Plain::new(&server.url())?;
        let mut stream = broken.begin(&action)?;
        let queued = broken.next(&mut stream)?.ok_or("no message")?;
        let end = broken.next(&mut stream);
        assert!(if how == Break::End { matches!(end, Ok(None)) } else { end.is_err() }, "{how:?}: {end:?}");
        server.change(|faults| faults.wait_not_found = 1);
        assert_eq!(code(wait(&queued.name)), Some(Code::NotFound));
        let stream = wait(&queued.name)?;
        server.change(|faults| faults.hold = false);
        assert_eq!(client.end(stream)?.result.ok_or("no result")?.exit_code, 0);
        // The next turn is to run it again.
        server.forget_result(&action)?;
    }
    assert_eq!(server.counts().all_executed(), 3);
    Ok(())
}

#[test]
fn cached_results_are_hollow_or_poisoned() -> Tested {
    let (server, client) = server(|_| ())?;
    let result = client.run(&echo(&SCRIPT))?.result.ok_or("no result")?;
    let action = client.describe(&echo(&SCRIPT))?;
    server.change(|faults| faults.poison_results = 1);
    let poisoned = client.cached(&action)?;
    assert_eq!(poisoned.output_files[0].digest, Some(digest_of(b"")));
    assert_eq!(client.cached(&action)?, result);
    server.change(|faults| faults.hollow_results = 1);
    let hollow = client.run(&echo(&SCRIPT))?;
    assert!(hollow.cached_result);
    let digest = hollow.result.ok_or("no result")?.output_files[0].digest.clone().ok_or("no digest")?;
    assert_eq!(code(client.download(&digest)), Some(Code::NotFound));
    Ok(())
}

#[test]
fn a_cache_may_be_alone_read_only_and_closed() -> Tested {
    let (server, client) = server(|faults| (faults.no_execution, faults.read_only_cache) = (true, true))?;
    let ask = |header: Option<&'static str>| {
        let mut request = Request::new(GetCapabilitiesRequest::default());
        if let Some(header) = header {
            request.metadata_mut().insert("x-key", MetadataValue::from_static(header));
        }
        client.wait(CapabilitiesClient::new(client.channel.clone()).get_capabilities(request))
    };
    let found = ask(None)?.into_inner();
    assert_eq!(found.execution_capabilities, None);
    let cache = found.cache_capabilities.ok_or("no cache")?;
    assert!(!cache.action_cache_update_capabilities.ok_or("nothing of updates")?.update_enabled);
    let action = client.describe(&echo(&SCRIPT))?;
    assert_eq!(code(client.begin(&action)), Some(Code::Unimplemented));
    let update = UpdateActionResultRequest {
        action_digest: Some(action),
        action_result: Some(Default::default()),
        ..Default::default()
    };
    let updated = client.wait(ActionCacheClient::new(client.channel.clone()).update_action_result(update));
    assert_eq!(code(updated), Some(Code::PermissionDenied));
    server.change(|faults| faults.authenticate = Some("x-key: secret".to_owned()));
    for header in [None, Some("wrong")] {
        assert_eq!(code(ask(header)), Some(Code::Unauthenticated));
    }
    ask(Some("secret"))?;
    Ok(())
}

#[test]
fn calls_and_messages_are_late() -> Tested {
    let late = Duration::from_millis(60);
    let (server, client) = server(|faults| faults.latency = late)?;
    let start = Instant::now();
    client.missing(&[])?;
    assert!(start.elapsed() >= late);
    let blob = vec![0; 3 << 16];
    client.upload(std::slice::from_ref(&blob))?;
    server.change(|faults| (faults.latency, faults.message_delay) = (Duration::ZERO, late));
    let start = Instant::now();
    // Three messages of 64 KiB.
    client.download(&digest_of(&blob))?;
    assert!(start.elapsed() >= 3 * late);
    Ok(())
}

#[test]
fn messages_and_batches_have_limits() -> Tested {
    let (server, client) = server(|faults| faults.batch_limit = 65_536)?;
    assert_eq!(code(client.upload(&[vec![0; 65_537]])), Some(Code::InvalidArgument));
    server.change(|faults| faults.batch_limit = 0);
    client.upload(&[vec![0; 65_537]])?;
    assert_eq!(code(client.upload(&[vec![1; 5 << 20]])), Some(Code::ResourceExhausted));
    Ok(())
}

#[test]
fn a_frozen_network_thaws() -> Tested {
    let (server, client) = server(|_| ())?;
    client.missing(&[])?;
    server.change(|faults| faults.freeze = true);
    // Nothing comes through: the call is not even begun.
    let before = server.counts().of("FindMissingBlobs");
    let late = std::thread::spawn(move || client.missing(&[]));
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(server.counts().of("FindMissingBlobs"), before);
    assert!(!late.is_finished());
    server.change(|faults| faults.freeze = false);
    assert!(late.join().map_err(|_| "the call panicked")?.is_ok());
    Ok(())
}

#[test]
fn tls_with_certificates_of_both_sides() -> Tested {
    let authority = Authority::new()?;
    let (certificate, key) = authority.sign(&["localhost"])?;
    let certificates = Certificates { certificate, key, client_roots: Some(authority.root()) };
    let options = Options { certificates: Some(certificates), ..Options::default() };
    let server = Server::start(options, Faults::default())?;
    let (own, own_key) = authority.sign(&["client"])?;
    let trusting = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(authority.root()))
        .domain_name("localhost");
    let with = |config: ClientTlsConfig| {
        let endpoint = Channel::from_shared(server.url().replacen("grpc", "http", 1))?.tls_config(config)?;
        Ok::<_, Error>(Plain::with(|| endpoint.connect_lazy())?)
    };
    let known = with(trusting.clone().identity(Identity::from_pem(own, own_key)))?;
    assert_eq!(known.run(&echo(&SCRIPT))?.result.ok_or("no result")?.exit_code, 0);
    assert!(with(trusting)?.missing(&[]).is_err(), "a client without a certificate");
    assert!(
        Plain::new(&server.url().replace("grpcs", "grpc"))?.missing(&[]).is_err(),
        "a client without TLS"
    );
    Ok(())
}

#[test]
fn a_server_starts_again_with_and_without_what_it_had() -> Tested {
    let (mut server, client) = server(|_| ())?;
    let url = server.url();
    client.run(&echo(&SCRIPT))?;
    let action = client.describe(&echo(&SCRIPT))?;
    server.stop();
    assert_eq!(code(Plain::new(&url)?.cached(&action)), Some(Code::Unavailable));
    server.resume()?;
    assert_eq!(server.url(), url);
    Plain::new(&url)?.cached(&action)?;
    server.resume_empty()?;
    let client = Plain::new(&url)?;
    assert_eq!(code(client.cached(&action)), Some(Code::NotFound));
    assert_eq!(client.missing(std::slice::from_ref(&action))?, [action]);
    Ok(())
}
