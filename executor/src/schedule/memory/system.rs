//! The system's data on memory: available memory, limits of control groups, pressure, and kills for lack of memory.
//!
//! Linux: `/proc/meminfo`, the files of control groups of both versions (Documentation/admin-guide/cgroup-v2.rst,
//! cgroup-v1/memory.rst), pressure stall information (Documentation/accounting/psi.rst). A missing or malformed file
//! counts as no data; so does any other system. Independent of budgets.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// From here on a number is the first version's way to say "max": all that a signed word holds, in whole pages.
const NO_LIMIT: u64 = 1 << 62;

/// The files of one system.
#[derive(Debug, Clone)]
pub struct System {
    proc: PathBuf,
    groups: Vec<Group>,
}

/// The directories of our control group in one hierarchy, innermost first, up to the root that is mounted.
#[derive(Debug, Clone)]
struct Group {
    directories: Vec<PathBuf>,
    names: &'static GroupFiles,
}

/// The file names of one version of control groups.
#[derive(Debug)]
struct GroupFiles {
    limits: &'static [&'static str],
    used: &'static str,
    /// In `memory.stat`: pages that the system takes back before it kills.
    inactive: &'static str,
    kills: &'static str,
}

const SECOND: GroupFiles = GroupFiles {
    limits: &["memory.max", "memory.high"],
    used: "memory.current",
    inactive: "inactive_file",
    kills: "memory.events",
};
const FIRST: GroupFiles = GroupFiles {
    limits: &["memory.limit_in_bytes"],
    used: "memory.usage_in_bytes",
    inactive: "total_inactive_file",
    kills: "memory.oom_control",
};

impl System {
    /// The one that this process runs on.
    pub fn real() -> Self {
        Self::at(Path::new("/"))
    }

    /// A system with its `/proc` and the mount points of its control groups below `root`.
    pub fn at(root: &Path) -> Self {
        let proc = root.join("proc");
        let own = fs::read_to_string(proc.join("self/cgroup")).unwrap_or_default();
        let mounts = fs::read_to_string(proc.join("self/mountinfo")).unwrap_or_default();
        let groups = own.lines().filter_map(|line| group(root, line, &mounts)).collect();
        Self { proc, groups }
    }

    /// Bytes that can be had without swapping and without exceeding a limit.
    pub fn available(&self) -> Option<u64> {
        let free = fs::read_to_string(self.proc.join("meminfo"))
            .ok()
            .and_then(|text| value(&text, "MemAvailable:")?.checked_mul(1024));
        let left = self.groups.iter().flat_map(Group::left);
        free.into_iter().chain(left).min()
    }

    /// The bytes that control groups allow us at most; `None` where they set no limit.
    pub fn limit(&self) -> Option<u64> {
        let of_group = |group: &Group| group.directories.iter().filter_map(|place| group.limit(place)).min();
        self.groups.iter().filter_map(of_group).min().filter(|&limit| limit < NO_LIMIT)
    }

    /// Returns the total time of waiting for memory since the start of the system, or of our control group.
    pub fn stalled(&self) -> Option<Duration> {
        let own = self.groups.iter().filter_map(|group| group.directories.first());
        let files = own.map(|group| group.join("memory.pressure")).chain([self.proc.join("pressure/memory")]);
        let text =
            files.filter_map(|file| fs::read_to_string(file).ok()).find(|text| text.starts_with("some "))?;
        let total = text.lines().next()?.split(' ').find_map(|word| word.strip_prefix("total="))?;
        Some(Duration::from_micros(total.parse().ok()?))
    }

    /// Returns the number of processes killed for lack of memory: in our control group where it counts, else in the
    /// system.
    pub fn kills(&self) -> Option<u64> {
        let own = self.groups.iter().find_map(|group| {
            let text = fs::read_to_string(group.directories.first()?.join(group.names.kills)).ok()?;
            value(&text, "oom_kill")
        });
        own.or_else(|| value(&fs::read_to_string(self.proc.join("vmstat")).ok()?, "oom_kill"))
    }
}

impl Group {
    /// The lower of the limits in one directory: "max" is no number.
    fn limit(&self, directory: &Path) -> Option<u64> {
        self.names.limits.iter().filter_map(|name| number(&directory.join(name))).min()
    }

    /// Returns the rest that each limit on the way to the root leaves.
    fn left(&self) -> impl Iterator<Item = u64> + '_ {
        self.directories.iter().filter_map(|directory| {
            // Without a limit nothing else is read.
            let limit = self.limit(directory)?;
            let used = number(&directory.join(self.names.used))?;
            let stat = fs::read_to_string(directory.join("memory.stat")).unwrap_or_default();
            let inactive = value(&stat, self.names.inactive).unwrap_or(0);
            Some(limit.saturating_sub(used.saturating_sub(inactive)))
        })
    }
}

