//! Order, trust and credentials, each as a table of files and options with the expected result.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use clap::{Args, Command, FromArgMatches};
use distlto_reapi::s3::S3Account;
use tempfile::TempDir;

use super::*;

/// A checkout, a user's configuration, and the environment.
struct World {
    folder: TempDir,
    headers: Option<&'static str>,
}

impl World {
    fn new(checkout: &str, user: &str) -> Self {
        let world = Self { folder: tempfile::tempdir().expect("a folder"), headers: None };
        fs::create_dir_all(world.path("checkout/src/deep")).expect("made");
        world.write("checkout/distlto.toml", checkout);
        world.write("config.toml", &user.replace("CHECKOUT", &world.path("checkout").to_string_lossy()));
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("it is there").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("written");
        fs::set_permissions(self.path(name), Permissions::from_mode(0o600)).expect("changed");
    }

    fn settings(&self, words: &[&str]) -> Result<Settings, ConfigError> {
        let around = ConfigPlaces {
            directory: Some(self.path("checkout/src/deep")),
            home: None,
            user_file: Some(self.path("config.toml")),
            headers: self.headers.map(Into::into),
            s3: account(),
        };
        settings(&args(words), &around)
    }

    fn good(&self, words: &[&str]) -> Settings {
        self.settings(words).unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    fn refused(&self, words: &[&str]) -> ConfigError {
        self.settings(words).map(|settings| panic!("{words:?}: {settings:?}")).unwrap_or_else(|error| error)
    }
}

/// An account of S3 with a key.
fn account() -> S3Account {
    S3Account::of_variables(|name| name.contains("_KEY").then(|| name.to_owned()))
}

/// Parses options without the environment of the test process.
fn args(words: &[&str]) -> RemoteArgs {
    let mut command = RemoteArgs::augment_args(Command::new("test").no_binary_name(true));
    let ids: Vec<_> = command.get_arguments().map(|arg| arg.get_id().clone()).collect();
    for id in ids {
        command = command.mut_arg(id, |arg| arg.env(None::<&str>));
    }
    let matches = command.try_get_matches_from(words).expect("well-formed options");
    RemoteArgs::from_arg_matches(&matches).expect("well-formed options")
}

/// The header values that the executing server gets.
fn headers(settings: &Settings) -> Vec<&str> {
    let options = settings.engine.execution.as_ref().expect("a server");
    options.headers.0.iter().map(|(_, value)| value.as_str()).collect()
}

fn host(options: &reapi::Options) -> String {
    options.endpoint.to_string()
}

#[test]
fn options_count_most_then_the_checkout_then_the_user() {
    let world = World::new(
        "[remote]\nurl = \"grpc://checkout:1\"\nqueue-time = \"2m\"\njobs = 2\nretry-time = \"2s\"\n\
         [remote.platform]\nOSFamily = \"linux\"\nISA = \"checkout\"",
        "[remote]\nurl = \"grpc://user:1\"\nqueue-time = \"3m\"\njobs = 3\nrun-time = \"3h\"\ninstance = \"user\"\n\
         compression = \"off\"\nfallback = \"never\"\ntoolchain = \"upload\"\ncache-mode = \"read-only\"\n\
         [remote.platform]\nISA = \"user\"\npool = \"user\"",
    );
    let options = ["--remote", "grpc://own:1", "--remote-platform", "ISA=own", "--remote-queue-time", "1m"];
    let settings = world.good(&options);
    let execute = settings.engine.execution.as_ref().expect("a server");
    assert_eq!(host(execute), "grpc://own:1");
    assert_eq!(settings.engine.queue_time, Duration::from_secs(60));
    assert_eq!(settings.engine.slots, 2);
    assert_eq!(execute.retry_time, Duration::from_secs(2));
    assert_eq!(settings.engine.run_time, Some(Duration::from_secs(3 * 60 * 60)));
    assert_eq!(execute.instance, "user");
    assert_eq!(execute.compression, reapi::options::Compression::Off);
    assert!(!settings.engine.falls_back && settings.engine.uploads_toolchain);
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        settings.engine.platform,
        [pair("ISA", "own"), pair("OSFamily", "linux"), pair("pool", "user")]
    );
    let cache = settings.engine.cache.as_ref().expect("the same server's");
    assert_eq!((host(&cache.server), cache.is_written), ("grpc://own:1".to_owned(), false));
    assert!(settings.engine.other_cache().is_none());

