//! Guides as tests: the commands of a page are run as its reader types them, on clusters like those of `entourage up`, and what
//! the page shows below a command is compared with what the command prints.
//!
//! A page of `docs/guides`, or one of `PAGES`, is run if it has a line `<!-- run -->`. The reader sees all that is run, but for
//! comments:
//!
//! | In the page | Meaning |
//! |---|---|
//! | a block of `yaml` that begins with `# NAME.yaml` | The file of that name, in the folder that commands start in. |
//! | a line `$ COMMAND` in a block of `console` | It is run by a shell and has to succeed, unless an error is shown below it. |
//! | the lines below it | What it prints. `…` stands for any text, or on a line of its own for any lines. White space does not count. Without such a line anything may be printed. |
//! | `<!-- run: member1 stops -->`, `<!-- run: member1 returns -->` | The controllers do not reach the member from here on; they do again. |
//! | `<!-- run: $ COMMAND -->` | A command that the reader need not run: it makes what the page is about. |
//! | `<!-- run: member1 reports {…} -->` | A controller that is on real members and not here writes the status of this object. |
//! | `<!-- run: controllers NAME,… -->` | The controllers are started again, with these that are off by default. |
//! | a command that ends in ` &` | It runs on until the end of the page. |
//! | a command that is `NAME=VALUE` alone | It counts for all commands that follow. |
//! | `<!-- not run: REASON -->` before a block | The block is not run. |
//! | `<!-- no block is run: REASON -->` | None of the page is. |
//!
//! A command that only reads is repeated until it prints what is shown, or a deadline is over; one that writes is run once. kubectl
//! is the one of [`Client::find`](crate::kubectl::Client::find), `entourage` is this program. A block of commands that is not run,
//! as one of `sh` never is, has to say so: [`Page::unaccounted`] names the others.

mod compare;
mod page;
mod play;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

pub use page::Page;
pub use play::play;

/// The pages beside `docs/guides` that may have blocks to run.
const PAGES: &[&str] = &[
    "first-aid.md",
    "game-day.md",
    "getting-started.md",
    "runbooks.md",
    "security.md",
];

/// Every page that is to be run, by its name, and every complaint about a block that nothing runs.
///
/// # Errors
/// When a page cannot be read.
pub fn pages(root: &Path) -> Result<(Vec<Page>, Vec<String>)> {
    let (mut pages, mut complaints) = (Vec::new(), Vec::new());
    for path in files(root)? {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let page = Page::parse(&name, &text).with_context(|| path.display().to_string())?;
        complaints.extend(page.unaccounted().map(|line| {
            format!(
                "{}:{line}: no test runs this block: make it `console` with `$ ` in a page with <!-- run -->, or put <!-- not run: REASON --> directly before it",
                path.display()
            )
        }));
        if page.is_run() {
            pages.push(page);
        }
    }
    Ok((pages, complaints))
}

/// The pages that may have blocks to run, in order.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let folder = root.join("docs/guides");
    let mut files: Vec<PathBuf> = PAGES.iter().map(|page| root.join("docs").join(page)).collect();
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
