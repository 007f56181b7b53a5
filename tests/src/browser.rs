//! A page in headless Chromium, used as a person uses it: by keys and by what is shown.
//!
//! Chromium is driven by Debian's chromedriver over WebDriver. Waits have no limit of their own that a slow machine could miss.
//! Knows nothing of what the page shows.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Map, Value, json};
use tokio::runtime::{Builder, Runtime};
use url::{ParseError, Url};

use crate::toolchain::system_tool;

/// What is surely wrong after this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// What chromedriver says before the port that it has chosen.
const SAID: &str = " successfully on port ";

/// A browser with one page.
pub struct Browser {
    runtime: Runtime,
    client: Client,
    driver: Child,
}

/// Keys of WebDriver.
pub mod key {
    /// To the next element.
    pub const TAB: &str = "\u{e004}";
    /// Enter.
    pub const ENTER: &str = "\u{e007}";
    /// To the left.
    pub const LEFT: &str = "\u{e012}";
    /// Up.
    pub const UP: &str = "\u{e013}";
    /// To the right.
    pub const RIGHT: &str = "\u{e014}";
    /// Down.
    pub const DOWN: &str = "\u{e015}";
    /// To the end.
    pub const END: &str = "\u{e010}";
    /// To the beginning.
    pub const HOME: &str = "\u{e011}";
}

/// A command that chromedriver has besides the standard.
#[derive(Debug)]
struct Own {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Own {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _: &Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.body.to_string()))
    }
}

impl Browser {
    /// Starts one.
    pub fn start() -> Result<Self> {
        system_tool("chromium")?;
        let mut driver = Command::new(system_tool("chromedriver")?);
        let driver = driver.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let mut started = Started(Some(driver));
        let port = started.port()?;
        // No sandbox: tests run as root in containers too, and the page is our own.
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--window-size=1280,900",
        ];
        let mut wanted = Map::new();
        wanted.insert("goog:chromeOptions".to_owned(), json!({ "args": arguments }));
        wanted.insert("goog:loggingPrefs".to_owned(), json!({ "browser": "ALL", "performance": "ALL" }));
        let mut builder = ClientBuilder::new(HttpConnector::new());
        let address = format!("http://127.0.0.1:{port}");
        let connecting = builder.capabilities(wanted).connect(&address);
        let client = runtime.block_on(connecting).context("chromedriver starts no Chromium")?;
        let driver = started.0.take().context("it was started")?;
        Ok(Self { runtime, client, driver })
    }

    /// Opens a file, and waits until `ready` holds.
    pub fn open(&self, file: &Path, ready: &str) -> Result<()> {
        let url = Url::from_file_path(file).ok().context("an absolute path")?;
        self.runtime.block_on(self.client.goto(url.as_str()))?;
        self.wait(ready)
    }

    /// What a script gives.
    pub fn ask(&self, script: &str) -> Result<Value> {
        self.ask_with(script, Vec::new())
    }

    /// What a script with `arguments` gives.
    pub fn ask_with(&self, script: &str, arguments: Vec<Value>) -> Result<Value> {
        let script = format!("return {script}");
        self.runtime.block_on(self.client.execute(&script, arguments)).context(script)
    }

    /// What a script says.
    pub fn text(&self, script: &str) -> Result<String> {
        Ok(self.ask(script)?.as_str().with_context(|| format!("no text: {script}"))?.to_owned())
    }

    /// The text of an element, as it is shown.
    pub fn shown(&self, id: &str) -> Result<String> {
        self.text(&format!("document.getElementById({id:?}).innerText"))
    }

    /// Waits until an expression is true.
    pub fn wait(&self, condition: &str) -> Result<()> {
        let start = Instant::now();
        while self.ask(&format!("Boolean({condition})"))? != Value::Bool(true) {
            if start.elapsed() > PATIENCE {
                bail!("{condition} does not come true; the console has {:?}", self.complaints()?);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Presses keys, one after the other, wherever the focus is.
    pub fn press(&self, keys: &str) -> Result<()> {
        let mut actions = KeyActions::new("keyboard".to_owned());
        for value in keys.chars() {
            actions = actions.then(KeyAction::Down { value }).then(KeyAction::Up { value });
        }
        Ok(self.runtime.block_on(self.client.perform_actions(actions))?)
    }

    /// Presses Tab until the focused element fulfils a condition, in which it is `e`.
    pub fn tab_to(&self, condition: &str) -> Result<()> {
        const MOST: usize = 200;
        for _ in 0..MOST {
            self.press(key::TAB)?;
            if self.ask(&format!("(e => Boolean({condition}))(document.activeElement)"))? == Value::Bool(true)
            {
                return Ok(());
            }
        }
        bail!("Tab does not lead to {condition}")
    }

    /// Shows the page as in a dark or light system.
    pub fn prefer(&self, scheme: &str) -> Result<()> {
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        let body = json!({ "cmd": "Emulation.setEmulatedMedia", "params": media });
        self.own("goog/cdp/execute", body).map(drop)
    }

    /// What the console was told that is no mere information, and no advice on what a test reads off a canvas.
    pub fn complaints(&self) -> Result<Vec<String>> {
        let told = self.own("se/log", json!({ "type": "browser" }))?;
        let told = told.as_array().context("a list")?.iter();
        Ok(told
            .filter(|one| one["level"] != "INFO" && one["source"] != "rendering")
            .map(ToString::to_string)
            .collect())
    }

    /// Every address that was asked for since this was asked last.
    pub fn requests(&self) -> Result<BTreeSet<String>> {
        let told = self.own("se/log", json!({ "type": "performance" }))?;
        let mut found = BTreeSet::new();
        for one in told.as_array().context("a list")? {
            let message: Value = serde_json::from_str(one["message"].as_str().context("a message")?)?;
            let message = &message["message"];
            if message["method"] == "Network.requestWillBeSent" {
                let url = message["params"]["request"]["url"].as_str().context("an address")?;
                found.insert(url.to_owned());
            }
        }
        Ok(found)
    }

    fn own(&self, path: &'static str, body: Value) -> Result<Value> {
        Ok(self.runtime.block_on(self.client.issue_cmd(Own { path, body }))?)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let closed = self.runtime.block_on(self.client.clone().close());
        if let Err(error) = closed {
            eprintln!("the browser does not close: {error}");
        }
        end(&mut self.driver);
    }
}

/// A driver that ends if nothing comes of it.
struct Started(Option<Child>);

impl Started {
    /// The port that it has chosen, of the line in which it says so.
    fn port(&mut self) -> Result<u16> {
        use std::io::{BufRead, BufReader};
        let said = self.0.as_mut().and_then(|driver| driver.stdout.take()).context("its output is a pipe")?;
        let mut lines = BufReader::new(said).lines();
        let line = lines.find(|line| line.as_ref().map_or(true, |line| line.contains(SAID)));
        let line = line.context("chromedriver ended before it said its port")??;
        let port = line.rsplit(SAID).next().unwrap_or_default().trim_end_matches('.');
        // It would end for want of a reader.
        std::thread::spawn(move || lines.for_each(drop));
        let port = port.parse().with_context(|| format!("chromedriver said {line:?}"))?;
        ensure!(port != 0, "chromedriver said {line:?}");
        Ok(port)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(driver) = &mut self.0 {
            end(driver);
        }
    }
}

fn end(driver: &mut Child) {
    if let Err(error) = driver.kill().and_then(|()| driver.wait().map(drop)) {
        eprintln!("chromedriver does not end: {error}");
    }
}
