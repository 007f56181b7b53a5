//! Options of remote caches and remote execution, for every command that runs actions.
//!
//! Each is `--remote-KEY`, `DISTLTO_REMOTE_KEY` and `KEY` in the table `[remote]` of a configuration file. Headers are
//! secret, so that no option has them. Does not depend on files.

use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values::{CacheMode, Compress, Fallback, Properties, ToolchainPlace, UrlText, parse_time};

/// Where actions may run but here. What is not given is looked for in configuration files (docs/remote.md).
#[derive(Debug, Clone, Default, Args)]
pub struct RemoteArgs {
    /// Run backends on this remote-execution server
    ///
    /// Any that speaks the Remote Execution API v2, by grpc://HOST:PORT, grpcs://HOST:PORT with TLS or unix:PATH. Its storage
    /// and its action cache are used too. This and what follows may stand in distlto.toml and in the user's own
    /// configuration; see docs/remote.md. An empty value is no server, whatever files say. `distlto remote check` says
    /// whether a server can be used.
    #[arg(long, value_name = "URL", env = "DISTLTO_REMOTE", hide_env_values = true)]
    pub remote: Option<UrlText>,
    /// Take results from this server's action cache, and put them there [default: the server of --remote]
    ///
    /// Any server with content-addressable storage and an action cache will do; it need not execute anything. So will one
    /// with GET and PUT (http://HOST:PORT/PATH, https://) and a bucket of S3 (s3://BUCKET/PATH, with AWS's variables).
    #[arg(
        long,
        value_name = "URL",
        env = "DISTLTO_REMOTE_CACHE",
        hide_env_values = true,
        hide_short_help = true
    )]
    pub remote_cache: Option<UrlText>,
    /// Whether results are put into the remote cache [default: read-write]
    ///
    /// With --remote the server keeps what it executed in any case.
    #[arg(long, value_enum, value_name = "MODE", env = "DISTLTO_REMOTE_CACHE_MODE", hide_short_help = true)]
    pub remote_cache_mode: Option<CacheMode>,
    /// The instance name at the server [default: the one without a name]
    #[arg(long, value_name = "NAME", env = "DISTLTO_REMOTE_INSTANCE", hide_short_help = true)]
    pub remote_instance: Option<String>,
    /// Run at most N jobs at once on the server, or look up so many at a cache alone [default: 64]
    #[arg(long, value_name = "N", env = "DISTLTO_REMOTE_JOBS", hide_short_help = true)]
    pub remote_jobs: Option<NonZeroU16>,
    /// What a worker has to be, such as OSFamily=linux; repeatable
    ///
    /// Replaces the property of this name in configuration files. The variable holds one property a line.
    #[arg(long, value_name = "NAME=VALUE", env = "DISTLTO_REMOTE_PLATFORM", hide_short_help = true)]
    pub remote_platform: Vec<Properties>,
    /// Where workers have the compiler from [default: worker]
    #[arg(long, value_enum, value_name = "PLACE", env = "DISTLTO_REMOTE_TOOLCHAIN", hide_short_help = true)]
    pub remote_toolchain: Option<ToolchainPlace>,
    /// What becomes of jobs when the server is gone or does not run them in time [default: local]
    #[arg(long, value_enum, value_name = "WHAT", env = "DISTLTO_REMOTE_FALLBACK", hide_short_help = true)]
    pub remote_fallback: Option<Fallback>,
    /// How long a job may wait for a worker [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = parse_time, env = "DISTLTO_REMOTE_QUEUE_TIME", hide_short_help = true)]
    pub remote_queue_time: Option<Duration>,
    /// How long a job may run on a worker, transfers included [default: for ever]
    #[arg(long, value_name = "TIME", value_parser = parse_time, env = "DISTLTO_REMOTE_RUN_TIME", hide_short_help = true)]
    pub remote_run_time: Option<Duration>,
    /// After how long without an answer, or of failures, a server is given up [default: 30s]
    ///
    /// Calls are tried again meanwhile. With 0s each is made once.
    #[arg(long, value_name = "TIME", value_parser = parse_time, env = "DISTLTO_REMOTE_RETRY_TIME", hide_short_help = true)]
    pub remote_retry_time: Option<Duration>,
    /// For how long a link waits for results on their way to the remote cache [default: 2s]
    ///
    /// After the last job, and in all before it when there are too many. What is late then is not kept.
    #[arg(long, value_name = "TIME", value_parser = parse_time, env = "DISTLTO_REMOTE_UPLOAD_TIME", hide_short_help = true)]
    pub remote_upload_time: Option<Duration>,
    /// Whether blobs are compressed on their way [default: auto]
    #[arg(long, value_enum, value_name = "WHEN", env = "DISTLTO_REMOTE_COMPRESSION", hide_short_help = true)]
    pub remote_compression: Option<Compress>,
    /// Certificates of those who are trusted, in PEM [default: the system's]
    #[arg(long, value_name = "FILE", env = "DISTLTO_REMOTE_TLS_CA", hide_short_help = true)]
    pub remote_tls_ca: Option<PathBuf>,
    /// The client's certificate, in PEM
    #[arg(long, value_name = "FILE", env = "DISTLTO_REMOTE_TLS_CERT", hide_short_help = true)]
    pub remote_tls_cert: Option<PathBuf>,
    /// The key of the client's certificate, in PEM [default: in the same file]
    #[arg(long, value_name = "FILE", env = "DISTLTO_REMOTE_TLS_KEY", hide_short_help = true)]
    pub remote_tls_key: Option<PathBuf>,
    /// Ask this program for headers, by the protocol of Bazel's credential helpers
    #[arg(long, value_name = "PROGRAM", env = "DISTLTO_REMOTE_CREDENTIAL_HELPER", hide_short_help = true)]
    pub remote_credential_helper: Option<PathBuf>,
    /// Use no server, whatever the environment and configuration files say
    #[arg(long, hide_short_help = true)]
    pub no_remote: bool,
}
