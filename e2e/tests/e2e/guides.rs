//! The guides of `docs/`, run as their readers type them: see the module `guides` of the library. Embedded clusters only.

use std::path::{Path, PathBuf};

use anyhow::Result;
use entourage_e2e::{
    guides::{Page, pages, play},
    kubectl::Client,
};
use libtest_mimic::{Failed, Trial};

/// A test for each page that is run, and one that finds the blocks that no test runs. Without any kubectl the pages are ignored, with
/// the reason.
pub(crate) fn trials() -> Result<Vec<Trial>> {
    let (pages, complaints) = pages(&root())?;
    let client = Client::find()?;
    if let Err(reason) = client {
        eprintln!("guides are ignored: {reason}");
    }
    let mut trials = vec![Trial::test(
        "guides::every_block_of_commands_is_run_or_says_why_not",
        move || match complaints.is_empty() {
            true => Ok(()),
            false => Err(Failed::from(complaints.join("\n"))),
        },
    )];
    trials.extend(pages.into_iter().map(|page| {
        let name = format!("embedded::guides::{}", page.name.replace('-', "_"));
        match client {
            Ok(client) => Trial::test(name, move || run(&page, client)),
            Err(_) => Trial::test(name, || Ok(()))
                .with_kind("no kubectl")
                .with_ignored_flag(true),
        }
    }));
    Ok(trials)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn run(page: &Page, client: &Client) -> Result<(), Failed> {
    let dir = std::env::temp_dir().join(format!("entourage-guide-{}-{}", std::process::id(), page.name));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let root = root().canonicalize()?;
    let done = runtime.block_on(play(page, client, &root, &dir));
    let _ = std::fs::remove_dir_all(&dir);
    done.map_err(|error| Failed::from(format!("{error:#}")))
}
