//! What lets clients of version 2.0 of the API use an engine that wants 2.1 or later: Bazel is one up to version 7.
//!
//! The versions differ in how a command names its outputs: as files and directories apart before, as paths after. So a
//! command is written anew when it is to be executed, and what comes of it is put into the engine's cache for the action
//! as the client knows it. All else passes as it is: it is the engine that stores, runs and answers.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Result;
use bazel_remote_apis::build::bazel::remote::execution::v2::{
    capabilities_server::CapabilitiesServer, execution_server::ExecutionServer,
};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Service as _, http};
use tonic::service::Routes;
use tonic::transport::Channel;

use crate::newer::Newer;
use crate::plain::endpoint;

/// Calls that are not passed as they are, by how their paths begin.
const OWN: [&str; 2] =
    ["/build.bazel.remote.execution.v2.Capabilities/", "/build.bazel.remote.execution.v2.Execution/"];

/// A server in this process, which ends with this value.
pub struct Translator {
    address: SocketAddr,
    _runtime: Runtime,
}

impl Translator {
    /// Starts one in front of the engine at this URL.
    pub fn start(engine: &str) -> Result<Self> {
        let endpoint = endpoint(engine)?;
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let channel = {
            let _inside = runtime.enter();
            endpoint.connect_lazy()
        };
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        runtime.spawn(accept(listener, channel));
        Ok(Self { address, _runtime: runtime })
    }

    /// `grpc://ADDRESS:PORT`, as Bazel writes it.
    pub fn url(&self) -> String {
        format!("grpc://{}", self.address)
    }
}

async fn accept(listener: TcpListener, channel: Channel) {
    let newer = Newer(channel.clone());
    let routes = Routes::new(CapabilitiesServer::new(newer.clone()))
        .add_service(ExecutionServer::new(newer))
        .prepare();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        // Not to wait for more is only quicker.
        let _ = stream.set_nodelay(true);
        let (routes, channel) = (routes.clone(), channel.clone());
        let service = service_fn(move |request| {
            let (routes, channel) = (routes.clone(), channel.clone());
            async move { Ok::<_, Status>(call(routes, channel, request).await) }
        });
        let mut builder = http2::Builder::new(TokioExecutor::new());
        let connection = builder.timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
        // How a connection ends is the client's affair.
        tokio::spawn(connection);
    }
}

async fn call(
    mut routes: Routes,
    mut channel: Channel,
    request: http::Request<Incoming>,
) -> http::Response<Body> {
    if OWN.iter().any(|own| request.uri().path().starts_with(own)) {
        return match routes.call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
    }
    let ready = std::future::poll_fn(|context| channel.poll_ready(context)).await;
    let answer = match ready {
        Ok(()) => channel.call(request.map(Body::new)).await,
        Err(error) => Err(error),
    };
    answer.unwrap_or_else(|error| Status::unavailable(error.to_string()).into_http())
}
