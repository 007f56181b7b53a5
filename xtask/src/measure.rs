//! Wall and processor time of a command with all its descendants, and medians.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::shell::shown;

/// What a command cost, in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cost {
    /// Time that passed.
    pub wall: f64,
    /// User and system time of the command and of every descendant that was waited for.
    pub cpu: f64,
}

impl Cost {
    /// Both parts divided by another cost's wall and processor time.
    pub fn relative_to(self, other: Self) -> Self {
        Self { wall: self.wall / other.wall, cpu: self.cpu / other.cpu }
    }
}

/// Runs a command that must succeed and measures it.
pub fn measure(command: &mut Command) -> Result<Cost> {
    let before = children_cpu()?;
    let start = Instant::now();
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {}", shown(command)))?;
    let wall = start.elapsed().as_secs_f64();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} from {}\n{said}", output.status, shown(command));
    }
    Ok(Cost { wall, cpu: children_cpu()? - before })
}

/// Seconds of processor time of all children waited for (`cutime` and `cstime` of proc(5), in hundredths).
fn children_cpu() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(") ").context("unexpected /proc/self/stat")?;
    let ticks: f64 = fields.split(' ').skip(13).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    Ok(ticks / 100.0)
}

/// The median of each part.
pub fn median(costs: &[Cost]) -> Cost {
    let middle = |part: fn(&Cost) -> f64| {
        let mut values: Vec<f64> = costs.iter().map(part).collect();
        values.sort_by(f64::total_cmp);
        let half = values.len() / 2;
        if values.len() % 2 == 1 { values[half] } else { (values[half - 1] + values[half]) / 2.0 }
    };
    if costs.is_empty() {
        return Cost::default();
    }
    Cost { wall: middle(|cost| cost.wall), cpu: middle(|cost| cost.cpu) }
}
