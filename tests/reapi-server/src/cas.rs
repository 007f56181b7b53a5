//! Capabilities, ContentAddressableStorage and ActionCache, as `remote_execution.proto` describes them.

use std::sync::Arc;
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2::{
    ActionCacheUpdateCapabilities, ActionResult, BatchReadBlobsRequest, BatchReadBlobsResponse,
    BatchUpdateBlobsRequest, BatchUpdateBlobsResponse, CacheCapabilities, Directory, ExecutionCapabilities,
    FindMissingBlobsRequest, FindMissingBlobsResponse, GetActionResultRequest, GetCapabilitiesRequest,
    GetChunkMappingRequest, GetChunkMappingResponse, GetTreeRequest, GetTreeResponse,
    RegisterChunkMappingRequest, RegisterChunkMappingResponse, ServerCapabilities, SpliceBlobRequest,
    SpliceBlobResponse, SplitBlobRequest, SplitBlobResponse, UpdateActionResultRequest,
    action_cache_server::ActionCache, batch_read_blobs_response, batch_update_blobs_request,
    batch_update_blobs_response, capabilities_server::Capabilities, compressor,
    content_addressable_storage_server::ContentAddressableStorage, digest_function,
};
use bazel_remote_apis::build::bazel::semver::SemVer;
use bazel_remote_apis::google::rpc;
use tonic::{Request, Response, Status, Streaming, async_trait};

use crate::digest::{self, Digest};
use crate::faults::take;
use crate::lies;
use crate::state::State;

/// The three services.
#[derive(Clone)]
pub struct Cache(pub Arc<State>);

#[async_trait]
impl Capabilities for Cache {
    async fn get_capabilities(
        &self,
        request: Request<GetCapabilitiesRequest>,
    ) -> Result<Response<ServerCapabilities>, Status> {
        self.0.instance(&request.get_ref().instance_name)?;
        let faults = self.0.faults().clone();
        let sha256 = i32::from(digest_function::Value::Sha256);
        let compressors = if faults.no_zstd { Vec::new() } else { vec![i32::from(compressor::Value::Zstd)] };
        let version = |minor| Some(SemVer { major: 2, minor, ..SemVer::default() });
        let cache = CacheCapabilities {
            digest_functions: vec![sha256],
            action_cache_update_capabilities: Some(ActionCacheUpdateCapabilities {
                update_enabled: !faults.read_only_cache,
            }),
            max_batch_total_size_bytes: faults.batch_limit,
            supported_compressors: compressors.clone(),
            supported_batch_update_compressors: compressors,
            ..CacheCapabilities::default()
        };
        let execution = ExecutionCapabilities {
            digest_function: sha256,
            digest_functions: vec![sha256],
            exec_enabled: true,
            ..ExecutionCapabilities::default()
        };
        Ok(Response::new(ServerCapabilities {
            cache_capabilities: Some(cache),
            execution_capabilities: (!faults.no_execution).then_some(execution),
            low_api_version: version(0),
            high_api_version: version(3),
            ..ServerCapabilities::default()
        }))
    }
}

#[async_trait]
impl ContentAddressableStorage for Cache {
    async fn find_missing_blobs(
        &self,
        request: Request<FindMissingBlobsRequest>,
    ) -> Result<Response<FindMissingBlobsResponse>, Status> {
        let request = request.into_inner();
        self.0.instance(&request.instance_name)?;
        self.0.count(|counts| counts.digests_asked += request.blob_digests.len() as u64);
        let mut missing = request.blob_digests;
        for digest in &missing {
            digest::checked(Some(digest))?;
        }
        missing.retain(|digest| !self.0.store.has(digest));
        if take(&mut self.0.faults().deny_missing) {
            missing.clear();
        }
        Ok(Response::new(FindMissingBlobsResponse { missing_blob_digests: missing }))
    }

