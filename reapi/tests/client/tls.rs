//! TLS: whom the client trusts, and who it is.

use std::fs;
use std::path::PathBuf;

use distlto_reapi::blob::Blob;
use distlto_reapi::options::Tls;
use distlto_reapi::{Client, Error};
use distlto_reapi_server::{Authority, Certificates, Faults, Options, Server};

use crate::help::{Tested, failed, options, wait};

/// A server whose clients need a certificate, and a folder with what they need.
struct Setting {
    folder: tempfile::TempDir,
    server: Server,
}

impl Setting {
    fn new(names: &[&str]) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let authority = Authority::new()?;
        let (certificate, key) = authority.sign(names)?;
        let folder = tempfile::tempdir()?;
        let (own, own_key) = authority.sign(&["client"])?;
        for (name, text) in [
            ("root.pem", authority.root()),
            ("other.pem", Authority::new()?.root()),
            ("client.pem", own),
            ("client.key", own_key),
            ("empty.pem", String::new()),
        ] {
            fs::write(folder.path().join(name), text)?;
        }
        let certificates = Certificates { certificate, key, client_roots: Some(authority.root()) };
        let options = Options { certificates: Some(certificates), ..Options::default() };
        Ok(Self { server: Server::start(options, Faults::default())?, folder })
    }

    fn connect(&self, change: impl FnOnce(&mut Tls)) -> Result<Client, Error> {
        let mut options = options(&self.server);
        options.tls = Tls {
            authorities: Some(self.file("root.pem")),
            identity: Some((self.file("client.pem"), self.file("client.key"))),
            server_name: None,
        };
        change(&mut options.tls);
        wait(Client::connect(options))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

#[test]
fn both_sides_know_each_other() -> Tested {
    let setting = Setting::new(&["127.0.0.1"])?;
    let client = setting.connect(|_| ())?;
    assert!(client.options().endpoint.has_tls());
    let blob = Blob::new(vec![1; 6 << 20]);
    wait(client.upload([blob.clone()]))?;
    assert_eq!(wait(client.download(blob.digest()))?.len(), 6 << 20);
    Ok(())
}

#[test]
fn a_stranger_is_refused_at_once() -> Tested {
    let setting = Setting::new(&["127.0.0.1"])?;
    let other = setting.file("other.pem");
    let refused = [
        failed(setting.connect(|tls| tls.authorities = Some(other))),
        failed(setting.connect(|tls| tls.authorities = None)),
        failed(setting.connect(|tls| tls.server_name = Some("example.org".to_owned()))),
        failed(setting.connect(|tls| tls.identity = None)),
    ];
    for (error, expected) in refused.iter().zip([
        "invalid peer certificate",
        "invalid peer certificate",
        "example.org",
        "CertificateRequired",
    ]) {
        let Error::Untrusted { failed } = error else { panic!("{error:?}") };
        assert!(failed.message.contains(expected), "{error:?}");
        // A client's certificate is refused when the client has begun to talk: it may first see a broken connection.
        assert!(failed.tries == 1 || expected == "CertificateRequired", "{error:?}");
    }
    Ok(())
}

#[test]
fn another_name_may_be_expected() -> Tested {
    let setting = Setting::new(&["cas.internal"])?;
    assert!(setting.connect(|_| ()).is_err());
    setting.connect(|tls| tls.server_name = Some("cas.internal".to_owned()))?;
    Ok(())
}

#[test]
fn files_that_hold_nothing_are_named() -> Tested {
    let setting = Setting::new(&["127.0.0.1"])?;
    let (empty, nowhere) = (setting.file("empty.pem"), setting.file("nowhere.pem"));
    let certificate = setting.file("client.pem");
    let errors = [
        failed(setting.connect(|tls| tls.authorities = Some(empty.clone()))),
        failed(setting.connect(|tls| tls.authorities = Some(nowhere))),
        failed(setting.connect(|tls| tls.identity = Some((certificate, empty)))),
    ];
    for (error, expected) in
        errors.iter().zip(["holds no CERTIFICATE", "nowhere.pem", "holds no PRIVATE KEY"])
    {
        assert!(matches!(error, Error::Options { .. }), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    Ok(())
}
