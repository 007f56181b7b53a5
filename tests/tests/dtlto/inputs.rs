//! Job files that cannot be run: what is said names the job file, the place in it, and what to do; nothing is written.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::{capture, fail};
use distlto_tests::store::CACHE;
use distlto_tests::toolchain::{Toolchain, repository};

fn recorded() -> Result<Vec<std::path::PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(repository().join("planner/tests/data/dtlto"))? {
        files.extend(Some(entry?.path()).filter(|path| path.extension().is_some_and(|end| end == "json")));
    }
    files.sort();
    Ok(files)
}

fn distribute(folder: &Folder, job_file: &Path) -> Result<Command> {
    let mut command = Command::new(distlto::distributor()?);
    command.arg(job_file).current_dir(&folder.path);
    Ok(command)
}

fn folder(name: &str) -> Result<Folder> {
    Folder::create(Toolchain::from_env()?, &format!("dtlto/{name}"))
}

fn is_empty(folder: &Folder) -> Result<bool> {
    Ok(fs::read_dir(&folder.path)?.all(|entry| entry.is_ok_and(|entry| entry.file_name() == CACHE)))
}

/// Job files of real links, far from the files that they name.
#[test]
fn missing_files_are_named() -> Result<()> {
    let folder = folder("recorded")?;
    let files = recorded()?;
    ensure!(files.len() > 20, "{} recorded job files", files.len());
    for file in files {
        let text = fs::read_to_string(&file)?;
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let (code, said) = fail(&mut distribute(&folder, &file)?)?;
        ensure!(code == 3, "{name}: exit code {code}:\n{said}");
        ensure!(said.contains(&name) && said.contains("help:"), "{name}: said is\n{said}");
        if name == "oddnames.json" {
            ensure!(said.contains("UTF-8") && said.contains("rename"), "{said}");
        } else {
            let module = said.split("for module \"").nth(1).and_then(|rest| rest.split('"').next());
            ensure!(module.is_some_and(|module| text.contains(module)), "{name}: no job is named:\n{said}");
            ensure!(
                said.contains(".thinlto.bc\"") && said.contains("missing"),
                "{name}: no file is named:\n{said}"
            );
        }
        ensure!(is_empty(&folder)?, "{name}: something was written");
    }
    Ok(())
}

/// Commands are printed for any of them, each with a compiler, a shard and an object.
#[test]
fn a_dry_run_needs_no_files() -> Result<()> {
    let folder = folder("dry-run")?;
    for file in recorded()? {
        let output = capture(distribute(&folder, &file)?.arg("--dry-run"))?;
        let text = String::from_utf8(output.stdout)?;
        let file: serde_json::Value = serde_json::from_slice(&fs::read(&file)?)?;
        let jobs = file["jobs"].as_array().map_or(0, Vec::len);
        ensure!(output.status.success() && text.lines().count() == jobs, "{jobs} jobs:\n{text}");
        for (line, job) in text.lines().zip(file["jobs"].as_array().into_iter().flatten()) {
            let words = |list: &serde_json::Value| -> Vec<String> {
                list.as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|word| Some(word.as_str()?.to_owned()))
                    .collect()
            };
            let expected = [words(&file["common"]["args"]), words(&job["args"])].concat();
            ensure!(shlex::split(line) == Some(expected), "{line}");
        }
        ensure!(is_empty(&folder)?, "something was written");
    }
    Ok(())
}

