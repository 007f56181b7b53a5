//! Runs a shell script on a server, with files as its inputs: the whole way of an action through the client.
//!
//! `run URL SCRIPT OUTPUT [FILE...]`; the files lie in the script's working directory, by their names. What the server has
//! lost is uploaded again, once.

use std::env::args;
use std::error::Error as StdError;
use std::path::{Path, PathBuf};

use distlto_reapi::action::Action;
use distlto_reapi::blob::Blob;
use distlto_reapi::execute::{ExecuteOptions, ExecutedAction};
use distlto_reapi::merkle::Tree;
use distlto_reapi::{Client, Digest, DigestMessage, Error, Options};

#[tokio::main]
async fn main() -> Result<(), Box<dyn StdError>> {
    let words: Vec<String> = args().skip(1).collect();
    let [url, script, output, files @ ..] = &words[..] else {
        return Err("run URL SCRIPT OUTPUT [FILE...]".into());
    };
    let client = Client::connect(Options::new(url)?).await?;
    println!("{:#?}", client.capabilities());
    let mut tree = Tree::new();
    let mut blobs = Vec::new();
    for path in files.iter().map(PathBuf::from) {
        let digest = Digest::of(&std::fs::read(&path)?);
        let name = path.file_name().and_then(|name| name.to_str()).ok_or("a file has a name in UTF-8")?;
        tree.add_file(name, digest, false)?;
        blobs.push(Blob::file(digest, path));
    }
    let tree = tree.build();
    blobs.extend(tree.blobs());
    let shell = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    let mut action = Action::new(shell, tree.digest());
    action.environment = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
    action.output_paths = vec![output.clone()];
    let encoded = action.encode();
    blobs.extend([encoded.action.clone(), encoded.command.clone()]);
    let executed = execute(&client, encoded.digest(), &blobs).await?;
    println!("exit {}, cached: {}", executed.result.exit_code, executed.cached);
    print!("{}", String::from_utf8_lossy(&client.stdout(&executed.result).await?));
    eprint!("{}", String::from_utf8_lossy(&client.stderr(&executed.result).await?));
    for file in &executed.result.output_files {
        let digest = file.digest.as_ref().and_then(Digest::from_message).ok_or("an output has no digest")?;
        client.download_output(file, Path::new(&file.path)).await?;
        println!("{} {digest}", file.path);
    }
    println!("{:#?}", client.statistics().snapshot());
    Ok(())
}

async fn execute(client: &Client, action: Digest, blobs: &[Blob]) -> Result<ExecutedAction, Error> {
    let mut again = true;
    loop {
        client.upload(blobs.iter().cloned()).await?;
        match client.execute(action, &ExecuteOptions::default(), |stage| println!("{stage:?}")).await {
            Err(Error::Lost { .. }) if again => {
                again = false;
                client.forget(blobs.iter().map(Blob::digest));
            }
            end => return end,
        }
    }
}
