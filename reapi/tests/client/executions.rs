//! Executions: stages, caches, broken streams, deadlines.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use distlto_reapi::execute::{ExecuteOptions, ExecutedAction, Stage};
use distlto_reapi::{Client, Error};
use distlto_reapi_server::{Break, Cut, Refusal, Server};
use tokio::task::JoinHandle;

use crate::help::{Prepared, Tested, at_once, client, failed, output, prepare, runtime, server, until, wait};

const COPY: &str = "cat in > out; echo said; echo warned >&2";

type Stages = Arc<Mutex<Vec<Stage>>>;

/// Executes in the background.
fn begin(
    client: &Client,
    prepared: &Prepared,
    options: ExecuteOptions,
) -> (JoinHandle<Result<ExecutedAction, Error>>, Stages) {
    let stages = Stages::default();
    let (client, action, seen) = (client.clone(), prepared.encoded.digest(), stages.clone());
    let run = async move {
        client.execute(action, &options, |stage| seen.lock().expect("no test panics").push(stage)).await
    };
    (runtime().spawn(run), stages)
}

fn ready(change: impl FnOnce(&mut distlto_reapi_server::Faults), script: &str) -> (Server, Client, Prepared) {
    let server = server(change);
    let client = client(&server, |_| ());
    let prepared = prepare(script, b"an input", |_| ());
    wait(client.upload(prepared.blobs.clone())).expect("the server takes blobs");
    (server, client, prepared)
}

#[test]
fn an_action_runs_and_is_cached() -> Tested {
    let (server, client, prepared) = ready(|_| (), COPY);
    let action = prepared.encoded.digest();
    assert_eq!(wait(client.action_result(action, Vec::new()))?, None);
    let (task, stages) = begin(&client, &prepared, ExecuteOptions::default());
    let executed = wait(task)??;
    assert_eq!((executed.cached, executed.result.exit_code), (false, 0));
    assert_eq!(*stages.lock().expect("no test panics"), [Stage::Queued, Stage::Executing, Stage::Completed]);
    assert_eq!(wait(client.download(output(&executed.result)))?, "an input");
    assert_eq!(wait(client.stdout(&executed.result))?, "said\n");
    assert_eq!(wait(client.stderr(&executed.result))?, "warned\n");
    assert_eq!(wait(client.action_result(action, Vec::new()))?.as_ref(), Some(&executed.result));
    let again = wait(begin(&client, &prepared, ExecuteOptions::default()).0)??;
    assert!(again.cached && again.result == executed.result);
    let options = ExecuteOptions { skip_cache_lookup: true, ..Default::default() };
    assert!(!wait(begin(&client, &prepared, options).0)??.cached);
    assert_eq!(server.counts().all_executed(), 2);
    Ok(())
}

#[test]
fn a_command_that_fails_is_a_result() -> Tested {
    let (_server, client, prepared) = ready(|_| (), "echo no >&2; exit 7");
    let executed = wait(begin(&client, &prepared, ExecuteOptions::default()).0)??;
    assert_eq!(executed.result.exit_code, 7);
    assert_eq!(wait(client.stderr(&executed.result))?, "no\n");
    Ok(())
}

#[test]
fn results_can_be_written_and_may_be_refused() -> Tested {
    let (server, client, prepared) = ready(|_| (), COPY);
    let action = prepared.encoded.digest();
    let result = distlto_reapi::proto::ActionResult { exit_code: 3, ..Default::default() };
    assert!(client.capabilities().action_cache_updates);
    wait(client.update_action_result(action, result.clone()))?;
    assert_eq!(wait(client.action_result(action, Vec::new()))?, Some(result.clone()));
    server.change(|faults| faults.read_only_cache = true);
    let error = failed(wait(client.update_action_result(action, result)));
    assert!(
        matches!(error, Error::Denied { .. }) && error.to_string().contains("PERMISSION_DENIED"),
        "{error}"
    );
    let read_only = self::client(&server, |_| ());
    assert!(!read_only.capabilities().action_cache_updates && read_only.capabilities().execution);
    Ok(())
}

#[test]
fn a_broken_stream_is_waited_for() -> Tested {
    for how in [Break::Status, Break::End, Break::Connection] {
        let cut = Some(Cut { streams: 3, after: 1, how });
        let (server, client, prepared) =
            ready(|faults| (faults.hold, faults.cut_executions) = (true, cut), COPY);
        let (task, _) = begin(&client, &prepared, ExecuteOptions::default());
        until("the third wait", || server.counts().of("WaitExecution") >= 3);
        server.change(|faults| faults.hold = false);
        assert_eq!(wait(task)??.result.exit_code, 0);
        assert_eq!((server.counts().of("Execute"), server.counts().all_executed()), (1, 1), "{how:?}");
    }
    Ok(())
}

