//! ByteStream: blobs as streams, whole or by zstd, with the breaks that tests ask for.
//!
//! By `bytestream.proto` and the comments on resource names in `remote_execution.proto`: an offset of a read counts
//! uncompressed bytes, and only an uncompressed upload can be resumed.

use std::sync::Arc;

use bazel_remote_apis::google::bytestream::{
    QueryWriteStatusRequest, QueryWriteStatusResponse, ReadRequest, ReadResponse, WriteRequest,
    WriteResponse, byte_stream_server::ByteStream,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming, async_trait};

use crate::cas::{compressed, decompressed};
use crate::connection::{Line, line_of};
use crate::digest::{self, Resource};
use crate::faults::{Break, CommittedSize, Cut, cut, take};
use crate::lies;
use crate::state::{State, locked};

/// Bytes of one message of a blob that never ends.
const CHUNK: usize = 64 << 10;

/// The service.
#[derive(Clone)]
pub struct Streams(pub Arc<State>);

#[async_trait]
impl ByteStream for Streams {
    type ReadStream = ReceiverStream<Result<ReadResponse, Status>>;

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        let line = line_of(&request);
        let request = request.into_inner();
        let resource = self.resource(&request.resource_name)?;
        let is_false = lies::is_false(&self.0, &resource.digest);
        let whole = if is_false { Vec::new() } else { self.0.download(&resource.digest)? };
        let from = usize::try_from(request.read_offset).ok().filter(|&from| is_false || from <= whole.len());
        let from = from.ok_or_else(|| Status::out_of_range("the offset is outside of the blob"))?;
        let limit =
            usize::try_from(request.read_limit).map_err(|_| Status::invalid_argument("read_limit"))?;
        let from = from.min(whole.len());
        let wanted = if limit == 0 { &whole[from..] } else { &whole[from..whole.len().min(from + limit)] };
        let bytes = if resource.zstd { compressed(wanted)? } else { wanted.to_owned() };
        let cut = cut(&mut self.0.faults().cut_reads);
        let is_endless = is_false || take(&mut self.0.faults().endless_reads);
        let (sender, receiver) = mpsc::channel(1);
        let state = self.0.clone();
        tokio::spawn(async move {
            send(&state, bytes, cut, line, &sender).await;
            while is_endless && message(&state, &[0; CHUNK], &sender).await {}
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn write(
        &self,
        request: Request<Streaming<WriteRequest>>,
    ) -> Result<Response<WriteResponse>, Status> {
        let line = line_of(&request);
        let mut stream = request.into_inner();
        let first = stream.message().await?.ok_or_else(|| Status::invalid_argument("an empty write"))?;
        let resource = self.resource(&first.resource_name)?;
        if self.0.store.has(&resource.digest) {
            // The client may not know: to be told before it has sent all is no error.
            let size = self.committed(&resource, resource.digest.size_bytes, true);
            return Ok(Response::new(WriteResponse { committed_size: size }));
        }
        let cut = cut(&mut self.0.faults().cut_writes);
        let bytes = self.receive(first, &mut stream, &resource, cut, &line).await?;
        let content = if resource.zstd { decompressed(&bytes)? } else { bytes.clone() };
        self.0.upload(&resource.digest, &content)?;
        let committed_size = self.committed(&resource, bytes.len() as i64, false);
        Ok(Response::new(WriteResponse { committed_size }))
    }

    async fn query_write_status(
        &self,
        request: Request<QueryWriteStatusRequest>,
    ) -> Result<Response<QueryWriteStatusResponse>, Status> {
        let name = request.into_inner().resource_name;
        let resource = self.resource(&name)?;
        let complete = self.0.store.has(&resource.digest);
        let there = locked(&self.0.partial).get(&name).map_or(0, Vec::len) as i64;
        let committed_size = if complete { resource.digest.size_bytes } else { there };
        Ok(Response::new(QueryWriteStatusResponse { committed_size, complete }))
    }
}

impl Streams {
    fn resource(&self, name: &str) -> Result<Resource, Status> {
        let resource = digest::resource(name)?;
        self.0.instance(&resource.instance)?;
        if resource.zstd && self.0.faults().no_zstd {
            return Err(Status::unimplemented("zstd was not offered"));
        }
        Ok(resource)
    }

    /// All bytes of an upload. What came of an uncompressed one before it broke is kept for its next attempt.
    async fn receive(
        &self,
        first: WriteRequest,
        stream: &mut Streaming<WriteRequest>,
        resource: &Resource,
        cut: Option<Cut>,
        line: &Line,
    ) -> Result<Vec<u8>, Status> {
        let name = first.resource_name.clone();
        let mut bytes = locked(&self.0.partial).remove(&name).unwrap_or_default();
        // Nothing but 0 and what is there can be gone on from; 0 begins anew.
        bytes.truncate(usize::try_from(first.write_offset).unwrap_or(0));
        let mut next = Some(first);
        let kept = |bytes: Vec<u8>| {
            if !resource.zstd {
                locked(&self.0.partial).insert(name.clone(), bytes);
            }
        };
        while let Some(message) = next {
            if message.write_offset != bytes.len() as i64 {
                let there = bytes.len();
                return Err(Status::invalid_argument(format!(
                    "offset {}, not {there}",
                    message.write_offset
                )));
            }
            bytes.extend(&message.data);
            if let Some(cut) = cut.filter(|cut| bytes.len() as u64 >= cut.after) {
                bytes.truncate(cut.after as usize);
                kept(bytes);
                if cut.how == Break::Connection {
                    line.cut();
                }
                return Err(Status::unavailable("the upload was cut"));
            }
            if message.finish_write {
                return Ok(bytes);
            }
            next = match stream.message().await {
                Ok(message) => message,
                Err(status) => {
                    kept(bytes);
                    return Err(status);
                }
            };
        }
        kept(bytes);
        Err(Status::invalid_argument("the stream ends without finish_write"))
    }

    fn committed(&self, resource: &Resource, sent: i64, there: bool) -> i64 {
        match self.0.faults().committed_size {
            CommittedSize::Specified if resource.zstd && there => -1,
            CommittedSize::Specified | CommittedSize::Stream => sent,
            CommittedSize::Full => resource.digest.size_bytes,
            CommittedSize::Unknown => -1,
        }
    }
}

async fn send(
    state: &State,
    bytes: Vec<u8>,
    cut: Option<Cut>,
    line: Line,
    to: &mpsc::Sender<Result<ReadResponse, Status>>,
) {
    let end =
        cut.map_or(bytes.len(), |cut| bytes.len().min(usize::try_from(cut.after).unwrap_or(usize::MAX)));
    let before = line.sent();
    let mut left = &bytes[..end];
    while !left.is_empty() {
        let (first, rest) = left.split_at(left.len().min(state.faults().read_message.max(1)));
        if !message(state, first, to).await {
            return;
        }
        left = rest;
    }
    if let Some(cut) = cut {
        break_off(cut.how, &line, before + end as u64, to).await;
    }
}

/// Sends one message. Whether somebody takes it.
async fn message(state: &State, data: &[u8], to: &mpsc::Sender<Result<ReadResponse, Status>>) -> bool {
    let delay = state.faults().message_delay;
    tokio::time::sleep(delay).await;
    to.send(Ok(ReadResponse { data: data.to_vec() })).await.is_ok()
}

/// Ends a stream of the server in the way that was asked for; the connection only after it sent so many bytes, so that
/// what was told before is heard.
pub async fn break_off<T>(how: Break, line: &Line, sent: u64, to: &mpsc::Sender<Result<T, Status>>) {
    match how {
        // A receiver that is gone needs no answer.
        Break::Status => drop(to.send(Err(Status::unavailable("the stream was cut"))).await),
        Break::End => {}
        Break::Connection => {
            tokio::select! {
                () = line.has_sent(sent) => line.cut(),
                () = to.closed() => {}
            }
            // The stream must not be seen to end before the connection does.
            to.closed().await;
        }
    }
}
