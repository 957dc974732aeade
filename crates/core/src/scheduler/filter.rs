//! The filters: each says of one cluster whether it may be chosen, and if not, why.

use super::{Candidate, Round, affinity, enablements, taint};

/// Why a cluster was left out, worded to follow a number: "2 *not selected by clusterAffinity*".
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Why(pub String);

/// One row of [`FILTERS`].
#[derive(Clone, Copy, Debug)]
pub struct Filter {
    /// The word for it in explanations and in the documentation.
    pub name: &'static str,
    /// What it asks of a cluster, in one line.
    pub summary: &'static str,
    /// Whether the cluster passes.
    pub check: fn(&Round<'_>, &Candidate<'_>) -> Result<(), Why>,
}

/// Every filter, in the order in which they are asked; a cluster is counted under the first that leaves it out.
/// The first one is the policy's own selection: what it leaves out was never meant.
pub const FILTERS: &[Filter] = &[
    Filter {
        name: "clusterAffinity",
        summary: "The policy selects the cluster, by name, labels, provider, region and zones, and does not exclude it.",
        check: selected,
    },
    Filter {
        name: "deletion",
        summary: "The Cluster is not being deleted.",
        check: staying,
    },
    Filter {
        name: "taints",
        summary: "The policy tolerates the NoSchedule and NoExecute taints of the cluster, or it is a target already. \
                  A cluster that is not ready counts as tainted.",
        check: tolerated,
    },
    Filter {
        name: "apiEnablements",
        summary: "The cluster serves the kind, or it is a target already, or it is not known what it serves.",
        check: served,
    },
];

fn selected(round: &Round<'_>, candidate: &Candidate<'_>) -> Result<(), Why> {
    match round.affinity {
        Some(affinity) if !affinity::selects(affinity, candidate) => {
            Err(Why(format!("not selected by {}", round.path)))
        }
        _ => Ok(()),
    }
}

fn staying(_: &Round<'_>, candidate: &Candidate<'_>) -> Result<(), Why> {
    if candidate.deleting {
        Err(Why("being deleted".into()))
    } else {
        Ok(())
    }
}

fn tolerated(round: &Round<'_>, candidate: &Candidate<'_>) -> Result<(), Why> {
    if is_current(round, candidate) {
        return Ok(());
    }
    match taint::untolerated(candidate, &round.request.placement.cluster_tolerations) {
        Some(taint) => Err(Why(format!("with untolerated taint {taint}"))),
        None => Ok(()),
    }
}

/// An incomplete list counts as a list: a kind that discovery did not find would be refused on delivery.
fn served(round: &Round<'_>, candidate: &Candidate<'_>) -> Result<(), Why> {
    let known = enablements(candidate.cluster);
    let api_version = round.request.gvk.api_version();
    let kind = &*round.request.gvk.kind;
    let is_served = known
        .iter()
        .filter(|group| group.group_version == api_version)
        .any(|group| group.resources.iter().any(|resource| resource.kind == kind));
    if is_served || known.is_empty() || is_current(round, candidate) {
        return Ok(());
    }
    Err(Why(format!("not serving {api_version} {kind}")))
}

fn is_current(round: &Round<'_>, candidate: &Candidate<'_>) -> bool {
    round
        .request
        .current
        .iter()
        .any(|target| target.name == candidate.name)
}