    let settings = world.good(&[]);
    assert_eq!(settings.engine.execution.as_ref().map(host).as_deref(), Some("grpc://checkout:1"));
    assert_eq!(settings.engine.queue_time, Duration::from_secs(120));
    assert_eq!(settings.notices, [""; 0]);
}

#[test]
fn defaults_without_any_file() {
    let world = World::new("", "");
    fs::remove_file(world.path("config.toml")).expect("removed");
    fs::remove_file(world.path("checkout/distlto.toml")).expect("removed");
    assert!(!world.good(&[]).is_remote());
    let settings = world.good(&["--remote", "grpc://h:1"]);
    let EngineSettings { slots, uploads_toolchain, falls_back, queue_time, run_time, platform, .. } =
        &settings.engine;
    assert_eq!((*slots, *run_time, platform.len()), (64, None, 0));
    assert!(!uploads_toolchain && *falls_back);
    assert_eq!(*queue_time, Duration::from_secs(600));
    assert!(settings.engine.other_cache().is_none());
    let execute = settings.engine.execution.expect("a server");
    assert_eq!(execute.retry_time, Duration::from_secs(30));
    assert_eq!(execute.tool.name, "distlto");
}

#[test]
fn a_cache_alone_or_another_or_none() {
    let both = World::new("[remote]\nurl = \"grpc://a:1\"\ncache = \"grpc://b:1\"", "");
    let seen = |words: &[&str]| {
        let settings = both.good(words);
        let execute = settings.engine.execution.as_ref().map(host).unwrap_or_default();
        (execute, settings.engine.cache.as_ref().map(|cache| host(&cache.server)).unwrap_or_default())
    };
    for (words, execute, cache) in [
        (&[][..], "grpc://a:1", "grpc://b:1"),
        (&["--remote", ""], "", "grpc://b:1"),
        (&["--remote-cache", ""], "grpc://a:1", ""),
        (&["--remote", "", "--remote-cache", ""], "", ""),
        (&["--remote-cache", "grpc://c:1"], "grpc://a:1", "grpc://c:1"),
        (&["--remote", "grpc://b:1"], "grpc://b:1", "grpc://b:1"),
    ] {
        assert_eq!(seen(words), (execute.to_owned(), cache.to_owned()), "{words:?}");
    }
    let read_only = both.good(&["--remote-cache-mode", "read-only"]);
    assert!(read_only.engine.cache.is_some_and(|cache| !cache.is_written));
    assert!(both.good(&[]).engine.other_cache().is_some());
    assert!(!args(&["--no-remote"]).settings().expect("no file is read").is_remote());
}

#[test]
fn the_nearest_file_counts_alone() {
    let world = World::new("[remote]\nurl = \"grpc://above:1\"\njobs = 7", "");
    world.write("checkout/src/distlto.toml", "[remote]\nurl = \"grpc://near:1\"");
    let settings = world.good(&[]);
    assert_eq!(
        (settings.engine.execution.as_ref().map(host), settings.engine.slots),
        (Some("grpc://near:1".to_owned()), EngineSettings::default().slots)
    );
}