    async fn batch_update_blobs(
        &self,
        request: Request<BatchUpdateBlobsRequest>,
    ) -> Result<Response<BatchUpdateBlobsResponse>, Status> {
        let request = request.into_inner();
        self.0.instance(&request.instance_name)?;
        self.within_batch(request.requests.iter().map(|one| one.data.len() as i64))?;
        let responses = request.requests.into_iter().map(|one| {
            let digest = one.digest.clone();
            let status = self.update(one).err().unwrap_or_else(|| Status::ok(""));
            batch_update_blobs_response::Response { digest, status: Some(status_message(&status)) }
        });
        Ok(Response::new(BatchUpdateBlobsResponse { responses: responses.collect() }))
    }

    async fn batch_read_blobs(
        &self,
        request: Request<BatchReadBlobsRequest>,
    ) -> Result<Response<BatchReadBlobsResponse>, Status> {
        let request = request.into_inner();
        self.0.instance(&request.instance_name)?;
        self.within_batch(request.digests.iter().map(|digest| digest.size_bytes))?;
        let zstd = i32::from(compressor::Value::Zstd);
        let zstd =
            (request.acceptable_compressors.contains(&zstd) && !self.0.faults().no_zstd).then_some(zstd);
        let responses = request.digests.into_iter().map(|digest| {
            let read = self.read(&digest, zstd.is_some());
            let (data, status) =
                read.map_or_else(|status| (Vec::new(), status), |data| (data, Status::ok("")));
            batch_read_blobs_response::Response {
                digest: Some(digest),
                data,
                compressor: zstd.unwrap_or_default(),
                status: Some(status_message(&status)),
            }
        });
        Ok(Response::new(BatchReadBlobsResponse { responses: responses.collect() }))
    }

    type GetTreeStream = tokio_stream::Iter<std::vec::IntoIter<Result<GetTreeResponse, Status>>>;

    async fn get_tree(
        &self,
        request: Request<GetTreeRequest>,
    ) -> Result<Response<Self::GetTreeStream>, Status> {
        let request = request.into_inner();
        self.0.instance(&request.instance_name)?;
        let mut wanted = vec![digest::checked(request.root_digest.as_ref())?];
        let mut directories = Vec::new();
        while let Some(digest) = wanted.pop() {
            let found = self.0.store.message::<Directory>(&digest)?;
            let directory =
                found.ok_or_else(|| Status::not_found(format!("no directory {}", digest.hash)))?;
            wanted.extend(directory.directories.iter().filter_map(|node| node.digest.clone()));
            directories.push(directory);
        }
        let pages = vec![Ok(GetTreeResponse { directories, next_page_token: String::new() })];
        Ok(Response::new(tokio_stream::iter(pages)))
    }

    async fn split_blob(&self, _: Request<SplitBlobRequest>) -> Result<Response<SplitBlobResponse>, Status> {
        Err(Status::unimplemented("blobs are whole"))
    }

    async fn splice_blob(
        &self,
        _: Request<SpliceBlobRequest>,
    ) -> Result<Response<SpliceBlobResponse>, Status> {
        Err(Status::unimplemented("blobs are whole"))
    }

    type GetChunkMappingStream = tokio_stream::Empty<Result<GetChunkMappingResponse, Status>>;

    async fn get_chunk_mapping(
        &self,
        _: Request<GetChunkMappingRequest>,
    ) -> Result<Response<Self::GetChunkMappingStream>, Status> {
        Err(Status::unimplemented("blobs are whole"))
    }

    async fn register_chunk_mapping(
        &self,
        _: Request<Streaming<RegisterChunkMappingRequest>>,
    ) -> Result<Response<RegisterChunkMappingResponse>, Status> {
        Err(Status::unimplemented("blobs are whole"))
    }
}

