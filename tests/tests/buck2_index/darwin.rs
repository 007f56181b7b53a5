//! The rule for `darwin`, on stock ld64.lld: plans say what was loaded, and where it stands.

use std::process::Command;

use anyhow::{Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::succeed;
use distlto_tests::toolchain::{NEWEST, Toolchain};
use serde_json::{Value, json};

const TARGET: &str = "--target=arm64-apple-macos11";
const SYSTEM: &str = "--- !tapi-tbd\ntbd-version: 4\ntargets: [ arm64-macos ]\n\
    install-name: /usr/lib/libSystem.B.dylib\nexports:\n  - targets: [ arm64-macos ]\n    symbols: [ dyld_stub_binder ]\n...\n";

/// A folder with a link of four objects, and the planner's command for it with more options.
fn rule(name: &str, options: &[&str]) -> Result<(Folder, Command)> {
    let folder = Folder::create(Toolchain { version: NEWEST }, &format!("buck2-index/{name}"))?;
    let clang = folder.toolchain.tool("clang")?;
    let mut records = Vec::new();
    for (index, (name, source, lto)) in [
        ("main", "int f(int); int main(void) { return f(1); }", true),
        ("unused", "int unused(int x) { return x + 2; }", true),
        ("f", "int f(int x) { return x + 1; }", true),
        ("native", "int native(int x) { return x; }", false),
    ]
    .into_iter()
    .enumerate()
    {
        folder.write(&format!("{name}.c"), source)?;
        let mut compile = Command::new(&clang);
        compile.args([TARGET, "-O1", "-c", &format!("{name}.c")]).args(lto.then_some("-flto=thin"));
        succeed(compile.current_dir(&folder.path))?;
        records.push(json!({
            "input_object_file_path": format!("{name}.o"),
            "output_index_shard_file_path": format!("out/{name}.thinlto.bc"),
            "output_plan_file_path": format!("out/{name}.opt.plan"),
            "output_premerged_bitcode_file_path": format!("out/{name}.merged.bc"),
            "starlark_array_index": if index == 0 { json!(0) } else { json!(index.to_string()) },
        }));
    }
    folder.write("meta.json", Value::Array(records).to_string())?;
    folder.write("libSystem.tbd", SYSTEM)?;
    folder.write(
        "app.thinlto.index.argsfile",
        "main.o -Wl,--start-lib unused.o f.o -Wl,--end-lib native.o -nostdlib libSystem.tbd -o app \
         -Wl,--thinlto-index-only=index/index -Wl,--thinlto-emit-imports-files -Wl,--thinlto-full-index \
         '-Wl,--thinlto-prefix-replace=;index/'",
    )?;
    let mut command = Command::new(distlto::binary()?);
    command.args(["index", "--meta=meta.json", "--link-plan=link-plan.json", "--index=index"]);
    command.args(options).arg("--").arg(&clang);
    command.args([TARGET, "-fuse-ld=lld", "@app.thinlto.index.argsfile"]).current_dir(&folder.path);
    Ok((folder, command))
}

#[test]
fn merging_modules_beforehand_needs_a_private_linker() -> Result<()> {
    let (folder, mut command) = rule("darwin-premerger", &["--enable-premerger"])?;
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(2), "{:?}: {said}", output.status);
    ensure!(said.contains("premerging needs a private linker"), "{said}");
    ensure!(!folder.path.join("link-plan.json").exists(), "there is a plan");
    Ok(())
}

#[test]
fn the_command_of_the_thin_link_can_be_printed_alone() -> Result<()> {
    let (folder, mut command) = rule("darwin-dump", &["--dump-linker-invocation"])?;
    let output = succeed(&mut command)?;
    let clang = folder.toolchain.tool("clang")?;
    let line = format!("{} {TARGET} -fuse-ld=lld @app.thinlto.index.argsfile\n", clang.display());
    ensure!(String::from_utf8(output.stdout)? == line);
    ensure!(!folder.path.join("link-plan.json").exists(), "the thin link ran");
    Ok(())
}

#[test]
fn plans_say_what_was_loaded_and_where_it_stands() -> Result<()> {
    let (folder, mut command) = rule("darwin", &[])?;
    succeed(&mut command)?;
    let read = |file: &str| -> Result<Value> {
        Ok(serde_json::from_slice(&std::fs::read(folder.path.join(file))?)?)
    };
    for (name, position, imports, bitcode) in [
        ("main", 0, json!([2]), true),
        ("unused", -1, json!([]), true),
        ("f", 1, json!([]), true),
        ("native", 2, json!([]), false),
    ] {
        let plan = read(&format!("out/{name}.opt.plan"))?;
        let expected = json!({
            "final_link_line_position": position, "imports": imports, "is_bitcode": bitcode,
            "loaded_by_linker": position >= 0, "merge_state": null,
        });
        ensure!(plan == expected, "{name}: {plan}");
        let shard = std::fs::metadata(folder.path.join(format!("out/{name}.thinlto.bc")))?;
        ensure!((shard.len() > 0) == bitcode, "{name}: a shard of {} bytes", shard.len());
    }
    ensure!(read("link-plan.json")? == json!({"non_lto_objects": {"3": 1}}));
    Ok(())
}
