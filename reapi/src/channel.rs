//! The connections to a server: opened when they are needed, shared by many calls, replaced when one fails.
//!
//! A channel of tonic does not always connect anew (a graceful GOAWAY leaves it useless), so a failed one is never used
//! again. Long streams must not use up the streams that a server permits on one connection, hence more than one of
//! them.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::error::Error;
use crate::options::Options;
use crate::statistics::Statistics;

const STREAM_WINDOW: u32 = 2 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;
/// How long a connection may take to open.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The connections to a server.
#[derive(Debug)]
pub struct Channels {
    endpoint: Endpoint,
    streams: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    made: u64,
    channels: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    number: u64,
    channel: Channel,
    live: Arc<AtomicUsize>,
}

/// A place on a connection, for one call.
#[derive(Debug)]
pub struct Lease {
    /// The connection.
    pub channel: Channel,
    number: u64,
    live: Arc<AtomicUsize>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Relaxed);
    }
}

impl Channels {
    /// Prepares connections. None is opened.
    pub fn new(options: &Options) -> Result<Self, Error> {
        let endpoint = endpoint(options)?;
        Ok(Self { endpoint, streams: options.streams_per_connection.max(1), open: Mutex::default() })
    }

    /// A place on the connection with the fewest calls. Needs tokio's runtime.
    pub fn lease(&self, statistics: &Statistics) -> Lease {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = |slot: &&Slot| slot.live.load(Relaxed);
        if open.channels.iter().min_by_key(calls).is_none_or(|slot| calls(&slot) >= self.streams) {
            statistics.connected();
            open.made += 1;
            let slot =
                Slot { number: open.made, channel: self.endpoint.connect_lazy(), live: Arc::default() };
            open.channels.push(slot);
        }
        let slot = open.channels.iter().min_by_key(calls).expect("one was added if there was none");
        slot.live.fetch_add(1, Relaxed);
        Lease { channel: slot.channel.clone(), number: slot.number, live: slot.live.clone() }
    }

    /// Takes a connection that failed out of use. Other calls on it go on.
    pub fn discard(&self, lease: &Lease) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.channels.retain(|slot| slot.number != lease.number);
    }
}

fn endpoint(options: &Options) -> Result<Endpoint, Error> {
    let wrong = |why: tonic::transport::Error| Error::Options {
        option: format!("connection to {}", options.endpoint),
        why: chain(&why),
        help: "check the URL, the certificates and the key",
    };
    let agent = format!("{}/{}", options.tool.name, options.tool.version);
    let mut endpoint = Endpoint::from_shared(options.endpoint.uri().to_owned())
        .and_then(|endpoint| endpoint.user_agent(agent))
        .map_err(wrong)?
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_keepalive(options.tcp_keepalive)
        .tcp_keepalive_interval(options.tcp_keepalive.map(|time| time / 3))
        .tcp_keepalive_retries(options.tcp_keepalive.map(|_| 3))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    if let Some(interval) = options.http2_keepalive {
        endpoint = endpoint.http2_keep_alive_interval(interval).keep_alive_timeout(CONNECT_TIMEOUT);
    }
    if options.endpoint.has_tls() { endpoint.tls_config(tls(options)?).map_err(wrong) } else { Ok(endpoint) }
}

fn tls(options: &Options) -> Result<ClientTlsConfig, Error> {
    let mut config = ClientTlsConfig::new();
    config = match &options.tls.authorities {
        Some(file) => config.ca_certificate(Certificate::from_pem(pem(file, "CERTIFICATE")?)),
        None => config.with_native_roots(),
    };
    if let Some((certificate, key)) = &options.tls.identity {
        let certificate = pem(certificate, "CERTIFICATE")?;
        config = config.identity(Identity::from_pem(certificate, pem(key, "PRIVATE KEY")?));
    }
    if let Some(name) = &options.tls.server_name {
        config = config.domain_name(name);
    }
    Ok(config)
}

/// A file in PEM format that holds something of `kind`: without one, TLS would trust nobody and not say why.
pub fn pem(file: &Path, kind: &str) -> Result<Vec<u8>, Error> {
    let wrong = |why| Error::Options {
        option: file.display().to_string(),
        why,
        help: "a file in PEM format is expected, with lines of -----BEGIN CERTIFICATE----- or PRIVATE KEY",
    };
    let bytes = fs::read(file).map_err(|error| wrong(error.to_string()))?;
    if String::from_utf8_lossy(&bytes).contains(&format!("{kind}-----")) {
        Ok(bytes)
    } else {
        Err(wrong(format!("it holds no {kind}")))
    }
}

/// Returns an error and its causes, in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
        source = error.source();
    }
    text
}
