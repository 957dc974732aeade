//! `entourage man`: a manual page for each command, for packages.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, Command};
use clap_mangen::Man;

use super::help;

/// Flags of `entourage man`.
#[derive(Args, Clone, Debug)]
pub struct ManArgs {
    /// Directory, which is created if it does not exist
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
}

/// Runs the command: `entourage.1`, `entourage-get.1`, …
///
/// # Errors
/// A page cannot be written.
pub fn run(args: &ManArgs) -> Result<()> {
    fs::create_dir_all(&args.dir).with_context(|| format!("cannot create {}", args.dir.display()))?;
    for (name, page) in pages()? {
        let path = args.dir.join(format!("{name}.1"));
        fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The pages with their names.
///
/// # Errors
/// A page cannot be rendered.
pub fn pages() -> Result<Vec<(String, Vec<u8>)>> {
    let mut command = help::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    below(&command, "entourage", &mut pages)?;
    Ok(pages)
}

fn below(command: &Command, name: &str, pages: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    let mut page = Vec::new();
    // `build` has given each command its whole name.
    Man::new(command.clone()).render(&mut page)?;
    pages.push((name.to_owned(), page));
    let is_shown = |each: &&Command| !each.is_hide_set() && each.get_name() != "help";
    for each in command.get_subcommands().filter(is_shown) {
        below(each, &format!("{name}-{}", each.get_name()), pages)?;
    }
    Ok(())
}
