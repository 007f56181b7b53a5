//! The map of a link's modules: directories as areas, modules within, each as large as its cost.
//!
//! A squarified treemap (Bruls, Huizing, van Wijk 2000): areas go into rows along the shorter side. A row ends where
//! the next area would make its parts more oblong. Pure; the page only draws.

use std::collections::BTreeMap;

use crate::inspect::ModuleFacts;

/// The deepest nesting of directories; deeper ones are part of a name.
const DEEPEST: usize = 24;
/// How much wider than high the map is.
const WIDTH: f64 = 1.8;
/// Of the average, the least that a module takes, so that there is none that cannot be hit.
const LEAST: f64 = 0.15;

/// Left, top, right, bottom, of 65535.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Area(pub(super) [u16; 4]);

/// A directory, or an archive with members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TreemapDirectory {
    /// Its path.
    pub(super) name: String,
    /// In how many others it is.
    pub(super) depth: usize,
    /// Where it lies.
    pub(super) area: Area,
}

/// Where everything lies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Map {
    /// In the order of the link.
    pub(super) modules: Vec<Area>,
    /// Outer ones first.
    pub(super) directories: Vec<TreemapDirectory>,
    /// Whether areas are times, or else instructions.
    pub(super) by_time: bool,
}

#[derive(Debug, Clone, Copy)]
struct Rectangle {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Rectangle {
    fn area(self) -> Area {
        // Neighbours share an edge, so their rounded edges are one, too.
        let unit = |value: f64, whole: f64| (value / whole * 65535.0).round().clamp(0.0, 65535.0) as u16;
        Area([
            unit(self.x, WIDTH),
            unit(self.y, 1.0),
            unit(self.x + self.width, WIDTH),
            unit(self.y + self.height, 1.0),
        ])
    }
}

#[derive(Debug, Default)]
struct Folder<'m> {
    path: &'m str,
    folders: BTreeMap<&'m str, usize>,
    modules: Vec<usize>,
    weight: f64,
}

/// The map of these modules.
pub(super) fn of(modules: &[ModuleFacts]) -> Map {
    let by_time = modules.iter().any(|module| module.cpu_us.is_some());
    let weights = weights(modules, by_time);
    let mut folders = vec![Folder::default()];
    for (number, module) in modules.iter().enumerate() {
        let mut at = 0;
        folders[0].weight += weights[number];
        for end in ends(&module.label) {
            let (path, next) = (&module.label[..end], folders.len());
            at = *folders[at].folders.entry(path).or_insert(next);
            if at == next {
                folders.push(Folder { path, ..Folder::default() });
            }
            folders[at].weight += weights[number];
        }
        folders[at].modules.push(number);
    }
    let mut map = Map { modules: vec![Area::default(); modules.len()], directories: Vec::new(), by_time };
    let whole = Rectangle { x: 0.0, y: 0.0, width: WIDTH, height: 1.0 };
    let mut open = vec![(0, 0, whole)];
    while let Some((at, depth, rectangle)) = open.pop() {
        let folder = &folders[at];
        // A directory that holds only one other directory is merged with it.
        let is_one = folder.modules.is_empty() && folder.folders.len() == 1;
        if at > 0 && !is_one {
            map.directories.push(TreemapDirectory {
                name: folder.path.to_owned(),
                depth,
                area: rectangle.area(),
            });
        }
        let inner = depth + usize::from(at > 0 && !is_one);
        let parts = folder.folders.values().map(|&folder| (folders[folder].weight, Err(folder)));
        let parts = parts.chain(folder.modules.iter().map(|&module| (weights[module], Ok(module))));
        let mut parts: Vec<(f64, Result<usize, usize>)> = parts.collect();
        parts.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let sizes: Vec<f64> = parts.iter().map(|(weight, _)| *weight).collect();
        for ((_, part), rectangle) in parts.into_iter().zip(squarified(&sizes, rectangle)) {
            match part {
                Ok(module) => map.modules[module] = rectangle.area(),
                Err(folder) => open.push((folder, inner, rectangle)),
            }
        }
    }
    map.directories.sort_by_key(|directory| directory.depth);
    map
}

fn weights(modules: &[ModuleFacts], by_time: bool) -> Vec<f64> {
    let weight = |module: &ModuleFacts| match by_time {
        true => module.cpu_us.unwrap_or(0) as f64,
        false => module.own_instructions as f64 + module.imported_instructions as f64,
    };
    let sum: f64 = modules.iter().map(weight).sum();
    let least = (sum / modules.len().max(1) as f64 * LEAST).max(1.0);
    modules.iter().map(|module| weight(module).max(least)).collect()
}

