//! `crates/api/testdata/upstream-fields.txt`: the facts of upstream's CRDs. Our types are tested against this list;
//! upstream's files themselves are not part of this repository.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::{Outcome, fields, tree};

/// The default reference folder.
const REFERENCE: &str = "../shared/reference/crds";
const LIST: &str = "crates/api/testdata/upstream-fields.txt";

/// Rewrites the list from the reference folder, or with `--check` compares it; there a missing folder is reported and no error.
pub(crate) fn run(args: &[String]) -> Result<Outcome> {
    let (check, dir) = read_args(args)?;
    if check && !dir.is_dir() {
        return Ok(Outcome::Lacks(format!(
            "the reference folder {}; the list is taken as it is",
            dir.display()
        )));
    }
    let list = fields::upstream_fields(&dir)?;
    let path = tree::root().join(LIST);
    let done = Outcome::Done(format!("{LIST}: {} facts", list.lines().count()));
    if !check {
        fs::write(&path, list)?;
        return Ok(done);
    }
    let present = fs::read_to_string(&path).with_context(|| format!("{LIST} cannot be read"))?;
    match present.lines().zip(list.lines()).find(|(a, b)| a != b) {
        _ if present == list => Ok(done),
        Some((a, b)) => bail!("{LIST} is not what the reference says; first difference:\n  - {a}\n  + {b}"),
        None => bail!(
            "{LIST} has {} lines, the reference gives {}",
            present.lines().count(),
            list.lines().count()
        ),
    }
}

fn read_args(args: &[String]) -> Result<(bool, PathBuf)> {
    let (mut check, mut dir) = (false, None);
    for arg in args {
        match arg.as_str() {
            "--check" => check = true,
            flag if flag.starts_with('-') => bail!("--check or a folder, not {flag}"),
            path if dir.is_none() => dir = Some(PathBuf::from(path)),
            more => bail!("one folder, not also {more:?}"),
        }
    }
    Ok((check, dir.unwrap_or_else(|| tree::root().join(REFERENCE))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_that_is_not_there_is_reported_and_is_no_error() {
        let args = ["--check".to_owned(), "no/such/folder".to_owned()];
        assert!(matches!(run(&args).unwrap(), Outcome::Lacks(what) if what.contains("no/such/folder")));
    }

    #[test]
    fn one_folder_and_one_flag_are_understood() {
        assert!(read_args(&["--chek".to_owned()]).is_err());
        assert!(read_args(&["a".to_owned(), "b".to_owned()]).is_err());
        assert_eq!(read_args(&["a".to_owned()]).unwrap(), (false, PathBuf::from("a")));
    }
}