#[test]
fn a_checkout_names_no_program_header_or_certificate_unless_it_is_trusted() {
    let url = "[remote]\nurl = \"grpcs://h:1\"\n";
    for (text, key) in [
        ("credential-helper = \"tools/helper\"", "credential-helper"),
        ("headers = { authorization = \"Bearer secret\" }", "headers"),
        ("tls.ca = \"ca.pem\"", "tls.ca"),
        ("tls = { cert = \"me.pem\" }", "tls.cert"),
        ("tls.key = \"me.pem\"", "tls.key"),
    ] {
        let world = World::new(&format!("{url}{text}"), "");
        let file = world.path("checkout/distlto.toml");
        // Not even where the server is another one, or the user's.
        for words in [&[][..], &["--remote", "grpc://own:1"], &["--remote", "grpcs://h:1"]] {
            let error = world.refused(words);
            assert!(
                matches!(&error, ConfigError::Untrusted { path, keys, .. } if *path == file && keys == key)
            );
            let help = miette::Diagnostic::help(&error).expect("a remedy").to_string();
            let user = world.path("config.toml");
            let folder = world.path("checkout");
            let remedy = format!("trusted = [\"{}\"] in {}", folder.display(), user.display());
            assert!(help.starts_with(&remedy) && !format!("{error}{help}").contains("secret"), "{help}");
        }
        world.write("config.toml", "trusted = [\"/nowhere\", \"/\"]");
        if key == "tls.key" {
            assert!(matches!(world.refused(&[]), ConfigError::Option { option: "--remote-tls-key", .. }));
            continue;
        }
        let options = world.good(&[]).engine.execution.expect("a server");
        let seen = [
            options
                .credential_helper
                .as_ref()
                .is_some_and(|helper| helper.program == world.path("checkout/tools/helper")),
            options.headers.0 == [("authorization".to_owned(), "Bearer secret".to_owned())],
            options.tls.authorities == Some(world.path("checkout/ca.pem")),
            options.tls.identity == Some((world.path("checkout/me.pem"), world.path("checkout/me.pem"))),
        ];
        assert_eq!(seen.iter().filter(|seen| **seen).count(), 1, "{text}: {options:?}");
    }
}

#[test]
fn only_a_folder_that_really_holds_the_file_is_trusted() {
    let world = World::new("[remote]\nurl = \"grpcs://h:1\"\nheaders.a = \"b\"", "");
    fs::create_dir(world.path("other")).expect("made");
    symlink(world.path("checkout"), world.path("link")).expect("made");
    for (trusted, is_trusted) in [
        ("checkout", true),
        ("link", true),
        ("checkout/src", false),
        ("check", false),
        ("other", false),
        ("other/../checkout", true),
    ] {
        let folder = world.folder.path().join(trusted);
        world.write("config.toml", &format!("trusted = [\"{}\"]", folder.display()));
        assert_eq!(world.settings(&[]).is_ok(), is_trusted, "{trusted}");
    }
    world.write("config.toml", "trusted = [\"checkout\"]");
    assert!(world.refused(&[]).to_string().contains("no absolute path"));
    // A link in a trusted folder does not make its target trusted.
    world.write("config.toml", &format!("trusted = [\"{}\"]", world.path("checkout").display()));
    fs::rename(world.path("checkout/distlto.toml"), world.path("other/distlto.toml")).expect("moved");
    symlink(world.path("other/distlto.toml"), world.path("checkout/distlto.toml")).expect("made");
    assert!(matches!(world.refused(&[]), ConfigError::Untrusted { .. }));
}

