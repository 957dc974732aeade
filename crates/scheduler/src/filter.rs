//! The filters: each decides whether a cluster may be scheduled to, and gives a reason if not.

use entourage_api::cluster::Cluster;

use crate::{
    affinity,
    cluster::enablements,
    request::{Candidate, Round},
    spread, taint,
};
use entourage_model::object::Gvk;

/// The reason why a cluster was left out, worded to follow a number: "2 *not selected by clusterAffinity*".
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilterReason(pub String);

/// One row of [`FILTERS`].
#[derive(Clone, Copy, Debug)]
pub struct Filter {
    /// Its name in explanations and in the documentation.
    pub name: &'static str,
    /// Its requirement on a cluster, in one line.
    pub summary: &'static str,
    /// True if a note on a result counts the clusters that it leaves out. Those that the policy does not select and those that depend
    /// on other workloads are not counted: a condition must not change with each cluster that joins, and each workload.
    pub is_noted: bool,
    /// Succeeds if the cluster passes.
    pub check: fn(&Round<'_>, &Candidate<'_>) -> Result<(), FilterReason>,
}

/// All filters, in the order in which they are applied; a cluster is counted under the first that leaves it out.
pub const FILTERS: &[Filter] = &[
    Filter {
        name: "clusterAffinity",
        summary: "The policy selects the cluster, by name, labels, provider, region and zones, and does not exclude it.",
        is_noted: false,
        check: selected,
    },
    Filter {
        name: "deletion",
        summary: "The Cluster is not being deleted, or the cluster is a target already.",
        is_noted: true,
        check: staying,
    },
    Filter {
        name: "eviction",
        summary: "The workload is not being evicted from the cluster.",
        is_noted: true,
        check: not_evicted,
    },
    Filter {
        name: "taints",
        summary: "The policy tolerates the NoSchedule and NoExecute taints of the cluster, or it is a target already. \
                  A cluster that is not ready counts as tainted.",
        is_noted: true,
        check: tolerated,
    },
    Filter {
        name: "apiEnablements",
        summary: "The cluster serves the kind, or it is a target already, or it is not known what it serves.",
        is_noted: true,
        check: served,
    },
    Filter {
        name: "spreadConstraints",
        summary: "The cluster has the region, zone, provider or label by which the policy spreads.",
        is_noted: true,
        check: grouped,
    },
    Filter {
        name: "workloadAffinity",
        summary: "Every other workload of the template's affinity group that is scheduled has the cluster, or it is a target \
                  already.",
        is_noted: false,
        check: beside,
    },
    Filter {
        name: "workloadAntiAffinity",
        summary: "No other workload of the template's anti-affinity group has the cluster, or it is a target already.",
        is_noted: false,
        check: apart,
    },
];

/// The first filter that leaves the cluster out, by its position in [`FILTERS`], and its reason; `None` if the cluster fits.
pub(super) fn objection(round: &Round<'_>, candidate: &Candidate<'_>) -> Option<(usize, FilterReason)> {
    let verdicts = FILTERS.iter().enumerate();
    verdicts
        .filter_map(|(place, filter)| Some((place, (filter.check)(round, candidate).err()?)))
        .next()
}

fn selected(round: &Round<'_>, candidate: &Candidate<'_>) -> Result<(), FilterReason> {
    match affinity::tier(round, candidate) {
        None => Err(FilterReason(format!("not selected by {}", round.path))),
        Some(_) => Ok(()),
    }
}

/// A cluster stays a target until its Cluster object is deleted, which waits until its copies are accounted for: until then its
/// workloads are not started elsewhere, too.
fn staying(round: &Round<'_>, candidate: &Candidate<'_>) -> Result<(), FilterReason> {
    if candidate.deleting && !round.request.is_current(candidate.name) {
        Err(FilterReason("being deleted".into()))
    } else {
        Ok(())
    }
}

/// Source: Karmada reference 1.3 (ClusterEviction).
fn not_evicted(round: &Round<'_>, candidate: &Candidate<'_>) -> Result<(), FilterReason> {
    if round.request.evicted.iter().any(|name| **name == *candidate.name) {
        Err(FilterReason("that it is being evicted from".into()))
    } else {
        Ok(())
    }
}

fn tolerated(round: &Round<'_>, candidate: &Candidate<'_>) -> Result<(), FilterReason> {
    match taint::untolerated(candidate, &round.request.placement.cluster_tolerations) {
        Some(taint) if !round.request.is_current(candidate.name) => {
            Err(FilterReason(format!("with untolerated taint {taint}")))
        }
        _ => Ok(()),
    }
}

fn served(round: &Round<'_>, candidate: &Candidate<'_>) -> Result<(), FilterReason> {
    let gvk = round.request.gvk;
    if serves(candidate.cluster, gvk) || round.request.is_current(candidate.name) {
        return Ok(());
    }
    Err(FilterReason(format!(
        "not serving {} {}",
        gvk.api_version(),
        gvk.kind
    )))
}

/// True if a cluster serves a kind, or if its list of APIs is empty. An incomplete list counts as a list: a kind that discovery
/// did not find would be refused on delivery.
pub fn serves(cluster: &Cluster, gvk: &Gvk) -> bool {
    let known = enablements(cluster);
    // Most groups differ in length: then the texts are not compared.
    let length = gvk.version.len()
        + if gvk.group.is_empty() {
            0
        } else {
            gvk.group.len() + 1
        };
    let is_version = |text: &str| {
        text.len() == length
            && text.ends_with(&*gvk.version)
            && text.starts_with(&*gvk.group)
            && (gvk.group.is_empty() || text.as_bytes()[gvk.group.len()] == b'/')
    };
    let mut groups = known.iter().filter(|group| is_version(&group.group_version));
    known.is_empty() || groups.any(|group| group.resources.iter().any(|resource| resource.kind == *gvk.kind))
}

fn grouped(round: &Round<'_>, candidate: &Candidate<'_>) -> Result<(), FilterReason> {
    let constraints = round.request.placement.spread_constraints.iter().enumerate();
    for (position, constraint) in constraints {
        if let Some(lacking) = spread::lacks(constraint, candidate) {
            return Err(FilterReason(format!(
                "without {lacking}, by which spreadConstraints[{position}] spreads"
            )));
        }
    }
    Ok(())
}

/// Source: Karmada's plugin, which lets present targets pass, too: a label that changes drives nothing away.
fn beside(round: &Round<'_>, candidate: &Candidate<'_>) -> Result<(), FilterReason> {
    match round.request.beside {
        Some(group)
            if !group.clusters.contains(candidate.name) && !round.request.is_current(candidate.name) =>
        {
            Err(FilterReason(format!(
                "without the other workloads of affinity group {}",
                group.name
            )))
        }
        _ => Ok(()),
    }
}

/// Source: as [`beside`].
fn apart(round: &Round<'_>, candidate: &Candidate<'_>) -> Result<(), FilterReason> {
    match round.request.apart {
        Some(group)
            if group.clusters.contains(candidate.name) && !round.request.is_current(candidate.name) =>
        {
            Err(FilterReason(format!(
                "with another workload of anti-affinity group {}",
                group.name
            )))
        }
        _ => Ok(()),
    }
}
