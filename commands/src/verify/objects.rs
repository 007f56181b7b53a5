//! The native objects of a link by lld and by distlto, one by one, with the cause where two of a module differ.
//!
//! Objects of one module are found by its place among the modules, in link order.

use std::io::ErrorKind;

use distlto_prepare::input::Input;
use distlto_prepare::io_error::IoError;
use miette::Report;
use serde::Serialize;

use super::cause::DifferenceCause;
use super::contents::{ContentDifference, FileContents};
use super::ways::{MadeLink, Ways};
use crate::serve::module_record::RecordedObject;

/// One module's objects.
#[derive(Debug, Serialize)]
pub struct ObjectCompared {
    /// The module.
    pub module: String,
    /// How long lld's is.
    pub lld_bytes: u64,
    /// How long distlto's is.
    pub distlto_bytes: u64,
    /// Whether they are equal.
    pub identical: bool,
    /// Why not, where that is known.
    pub cause: Option<DifferenceCause>,
    /// The differences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<ContentDifference>,
}

/// The objects that lld and distlto made of the modules; `None` if lld has another number of modules.
pub fn compare(
    ways: &Ways<'_>,
    modules: &[RecordedObject],
    lld: &MadeLink,
) -> Result<Option<Vec<ObjectCompared>>, Report> {
    let Some(by_lld) = ways.objects_of(lld, modules.len())? else { return Ok(None) };
    let store = ways.opened_store()?;
    let compare = |(module, lld): (&RecordedObject, &Input)| {
        let lost = || IoError::on("read the object of", &module.label)(ErrorKind::NotFound.into());
        let ours = module.content_in(&store).ok_or_else(lost)?;
        Ok(one(ways, module.label.clone(), lld, &ours))
    };
    modules.iter().zip(&by_lld).map(compare).collect::<Result<_, Report>>().map(Some)
}

fn one(ways: &Ways<'_>, module: String, lld: &[u8], ours: &[u8]) -> ObjectCompared {
    let identical = lld == ours;
    let cause = || {
        if ways.neutral(ours) == ways.neutral(lld) {
            Some(DifferenceCause::Place)
        } else if ways.splits_debug()
            && FileContents::of(lld).same_but_for_split_names(&FileContents::of(ours))
        {
            Some(DifferenceCause::SplitNames)
        } else {
            None
        }
    };
    ObjectCompared {
        module,
        lld_bytes: lld.len() as u64,
        distlto_bytes: ours.len() as u64,
        identical,
        cause: if identical { None } else { cause() },
        difference: (!identical).then(|| FileContents::of(lld).difference(&FileContents::of(ours))),
    }
}