/// A job file cut anywhere, one whose every byte is changed in turn, and what is none at all.
#[test]
fn damaged_job_files_are_refused() -> Result<()> {
    let folder = folder("damaged")?;
    let good = fs::read(repository().join("planner/tests/data/dtlto/reg-archive.json"))?;
    let text = String::from_utf8(good.clone())?;
    let path = folder.path.join("job.json");
    let mut texts: Vec<Vec<u8>> = (0..good.len()).step_by(331).map(|end| good[..end].to_vec()).collect();
    for (from, to) in [
        ("\"jobs\":[", "\"jobs\":[7,"),
        ("\"jobs\":[", "\"jobs\":{\"a\":["),
        ("\"inputs\":[\"t1.o\"", "\"inputs\":[null"),
        ("\"inputs\":[\"t1.o\"", "\"inputs\":[\"\""),
        ("\"inputs\":[\"t1.o\"", "\"inputs\":[-1"),
        ("\"args\":[\"/usr", "\"args\":[\"\",\"/usr"),
        ("\"common\":", "\"other\":"),
        ("\"outputs\":", "\"results\":"),
    ] {
        ensure!(text.contains(from), "{from}");
        texts.push(text.replacen(from, to, 1).into_bytes());
    }
    texts.extend([b"null".to_vec(), b"[]".to_vec(), b"\xff\xfe".to_vec(), vec![b'['; 1 << 20], vec![0; 100]]);
    for bytes in texts {
        fs::write(&path, &bytes)?;
        let (code, said) = fail(&mut distribute(&folder, &path)?)?;
        ensure!(
            code == 3 && said.contains("job.json") && said.contains("help:"),
            "exit code {code}:\n{said}"
        );
        ensure!(!said.contains("panicked"), "{said}");
    }
    fs::remove_file(&path)?;
    ensure!(is_empty(&folder)?, "something was written");
    Ok(())
}

#[test]
fn what_is_no_file_is_refused() -> Result<()> {
    let folder = folder("no-file")?;
    let missing = folder.path.join("missing.json");
    let (code, said) = fail(&mut distribute(&folder, &missing)?)?;
    ensure!(code == 4 && said.contains("missing.json"), "exit code {code}:\n{said}");
    let (code, said) = fail(&mut distribute(&folder, &folder.path)?)?;
    ensure!(code == 3 && said.contains("not a regular file"), "exit code {code}:\n{said}");
    let (code, said) = fail(&mut distribute(&folder, Path::new("/dev/null"))?)?;
    ensure!(code == 3, "exit code {code}:\n{said}");
    let unreadable = folder.write("unreadable.json", "{}")?;
    fs::set_permissions(&unreadable, fs::Permissions::from_mode(0o0))?;
    // A superuser reads it all the same, and finds that it is no job file.
    let (code, said) = fail(&mut distribute(&folder, &unreadable)?)?;
    ensure!([3, 4].contains(&code) && said.contains("unreadable.json"), "exit code {code}:\n{said}");
    let (code, said) = fail(Command::new(distlto::distributor()?).current_dir(&folder.path))?;
    ensure!(code == 2 && said.contains("JOBFILE"), "exit code {code}:\n{said}");
    Ok(())
}

/// A hundred megabytes of jobs that nobody could run.
#[test]
fn a_huge_job_file_is_read() -> Result<()> {
    let folder = folder("huge")?;
    let mut text = String::from(r#"{"common":{"linker_output":"p","args":["clang"],"inputs":[]},"jobs":["#);
    let imports: String =
        (0..1000).map(|number| format!(",\"some/directory/of/modules/module{number}.o\"")).collect();
    for job in 0..2000 {
        let comma = if job == 0 { "" } else { "," };
        text.push_str(&format!(
            "{comma}{{\"args\":[\"{job}.o\",\"-fthinlto-index={job}.bc\",\"-o\",\"{job}.native.o\"],\"inputs\":[\"{job}.o\",\"{job}.bc\"{imports}],\"outputs\":[\"{job}.native.o\"]}}"
        ));
    }
    text.push_str("]}");
    let path = folder.write("job.json", text)?;
    let (code, said) = fail(&mut distribute(&folder, &path)?)?;
    ensure!(
        code == 3 && said.contains("5000 of the files") && said.len() < 4000,
        "exit code {code}:\n{said}"
    );
    fs::remove_file(path)?;
    Ok(())
}