/// Where the directories of a module end in its name: at each `/`, and before a member of an archive.
fn ends(label: &str) -> impl Iterator<Item = usize> + '_ {
    let archive = label.strip_suffix(')').and_then(|rest| rest.find('(')).filter(|&at| at > 0);
    let path = &label[..archive.unwrap_or(label.len())];
    let slashes = path.match_indices('/').map(|(at, _)| at).filter(|&at| at > 0);
    slashes.take(DEEPEST).chain(archive)
}

/// Divides a rectangle; sizes are positive, the largest first.
fn squarified(sizes: &[f64], mut rest: Rectangle) -> Vec<Rectangle> {
    let mut found = Vec::with_capacity(sizes.len());
    let mut left: f64 = sizes.iter().sum();
    let mut start = 0;
    while start < sizes.len() {
        let side = rest.width.min(rest.height);
        let unit = rest.width * rest.height / left;
        let (mut end, mut sum) = (start + 1, sizes[start]);
        let oblong = |sum: f64, smallest: f64| {
            let (sum, square) = (sum * unit, side * side);
            (square * sizes[start] * unit / (sum * sum)).max(sum * sum / (square * smallest * unit))
        };
        while end < sizes.len() && oblong(sum + sizes[end], sizes[end]) <= oblong(sum, sizes[end - 1]) {
            sum += sizes[end];
            end += 1;
        }
        row(&sizes[start..end], sum, left, &mut rest, &mut found);
        left -= sum;
        start = end;
    }
    found
}

/// Lays parts along the shorter side, and leaves the rest.
fn row(sizes: &[f64], sum: f64, left: f64, rest: &mut Rectangle, found: &mut Vec<Rectangle>) {
    let share = (sum / left).min(1.0);
    let is_wide = rest.width >= rest.height;
    let mut at = 0.0;
    for size in sizes {
        let (begin, part) = (at / sum, size / sum);
        at += size;
        found.push(match is_wide {
            true => Rectangle {
                y: rest.y + rest.height * begin,
                width: rest.width * share,
                height: rest.height * part,
                ..*rest
            },
            false => Rectangle {
                x: rest.x + rest.width * begin,
                width: rest.width * part,
                height: rest.height * share,
                ..*rest
            },
        });
    }
    if is_wide {
        rest.x += rest.width * share;
        rest.width *= 1.0 - share;
    } else {
        rest.y += rest.height * share;
        rest.height *= 1.0 - share;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(label: &str, time: u64) -> ModuleFacts {
        ModuleFacts {
            label: label.to_owned(),
            own_instructions: 1,
            imported_instructions: 0,
            imports: Vec::new(),
            importers: 0,
            cpu_us: Some(time),
            took_us: Some(time),
            peak_memory: None,
        }
    }

    fn size(area: Area) -> f64 {
        let [x0, y0, x1, y1] = area.0.map(f64::from);
        (x1 - x0) * (y1 - y0) / 65535.0 / 65535.0
    }

    #[test]
    fn areas_are_shares_of_the_time_and_lie_in_their_directories() {
        let names = ["src/a.o", "src/b.o", "src/lib/x.a(c.o)", "src/lib/x.a(d.o)", "main.o"];
        let modules: Vec<ModuleFacts> =
            names.iter().zip(1..).map(|(name, time)| module(name, time * 1000)).collect();
        let map = of(&modules);
        for (number, area) in map.modules.iter().enumerate() {
            let share = (number + 1) as f64 / 15.0;
            assert!((size(*area) - share).abs() < 0.001, "{number}: {}", size(*area));
        }
        let names: Vec<&str> = map.directories.iter().map(|directory| directory.name.as_str()).collect();
        assert_eq!(names, ["src", "src/lib/x.a"], "a directory with one entry is not told apart");
        let [x0, y0, x1, y1] = map.directories[1].area.0;
        let [a0, b0, a1, b1] = map.modules[2].0;
        assert!(x0 <= a0 && a1 <= x1 && y0 <= b0 && b1 <= y1, "{map:?}");
    }

    #[test]
    fn odd_names_and_times_have_a_place() {
        let deep = "/".repeat(100_000);
        let modules = ["", "/", "(", "()", ")", "a()", &deep, "a//b"].map(|name| module(name, 0));
        let map = of(&modules);
        let whole: f64 = map.modules.iter().copied().map(size).sum();
        assert!((whole - 1.0).abs() < 0.001, "{whole}");
        assert_eq!(of(&[]), Map::default());
        let mut huge = [module("a", u64::MAX), module("b", 0)];
        assert!(of(&huge).modules.iter().all(|area| size(*area) > 0.0));
        huge.iter_mut().for_each(|module| module.cpu_us = None);
        assert!(!of(&huge).by_time);
    }
}