#[test]
fn credentials_go_where_the_user_sends_them() {
    const URL: &str = "[remote]\nurl = \"grpcs://h:1\"\n";
    const USER: &str = "[remote]\nurl = \"grpcs://h:1\"\n[remote.headers]\nx = \"user\"\n";
    const OTHER: &str = "[remote]\nurl = \"grpcs://other:1\"\n[remote.headers]\nx = \"user\"\n";
    // The checkout's file, the user's, whether the environment has headers, options; the headers, how many notices.
    type Row<'a> = (&'a str, &'a str, bool, &'a [&'a str], &'a [&'a str], usize);
    let rows: &[Row<'_>] = &[
        ("", USER, false, &[], &["user"], 0),
        ("", USER, true, &[], &["own"], 0),
        // Named by the checkout as by the user.
        (URL, USER, true, &[], &["own"], 0),
        (URL, USER, false, &[], &["user"], 0),
        // Named by the checkout alone.
        (URL, OTHER, false, &[], &[], 1),
        (URL, OTHER, true, &[], &[], 1),
        (URL, "", true, &[], &[], 1),
        (URL, "", false, &[], &[], 0),
        // And by an option.
        (URL, "", true, &["--remote", "grpcs://h:1"], &["own"], 0),
        // Headers that the user's file has for one server do not go to another that an option names.
        ("", USER, false, &["--remote", "grpcs://third:1"], &[], 0),
        ("", USER, true, &["--remote", "grpcs://third:1"], &["own"], 0),
        // By a checkout that is trusted.
        (URL, "trusted = [\"CHECKOUT\"]", true, &[], &["own"], 0),
        // For one server, no matter which source names it; with TLS unless it says otherwise.
        (URL, "[credentials.\"h:1\".headers]\nx = \"server\"", false, &[], &["server"], 0),
        (URL, "[credentials.\"h:1\".headers]\nx = \"server\"", true, &[], &["server"], 0),
        (URL, "[credentials.\"grpcs://h:1\".headers]\nx = \"server\"", false, &[], &["server"], 0),
        (URL, "[credentials.\"h:2\".headers]\nx = \"server\"", false, &[], &[], 0),
        (
            "[remote]\nurl = \"grpc://h:1\"",
            "[credentials.\"h:1\".headers]\nx = \"server\"",
            false,
            &[],
            &[],
            0,
        ),
        // Without TLS all can read them.
        (
            "",
            "[credentials.\"grpc://h:1\".headers]\nx = \"s\"",
            false,
            &["--remote", "grpc://h:1"],
            &["s"],
            1,
        ),
        (
            "",
            "[credentials.\"grpc://[::1]:1\".headers]\nx = \"s\"",
            false,
            &["--remote", "grpc://[::1]:1"],
            &["s"],
            0,
        ),
        // Another port, scheme or instance is another server.
        ("[remote]\nurl = \"grpcs://h:2\"", USER, false, &[], &[], 1),
        ("[remote]\nurl = \"grpc://h:1\"", USER, false, &[], &[], 1),
    ];
    for row @ (checkout, user, has_own, words, expected, notices) in rows {
        let mut world = World::new(checkout, user);
        world.headers = has_own.then_some("x: own\n");
        let settings = world.good(words);
        assert_eq!(
            (&headers(&settings)[..], settings.notices.len()),
            (*expected, *notices),
            "{row:?}: {settings:?}"
        );
        let notices_text = settings.notices.join(" ");
        assert!(
            checkout.is_empty() || *notices == 0 || notices_text.contains("trusted = ["),
            "{notices_text}"
        );
    }
}

#[test]
fn certificates_and_helpers_go_as_headers_do() {
    let world = World::new("[remote]\nurl = \"grpcs://h:1\"", "");
    let words = ["--remote-tls-ca", "ca", "--remote-tls-cert", "c", "--remote-tls-key", "k"];
    let words = [&words[..], &["--remote-credential-helper", "helper"]].concat();
    let options = world.good(&words).engine.execution.expect("a server");
    // The user's list of trusted authorities is no secret.
    let expected = Tls { authorities: Some("ca".into()), ..Tls::default() };
    assert_eq!((options.tls, options.credential_helper), (expected, None));
    let options =
        world.good(&[&words[..], &["--remote", "grpcs://h:1"]].concat()).engine.execution.expect("a server");
    assert_eq!(options.tls.identity, Some(("c".into(), "k".into())));
    assert_eq!(options.credential_helper, Some(CredentialHelper::new("helper")));
    // A key of one source does not go with the certificate of another.
    world.write("config.toml", "[credentials.\"h:1\"]\ntls = { cert = \"their\", key = \"their-key\" }");
    let options = world
        .good(&["--remote", "grpcs://h:1", "--remote-tls-cert", "c"])
        .engine
        .execution
        .expect("a server");
    assert_eq!(options.tls.identity, Some(("c".into(), "c".into())));
    let options = world.good(&[]).engine.execution.expect("a server");
    assert_eq!(options.tls.identity, Some((world.path("their"), world.path("their-key"))));
}

#[test]
fn the_users_file_is_the_users_alone() {
    let world = World::new("", "[remote]\nurl = \"grpcs://h:1\"\nheaders.a = \"secret\"");
    let file = world.path("config.toml");
    let mode = |mode| fs::set_permissions(&file, Permissions::from_mode(mode)).expect("changed");
    assert_eq!(world.good(&[]).notices, [""; 0]);
    mode(0o644);
    let notices = world.good(&[]).notices;
    assert!(
        notices.len() == 1 && notices[0].contains("chmod 600") && !notices[0].contains("secret"),
        "{notices:?}"
    );
    mode(0o666);
    assert!(matches!(world.refused(&[]), ConfigError::Unsafe { .. }));
    world.write("config.toml", "[remote]\nurl = \"grpcs://h:1\"");
    mode(0o644);
    assert_eq!(world.good(&[]).notices, [""; 0]);
    world.write("config.toml", "[remote]\nheaders.a = \"b\"");
    assert!(matches!(world.refused(&[]), ConfigError::Nowhere { keys, .. } if keys == "headers"));
}

#[test]
fn wrong_options_and_variables_say_which_and_no_secret() {
    let mut world = World::new("", "");
    for word in ["--remote", "--remote-cache"] {
        let error = world.refused(&[word, "grpc://a:secret@b"]).to_string();
        assert!(
            error.starts_with(word) && error.contains("credentials belong") && !error.contains("secret"),
            "{error}"
        );
    }
    world.headers = Some("a: b\nsecret");
    let error = world.refused(&[]).to_string();
    assert_eq!(error, "DISTLTO_REMOTE_HEADERS: line 2 is no header; lines of `name: value` are expected");
    world.headers = Some("a: secret");
    let settings = world.good(&["--remote", "grpcs://h:1"]);
    assert_eq!(headers(&settings), ["secret"]);
    assert!(!format!("{settings:?}").contains("secret"));
}

#[test]
fn each_option_is_a_variable_and_a_key_too() {
    let command = RemoteArgs::augment_args(Command::new("test"));
    let mut keys = 0;
    for arg in command.get_arguments().filter(|arg| arg.get_id() != "no_remote") {
        let long = arg.get_long().expect("a name");
        let variable = arg.get_env().and_then(|name| name.to_str()).expect("a variable");
        assert_eq!(variable, format!("DISTLTO_{}", long.to_uppercase().replace('-', "_")));
        let key = match long.strip_prefix("remote-") {
            None => "url".to_owned(),
            Some("platform") => "platform.x".to_owned(),
            Some(key) => key.replacen("tls-", "tls.", 1),
        };
        let values = ["\"grpcs://h:1\"", "1", "\"1s\"", "\"read-only\"", "\"never\"", "\"upload\"", "\"on\""];
        let world = World::new("", "");
        let is_key = values.iter().any(|value| {
            let text = format!("[remote]\ncache = \"grpcs://c:1\"\n{key} = {value}");
            let text = if key == "cache" { format!("[remote]\ncache = {value}") } else { text };
            world.write("config.toml", &text);
            !matches!(world.settings(&[]), Err(ConfigError::Malformed { .. }))
        });
        assert!(is_key, "{key} is no key of [remote]");
        keys += 1;
    }
    assert!(keys > 10, "{keys}");
}

#[test]
fn the_guide_has_each_option_with_its_key() {
    let page = include_str!("../../../../docs/remote.md");
    let mut command = RemoteArgs::augment_args(Command::new("test"));
    command.build();
    for arg in command.get_arguments().filter(|arg| !["no_remote", "help"].contains(&arg.get_id().as_str())) {
        let long = arg.get_long().expect("a name");
        let key = match long.strip_prefix("remote-") {
            None => "url".to_owned(),
            Some("platform") => "platform.NAME".to_owned(),
            Some(key) => key.replacen("tls-", "tls.", 1),
        };
        let value = &arg.get_value_names().expect("a value")[0];
        let row = format!("\n| `{key}` | `--{long} {value}` | ");
        assert!(page.contains(&row), "docs/remote.md lacks the row {row}");
        for value in arg.get_possible_values() {
            assert!(page.contains(&format!("`{}`", value.get_name())), "--{long} {}", value.get_name());
        }
    }
    assert!(page.contains(REMOTE_HEADERS));
}

#[test]
fn a_bucket_that_only_a_checkout_names_gets_no_key() {
    let text = "[remote]\ncache = \"s3://bucket/of/all\"";
    let found = |world: &World, words: &[&str]| {
        let settings = world.good(words);
        let cache = settings.engine.cache.expect("a cache").server;
        (cache.endpoint.to_string(), cache.s3.has_key(), settings.notices.len())
    };
    let own = "s3://bucket/of/all".to_owned();
    assert_eq!(found(&World::new(text, ""), &[]), (own.clone(), false, 1));
    assert_eq!(found(&World::new("", text), &[]), (own.clone(), true, 0));
    assert_eq!(found(&World::new(text, ""), &["--remote-cache=s3://bucket/of/all"]), (own, true, 0));
}

mod strangers;
