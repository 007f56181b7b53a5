//! Certificates of a server and its clients, and an authority that makes them for a test.

use std::sync::Arc;

use anyhow::{Context, Result};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// What a server speaks TLS with, all in PEM.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// Its certificate, and those between it and the root.
    pub certificate: String,
    /// Its key.
    pub key: String,
    /// Clients must show a certificate of one of these.
    pub client_roots: Option<String>,
}

impl Certificates {
    /// What accepts connections.
    pub fn acceptor(&self) -> Result<TlsAcceptor> {
        let provider = Arc::new(default_provider());
        let builder =
            ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
        let builder = match &self.client_roots {
            None => builder.with_no_client_auth(),
            Some(text) => {
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(chain(text)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build()?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).context("the key is no PEM")?;
        let mut config = builder.with_single_cert(chain(&self.certificate)?, key)?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

fn chain(text: &str) -> Result<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    found.context("a certificate is no PEM")
}

/// Makes certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// One that nobody knows.
    pub fn new() -> Result<Self> {
        let mut parameters = CertificateParams::new(Vec::new())?;
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Ok(Self(CertifiedIssuer::self_signed(parameters, KeyPair::generate()?)?))
    }

    /// Its own certificate, in PEM.
    pub fn root(&self) -> String {
        self.0.pem()
    }

    /// A certificate for these host names or addresses, and its key, in PEM.
    pub fn sign(&self, names: &[&str]) -> Result<(String, String)> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(names)?.signed_by(&key, &self.0)?;
        Ok((certificate.pem(), key.serialize_pem()))
    }
}
