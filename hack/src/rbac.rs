//! `config/rbac`: one ClusterRole made from what each controller says it touches.

use anyhow::Result;

use crate::{Outcome, only_check};

/// Writes `config/rbac`, or with `--check` compares it.
pub(crate) fn run(args: &[String]) -> Result<Outcome> {
    let _check = only_check(args)?;
    // The rows come from `entourage_controllers::CONTROLLERS`; files are written or compared by `tree::generate`.
    Ok(Outcome::Lacks(
        "the table CONTROLLERS of entourage-controllers, which the roles are made from".to_owned(),
    ))
}
