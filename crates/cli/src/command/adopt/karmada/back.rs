//! `--undo`: adopted copies go back to Karmada, and what that Karmada may do next.

use std::{collections::BTreeSet, io::Write};

use anyhow::{Result, anyhow};
use entourage_core::{
    adoption::{
        Decision, HubState, Transfer,
        karmada::{self as decisions, Karmada},
    },
    object::{Gvk, Meta, NamespacedName, ResourceId},
};
use serde_json::Value;

use super::{
    Decided, Fleet, Scan, Watched, Written, both, finish, hub, is_written, objects, row, table, write,
    write_watched,
};

/// The next step when Karmada would delete objects at its start.
const HAZARDS: &str = "do not start Karmada's controllers: the notes name Works whose objects they would delete, or hold without a \
                       template. Set preserveResourcesOnDeletion on these Works and run this again, or keep this hub and --confirm";

/// The result of giving copies back.
pub(super) struct Returned<'a> {
    pub(super) has_hazards: bool,
    /// True if the members were read completely, and everything was written that is to be given back.
    pub(super) is_complete: bool,
    /// The number of copies with a record of a Karmada that stay this hub's.
    pub(super) left: usize,
    /// True if `--cluster` leaves members out.
    pub(super) is_of_some: bool,
    pub(super) missing: &'a [String],
}

impl Returned<'_> {
    /// The next step. Karmada may be started only if nothing of what it has Works for is this hub's any more: its controllers write
    /// each object with the label `karmada.io/managed`, whatever hub it has.
    pub(super) fn next(&self) -> String {
        if self.has_hazards {
            return HAZARDS.to_owned();
        }
        let cause = if !self.is_complete {
            "not all: run this again".to_owned()
        } else if self.left > 0 {
            format!(
                "{} of a Karmada stay this hub's: correct the cause and run this again",
                objects(self.left)
            )
        } else if self.is_of_some {
            "only of these members: run this again without --cluster".to_owned()
        } else if !self.missing.is_empty() {
            let clusters = self.missing.join(", ");
            format!(
                "this hub does not have {clusters}, for which Karmada has Works: see that nobody else manages them"
            )
        } else {
            return "Karmada's controllers may be started again: they write what its Works say".to_owned();
        };
        format!("{cause} before Karmada's controllers are started")
    }
}

impl Fleet<'_> {
    pub(super) async fn give_back(&self, watched: &mut Watched, out: &mut (dyn Write + Send)) -> Result<()> {
        let plans =
            self.plans(|transfer, id, live| decisions::decide_return(&self.karmada, transfer, id, live));
        let mut all = Decided::new();
        let state = hub::state(self.hub, &BTreeSet::new()).await?;
        for scan in &self.scans {
            let Some(plan) = plans.get(&scan.cluster) else {
                continue;
            };
            let (mut written, mut ended) = (Written::new(), Ok(()));
            if let (true, Ok(member)) = (self.args.yes && is_written(plan), &scan.result) {
                if let Err(error) = watched.look().await {
                    all.result = Err(error.context(format!("nothing was written on {}", scan.cluster)));
                    break;
                }
                let rule = Return {
                    state: &state,
                    karmada: &self.karmada,
                    transfer: &self.transfer(&scan.cluster),
                };
                (written, ended) = write_watched(&rule, member, plan, watched).await;
            }
            for (id, decision) in plan {
                let words = all.count(decision, written.get(id));
                all.rows.push(row(&scan.cluster, id, words));
            }
            if let Err(error) = ended {
                all.result = Err(error.context(format!("stopped on {}", scan.cluster)));
                break;
            }
        }
        let rows = std::mem::take(&mut all.rows);
        write!(out, "{}", table(rows))?;
        let (count, left) = (objects(all.adopted), all.left);
        let hazards = decisions::hazards(&self.karmada);
        if self.args.yes {
            let is_read = |scan: &Scan| scan.result.as_ref().is_ok_and(|member| member.unread.is_empty());
            let returned = Returned {
                has_hazards: !hazards.is_empty(),
                is_complete: all.failed == 0 && all.result.is_ok() && self.scans.iter().all(is_read),
                left: plans.values().map(|plan| still_ours(plan)).sum(),
                is_of_some: !self.args.clusters.is_empty(),
                missing: &self.missing,
            };
            let next = returned.next();
            writeln!(out, "{count} given back, {left} left alone; {next}")?;
        } else {
            writeln!(
                out,
                "{count} to give back, {left} left alone; nothing was written: stop the controllers of this hub and its agents for \
                 good, then add --yes"
            )?;
        }
        let mut result = all.result;
        if !hazards.is_empty() {
            let works = hazards.len();
            let unsafe_works = anyhow!("Works that are not safe with a Karmada that is started: {works}");
            result = both(result, Err(unsafe_works));
        }
        if all.failed > 0 {
            result = both(result, Err(anyhow!("{} not given back", objects(all.failed))));
        }
        both(result, finish(out, &self.scans, 0))
    }
}

/// The number of copies that were taken over, and are not given back. What this hub made itself is none.
pub(super) fn still_ours(plan: &[(ResourceId, Decision)]) -> usize {
    let left = plan
        .iter()
        .filter(|(_, decision)| !matches!(decision, Decision::Return | Decision::NotAdopted));
    left.count()
}

/// Adopted copies are given back to Karmada.
pub(super) struct Return<'a> {
    pub(super) state: &'a HubState,
    pub(super) karmada: &'a Karmada,
    pub(super) transfer: &'a Transfer,
}

impl write::Rule for Return<'_> {
    fn decide(&self, id: &ResourceId, live: &Meta) -> Option<Decision> {
        decisions::decide_return(self.karmada, self.transfer, id, live)
    }

    fn patch(&self, live: &Meta) -> Value {
        decisions::return_patch(live)
    }

    fn is_done(&self, decision: Option<&Decision>) -> bool {
        decision.is_none()
    }

    fn version_of(&self, binding: &NamespacedName) -> Option<&Gvk> {
        self.state.version_of(binding)
    }
}
