//! A user of a cache of results that needs no compiler: what stands for a compilation is a function of its number.
//!
//! `distlto-test-cache CACHE SIZE OUT LOOKUPS KINDS`: looks up, takes or makes and keeps LOOKUPS results out of KINDS in a
//! cache of SIZE, and writes each into the directory OUT as a run would. Whatever the cache gave is compared with what
//! the function gives: a difference ends it with exit code 1. Prints `hits H misses M`, and what the cache complained of
//! on standard error.

use std::error::Error;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use distlto_executor::cache::store::limits::parse_size;
use distlto_executor::cache::store::{Cache, CacheLimits, sha256};
use distlto_executor::output::Role;
use distlto_executor::result::{Key, NewOutput, NewResult};
use distlto_record::report::Measured;

fn main() -> ExitCode {
    match work() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("distlto-test-cache: {error}");
            ExitCode::FAILURE
        }
    }
}

fn work() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [directory, size, out, lookups, kinds] = arguments.as_slice() else {
        return Err("usage: distlto-test-cache CACHE SIZE OUT LOOKUPS KINDS".into());
    };
    let cache = Cache::open(Path::new(directory), CacheLimits { size: Some(parse_size(size)?), age: None })?;
    let (lookups, kinds): (u64, u64) = (lookups.parse()?, kinds.parse()?);
    let out = Path::new(out);
    fs::create_dir_all(out)?;
    let random = RandomState::new();
    let (mut hits, mut misses) = (0, 0);
    for lookup in 0..lookups {
        let number = random.hash_one(lookup) % kinds;
        let hit = look_up(&cache, number, out)?;
        cache.count(hit);
        *if hit { &mut hits } else { &mut misses } += 1;
    }
    for trouble in cache.troubles() {
        eprintln!("{trouble}");
    }
    println!("hits {hits} misses {misses}");
    Ok(())
}

/// Makes the files of a result, from the cache if it has them.
fn look_up(cache: &Cache, number: u64, out: &Path) -> Result<bool, Box<dyn Error>> {
    let key = Key(sha256(&number.to_le_bytes()));
    let places = [out.join("m.o"), out.join("m.dwo")];
    let contents = [content(number), content(number % 8)];
    if let Some(record) = cache.get(&key) {
        if record.module != number.to_string() || record.outputs.len() != places.len() {
            return Err(format!("the record of {number} is {record:?}").into());
        }
        let mut whole = true;
        for ((output, place), content) in record.outputs.iter().zip(&places).zip(&contents) {
            whole = whole && cache.materialise(output, place)?;
            if whole && fs::read(place)? != *content {
                return Err(format!("the content of {number} is wrong").into());
            }
        }
        if whole {
            return Ok(true);
        }
        cache.forget(&key);
    }
    let mut outputs = Vec::new();
    for (place, content) in places.iter().zip(&contents) {
        fs::write(place, content)?;
        outputs.push(NewOutput { role: Role::File, name: "m", file: place });
    }
    let module = number.to_string();
    let result = NewResult {
        module: &module,
        outputs: &outputs,
        stderr: b"",
        measured: Measured::default(),
        by_engine: false,
        is_unobserved: false,
        note: "",
    };
    cache.put(&key, &result);
    Ok(false)
}

/// Up to 32 KiB that only this number has.
fn content(number: u64) -> Vec<u8> {
    let block = sha256(&number.to_le_bytes());
    block.repeat(1 + usize::from(block[0]) * 4)
}
