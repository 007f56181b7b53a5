//! The program byte for byte, of stock tools alone: lld takes every object from its own ThinLTO cache, which holds what clang
//! makes of the index shards that lld writes.
//!
//! A first link with one backend at a time writes a module's shard, and then its object in the cache; so the order of the two
//! (inotify(7)) says under which name lld looks for a module's object. lld calls a member of an archive `lib.a(m.o at 78)`,
//! and clang finds it in a file of that name. Knows nothing of distlto but the flags of its backends.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use object::read::archive::ArchiveFile;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use super::backends::{member_offset, shard_text};
use super::line;
use super::model::Program;
use super::ways::IN_PROCESS;
use super::workspace::Workspace;

/// The folder of lld's cache, and how the names of its objects begin.
const CACHE: &str = "cache";
const OBJECT: &str = "llvmcache-";
const SHARD: &str = ".thinlto.bc";

/// What stock tools make of a link.
#[derive(Debug)]
pub struct ByHand {
    /// The program.
    pub bytes: Vec<u8>,
    /// The objects of its modules, where that is known.
    pub objects: Option<BTreeSet<Vec<u8>>>,
}

/// The flags of the backends that `distlto link -v` has printed; nothing where none ran.
pub fn flags(told: &str) -> Option<Vec<String>> {
    let words = told.lines().filter_map(|line| shlex::split(line.strip_prefix("+ ")?));
    let mut backends = words.filter(|words| words.iter().any(|word| word.starts_with("-fthinlto-index=")));
    Some(backends.next()?.into_iter().skip(1).take_while(|word| word != "-x").collect())
}

/// Links a program that lld can link, its backends having these flags. `None` where two modules have one shard: lld names
/// `./a.o` and `a.o` apart, but not their files.
pub fn by_hand(program: &Program, workspace: &mut Workspace, flags: &[String]) -> Result<Option<ByHand>> {
    let mut copy = workspace.copy(workspace.path.join("by-hand"))?;
    let cache = copy.path.join(CACHE);
    fs::create_dir(&cache)?;
    let watch = Watch::of(&copy.path)?;
    let mut link = IN_PROCESS.command(program, &copy, &[])?;
    let words = ["--thinlto-emit-index-files", "--thinlto-jobs=1", &format!("--thinlto-cache-dir={CACHE}")];
    link.args(words.map(|word| format!("-Wl,{word}")));
    copy.run(&mut link)?;
    let Some(keys) = watch.keys()? else { return Ok(None) };
    unpack(&copy)?;
    for (key, shard) in &keys {
        let id = own_id(&copy, shard)?;
        let object = format!("{CACHE}/{key}");
        let mut clang = copy.tool("clang")?;
        clang.args(flags).args(["-x", "ir", &id]).arg(format!("-fthinlto-index={shard}"));
        copy.run(clang.args(["-o", &object]))?;
    }
    copy.run(&mut link)?;
    let mut objects = BTreeSet::new();
    for entry in fs::read_dir(&cache)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(OBJECT) {
            ensure!(keys.contains_key(&*name), "the second link has looked for {name}");
            objects.insert(fs::read(&path)?);
        }
    }
    workspace.commands.append(&mut copy.commands);
    let bytes = fs::read(copy.path.join(line::output(program, IN_PROCESS.dir)))?;
    Ok(Some(ByHand { bytes, objects: Some(objects) }))
}

/// What happens to files of a folder and those below it.
struct Watch {
    events: OwnedFd,
    /// The folders by the system's numbers, below the first.
    folders: BTreeMap<i32, PathBuf>,
}

impl Watch {
    fn of(root: &Path) -> Result<Self> {
        let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let mut folders = BTreeMap::new();
        let mut left = vec![root.to_owned()];
        while let Some(folder) = left.pop() {
            let number =
                inotify::add_watch(&events, &folder, WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO)?;
            folders.insert(number, folder.strip_prefix(root)?.to_owned());
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                left.extend(entry.file_type()?.is_dir().then(|| entry.path()));
            }
        }
        Ok(Self { events, folders })
    }

    /// The shard of each object that has come into the cache, by the object's name. `None` where a shard was written twice.
    fn keys(self) -> Result<Option<BTreeMap<String, String>>> {
        let mut buffer = [MaybeUninit::uninit(); 1 << 14];
        let mut events = Reader::new(&self.events, &mut buffer);
        let (mut keys, mut seen, mut last) = (BTreeMap::new(), BTreeSet::new(), None);
        loop {
            let event = match events.next() {
                Err(Errno::WOULDBLOCK) => return Ok(Some(keys)),
                event => event?,
            };
            ensure!(!event.events().contains(ReadFlags::QUEUE_OVERFLOW), "more events than the system keeps");
            let (Some(folder), Some(name)) = (self.folders.get(&event.wd()), event.file_name()) else {
                continue;
            };
            let name = name.to_str()?;
            if name.ends_with(SHARD) && event.events().contains(ReadFlags::CLOSE_WRITE) {
                let shard = folder.join(name).to_str().context("names here are text")?.to_owned();
                if !seen.insert(shard.clone()) {
                    return Ok(None);
                }
                last = Some(shard);
            } else if name.starts_with(OBJECT) && event.events().contains(ReadFlags::MOVED_TO) {
                keys.insert(name.to_owned(), last.take().context("an object has no shard before it")?);
            }
        }
    }
}

/// The module that a shard is of, as the shard spells it.
fn own_id(workspace: &Workspace, shard: &str) -> Result<String> {
    let own = shard.strip_suffix(SHARD).context("a shard")?;
    let text = shard_text(workspace, own)?;
    let paths = text.lines().filter_map(|line| line.split_once("= module: (path: \"")?.1.split_once('"'));
    let mut paths = paths.map(|(path, _)| path).filter(|path| path.strip_prefix("./").unwrap_or(path) == own);
    paths.next().map(str::to_owned).with_context(|| format!("{shard} does not name {own}"))
}

/// Has every member of an archive be a file of the name that lld gives it.
fn unpack(workspace: &Workspace) -> Result<()> {
    for entry in fs::read_dir(&workspace.path)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "a") {
            continue;
        }
        let library = path.file_name().unwrap_or_default().to_string_lossy();
        let bytes = fs::read(&path)?;
        let archive = ArchiveFile::parse(&*bytes)?;
        for member in archive.members() {
            let member = member?;
            let name = std::str::from_utf8(member.name())?;
            let content = match archive.is_thin() {
                true => fs::read(workspace.path.join(name))?,
                false => member.data(&*bytes)?.to_vec(),
            };
            let name = name.rsplit('/').next().unwrap_or(name);
            let at = member_offset(&member, &bytes)?;
            fs::write(workspace.path.join(format!("{library}({name} at {at})")), content)?;
        }
    }
    Ok(())
}
