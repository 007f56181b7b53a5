//! Sums of LLVM's statistics: `distlto compiler-stats-merger`, Buck2's `dist_lto_compiler_stats_merger`.
//!
//! A file of statistics is the output of `-stats-json` or clang's `-save-stats`: one JSON object of numbers, counters
//! as integers and timers as floats (`PrintStatisticsJSON` in `llvm/lib/Support/Statistic.cpp`).

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::value::RawValue;

use crate::error::PrepareError;
use crate::input::Input;
use crate::json;
use crate::write;

/// Sum files of compiler statistics, key by key
///
/// Takes the options of Buck2's dist_lto_compiler_stats_merger. Integers stay exact; a sum with a float is a float.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = crate::exit::help())]
pub struct StatisticsArgs {
    /// Read the names of the files from this one, one on each line
    #[arg(long, value_name = "FILE")]
    pub input_stats_filelist: PathBuf,
    /// Write the sums as JSON, keys sorted (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub output_stats_file: PathBuf,
}

/// The sums by key.
pub type Statistics = BTreeMap<String, Number>;

/// A counter or a timer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Number {
    /// Without a fraction or an exponent in JSON.
    Integer(i128),
    /// Any other number; never infinite.
    Float(f64),
}

/// Sums and writes; the exit code is 0.
pub fn run(args: &StatisticsArgs) -> Result<u8, PrepareError> {
    let list = Input::open(&args.input_stats_filelist)?;
    let mut sums = Statistics::new();
    for path in files(&args.input_stats_filelist, &list)? {
        add(&mut sums, path, &Input::open(path)?)?;
    }
    let text = serde_json::to_string_pretty(&sums).expect("a map from text to numbers has a JSON form");
    match &args.output_stats_file {
        path if path.as_os_str() == "-" => write::to_standard_output(text.as_bytes())?,
        path => {
            write::write_if_changed(path, text.as_bytes())?;
        }
    }
    Ok(0)
}

/// The files that a list names.
fn files<'a>(list: &Path, bytes: &'a [u8]) -> Result<Vec<&'a Path>, PrepareError> {
    let mut lines: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).collect();
    // The empty text after the last newline is no line.
    lines.pop_if(|last| last.is_empty());
    if let Some(at) = lines.iter().position(|line| line.is_empty()) {
        let problem = format!("line {} is empty, expected a file's name", at + 1);
        return Err(PrepareError::Statistics { path: list.to_owned(), problem });
    }
    Ok(lines.into_iter().map(|line| Path::new(OsStr::from_bytes(line))).collect())
}

/// Adds the statistics in a file's content to `sums`. Of a key that occurs twice in one file the last value counts, as
/// for every reader that makes a map of it.
pub fn add(sums: &mut Statistics, path: &Path, text: &[u8]) -> Result<(), PrepareError> {
    let problem = |problem: String| PrepareError::Statistics { path: path.to_owned(), problem };
    let object: BTreeMap<String, &RawValue> =
        json::read(text).map_err(|error| problem(format!("expected one JSON object of numbers: {error}")))?;
    for (key, value) in object {
        let number = Number::read(value.get()).ok_or_else(|| {
            problem(format!("the value of `{key}` is {}, expected a number", shown(value.get())))
        })?;
        let sum = match sums.get(&key) {
            Some(&sum) => {
                sum.plus(number).ok_or_else(|| problem(format!("the sum of `{key}` is too large")))?
            }
            None => number,
        };
        sums.insert(key, sum);
    }
    Ok(())
}

impl Number {
    /// Reads a JSON value's text; `None` if it is no number or none that fits.
    fn read(text: &str) -> Option<Self> {
        if !text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
            return None;
        }
        if text.contains(['.', 'e', 'E']) {
            return text.parse().ok().filter(|value: &f64| value.is_finite()).map(Self::Float);
        }
        text.parse().ok().map(Self::Integer)
    }

    fn plus(self, other: Self) -> Option<Self> {
        if let (Self::Integer(one), Self::Integer(two)) = (self, other) {
            return one.checked_add(two).map(Self::Integer);
        }
        let sum = self.as_float() + other.as_float();
        sum.is_finite().then_some(Self::Float(sum))
    }

    fn as_float(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

/// The beginning of a value, for messages.
fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(40).collect();
    if shown.len() < text.len() {
        shown += "...";
    }
    shown
}
