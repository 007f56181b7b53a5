//! What counts as a user's own: a table of owners, modes, links and folders, for root, who can give files away.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use distlto_prepare::private::{Exposed, Reach, check, claim};
use rustix::fs::XattrFlags;
use tempfile::TempDir;

/// Debian's `nobody` and `nogroup`.
const OTHER: u32 = 65_534;

fn give(path: &Path) {
    lchown(path, Some(OTHER), None).expect("root's right to give a file away (CAP_CHOWN)");
}

/// A folder of this name, owner and mode.
fn folder(above: &Path, name: &str, owner: u32, mode: u32) -> PathBuf {
    let path = above.join(name);
    fs::create_dir(&path).expect("made");
    fs::set_permissions(&path, Permissions::from_mode(mode)).expect("a mode");
    if owner != 0 {
        give(&path);
    }
    path
}

fn said(path: &Path, reach: Reach) -> String {
    match check(path, reach) {
        Ok(()) => "good".to_owned(),
        Err(exposed) => exposed.of(path),
    }
}

/// What is said of a path when the folders above count, and when they do not.
fn both(path: &Path) -> [String; 2] {
    [said(path, Reach::Whole), said(path, Reach::Last)]
}

fn place() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn owners_and_modes() {
    let place = place();
    let good = "good".to_owned();
    for (name, owner, mode, expected) in [
        ("own", 0, 0o755, "good"),
        ("closed", 0, 0o700, "good"),
        ("of the own group", 0, 0o775, "good"),
        ("open", 0, 0o777, "it can be written by all users (mode 777)"),
        ("as tmp", 0, 0o1777, "it can be written by all users (mode 1777)"),
        ("another's", OTHER, 0o755, "it belongs to the user nobody (65534)"),
    ] {
        let path = folder(place.path(), name, owner, mode);
        assert_eq!(both(&path), [expected, expected], "{name}");
    }
    let grouped = folder(place.path(), "group", 0, 0o775);
    chown(&grouped, None, Some(OTHER)).expect("root's right to give a file away (CAP_CHOWN)");
    assert_eq!(said(&grouped, Reach::Last), "it can be written by the group nogroup (65534) (mode 775)");
    fs::set_permissions(&grouped, Permissions::from_mode(0o755)).expect("a mode");
    assert_eq!(both(&grouped), [good.clone(), good]);
    let missing = place.path().join("missing");
    assert!(said(&missing, Reach::Whole).starts_with("cannot look at "), "{:?}", both(&missing));
}

/// One user more may write than the group has members.
#[test]
fn an_access_list_speaks_by_the_bits_of_the_group() {
    let place = place();
    let path = folder(place.path(), "listed", 0, 0o775);
    // acl(5) on disk: version 2, then tag, rights and id of each entry.
    let entry = |tag: u16, rights: u16, id: u32| {
        [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    let nobody = u32::MAX;
    let entries = [(1, 7, nobody), (2, 7, OTHER), (4, 5, nobody), (0x10, 7, nobody), (0x20, 5, nobody)];
    let list = entries.map(|(tag, rights, id)| entry(tag, rights, id)).concat();
    let list = [&2_u32.to_le_bytes()[..], &list].concat();
    let set = rustix::fs::setxattr(&path, "system.posix_acl_access", &list, XattrFlags::empty());
    match set {
        Ok(()) => assert!(said(&path, Reach::Last).contains("can be written by"), "{:?}", both(&path)),
        // Without access lists there is nothing to say.
        Err(error) => assert_eq!(error, rustix::io::Errno::OPNOTSUPP),
    }
}

#[test]
fn folders_above() {
    let place = place();
    for (name, owner, mode, whole) in [
        ("own", 0, 0o755, "good"),
        ("sticky", 0, 0o1777, "good"),
        ("open", 0, 0o777, "can be written by all users (mode 777)"),
        ("another's", OTHER, 0o755, "belongs to the user nobody (65534)"),
        ("another's, sticky", OTHER, 0o1777, "belongs to the user nobody (65534)"),
    ] {
        let above = folder(place.path(), name, owner, mode);
        let path = folder(&above, "own", 0, 0o755);
        let deep = folder(&path, "deep", 0, 0o755);
        for path in [&path, &deep] {
            let expected =
                if whole == "good" { whole.to_owned() } else { format!("{} {whole}", above.display()) };
            assert_eq!(both(path), [expected, "good".to_owned()], "{name}");
        }
    }
}

#[test]
fn links_count_as_what_they_lead_to_and_as_who_made_them() {
    let place = place();
    let at = |name: &str| place.path().join(name);
    let own = folder(place.path(), "own", 0, 0o755);
    let sticky = folder(place.path(), "sticky", 0, 0o1777);
    let strange = folder(place.path(), "strange", OTHER, 0o755);
    folder(&strange, "inner", 0, 0o755);
    symlink(&own, at("link")).expect("made");
    symlink("../own/../own", sticky.join("around")).expect("made");
    for path in [at("link"), sticky.join("around")] {
        assert_eq!(both(&path), ["good", "good"], "{}", path.display());
    }
    // Who made it could have it lead elsewhere.
    symlink(&own, sticky.join("planted")).expect("made");
    give(&sticky.join("planted"));
    let planted = "it belongs to the user nobody (65534)";
    assert_eq!(both(&sticky.join("planted")), [planted, planted]);
    symlink(at("strange/inner"), at("astray")).expect("made");
    let through = format!("{} belongs to the user nobody (65534)", strange.display());
    assert_eq!(both(&at("astray")), [through.clone(), through]);
    symlink(at("loop"), at("loop")).expect("made");
    symlink(at("missing"), at("nowhere")).expect("made");
    for name in ["loop", "nowhere"] {
        assert!(said(&at(name), Reach::Last).starts_with("cannot look at "), "{name}: {:?}", both(&at(name)));
    }
}

#[test]
fn a_claimed_folder_is_made_where_nobody_can_lead_astray() {
    let place = place();
    let at = |name: &str| place.path().join(name);
    claim(&at("several/that/are/missing"), Reach::Whole).expect("made");
    claim(&at("several/that/are/missing"), Reach::Whole).expect("there");
    assert_eq!(at("several/that").metadata().expect("made").mode() & 0o022, 0);
    let sticky = folder(place.path(), "sticky", 0, 0o1777);
    claim(&sticky.join("new"), Reach::Whole).expect("made");
    folder(place.path(), "target", 0, 0o755);
    symlink(at("target"), sticky.join("planted")).expect("made");
    give(&sticky.join("planted"));
    let refused = claim(&sticky.join("planted/new"), Reach::Whole).expect_err("a link of another user");
    assert!(matches!(refused, Exposed::Foreign { .. }), "{refused}");
    assert!(!at("target/new").exists(), "made where another user wants it");
    let open = folder(place.path(), "open", 0, 0o777);
    let refused = claim(&open.join("new"), Reach::Whole).expect_err("a folder of all");
    assert_eq!(refused.remedy(), format!("chmod go-w {} if nobody else is to write there", open.display()));
    fs::write(at("file"), "").expect("written");
    claim(&at("file/new"), Reach::Whole).expect_err("no folder");
}
