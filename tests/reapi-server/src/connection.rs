//! Connections: accepts them, counts their bytes, and ends them as the switches say.
//!
//! tonic's own server tells nothing of streams and connections, so HTTP/2 is served by hyper here, each connection with
//! the services as they are configured at that moment.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::{Sleep, sleep};
use tokio_rustls::TlsAcceptor;
use tonic::Request;
use tonic::body::Body;
use tonic::codegen::http;

use crate::faults::take;
use crate::gate;
use crate::state::State;

/// How often a connection looks whether something is so yet.
const LOOK: Duration = Duration::from_millis(10);

/// What a call can do to its connection.
#[derive(Clone, Default)]
pub struct Line {
    cut: Arc<Notify>,
    goaway: Arc<Notify>,
    streams: Arc<AtomicU32>,
    sent: Arc<AtomicU64>,
}

impl Line {
    /// Ends the connection at once.
    pub fn cut(&self) {
        self.cut.notify_one();
    }

    /// How many bytes went over it.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Waits until so many bytes went over it.
    pub async fn has_sent(&self, bytes: u64) {
        while self.sent() < bytes {
            sleep(LOOK).await;
        }
    }

    /// Counts a stream, the last one of the connection where it is the `last`th.
    fn begin(&self, last: Option<u32>) {
        let streams = self.streams.fetch_add(1, Ordering::Relaxed) + 1;
        if last.is_some_and(|last| streams >= last) {
            self.goaway.notify_one();
        }
    }
}

/// The connection of a request.
pub fn line_of<T>(request: &Request<T>) -> Line {
    request.extensions().get::<Line>().cloned().unwrap_or_default()
}

/// Accepts connections until it is dropped.
pub async fn accept(state: Arc<State>, listener: TcpListener, tls: Option<TlsAcceptor>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        // Not to wait for more is only quicker.
        let _ = stream.set_nodelay(true);
        state.count(|counts| counts.connections += 1);
        let (state, tls) = (state.clone(), tls.clone());
        tokio::spawn(async move {
            let line = Line::default();
            let stream =
                Watched { stream, state: state.clone(), line: line.clone(), thaw: None, next_byte: None };
            match tls {
                None => serve(state, stream, line).await,
                // A client that does not trust this certificate, or has none, sees an error of its own.
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        serve(state, stream, line).await;
                    }
                }
            }
        });
    }
}

async fn serve(state: Arc<State>, stream: impl AsyncRead + AsyncWrite + Unpin, line: Line) {
    let routes = gate::routes(&state);
    let called = line.clone();
    let service = service_fn(move |mut request: http::Request<Incoming>| {
        called.begin(state.faults().goaway_after);
        let refused = take(&mut state.faults().refuse_streams);
        request.extensions_mut().insert(called.clone());
        let (state, routes) = (state.clone(), routes.clone());
        async move {
            if refused {
                return Err(h2::Error::from(h2::Reason::REFUSED_STREAM));
            }
            Ok::<http::Response<Body>, h2::Error>(gate::call(&state, routes, request).await)
        }
    });
    let mut builder = http2::Builder::new(TokioExecutor::new());
    let connection = builder.timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    loop {
        tokio::select! {
            // How a connection ends is the client's affair.
            _ = &mut connection => return,
            () = line.cut.notified() => return,
            () = line.goaway.notified() => connection.as_mut().graceful_shutdown(),
        }
    }
}

/// A stream that is counted, and can be frozen.
struct Watched {
    stream: TcpStream,
    state: Arc<State>,
    line: Line,
    thaw: Option<Pin<Box<Sleep>>>,
    next_byte: Option<Pin<Box<Sleep>>>,
}

impl Watched {
    /// Waits while the network is cut.
    fn poll_thawed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.state.faults().freeze {
            let thaw = self.thaw.get_or_insert_with(|| Box::pin(sleep(LOOK)));
            ready!(thaw.as_mut().poll(context));
            self.thaw = None;
        }
        Poll::Ready(())
    }
}

impl Watched {
    /// What may be written now: one byte, after a while, where they are to trickle.
    fn poll_trickle<'b>(&mut self, context: &mut Context<'_>, bytes: &'b [u8]) -> Poll<&'b [u8]> {
        let pause = self.state.faults().trickle;
        if pause.is_zero() || bytes.is_empty() {
            return Poll::Ready(bytes);
        }
        let due = self.next_byte.get_or_insert_with(|| Box::pin(sleep(pause)));
        ready!(due.as_mut().poll(context));
        self.next_byte = None;
        Poll::Ready(&bytes[..1])
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_thawed(context));
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        let read = buffer.filled().len() - before;
        self.state.count(|counts| counts.bytes_in += read as u64);
        result
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_thawed(context));
        let bytes = ready!(self.poll_trickle(context, bytes));
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.line.sent.fetch_add(written as u64, Ordering::Relaxed);
        self.state.count(|counts| counts.bytes_out += written as u64);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
