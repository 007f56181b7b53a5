//! Headers and credential helpers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use distlto_reapi::options::CredentialHelper;
use distlto_reapi::{Client, Error, Options};
use distlto_reapi_server::Server;

use crate::help::{Tested, at_once, failed, options, server, wait};

/// A helper that runs a script in a folder, and a server that wants a token.
struct Setting {
    folder: tempfile::TempDir,
    server: Server,
}

impl Setting {
    fn new(script: &str) -> Self {
        let server = server(|faults| faults.authenticate = Some("authorization: Bearer one".to_owned()));
        let folder = tempfile::tempdir().expect("a folder can be made");
        let helper = folder.path().join("helper");
        let place = folder.path().display();
        fs::write(&helper, format!("#!/bin/sh\ncd {place}\n{script}\n")).expect("the folder is new");
        fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).expect("it is ours");
        Self { folder, server }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn answer(&self, text: &str) {
        fs::write(self.file("answer"), text).expect("the folder is ours");
    }

    fn options(&self) -> Options {
        let mut options = options(&self.server);
        options.credential_helper = Some(CredentialHelper::new(self.file("helper")));
        options
    }

    fn runs(&self) -> usize {
        read(&self.file("runs")).lines().count()
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

const HELPER: &str = "echo $* >> runs; cat > asked; cat answer";

#[test]
fn a_helper_is_asked_once() -> Tested {
    let setting = Setting::new(HELPER);
    for expires in
        ["", r#", "expires": "2999-01-01T00:00:00Z""#, r#", "expires": "2000-01-01T01:00:00+01:00""#]
    {
        fs::write(setting.file("runs"), "")?;
        setting
            .answer(&format!(r#"{{"headers": {{"Authorization": ["Bearer one"]}}{expires}, "other": 1}}"#));
        let client = wait(Client::connect(setting.options()))?;
        let ask = |_| {
            let client = client.clone();
            async move { client.missing([distlto_reapi::Digest::of(b"blob")]).await }
        };
        for missing in at_once((0..20).map(ask))? {
            assert_eq!(missing.len(), 1);
        }
        // One that has expired already is used for a moment all the same.
        assert_eq!(
            (read(&setting.file("runs")), client.statistics().snapshot().helper_runs),
            ("get\n".to_owned(), 1)
        );
        let asked = format!(r#"{{"uri":"{}"}}"#, setting.server.url().replacen("grpc", "http", 1));
        assert_eq!(read(&setting.file("asked")), asked);
    }
    Ok(())
}

#[test]
fn credentials_that_are_refused_are_renewed_once() -> Tested {
    let setting = Setting::new(HELPER);
    setting.answer(r#"{"headers": {"authorization": ["Bearer one"]}}"#);
    let client = wait(Client::connect(setting.options()))?;
    setting.answer(r#"{"headers": {"authorization": ["Bearer two"]}}"#);
    setting.server.change(|faults| faults.authenticate = Some("authorization: Bearer two".to_owned()));
    wait(client.missing([distlto_reapi::Digest::of(b"blob")]))?;
    assert_eq!(setting.runs(), 2);
    setting.server.change(|faults| faults.authenticate = Some("authorization: Bearer three".to_owned()));
    let error = failed(wait(client.missing([distlto_reapi::Digest::of(b"blob")])));
    assert!(matches!(error, Error::Denied { .. }), "{error:?}");
    assert_eq!(setting.runs(), 3);
    Ok(())
}

#[test]
fn a_helper_may_fail() -> Tested {
    let broken = [
        ("exit 3", "exit status: 3"),
        ("echo '{\"headers\": {\"authorization\": \"Bearer secret\"}}'", "is not what is expected"),
        ("echo '{\"headers\": {}, \"expires\": \"tomorrow\"}'", "RFC 3339"),
        ("exec sleep 1000", "no answer within"),
    ];
    for (script, expected) in broken {
        let setting = Setting::new(script);
        let mut options = setting.options();
        if let Some(helper) = options.credential_helper.as_mut().filter(|_| script.contains("sleep")) {
            helper.timeout = Duration::from_millis(200);
        }
        let error = failed(wait(Client::connect(options)));
        assert!(matches!(error, Error::Credentials { .. }), "{error:?}");
        assert!(error.to_string().contains(expected) && !format!("{error:?}").contains("secret"), "{error}");
    }
    let mut options = options(&server(|_| ()));
    options.credential_helper = Some(CredentialHelper::new("/nowhere/helper"));
    assert!(failed(wait(Client::connect(options))).to_string().contains("cannot be started"));
    Ok(())
}

#[test]
fn headers_are_sent_and_never_shown() -> Tested {
    let server = server(|faults| faults.authenticate = Some("x-key: open sesame".to_owned()));
    let with = |name: &str, value: &str| {
        let mut options = options(&server);
        options.headers.0.push((name.to_owned(), value.to_owned()));
        wait(Client::connect(options))
    };
    let client = with("X-Key", "open sesame")?;
    assert!(!format!("{client:?}").contains("sesame"));
    let error = failed(with("x-key", "wrong secret"));
    assert!(matches!(error, Error::Denied { .. }), "{error:?}");
    assert!(!format!("{error} {error:?}").contains("secret"));
    for (name, value) in [("x key", "secret"), ("x-key", "secret\n"), ("", "secret")] {
        let error = failed(with(name, value));
        assert!(matches!(error, Error::Options { .. }), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("secret"));
    }
    Ok(())
}
