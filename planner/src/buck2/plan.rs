//! Plans: the other objects and archives that the backend of one module needs.
//!
//! Pure. Fields are sorted, as in the stock tools.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

use super::import_list::ImportList;
use super::json_text::append;

/// The plan of an object that is native already.
pub const NATIVE: &[u8] = b"{\"is_bc\": false}";

/// Of a bitcode object, or of a bitcode member, which has no index.
#[derive(Serialize)]
struct BackendJson<'a> {
    archive_imports: &'a [u64],
    bitcode_file: &'a str,
    imports: &'a [u64],
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u64>,
    is_bc: bool,
    path: &'a str,
}

#[derive(Serialize)]
struct NativeMemberJson<'a> {
    is_bc: bool,
    path: &'a str,
}

#[derive(Serialize)]
struct ArchiveJson<'a> {
    base_dir: &'a str,
    objects: Vec<&'a RawValue>,
}

/// The plan of the final link for gnu.
#[derive(Serialize)]
struct LinkJson {
    index: Numbers,
    non_lto_objects: Numbers,
}

/// Each number with a 1, in numeric order.
pub type Numbers = BTreeMap<u64, u8>;

/// The plan of a bitcode object; `bitcode_file` is where the linker has written its shard.
pub fn of_object(out: &mut Vec<u8>, imports: &ImportList, index: u64, path: &str, bitcode_file: &str) {
    append(out, &backend(imports, Some(index), path, bitcode_file));
}

/// Returns an archive plan's entry for a bitcode member; `bitcode_file` is the path of its shard.
pub fn of_member(imports: &ImportList, path: &str, bitcode_file: &str) -> Box<RawValue> {
    raw(&backend(imports, None, path, bitcode_file))
}

/// Returns an archive plan's entry for a native member.
pub fn of_native_member(path: &str) -> Box<RawValue> {
    raw(&NativeMemberJson { is_bc: false, path })
}

/// Returns the plan of an archive from the entries of its members.
pub fn of_archive<'e>(base: &'e str, members: impl IntoIterator<Item = &'e RawValue>) -> Vec<u8> {
    let mut out = Vec::new();
    append(&mut out, &ArchiveJson { base_dir: base, objects: members.into_iter().collect() });
    out
}

fn raw(plan: &impl Serialize) -> Box<RawValue> {
    let mut out = Vec::new();
    append(&mut out, plan);
    let text = String::from_utf8(out).expect("what is not ASCII is escaped");
    RawValue::from_string(text).expect("it was just written")
}

fn backend<'a>(
    imports: &'a ImportList,
    index: Option<u64>,
    path: &'a str,
    bitcode_file: &'a str,
) -> BackendJson<'a> {
    BackendJson {
        archive_imports: &imports.archives,
        bitcode_file,
        imports: &imports.objects,
        index,
        is_bc: true,
        path,
    }
}

/// The plan of the final link: which objects' backends it needs, and which objects are linked as they are.
pub fn of_link(
    indexed: impl IntoIterator<Item = u64>,
    non_lto_objects: impl IntoIterator<Item = u64>,
) -> Vec<u8> {
    let plan = LinkJson { index: numbers(indexed), non_lto_objects: numbers(non_lto_objects) };
    serde_json::to_vec_pretty(&plan).expect("numbers have a JSON form")
}

/// Numbers as a plan has them.
pub fn numbers(found: impl IntoIterator<Item = u64>) -> Numbers {
    found.into_iter().map(|index| (index, 1)).collect()
}
