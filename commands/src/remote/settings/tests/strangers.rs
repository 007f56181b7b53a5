//! Owners and places of configuration files, and the limits of their search. Root gives files away here.

use std::os::unix::fs::{chown, lchown};

use super::*;

/// Debian's `nobody`.
const OTHER: u32 = 65_534;
const TEXT: &str = "[remote]\nurl = \"grpc://checkout:1\"";

fn give(path: &Path) {
    lchown(path, Some(OTHER), None).expect("root's right to give a file away (CAP_CHOWN)");
}

impl World {
    fn mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), Permissions::from_mode(mode)).expect("changed");
    }

    /// Returns the server that the checkout names, if it counts, and the notices.
    fn server(&self) -> (Option<String>, String) {
        let settings = self.good(&[]);
        (settings.engine.execution.as_ref().map(host), settings.notices.join("\n"))
    }
}

#[test]
fn a_file_that_another_user_can_write_is_passed_over() {
    type Change = fn(&World);
    let changes: [(Change, &str); 9] = [
        (
            |world| give(&world.path("checkout/distlto.toml")),
            "it belongs to the user nobody (65534); chown 0 ",
        ),
        (|world| give(&world.path("checkout")), "/checkout belongs to the user nobody (65534); chown 0 "),
        (
            |world| world.mode("checkout/distlto.toml", 0o646),
            "it can be written by all users (mode 646); chmod go-w ",
        ),
        (
            |world| world.mode("checkout", 0o1777),
            "/checkout can be written by all users (mode 1777); chmod go-w ",
        ),
        (
            |world| {
                let file = world.path("checkout/distlto.toml");
                chown(file, None, Some(OTHER)).expect("root's right to give a file away (CAP_CHOWN)");
                world.mode("checkout/distlto.toml", 0o664);
            },
            "it can be written by the group nogroup (65534) (mode 664); chmod g-w ",
        ),
        (
            |world| {
                fs::rename(world.path("checkout/distlto.toml"), world.path("theirs")).expect("moved");
                give(&world.path("theirs"));
                symlink(world.path("theirs"), world.path("checkout/distlto.toml")).expect("made");
            },
            "/theirs belongs to the user nobody",
        ),
        (
            |world| {
                fs::rename(world.path("checkout/distlto.toml"), world.path("own")).expect("moved");
                symlink(world.path("own"), world.path("checkout/distlto.toml")).expect("made");
                give(&world.path("checkout/distlto.toml"));
            },
            "it belongs to the user nobody",
        ),
        (
            |world| {
                let file = world.path("checkout/distlto.toml");
                fs::remove_file(&file).expect("removed");
                rustix::fs::mkfifoat(rustix::fs::CWD, &file, rustix::fs::Mode::RUSR).expect("made");
                give(&file);
            },
            "it belongs to the user nobody",
        ),
        (
            |world| {
                world.write("checkout/distlto.toml", "no configuration");
                give(&world.path("checkout/distlto.toml"));
            },
            "it belongs to the user nobody",
        ),
    ];
    for (change, expected) in changes {
        let world = World::new(TEXT, "");
        assert_eq!(world.server(), (Some("grpc://checkout:1".to_owned()), String::new()));
        change(&world);
        let (server, said) = world.server();
        assert_eq!(server, None, "{said}");
        let passed = format!("{} is passed over: ", world.path("checkout/distlto.toml").display());
        assert!(said.starts_with(&passed) && said.contains(expected), "{said}");
        assert_eq!(said.matches("passed over").count(), 1, "{said}");
        // A container sees the checkout of another user: the user can say that it counts.
        let real = world.path("checkout/distlto.toml").canonicalize().expect("it is there");
        let folder = real.parent().expect("a file");
        let trusts =
            format!("trusted = [\"{}\"] in {}", folder.display(), world.path("config.toml").display());
        assert!(said.contains(&trusts), "{said}");
    }
    let world = World::new(TEXT, "trusted = [\"CHECKOUT\"]");
    give(&world.path("checkout/distlto.toml"));
    assert_eq!(world.server(), (Some("grpc://checkout:1".to_owned()), String::new()));
}

#[test]
fn what_is_passed_over_hides_nothing_above() {
    let world = World::new(TEXT, "");
    world.write("checkout/src/distlto.toml", "[remote]\nurl = \"grpc://stranger:1\"");
    give(&world.path("checkout/src/distlto.toml"));
    let (server, said) = world.server();
    assert_eq!(server.as_deref(), Some("grpc://checkout:1"));
    assert!(said.contains("checkout/src/distlto.toml is passed over"), "{said}");
}

#[test]
fn it_is_looked_for_no_further_than_the_repository_or_the_home() {
    for mark in
        [".git", ".hg", ".jj", "WORKSPACE", "WORKSPACE.bazel", "MODULE.bazel", "REPO.bazel", ".buckconfig"]
    {
        let world = World::new(TEXT, "");
        world.write(&format!("checkout/{mark}"), "");
        assert_eq!(world.server().0.as_deref(), Some("grpc://checkout:1"), "{mark}");
        // In the repository's own folder it is found, and not above.
        world.write(&format!("checkout/src/{mark}"), "");
        assert_eq!(world.server(), (None, String::new()), "{mark}");
    }
    let world = World::new(TEXT, "");
    let server = |home: &str| {
        let around = ConfigPlaces {
            directory: Some(world.path("checkout/src/deep")),
            home: Some(world.folder.path().join(home)),
            user_file: None,
            headers: None,
            s3: S3Account::default(),
        };
        settings(&args(&[]), &around).expect("well-formed").engine.execution.is_some()
    };
    symlink(world.path("checkout/src"), world.path("home")).expect("made");
    assert_eq!(["checkout", "checkout/src", "home", "elsewhere"].map(server), [true, false, false, true]);
}

#[test]
fn a_link_that_only_a_checkout_makes_remote_says_so() {
    let said =
        |checkout: &str, user: &str, words: &[&str]| World::new(checkout, user).good(words).announcement;
    let cache = "[remote]\ncache = \"grpc://checkout:1\"";
    let runs = said(TEXT, "", &[]).expect("an announcement");
    assert!(
        runs.contains("/checkout/distlto.toml has backends run at grpc://checkout:1; --no-remote "),
        "{runs}"
    );
    let looks = said(cache, "", &[]).expect("an announcement");
    assert!(looks.contains("/checkout/distlto.toml has objects looked up at grpc://checkout:1; "), "{looks}");
    for (checkout, user, words) in [
        ("", "", &[][..]),
        ("", TEXT, &[]),
        (TEXT, TEXT, &[]),
        (TEXT, "trusted = [\"CHECKOUT\"]", &[]),
        (TEXT, "", &["--remote", "grpc://checkout:1"]),
        (TEXT, "", &["--remote", ""]),
    ] {
        assert_eq!(said(checkout, user, words), None, "{checkout} {user} {words:?}");
    }
}

#[test]
fn the_users_own_file_is_refused_where_others_could_write_it() {
    let world = World::new("", "");
    give(&world.path("config.toml"));
    let error = world.refused(&[]);
    let expected = "config.toml is not used: it belongs to the user nobody (65534), and it may name programs";
    assert!(error.to_string().contains(expected), "{error}");
    let world = World::new("", "");
    world.mode("", 0o777);
    let error = world.refused(&[]);
    assert!(error.to_string().contains("can be written by all users (mode 777), and it may name"), "{error}");
}
