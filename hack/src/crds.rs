//! `crds/<group>_<plural>.yaml`: the CustomResourceDefinitions of every kind served, written from the types.

use anyhow::Result;

use crate::{Outcome, only_check, tree};

/// Writes `crds/`, or with `--check` compares it. Errors: the files that differ or belong to no kind.
pub(crate) fn run(args: &[String]) -> Result<Outcome> {
    let check = only_check(args)?;
    let files = entourage_api::crds::files()?;
    let count = tree::generate(&tree::root().join("crds"), ".yaml", &files, check)?;
    Ok(Outcome::Done(format!("{count} definitions")))
}
