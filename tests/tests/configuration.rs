//! Options from configuration files and variables: which one counts, what `distlto config` prints, and what is refused.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::{fail, succeed};
use distlto_tests::toolchain::Toolchain;
use serde_json::Value;

/// A checkout with objects of a program, and a user's folder for configuration.
struct Place {
    folder: Folder,
}

impl Place {
    fn new(name: &str) -> Result<Self> {
        let folder = Folder::create(Toolchain::from_env()?, &format!("configuration/{name}"))?;
        folder.write("checkout/.git/x", "")?;
        folder.write("checkout/main.c", "int b(void);\nint main(void) { return b(); }\n")?;
        folder.write("checkout/b.c", "int b(void) { return 0; }\n")?;
        let place = Self { folder };
        ["main", "b"].iter().try_for_each(|name| place.compile(name))?;
        Ok(place)
    }

    fn compile(&self, name: &str) -> Result<()> {
        let line = format!("%clang -O2 -flto=thin -c checkout/{name}.c -o checkout/{name}.o");
        let words = self.folder.expand(&line, "")?;
        succeed(Command::new("sh").args(["-c", &words]).current_dir(&self.folder.path)).map(drop)
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.folder.write(name, text)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        Ok(path)
    }

    fn project(&self, text: &str) -> Result<PathBuf> {
        self.write("checkout/distlto.toml", text)
    }

    fn user(&self, text: &str) -> Result<PathBuf> {
        self.write("home/distlto/config.toml", text)
    }

    fn ask(&self, words: &[&str]) -> Result<Command> {
        let mut command = Command::new(distlto::binary()?);
        command.args(words).current_dir(self.folder.path.join("checkout"));
        command.env("XDG_CONFIG_HOME", self.folder.path.join("home"));
        command.env_remove("DISTLTO_CACHE").env_remove("DISTLTO_STATE");
        command.env("XDG_CACHE_HOME", self.folder.path.join("cache"));
        Ok(command)
    }

    fn link(&self, words: &[&str]) -> Result<Command> {
        let line = self.folder.expand("%clang -flto=thin -fuse-ld=lld main.o b.o -o prog", "")?;
        self.ask(&[words, &line.split(' ').collect::<Vec<_>>()].concat())
    }

    fn config(&self, environment: &[(&str, &str)]) -> Result<Value> {
        let mut command = self.ask(&["config", "--json"])?;
        command.envs(environment.iter().copied());
        Ok(serde_json::from_slice(&succeed(&mut command)?.stdout)?)
    }

    fn refused(&self) -> Result<String> {
        Ok(fail(&mut self.link(&["link", "--"])?)?.1)
    }
}

/// The value of an option and its origin.
fn of<'a>(found: &'a Value, option: &str) -> [Option<&'a str>; 2] {
    let list = found.as_array().map(Vec::as_slice).unwrap_or_default();
    let setting = list.iter().find(|setting| setting["option"] == option).unwrap_or(&Value::Null);
    [setting["value"].as_str(), setting["origin"].as_str()]
}

