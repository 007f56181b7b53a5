//! The text of a plan: which other objects and archives the backend of one module needs.
//!
//! Pure. Keys are sorted, as in the stock tools. `archive_member_imports` is ours, where members are imported: the
//! exact members, for rules that need not take an archive as a whole.

use super::import_list::ImportList;
use super::json_text::{list, number, string};
use super::modules::LinkedModules;

/// The plan of an object that is native already.
pub const NATIVE: &[u8] = b"{\"is_bc\": false}";

/// The plan of a bitcode object; `bitcode_file` is where the linker has written its shard.
pub fn of_object(
    out: &mut Vec<u8>,
    imports: &ImportList,
    modules: &LinkedModules<'_>,
    index: u64,
    path: &str,
    bitcode_file: &str,
) {
    common(out, imports, modules, bitcode_file);
    out.extend_from_slice(b", \"index\": ");
    number(out, index);
    out.extend_from_slice(b", \"is_bc\": true, \"path\": ");
    string(out, path);
    out.push(b'}');
}

/// What an archive's plan says of a bitcode member; `bitcode_file` is where its shard is.
pub fn of_member(
    out: &mut Vec<u8>,
    imports: &ImportList,
    modules: &LinkedModules<'_>,
    path: &str,
    bitcode_file: &str,
) {
    common(out, imports, modules, bitcode_file);
    out.extend_from_slice(b", \"is_bc\": true, \"path\": ");
    string(out, path);
    out.push(b'}');
}

/// What an archive's plan says of a native member.
pub fn of_native_member(out: &mut Vec<u8>, path: &str) {
    out.extend_from_slice(b"{\"is_bc\": false, \"path\": ");
    string(out, path);
    out.push(b'}');
}

/// The plan of an archive, given what it says of each member.
pub fn of_archive<'e>(out: &mut Vec<u8>, base: &str, members: impl IntoIterator<Item = &'e [u8]>) {
    out.extend_from_slice(b"{\"base_dir\": ");
    string(out, base);
    out.extend_from_slice(b", \"objects\": ");
    list(out, members, |out, member| out.extend_from_slice(member));
    out.push(b'}');
}

fn common(out: &mut Vec<u8>, imports: &ImportList, modules: &LinkedModules<'_>, bitcode_file: &str) {
    out.extend_from_slice(b"{\"archive_imports\": ");
    list(out, &imports.archives, |out, &index| number(out, index));
    if !imports.members.is_empty() {
        out.extend_from_slice(b", \"archive_member_imports\": {");
        for (at, of_archive) in imports.members.chunk_by(|one, other| one.0 == other.0).enumerate() {
            out.extend_from_slice(if at == 0 { b"\"" } else { b", \"" });
            number(out, of_archive[0].0);
            out.extend_from_slice(b"\": ");
            list(out, of_archive, |out, &(_, slot)| string(out, modules.slots[slot].path));
        }
        out.push(b'}');
    }
    out.extend_from_slice(b", \"bitcode_file\": ");
    string(out, bitcode_file);
    out.extend_from_slice(b", \"imports\": ");
    list(out, &imports.objects, |out, &index| number(out, index));
}

/// The plan of the final link: which objects' backends it needs, and which objects are linked as they are.
pub fn of_link(
    indexed: impl IntoIterator<Item = u64>,
    non_lto_objects: impl IntoIterator<Item = u64>,
) -> Vec<u8> {
    let mut out = b"{\n  \"index\": ".to_vec();
    numbers(&mut out, indexed);
    out.extend_from_slice(b",\n  \"non_lto_objects\": ");
    numbers(&mut out, non_lto_objects);
    out.extend_from_slice(b"\n}");
    out
}

/// An object with a 1 for each number, in numeric order, indented below a key.
fn numbers(out: &mut Vec<u8>, found: impl IntoIterator<Item = u64>) {
    let mut found: Vec<u64> = found.into_iter().collect();
    found.sort_unstable();
    found.dedup();
    if found.is_empty() {
        out.extend_from_slice(b"{}");
        return;
    }
    for (at, &index) in found.iter().enumerate() {
        out.extend_from_slice(if at == 0 { b"{\n    \"" } else { b",\n    \"" });
        number(out, index);
        out.extend_from_slice(b"\": 1");
    }
    out.extend_from_slice(b"\n  }");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_plan_is_in_numeric_order() {
        let text = |indexed: &[u64], native: &[u64]| {
            String::from_utf8(of_link(indexed.iter().copied(), native.iter().copied())).expect("ASCII")
        };
        // What `json.dump(..., indent=2, sort_keys=True)` prints for the same.
        assert_eq!(
            text(&[10, 9, 10], &[]),
            "{\n  \"index\": {\n    \"9\": 1,\n    \"10\": 1\n  },\n  \"non_lto_objects\": {}\n}"
        );
    }
}
