//! A link that has not been made: its thin link alone is performed, in a scratch directory, and no backend.
//!
//! The thin link is that of two steps, which knows all that is asked here. Nothing beside the scratch directory is written.

use distlto_executor::cancel::Cancel;
use distlto_executor::execute::spawn::LocalSpawner;
use distlto_planner::index::{self, IndexError, Planned};
use distlto_planner::link_command::{self, GivenCommand, Resolved};
use distlto_planner::link_plan::LinkPlan;
use distlto_planner::state;
use distlto_planner::words::Word;

use super::{Seen, SeenError, of_plan};
use crate::link::LinkError;
use crate::scratch::scratch;
use crate::tool::ToolRunner;

impl Seen {
    /// Of a link command.
    pub fn of_command(words: &[Word], cancel: &Cancel) -> Result<Self, SeenError> {
        let runner = ToolRunner { spawner: &LocalSpawner, cancel, directory: None };
        let found = link_command::resolve(&GivenCommand::new(words), &runner).map_err(LinkError::from)?;
        let Resolved::Link(link) = found else { return Err(LinkError::NothingToIndex.into()) };
        let scratch = scratch("inspect")?;
        let directory = scratch.path().to_string_lossy();
        let planned = index::plan(index::PlanRequest {
            link: &link,
            state: &directory,
            compiler: None,
            backend_args: &[],
            flags_from: None,
            store: None,
            runner: &runner,
            preview: None,
            linker_flags: None,
            identity: None,
        });
        let plan = match planned {
            Ok(Planned::Link(planned, _)) => planned.plan,
            Ok(Planned::Unchanged) => return Err(LinkError::NothingToIndex.into()),
            Err(error) => return Err(failed(error)),
        };
        let plan = without_scratch(plan, &directory);
        let (output, modules, plan) = (plan.output.clone(), of_plan(&plan), plan.without_imports());
        let notes = vec!["its thin link was performed, and nothing else".to_owned()];
        let named = Self::without_runs(&output);
        Ok(Self { modules, notes, plan: Some(plan), ..named })
    }
}

/// What the linker said of a thin link that failed.
fn failed(error: IndexError) -> SeenError {
    if let IndexError::ThinLink(distlto_planner::thin_link::ThinLinkError::Failed { output, .. }) = &error {
        distlto_prepare::message::show(&output.stderr);
    }
    LinkError::from(error).into()
}

/// The plan with names for members of archives and for compiled sources that do not go with the directory.
fn without_scratch(mut plan: LinkPlan, directory: &str) -> LinkPlan {
    let rename = |path: &mut camino::Utf8PathBuf| {
        if let Some(inside) = state::made_of(path.as_str(), directory) {
            *path = inside.into();
        }
    };
    for module in &mut plan.modules {
        rename(&mut module.id);
        module.imports.iter_mut().for_each(rename);
    }
    plan.link.inputs.iter_mut().for_each(rename);
    plan
}