impl Cache {
    fn within_batch(&self, sizes: impl Iterator<Item = i64>) -> Result<(), Status> {
        let sum: i64 = sizes.sum();
        let faults = self.0.faults();
        let limits = [faults.batch_limit, faults.unsaid_batch_limit];
        match limits.into_iter().find(|&limit| limit > 0 && sum > limit) {
            None => Ok(()),
            Some(limit) => {
                Err(Status::invalid_argument(format!("a batch of {sum} bytes, and {limit} is the limit")))
            }
        }
    }

    fn update(&self, one: batch_update_blobs_request::Request) -> Result<(), Status> {
        let digest = digest::checked(one.digest.as_ref())?;
        if one.compressor == i32::from(compressor::Value::Identity) {
            return self.0.upload(&digest, &one.data);
        }
        if one.compressor != i32::from(compressor::Value::Zstd) || self.0.faults().no_zstd {
            return Err(Status::invalid_argument("this compressor was not offered"));
        }
        self.0.upload(&digest, &decompressed(&one.data)?)
    }

    fn read(&self, digest: &Digest, zstd: bool) -> Result<Vec<u8>, Status> {
        let bytes = self.0.download(&digest::checked(Some(digest))?)?;
        if zstd { compressed(&bytes) } else { Ok(bytes) }
    }
}

#[async_trait]
impl ActionCache for Cache {
    async fn get_action_result(
        &self,
        request: Request<GetActionResultRequest>,
    ) -> Result<Response<ActionResult>, Status> {
        let request = request.into_inner();
        self.0.instance(&request.instance_name)?;
        let digest = digest::checked(request.action_digest.as_ref())?;
        take(&mut self.0.faults().gather_lookups);
        while self.0.faults().gather_lookups > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let found = cached(&self.0, &digest)?;
        found.map(Response::new).ok_or_else(|| Status::not_found(format!("no result of {}", digest.hash)))
    }

    async fn update_action_result(
        &self,
        request: Request<UpdateActionResultRequest>,
    ) -> Result<Response<ActionResult>, Status> {
        let request = request.into_inner();
        self.0.instance(&request.instance_name)?;
        if self.0.faults().read_only_cache {
            return Err(Status::permission_denied("the action cache may be read alone"));
        }
        let digest = digest::checked(request.action_digest.as_ref())?;
        if self.0.faults().wants_actions && !self.0.store.has(&digest) {
            return Err(Status::failed_precondition("the action is not among the blobs"));
        }
        let result = request.action_result.ok_or_else(|| Status::invalid_argument("no result"))?;
        self.0.store.set_result(&digest, &result)?;
        Ok(Response::new(result))
    }
}

/// The cached result of an action, with the faults of a cache.
pub fn cached(state: &State, action: &Digest) -> Result<Option<ActionResult>, Status> {
    let Some(mut result) = state.store.result(action) else { return Ok(None) };
    state.count(|counts| counts.cache_hits += 1);
    let mut faults = state.faults();
    if take(&mut faults.hollow_results) {
        for digest in result.output_files.iter().filter_map(|file| file.digest.as_ref()) {
            state.store.evict(digest);
        }
    }
    if take(&mut faults.poison_results) {
        let other = state.store.keep(faults.poison.as_bytes())?;
        for file in &mut result.output_files {
            file.digest = Some(other.clone());
        }
    }
    if take(&mut faults.bare_results) {
        result.output_files.clear();
    }
    drop(faults);
    lies::told(state, result).map(Some)
}

/// A status as messages hold it.
pub fn status_message(status: &Status) -> rpc::Status {
    rpc::Status { code: status.code().into(), message: status.message().to_owned(), details: Vec::new() }
}

/// These bytes by zstd.
pub fn compressed(bytes: &[u8]) -> Result<Vec<u8>, Status> {
    zstd::encode_all(bytes, 1).map_err(|error| Status::internal(format!("zstd: {error}")))
}

/// The bytes that were compressed by zstd.
pub fn decompressed(bytes: &[u8]) -> Result<Vec<u8>, Status> {
    zstd::decode_all(bytes).map_err(|error| Status::invalid_argument(format!("zstd: {error}")))
}