#[test]
fn an_operation_that_was_forgotten_may_have_a_result() -> Tested {
    let cut = Some(Cut { streams: 1, after: 1, how: Break::Status });
    let code = tonic::Code::Unavailable;
    let refusal = Refusal { code, method: "WaitExecution".to_owned(), calls: u32::MAX, after: 0 };
    let (server, client, prepared) =
        ready(|faults| (faults.cut_executions, faults.refuse) = (cut, vec![refusal]), COPY);
    let (task, stages) = begin(&client, &prepared, ExecuteOptions::default());
    until("the action's end", || server.counts().all_executed() == 1);
    until("its result", || {
        wait(client.action_result(prepared.encoded.digest(), Vec::new())).is_ok_and(|found| found.is_some())
    });
    server.change(|faults| (faults.refuse, faults.wait_not_found) = (Vec::new(), 1));
    assert_eq!(wait(client.download(output(&wait(task)??.result)))?, "an input");
    assert_eq!((server.counts().of("Execute"), server.counts().all_executed()), (1, 1));
    assert_eq!(stages.lock().expect("no test panics").last(), Some(&Stage::Completed));
    Ok(())
}

#[test]
fn an_operation_that_was_forgotten_is_executed_again() -> Tested {
    let (mut server, client, prepared) = ready(|faults| faults.hold = true, COPY);
    let (task, _) = begin(&client, &prepared, ExecuteOptions::default());
    until("the action in the queue", || server.counts().of("Execute") == 1);
    server.resume()?;
    until("the second try", || server.counts().of("Execute") == 2);
    server.change(|faults| faults.hold = false);
    assert_eq!(wait(task)??.result.exit_code, 0);
    let counts = server.counts();
    assert_eq!(counts.all_executed(), 1);
    Ok(())
}

#[test]
fn a_silent_stream_is_replaced() -> Tested {
    let server = server(|faults| faults.hold = true);
    let client = client(&server, |options| options.stream_patience = Duration::from_millis(100));
    let prepared = prepare(COPY, b"an input", |_| ());
    wait(client.upload(prepared.blobs.clone()))?;
    let (task, _) = begin(&client, &prepared, ExecuteOptions::default());
    until("some waits", || server.counts().of("WaitExecution") >= 3);
    server.change(|faults| faults.hold = false);
    assert_eq!(wait(task)??.result.exit_code, 0);
    assert_eq!((server.counts().of("Execute"), client.statistics().snapshot().retries), (1, 0));
    Ok(())
}

#[test]
fn the_time_in_a_queue_has_a_deadline() -> Tested {
    let server = server(|_| ());
    let client = client(&server, |_| ());
    let nowhere = vec![("OSFamily".to_owned(), "none".to_owned())];
    let prepared = prepare(COPY, b"an input", |action| action.platform = nowhere);
    wait(client.upload(prepared.blobs.clone()))?;
    let limit = Duration::from_millis(300);
    let options = ExecuteOptions { queue_deadline: limit, ..Default::default() };
    let error = failed(wait(begin(&client, &prepared, options).0)?);
    assert!(
        matches!(error, Error::Deadline { queued: true, limit: passed, .. } if passed == limit),
        "{error:?}"
    );
    Ok(())
}

#[test]
fn the_time_of_a_run_has_a_deadline() -> Tested {
    let (server, client, prepared) = ready(|_| (), "sleep 1000");
    let options = ExecuteOptions { run_deadline: Some(Duration::from_millis(300)), ..Default::default() };
    let error = failed(wait(begin(&client, &prepared, options).0)?);
    assert!(matches!(error, Error::Deadline { queued: false, .. }), "{error:?}");
    assert_eq!(server.counts().of("CancelOperation"), 1);
    Ok(())
}

#[test]
fn the_server_may_end_an_action_in_its_time() -> Tested {
    let server = server(|_| ());
    let client = client(&server, |_| ());
    let time = Some(Duration::from_millis(200));
    let prepared = prepare("sleep 1000", b"an input", |action| action.timeout = time);
    wait(client.upload(prepared.blobs.clone()))?;
    let error = failed(wait(begin(&client, &prepared, ExecuteOptions::default()).0)?);
    let action = prepared.encoded.digest();
    assert!(matches!(&error, Error::TimedOut { action: of, .. } if *of == action), "{error:?}");
    Ok(())
}

/// The server has room for four streams, and workers want some of it too.
#[test]
fn streams_give_way_where_a_server_has_little_room() -> Tested {
    let server = server(|faults| (faults.most_streams, faults.merge) = (4, true));
    let client = client(&server, |_| ());
    let actions: Vec<_> =
        (0..40_u8).map(|salt| prepare(COPY, b"input", |one| one.salt = vec![salt])).collect();
    for prepared in &actions {
        wait(client.upload(prepared.blobs.clone()))?;
    }
    let execute = |prepared: &Prepared| {
        let (client, action) = (client.clone(), prepared.encoded.digest());
        async move { client.execute(action, &ExecuteOptions::default(), |_| ()).await }
    };
    let executed = at_once(actions.iter().map(execute))?;
    assert!(executed.iter().all(|executed| executed.result.exit_code == 0));
    let counts = server.counts();
    assert_eq!(counts.all_executed(), 40, "each runs once: {counts:#?}");
    Ok(())
}