/// Our group in the hierarchy that a line of `/proc/self/cgroup` names: `0::/path` or `4:memory:/path`.
fn group(root: &Path, line: &str, mounts: &str) -> Option<Group> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let names = match controllers {
        "" => &SECOND,
        _ if controllers.split(',').any(|name| name == "memory") => &FIRST,
        _ => return None,
    };
    let is_second = controllers.is_empty();
    let (below, point) = mounts.lines().find_map(|mount| {
        let (head, tail) = mount.split_once(" - ")?;
        let mut tail = tail.split(' ');
        let (kind, options) = (tail.next()?, tail.nth(1)?);
        let fits = match is_second {
            true => kind == "cgroup2",
            false => kind == "cgroup" && options.split(',').any(|option| option == "memory"),
        };
        let mut head = head.split(' ').skip(3);
        let (below, point) = (head.next()?, head.next()?);
        fits.then(|| (unescaped(below), unescaped(point)))
    })?;
    let top = root.join(Path::new(&point).strip_prefix("/").ok()?);
    // A group outside the mounted part (a namespace that was left) has limits that we cannot see.
    let own = Path::new(path).strip_prefix(&below).unwrap_or(Path::new(""));
    let innermost = top.join(own);
    let directories = innermost
        .ancestors()
        .take_while(|directory| directory.starts_with(&top))
        .map(Path::to_owned)
        .collect();
    Some(Group { directories, names })
}

/// mountinfo writes blanks, tabs, line ends and backslashes as octal numbers.
fn unescaped(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// The number that a file holds.
fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// The number after a name at the beginning of a line.
fn value(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some(name)).then(|| words.next()?.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_ALONE: &[(&str, &str)] = &[
        ("proc/meminfo", "MemTotal:  16000000 kB\nMemFree: 1 kB\nMemAvailable:    8000000 kB\n"),
        ("proc/self/cgroup", "0::/build.slice/job\n"),
        (
            "proc/self/mountinfo",
            "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
        ),
        ("sys/fs/cgroup/build.slice/job/memory.max", "max\n"),
        ("sys/fs/cgroup/build.slice/job/memory.events", "low 0\nhigh 0\nmax 3\noom 2\noom_kill 2\n"),
        (
            "sys/fs/cgroup/build.slice/job/memory.pressure",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n",
        ),
        ("sys/fs/cgroup/build.slice/memory.max", "1000000\n"),
        ("sys/fs/cgroup/build.slice/memory.high", "900000\n"),
        ("sys/fs/cgroup/build.slice/memory.current", "500000\n"),
        ("sys/fs/cgroup/build.slice/memory.stat", "anon 100000\nfile 400000\ninactive_file 300000\n"),
    ];

    /// Both versions side by side; the container's own group is mounted.
    const FIRST_IN_A_CONTAINER: &[(&str, &str)] = &[
        ("proc/meminfo", "MemAvailable:    8000000 kB\n"),
        ("proc/vmstat", "nr_free_pages 1\noom_kill 7\n"),
        ("proc/pressure/memory", "some avg10=0.00 avg60=0.02 avg300=0.30 total=7844000\nfull total=1\n"),
        ("proc/self/cgroup", "4:cpu,memory:/docker/ab\n1:name=systemd:/\n0::/\n"),
        (
            "proc/self/mountinfo",
            "35 31 0:32 /docker/ab /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,cpu,memory\n41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
        ),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "4000000\n"),
        ("sys/fs/cgroup/memory/memory.usage_in_bytes", "3000000\n"),
        ("sys/fs/cgroup/memory/memory.stat", "inactive_file 0\ntotal_inactive_file 500000\n"),
    ];

    fn system(files: &[(&str, &str)]) -> (tempfile::TempDir, System) {
        let place = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let file = place.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }
        let system = System::at(place.path());
        (place, system)
    }

    #[test]
    fn a_group_further_up_limits_too() {
        let (_place, system) = system(SECOND_ALONE);
        assert_eq!(system.available(), Some(900_000 - (500_000 - 300_000)));
        assert_eq!(system.limit(), Some(900_000));
        assert_eq!(system.kills(), Some(2));
        assert_eq!(system.stalled(), Some(Duration::from_micros(1500)));
    }

    #[test]
    fn the_first_version_within_a_container() {
        let (_place, system) = system(FIRST_IN_A_CONTAINER);
        assert_eq!(system.available(), Some(4_000_000 - 2_500_000));
        assert_eq!(system.kills(), Some(7));
        assert_eq!(system.stalled(), Some(Duration::from_micros(7_844_000)));
    }

    #[test]
    fn no_limit_leaves_what_the_system_has() {
        let (_place, system) = system(&SECOND_ALONE[..4]);
        assert_eq!((system.available(), system.limit()), (Some(8_000_000 << 10), None));
        assert_eq!((system.kills(), system.stalled()), (None, None));
    }

    #[test]
    fn a_system_without_these_files_tells_nothing() {
        let (_place, system) = system(&[]);
        assert_eq!((system.available(), system.kills(), system.stalled()), (None, None, None));
        let torn = [
            ("proc/meminfo", "MemAvailable:"),
            ("proc/pressure/memory", "some avg10"),
            ("proc/self/cgroup", "0:"),
        ];
        let (_place, system) = self::system(&torn);
        assert_eq!((system.available(), system.kills(), system.stalled()), (None, None, None));
    }
}
