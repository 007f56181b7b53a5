//! The result of a comparison of links, in sentences and a table.
//!
//! A function of the verdict.

use std::fmt;

use distlto_prepare::text::printable;
use distlto_record::progress::text::{counted, human_us};

use super::Verdict;
use crate::verify::cause::DifferenceCause;

/// How many items of a kind are printed.
const SHOWN: usize = 20;

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let output = printable(&self.output);
        let is_known = self.differing().any(|object| object.cause.is_some()) || self.program_cause.is_some();
        match (self.unknown, self.same_status, self.same_program) {
            (0, true, true) if self.ways.iter().take(2).all(|way| way.exit_code != 0) => {
                writeln!(out, "{output}: lld alone fails, and so does distlto")?;
            }
            (0, true, true) if self.differing().next().is_none() => {
                writeln!(out, "{output}: distlto --exact-names makes lld's own program, byte for byte")?;
            }
            (0, ..) => writeln!(out, "{output}: all differences from lld's own program are explained")?,
            (unknown, ..) => {
                let others = if is_known { " (others are explained)" } else { "" };
                writeln!(out, "{output}: {} without a known cause{others}", counted(unknown, "difference"))?;
            }
        }
        self.statuses(out)?;
        self.objects(out)?;
        self.program(out)?;
        self.table(out)
    }
}

impl Verdict {
    fn statuses(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for way in &self.ways {
            let wall = human_us(way.wall_us);
            match way.program_bytes {
                Some(bytes) if way.exit_code == 0 => writeln!(out, "{}: {bytes} bytes in {wall}", way.name)?,
                _ => writeln!(out, "{}: exit code {} after {wall}", way.name, way.exit_code)?,
            }
            if way.exit_code != 0 {
                for line in way.said.lines().filter(is_message).take(SHOWN) {
                    writeln!(out, "    {}", printable(line))?;
                }
            }
        }
        Ok(())
    }

    fn objects(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(objects) = &self.objects else {
            return writeln!(
                out,
                "objects: lld alone has another number of modules than distlto, so none are compared"
            );
        };
        if objects.is_empty() {
            return Ok(());
        }
        let same = objects.iter().filter(|object| object.identical).count();
        writeln!(out, "objects: {same} of {} are identical", objects.len())?;
        for cause in [Some(DifferenceCause::Place), Some(DifferenceCause::SplitNames), None] {
            let count = self.differing().filter(|object| object.cause == cause).count();
            let why = cause.map_or_else(|| "the cause is not known".to_owned(), |cause| cause.to_string());
            if count > 0 {
                writeln!(out, "  {count}: {why}")?;
            }
        }
        Ok(())
    }

    fn program(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(difference) = &self.program_difference else { return Ok(()) };
        let symbols = difference.symbols_of_lld.len() + difference.symbols_of_distlto.len();
        let sections = counted(difference.sections.len(), "section");
        writeln!(out, "program: {sections} and {} differ", counted(symbols, "symbol"))?;
        match self.program_cause {
            Some(cause) => writeln!(out, "  {cause}"),
            None => writeln!(out, "  the cause is not known"),
        }
    }

    /// Writes the differences, item by item.
    fn table(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.differing().next().is_none() && self.program_difference.is_none() {
            return Ok(());
        }
        writeln!(out, "\n{:>10} {:>10} {:>9}  what", "lld", "distlto", "differing")?;
        let size = |size: Option<u64>| size.map_or_else(|| "none".to_owned(), |size| size.to_string());
        let program = self.program_difference.iter().map(|difference| (self.output.as_str(), difference));
        let objects =
            self.differing().filter_map(|one| Some((one.module.as_str(), one.difference.as_ref()?)));
        let differences = || program.clone().chain(objects.clone());
        let rows = differences()
            .flat_map(|(file, difference)| difference.sections.iter().map(move |one| (file, one)));
        for (file, one) in rows.take(SHOWN) {
            let (lld, distlto) = (size(one.lld_bytes), size(one.distlto_bytes));
            let what = format!("{file}: {}", one.name);
            writeln!(out, "{lld:>10} {distlto:>10} {:>9}  {}", one.differing_bytes, printable(&what))?;
        }
        let symbols = differences().flat_map(|(file, difference)| {
            let lld = difference.symbols_of_lld.iter().map(move |name| (file, "lld", name));
            lld.chain(difference.symbols_of_distlto.iter().map(move |name| (file, "distlto", name)))
        });
        for (file, who, name) in symbols.take(SHOWN) {
            writeln!(out, "only by {who}: {}", printable(&format!("{file}: {name}")))?;
        }
        let rows: usize = differences().map(|(_, one)| one.rows()).sum();
        if rows > SHOWN { writeln!(out, "(--json has all)") } else { Ok(()) }
    }
}

/// Whether a line is a message, and not the echo of a command or of progress.
fn is_message(line: &&str) -> bool {
    !["+ ", "[", "distlto: ", "  "].iter().any(|words| line.starts_with(words))
}
