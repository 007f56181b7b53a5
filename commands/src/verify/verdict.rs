//! The result of a comparison of links, as data and JSON; `text` has the sentences.
//!
//! Has the links made in the order in which their results are needed. Does not depend on how one is made.

mod text;

use distlto_planner::digests::Digest;
use miette::Report;
use serde::Serialize;

use super::cause::DifferenceCause;
use super::contents::{self, ContentDifference, FileContents};
use super::objects::{self, ObjectCompared};
use super::ways::{MadeLink, Ways};

/// The version of the JSON.
const VERSION: u32 = 2;

/// How one way of linking ended.
#[derive(Debug, Serialize)]
struct Way {
    name: &'static str,
    exit_code: u8,
    wall_us: u64,
    /// The program, if there is one.
    program_bytes: Option<u64>,
    program_digest: Option<String>,
    #[serde(skip)]
    said: String,
}

/// The result of the comparison.
#[derive(Debug, Serialize)]
pub struct Verdict {
    version: u32,
    output: String,
    ways: Vec<Way>,
    /// Whether lld alone and distlto both made a program, or both made none.
    same_status: bool,
    same_program: bool,
    program_cause: Option<DifferenceCause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    program_difference: Option<ContentDifference>,
    /// None where the programs are equal, absent where lld and distlto have not the same modules.
    objects: Option<Vec<ObjectCompared>>,
    unknown: usize,
}

impl Verdict {
    /// Makes the links and compares.
    pub fn of(ways: &Ways<'_>) -> Result<Self, Report> {
        let (alone, ours) = (ways.in_process()?, ways.distlto()?);
        let mut verdict = Self::new(ways, &alone, &ours)?;
        if alone.code != 0 || ours.code != 0 {
            verdict.unknown = usize::from(!verdict.same_status);
            return Ok(verdict);
        }
        if !verdict.same_program {
            let modules = ways.made();
            if !modules.is_empty() {
                verdict.objects = objects::compare(ways, &modules, &ways.objects()?)?;
            }
            verdict.find_causes(ways, &alone, &ours)?;
        }
        let unknown_objects = verdict.differing().filter(|object| object.cause.is_none()).count();
        let unmatched = usize::from(verdict.objects.is_none());
        let program = usize::from(!verdict.same_program && verdict.program_cause.is_none());
        verdict.unknown = unknown_objects + unmatched + program;
        Ok(verdict)
    }

    fn new(ways: &Ways<'_>, alone: &MadeLink, ours: &MadeLink) -> Result<Self, Report> {
        let (by_lld, by_us) = (alone.program()?, ours.program()?);
        let bytes = |input: &Option<_>| input.as_deref().map(<[u8]>::to_vec);
        let mut verdict = Self {
            version: VERSION,
            output: ways.output.clone(),
            ways: Vec::new(),
            same_status: (alone.code == 0) == (ours.code == 0) && by_lld.is_some() == by_us.is_some(),
            same_program: bytes(&by_lld) == bytes(&by_us),
            program_cause: None,
            program_difference: None,
            objects: Some(Vec::new()),
            unknown: 0,
        };
        verdict.add("lld alone", Some(alone))?;
        verdict.add("distlto", Some(ours))?;
        Ok(verdict)
    }

    fn add(&mut self, name: &'static str, made: Option<&MadeLink>) -> Result<(), Report> {
        let Some(made) = made else { return Ok(()) };
        let program = made.program()?;
        self.ways.push(Way {
            name,
            exit_code: made.code,
            wall_us: u64::try_from(made.wall.as_micros()).unwrap_or(u64::MAX),
            program_bytes: program.as_ref().map(|program| program.len() as u64),
            program_digest: program.as_ref().map(|program| Digest::of(program).to_string()),
            said: made.said.clone(),
        });
        Ok(())
    }

    /// Why the programs of lld alone and of distlto differ.
    fn find_causes(&mut self, ways: &Ways<'_>, alone: &MadeLink, ours: &MadeLink) -> Result<(), Report> {
        let (Some(alone), Some(ours)) = (alone.program()?, ours.program()?) else { return Ok(()) };
        let [alone, ours] = [ways.neutral(&alone), ways.neutral(&ours)];
        let [by_lld, by_us] = [FileContents::of(&alone), FileContents::of(&ours)];
        self.program_difference = Some(by_lld.difference(&by_us));
        self.program_cause = if alone == ours {
            Some(DifferenceCause::Place)
        } else if ways.build_id() == Some("build-id=uuid") && contents::same_but_for_build_id(&alone, &ours) {
            Some(DifferenceCause::BuildId)
        } else if ways.splits_debug() && by_lld.same_but_for_split_names(&by_us) {
            Some(DifferenceCause::SplitNames)
        } else {
            None
        };
        Ok(())
    }

    /// 1 where a difference has no known cause, and lld's own where lld alone fails and distlto does too.
    pub fn exit_code(&self) -> u8 {
        match self.unknown {
            0 => self.ways.first().map_or(0, |alone| alone.exit_code),
            _ => 1,
        }
    }

    fn differing(&self) -> impl Iterator<Item = &ObjectCompared> + Clone {
        self.objects.iter().flatten().filter(|object| !object.identical)
    }
}