#[test]
fn each_value_has_its_origin() -> Result<()> {
    let place = Place::new("origins")?;
    let project = place.project(
        "jobs = 3\nexact-names = true\n[remote]\ncache = \"grpc://checkout:1\"\nfallback = \"local\"\n",
    )?;
    let user = place.user(
        "jobs = 5\nmemory = \"50%\"\ncache = \"objects\"\nbackend-arg = [\"-ffp-contract=off\"]\n\
         [remote]\ncache = \"grpc://user:1\"\ninstance = \"mine\"\n[remote.headers]\nauthorization = \"Bearer secret\"\n\
         [remote.platform]\nOSFamily = \"linux\"\n",
    )?;
    let at = |path: &PathBuf, line: usize| format!("{}:{line}", path.display());
    let found =
        place.config(&[("DISTLTO_MEMORY", "1G"), ("DISTLTO_LINK_OPTIONS", "--compiler 'my clang'")])?;
    let objects = user.with_file_name("objects").display().to_string();
    for (option, value, origin) in [
        ("jobs", "3", at(&project, 1)),
        ("exact-names", "true", at(&project, 2)),
        ("remote-cache", "grpc://checkout:1", at(&project, 4)),
        ("remote-fallback", "local", at(&project, 5)),
        ("cache", &objects, at(&user, 3)),
        ("backend-arg", "-ffp-contract=off", at(&user, 4)),
        ("remote-instance", "mine", at(&user, 7)),
        ("remote-headers", "authorization: (secret)", at(&user, 9)),
        ("remote-platform", "OSFamily=linux", at(&user, 11)),
        ("memory", "1G", "DISTLTO_MEMORY".to_owned()),
        ("compiler", "my clang", "DISTLTO_LINK_OPTIONS".to_owned()),
    ] {
        ensure!(of(&found, option) == [Some(value), Some(&origin)], "{option}: {:?}", of(&found, option));
    }
    ensure!(of(&found, "keep-going") == [None, None], "{found}");
    let table = String::from_utf8(succeed(&mut place.ask(&["config"])?)?.stdout)?;
    ensure!(
        table.contains("keep-going") && table.contains("default") && !table.contains("secret\n"),
        "{table}"
    );
    // An empty variable reads no file; it may name another one.
    ensure!(of(&place.config(&[("DISTLTO_CONFIG", "")])?, "jobs") == [None, None]);
    let other = place.write("other.toml", "keep-going = true\n")?;
    let found = place.config(&[("DISTLTO_CONFIG", &other.display().to_string())])?;
    ensure!(
        of(&found, "keep-going") == [Some("true"), Some(&at(&other, 1))]
            && of(&found, "jobs")[0] == Some("3")
    );
    Ok(())
}

#[test]
fn files_and_variables_set_options_of_every_way_to_link() -> Result<()> {
    let place = Place::new("ways")?;
    place.user("cache = \"objects\"\n")?;
    let trace = |name: &str| place.folder.path.join("checkout").join(name);
    succeed(place.link(&["link", "--"])?.env("DISTLTO_TRACE", "a.json"))?;
    ensure!(trace("a.json").exists() && place.folder.path.join("home/distlto/objects").exists());
    ensure!(!place.folder.path.join("cache/distlto/links-v1").exists());
    // A command line of another program, and one of `distlto link`.
    succeed(
        place.link(&["env"])?.env("DISTLTO_LINK_OPTIONS", "--trace b.json --backend-arg=-ffp-contract=off"),
    )?;
    ensure!(trace("b.json").exists());
    succeed(place.link(&["link", "--"])?.env("DISTLTO_LINK_OPTIONS", "--trace c.json --backend-arg=-g"))?;
    ensure!(trace("c.json").exists());
    // The command line turns off what conflicts with it.
    let edited = |text: &str| place.folder.write("checkout/b.c", text).and_then(|_| place.compile("b"));
    edited("int b(void) { return 0 * 1; }\nint other;\n")?;
    let said = succeed(place.link(&["link", "-v", "--"])?.env("DISTLTO_QUIET", "1"))?.stderr;
    ensure!(String::from_utf8(said)?.contains("opt b.o"));
    edited("int b(void) { return 0 * 2; }\nint another;\n")?;
    let said = succeed(place.link(&["link", "--"])?.env("DISTLTO_VERBOSE", "1"))?.stderr;
    ensure!(String::from_utf8(said)?.contains("opt b.o"));
    edited("int b(void) { return 0 * 3; }\nint third;\n")?;
    place.project("verbose = 1\n")?;
    let said = succeed(&mut place.link(&["link", "-q", "--"])?)?.stderr;
    ensure!(said.is_empty(), "{}", String::from_utf8_lossy(&said));
    // A graph's last action has been given options that exclude exact names.
    succeed(&mut place.link(&["index", "--"])?)?;
    succeed(place.ask(&["run", "prog.distlto"])?.env("DISTLTO_EXACT_NAMES", "1"))?;
    // Where a store is, all commands know.
    let inspected = succeed(&mut place.ask(&["inspect", "prog"])?)?;
    ensure!(String::from_utf8(inspected.stdout)?.contains("2 modules"));
    let (_, said) = fail(place.link(&["env"])?.env("DISTLTO_LINK_OPTIONS", "--no-such-option"))?;
    ensure!(said.contains("DISTLTO_LINK_OPTIONS is --no-such-option"), "{said}");
    Ok(())
}

