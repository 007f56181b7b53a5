//! Where state and results are kept, and which servers are configured.
//!
//! Directories are not made: whether that would work is tried in the nearest one that exists. Servers are not contacted.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use distlto_executor::cache::store::{Cache, CacheLimits};
use distlto_planner::link_command::LinkCommand;
use distlto_planner::state;
use distlto_prepare::private::{self, Exposed, Reach};
use distlto_record::progress::text::{counted, size};

use super::Doctor;
use crate::store;

/// The content of a trial file. A full disk still takes an empty one.
const TRIED: [u8; 4096] = [0; 4096];
/// The exit code for `distlto::io`.
const IO: u8 = 4;

impl Doctor<'_> {
    /// Reports on the state of the link, if one was given, and on the cache.
    pub(super) fn places(&mut self, link: Option<&LinkCommand>) {
        self.report.about("state");
        self.state(link);
        self.report.about("cache");
        self.cache();
    }

    fn state(&mut self, link: Option<&LinkCommand>) {
        let Some(folder) = self.args.cache.links(self.args.state.as_deref()) else {
            let lack = store::lack();
            return self.report.note(&format!(
                "nothing is kept of links: {lack} (DISTLTO_CACHE and DISTLTO_STATE name other places)"
            ));
        };
        let place = PathBuf::from(
            link.map_or_else(|| folder.clone(), |link| state::directory(link.line.output(), &folder)),
        );
        if let Err(error) = usable(&place) {
            return self.fatal(IO, &format!("{} cannot be written: {error}", place.display()));
        }
        match taken(&place) {
            Ok(bytes) => {
                self.report.good(&format!("{} can be used and holds {}", place.display(), size(bytes)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.report.good(&format!("{} can be made", place.display()));
            }
            Err(error) => {
                self.report.note(&format!("{} can be used; its size is not known: {error}", place.display()));
            }
        }
    }

    fn cache(&mut self) {
        let named = self.args.cache.directory().map(Path::to_owned);
        let Some(directory) = &named.or_else(|| store::own_cache().map(Path::to_owned)) else {
            let lack = store::lack();
            return self
                .report
                .note(&format!("no objects are kept: {lack} (DISTLTO_CACHE names another place)"));
        };
        let shown = directory.display();
        if !self.args.cache.cache_shared
            && let Err(exposed @ (Exposed::Foreign { .. } | Exposed::Writable { .. })) =
                private::check(directory, Reach::Whole)
        {
            let (exposed, remedy) = (exposed.of(directory), exposed.remedy());
            return self.report.wrong(&format!(
                "{shown} is not used: {exposed}; {remedy}, or give --cache-shared if you trust all who can write there"
            ));
        }
        let opened = Cache::open_existing(directory, CacheLimits { size: None, age: None });
        let writable = usable(directory);
        match (opened, writable) {
            (Ok(cache), writable) => {
                match cache.holdings() {
                    Ok(held) => self.report.good(&format!(
                        "{shown} holds {}, {} on disk",
                        counted(held.records, "object"),
                        size(held.disk)
                    )),
                    Err(error) => self.report.failed(&format!("{shown} cannot be looked at"), &error),
                }
                if let Err(error) = writable {
                    self.report.note(&format!("{shown} is read only, nothing is put there: {error}"));
                }
            }
            // A directory that is no cache yet, or one of another version, gets a folder of this version.
            (Err(_), Ok(())) => {
                self.report.good(&format!("{shown} holds no objects of this version yet, and can"));
            }
            (Err(_), Err(error)) => {
                self.report.wrong(&format!("{shown} cannot be used, and links go without: {error}"));
            }
        }
    }

    /// Which servers a link would use.
    pub(super) fn remote(&mut self) {
        self.report.about("remote");
        let settings = match self.args.remote.settings() {
            Ok(settings) => settings,
            Err(error) => return self.fails("the configuration", &error),
        };
        settings.notices.iter().chain(&settings.announcement).for_each(|notice| self.report.note(notice));
        let asks = |url: &dyn std::fmt::Display| format!("`distlto remote check {url}` asks it");
        if let Some(execute) = &settings.engine.execution {
            let url = &execute.endpoint;
            self.report.note(&format!("backends run at {url}, which was not asked: {}", asks(url)));
        }
        if let Some(cache) = settings.engine.other_cache() {
            let url = &cache.server.endpoint;
            self.report.note(&format!("results are looked up at {url}, which was not asked: {}", asks(url)));
        }
        if !settings.is_remote() {
            self.report.good("no server is configured: this machine does all of it");
        }
    }
}

/// Whether files can be made in a directory, or in the nearest one above if it is missing.
fn usable(directory: &Path) -> io::Result<()> {
    let absolute = std::path::absolute(directory)?;
    for place in absolute.ancestors() {
        match fs::metadata(place) {
            Ok(_) => return tempfile::tempfile_in(place)?.write_all(&TRIED),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// The bytes of all files below a directory.
fn taken(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let found = entry.metadata()?;
        bytes += if found.is_dir() { taken(&entry.path())? } else { found.len() };
    }
    Ok(bytes)
}
