//! A store as one archive, for new machines: a tar file of its records and blobs, each with the time of its last use.
//!
//! Files of an archive are verified like files of a store. Knows nothing of the meaning of keys.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use distlto_prepare::blobs::{self, BlobDigest, from_hex};
use distlto_prepare::io_error::IoError;
use distlto_prepare::prune::KeptFile;
use tar::{Archive, Builder, EntryType, Header};

use super::layout::{BLOBS, LARGEST_RECORD, PARTS, RECORDS, sha256};
use super::{Cache, CacheLimits, record};
use crate::result::Key;

/// The outcome of an export or an import.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Transferred {
    /// Files that were written.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that were there already.
    pub present: u64,
    /// Files that were left out, and why.
    pub bad: Vec<String>,
}

impl Cache {
    /// Writes an archive of the most recently used files, up to the limits. `name` is the archive's path, for errors.
    pub fn export(&self, limits: CacheLimits, to: impl Write, name: &Path) -> Result<Transferred, IoError> {
        let mut files = self.blobs.list(&PARTS).files;
        files.sort_unstable_by_key(|file| std::cmp::Reverse(file.used));
        let oldest = limits.age.and_then(|age| SystemTime::now().checked_sub(age));
        let oldest = oldest.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let oldest = oldest.map_or(0, |time| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
        let mut room = limits.size.unwrap_or(u64::MAX);
        files.retain(|file| {
            room = room.saturating_sub(file.space());
            file.used >= oldest && room > 0
        });
        // An import that ends early leaves no record without its blobs.
        files.sort_by_key(|file| std::cmp::Reverse(file.part));
        let mut archive = Builder::new(to);
        let mut done = Transferred::default();
        for file in files {
            // Others may prune at this moment.
            let Ok((bytes, _)) = blobs::read(&self.blobs.file(PARTS[file.part], &file.digest)) else {
                continue;
            };
            archive
                .append_data(&mut header(&file, bytes.len()), place(&file), bytes.as_slice())
                .map_err(IoError::on("write", name))?;
            done.files += 1;
            done.bytes += bytes.len() as u64;
        }
        archive.into_inner().and_then(|mut to| to.flush()).map_err(IoError::on("write", name))?;
        Ok(done)
    }

    /// Imports the files of an archive that are not in the store yet. `name` is the archive's path, for errors.
    pub fn import(&self, from: impl Read, name: &Path) -> Result<Transferred, IoError> {
        let read = |error| IoError::on("read", name)(error);
        let mut archive = Archive::new(from);
        let mut done = Transferred::default();
        for entry in archive.entries().map_err(read)? {
            let mut entry = entry.map_err(read)?;
            let path = entry.path().map_err(read)?.into_owned();
            if entry.header().entry_type() == EntryType::Directory {
                continue;
            }
            let Some((part, digest)) = named(&path) else {
                let what =
                    format!("{} is no file of a store: was it made by distlto cache export?", path.display());
                return Err(read(io::Error::new(io::ErrorKind::InvalidData, what)));
            };
            let used = entry.header().mtime().map_err(read)?;
            let mut bytes = Vec::new();
            let most = if part == RECORDS { LARGEST_RECORD } else { u64::MAX };
            entry.by_ref().take(most).read_to_end(&mut bytes).map_err(read)?;
            if let Err(why) = judge(part, &digest, &bytes) {
                done.bad.push(format!("{}: {why}", path.display()));
                continue;
            }
            let to = self.blobs.file(part, &digest);
            if to.is_file() {
                done.present += 1;
                continue;
            }
            self.blobs.write(&to, &bytes)?;
            blobs::used_at(&to, used);
            done.files += 1;
            done.bytes += bytes.len() as u64;
        }
        self.evictor.put(&self.blobs, done.bytes);
        Ok(done)
    }
}

fn header(file: &KeptFile, size: usize) -> Header {
    let mut header = Header::new_ustar();
    header.set_size(size as u64);
    header.set_mode(0o444);
    header.set_mtime(u64::try_from(file.used / 1_000_000_000).unwrap_or(0));
    header
}

/// The name of a file in an archive, which is that in a store.
fn place(file: &KeptFile) -> PathBuf {
    let hex = blobs::hex(&file.digest);
    [PARTS[file.part], &hex[..2], &hex[2..]].iter().collect()
}

/// The directory and the digest that a file of an archive is named after.
fn named(path: &Path) -> Option<(&'static str, BlobDigest)> {
    let mut names = path.components().map(|name| name.as_os_str().to_str());
    let [part, first, rest] = [names.next()??, names.next()??, names.next()??];
    let part = PARTS.into_iter().find(|known| *known == part).filter(|_| first.len() == 2)?;
    Some((part, from_hex(&format!("{first}{rest}")).filter(|_| names.next().is_none())?))
}

fn judge(part: &str, digest: &BlobDigest, bytes: &[u8]) -> Result<(), String> {
    match part {
        BLOBS if sha256(bytes) != *digest => Err("its content does not match its name".to_owned()),
        RECORDS => record::decode(&Key(*digest), bytes).map(drop),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Role;
    use crate::result::{NewOutput, NewResult};

    fn cache(place: &Path) -> Cache {
        Cache::open(place, CacheLimits::default()).expect("a cache")
    }

    #[test]
    fn what_is_exported_is_imported_and_damage_is_named() {
        let place = tempfile::tempdir().expect("a directory");
        let one = cache(&place.path().join("one"));
        let object = place.path().join("object");
        for number in 0..3u8 {
            std::fs::write(&object, [number; 5000]).expect("written");
            let outputs = [NewOutput { role: Role::Object, name: "a.o", file: &object }];
            let result = NewResult {
                module: "a",
                outputs: &outputs,
                stderr: b"",
                measured: Default::default(),
                by_engine: false,
                is_unobserved: false,
                note: "note",
            };
            one.put(&Key([number; 32]), &result).expect("kept");
        }
        let mut bytes = Vec::new();
        let all = CacheLimits { size: None, age: None };
        let written = one.export(all, &mut bytes, Path::new("archive")).expect("written");
        assert_eq!((written.files, written.present), (6, 0));
        let other = cache(&place.path().join("other"));
        let read = || other.import(bytes.as_slice(), Path::new("archive")).expect("read");
        assert_eq!(read(), written);
        assert_eq!(read(), Transferred { present: 6, ..Transferred::default() });
        assert_eq!(other.get(&Key([1; 32])).expect("a record").note, "note");
        let used = |cache: &Cache| cache.holdings().expect("listed").oldest.expect("a time");
        assert!(used(&one).duration_since(used(&other)).unwrap_or_default().as_secs() < 2);

        // The first blob's content begins after a block of 512 bytes.
        let mut damaged = bytes.clone();
        damaged[600] ^= 1;
        let third = cache(&place.path().join("third"));
        let read = third.import(damaged.as_slice(), Path::new("archive")).expect("read");
        assert_eq!((read.files, read.bad.len()), (5, 1));
        assert!(third.import(&bytes[..1000], Path::new("archive")).is_err());
        let none = third.import(&b"no archive of anybody"[..], Path::new("archive"));
        assert!(none.is_err_and(|error| error.to_string().contains("archive")));
    }
}