#[test]
fn mistakes_are_found_before_the_link() -> Result<()> {
    let place = Place::new("mistakes")?;
    for (text, at, words) in [
        ("jobs = 0", "1:8", "invalid value '0' for '--jobs <N>'"),
        ("\nmemory = 8", "2:10", "invalid value '8' for '--memory <SIZE>'"),
        ("memory = true", "1:10", "invalid value 'true'"),
        ("jobs = [1, 2]", "1:8", "`jobs` has one value"),
        ("keep-going = \"yes\"", "1:14", "`keep-going` is true or false"),
        ("verbose = true", "1:11", "`verbose` is a number, such as 1"),
        ("job = 1", "1:7", "unknown key `job`; did you mean `jobs`?"),
        ("[jobs]\nx = 1", "1:2", "`jobs` is an option, and no table"),
        ("[remotes]\nurl = 1", "1:2", "unknown key `remotes`"),
        ("[remote]\nurls = \"x\"", "2:1", "unknown field `urls`"),
        ("jobs = ", "1:8", ""),
        ("jobs = 1\njobs = 2", "2:1", "duplicate key"),
        ("trusted = []", "1:11", "unknown key `trusted`"),
    ] {
        let file = place.project(text)?;
        let said = place.refused()?;
        let expected = format!("error: {}:{at}: {words}", file.display());
        ensure!(said.contains(&expected) && said.contains("DISTLTO_CONFIG"), "{text:?}: {said}");
        ensure!(!place.folder.path.join("checkout/prog").exists());
    }
    // A checkout names no file and no program, unless it is trusted.
    let file = place.project("compiler = \"./cc\"\ntrace = \"t.json\"\njobs = 2\n")?;
    let linked = succeed(&mut place.link(&["link", "--"])?)?;
    let said = String::from_utf8(linked.stderr)?;
    let warning =
        |key: &str| format!("warning: {} sets {key}, which is ignored; trusted = [", file.display());
    ensure!(["compiler", "trace"].iter().all(|key| said.contains(&warning(key))), "{said}");
    ensure!(!place.folder.path.join("checkout/t.json").exists());
    std::fs::remove_file(place.folder.path.join("checkout/prog"))?;
    let folder = file.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    place.user(&format!("trusted = [\"{folder}\"]"))?;
    place.project("trace = \"t.json\"\njobs = 2\n")?;
    succeed(&mut place.link(&["link", "--"])?)?;
    ensure!(place.folder.path.join("checkout/t.json").exists());
    Ok(())
}

#[test]
fn options_before_a_command_say_where_they_belong() -> Result<()> {
    let place = Place::new("before")?;
    let tip = "the options of a build's links are in DISTLTO_LINK_OPTIONS";
    let behind = "the link command stands behind --: distlto link -- clang++ ...";
    for (words, tip) in [
        (&["-v", "make"][..], Some(tip)),
        (&["link", "clang++", "a.o"], Some(behind)),
        (&["link", "--no-option", "--", "ld"], None),
    ] {
        let said = fail(&mut place.ask(words)?)?.1;
        ensure!(said.contains("unexpected argument"), "{words:?}: {said}");
        let is_told = tip.map_or(!said.contains(behind), |tip| said.contains(tip));
        ensure!(is_told, "{words:?}: {said}");
    }
    // A mistyped variable is said.
    let mut link = place.link(&["link", "--"])?;
    let said = String::from_utf8(succeed(link.env("DISTLTO_REQIRE", "1"))?.stderr)?;
    ensure!(said.contains("DISTLTO_REQIRE is no variable of distlto"), "{said}");
    Ok(())
}
