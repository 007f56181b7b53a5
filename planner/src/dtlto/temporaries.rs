//! The names that lld gives its temporaries in a link with a distributor, and the process number in them.
//!
//! Pure. lld 22 names them (`llvm/lib/LTO/LTO.cpp`, `llvm/lib/DTLTO/DTLTO.cpp`, and recorded runs): the job file
//! `<output>.<PID>.dist-file.json`; an object `<stem>.<task>.<PID>.native.o` and its shard, the same with
//! `.thinlto.bc`; a module that was unpacked `<file>.<number>.<PID in hexadecimal>.o`.

const JOB_FILE: &str = ".dist-file.json";
const OBJECT: &str = ".native.o";
const SHARD: &str = ".native.o.thinlto.bc";

/// The process that a job file of this name is of.
pub fn process_of(job_file: &str) -> Option<u32> {
    let (_, number) = job_file.strip_suffix(JOB_FILE)?.rsplit_once('.')?;
    decimal(number)
}

/// Whether some lld gives the path to a shard of a link in which it has a distributor.
pub fn is_shard(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(SHARD)
        .and_then(|head| head.rsplit_once('.'))
        .is_some_and(|(head, number)| decimal(number).is_some() && ends_in_number(head))
}

/// Whether lld of this process gives the name to a temporary.
pub fn is_temporary(name: &str, process: u32) -> bool {
    let job_file = process_of(name) == Some(process);
    job_file || without_process(name, process).is_some()
}

/// The name of an object, shard or unpacked module without the process number in it; `None` for any other name.
pub fn without_process(name: &str, process: u32) -> Option<String> {
    for suffix in [SHARD, OBJECT] {
        if let Some(head) = name.strip_suffix(suffix) {
            let head = head.strip_suffix(&format!(".{process}")).filter(|head| ends_in_number(head))?;
            // The stem may be that of an unpacked module.
            let unpacked = head
                .rsplit_once('.')
                .and_then(|(stem, task)| Some(format!("{}.{task}", without_hexadecimal(stem, process)?)));
            return Some(format!("{}{suffix}", unpacked.as_deref().unwrap_or(head)));
        }
    }
    Some(format!("{}.o", without_hexadecimal(name.strip_suffix(".o")?, process)?))
}

/// Removes the process number from the last component of a path, if that names an object, shard or unpacked module.
pub fn without_process_in_path(path: &str, process: Option<u32>) -> String {
    let (head, name) = path.rsplit_once('/').map_or(("", path), |(head, name)| (head, name));
    let slash = if head.len() < path.len() - name.len() { "/" } else { "" };
    match process.and_then(|process| without_process(name, process)) {
        Some(name) => format!("{head}{slash}{name}"),
        None => path.to_owned(),
    }
}

/// The name of the file, or of the archive's member, that lld of this process has unpacked into a file of this name.
pub fn unpacked(name: &str, process: u32) -> Option<&str> {
    let numbered = without_hexadecimal(name.strip_suffix(".o")?, process)?;
    numbered.rsplit_once('.').map(|(stem, _)| stem)
}

fn without_hexadecimal(stem: &str, process: u32) -> Option<&str> {
    stem.strip_suffix(&format!(".{process:X}")).filter(|head| ends_in_number(head))
}

/// Whether a name ends in a point and decimal digits, after something.
fn ends_in_number(head: &str) -> bool {
    head.rsplit_once('.').is_some_and(|(stem, number)| !stem.is_empty() && decimal(number).is_some())
}

fn decimal(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_users_are_no_temporaries() {
        for name in [
            "m.o",
            "m.7852.o",
            "7852.o",
            "1.7852.o",
            "m.x.7852.o",
            "m.1.7852.obj",
            "m.1.native.o",
            "m.30802.native.o",
            ".1.30802.native.o",
            "m.1.30802.native.o.bc",
            "m.1.7852.thinlto.bc",
            "dist-file.json",
            "30802.dist-file.json",
            "",
        ] {
            assert!(!is_temporary(name, 30802), "{name}");
        }
        assert_eq!(process_of("job.json"), None);
        assert_eq!(process_of("a.99999999999.dist-file.json"), None);
    }
}
