//! The result of each filter for each cluster: the answer to "why is it not scheduled there".

use entourage_api::policy::Placement;

use crate::{
    affinity, assign, divide,
    filter::{FILTERS, Filter, FilterReason},
    request::{Candidate, Request, Round},
    room,
    schedule::{rounds, unplaced},
};

/// The result of the filters for one cluster.
#[derive(Clone, Debug)]
pub struct Fitness {
    /// The name of the cluster.
    pub cluster: String,
    /// The field of the policy that holds the affinity: that of the outcome if the cluster fits by it; else the first one by which it fits,
    /// else the first one that selects it, else the first one.
    pub affinity: String,
    /// True if this is not the group of `clusterAffinities` that the outcome uses.
    pub is_other_group: bool,
    /// Each filter with its objection, in the order of [`FILTERS`]; `None` if the cluster passes it.
    pub checks: Vec<(&'static Filter, Option<FilterReason>)>,
    /// The causes that may keep a cluster that fits from being chosen, for people.
    pub notes: Vec<String>,
}

impl Fitness {
    /// True if every filter passes the cluster.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.checks.iter().all(|(_, objection)| objection.is_none())
    }
}

/// The result of all filters for each cluster, in the order of the clusters, for a request whose outcome uses the group `used` of
/// `clusterAffinities`; `None` if no group fits. [`crate::schedule`] decides by the same filters.
///
/// Cost: O(clusters × entries of the placement).
#[must_use]
pub fn fitness(request: &Request<'_>, candidates: &[Candidate<'_>], used: Option<&str>) -> Vec<Fitness> {
    let request = if request.fresh {
        unplaced(request)
    } else {
        *request
    };
    let rounds = rounds(&request);
    let used = used.and_then(|used| rounds.iter().position(|round| round.name == used));
    candidates
        .iter()
        .filter_map(|candidate| of(&rounds, candidate, used))
        .collect()
}

fn of(rounds: &[Round<'_>], candidate: &Candidate<'_>, used: Option<usize>) -> Option<Fitness> {
    let all: Vec<Fitness> = rounds.iter().map(|round| within(round, candidate)).collect();
    let is_selected = |round: &Round<'_>| affinity::tier(round, candidate).is_some();
    let shown = used
        .filter(|used| all.get(*used).is_some_and(Fitness::fits))
        .or_else(|| all.iter().position(Fitness::fits))
        .or_else(|| rounds.iter().position(is_selected))
        .unwrap_or(0);
    let mut fitness = all.into_iter().nth(shown)?;
    fitness.is_other_group = used.is_some_and(|used| used != shown);
    Some(fitness)
}

fn within(round: &Round<'_>, candidate: &Candidate<'_>) -> Fitness {
    let checks = FILTERS
        .iter()
        .map(|filter| (filter, (filter.check)(round, candidate).err()));
    Fitness {
        cluster: candidate.name.to_owned(),
        affinity: round.path.clone(),
        is_other_group: false,
        checks: checks.collect(),
        notes: notes(round, candidate),
    }
}

/// See [`Fitness::notes`].
fn notes(round: &Round<'_>, candidate: &Candidate<'_>) -> Vec<String> {
    let request = &round.request;
    let mut notes = Vec::new();
    if affinity::tier(round, candidate).is_some_and(|tier| tier > 0) {
        notes.push(
            "it is of an overflow group, which takes what the groups before it have no room for".to_owned(),
        );
    }
    if request.room.is_some() {
        notes.push(left(request, candidate));
    } else if request.replicas.is_some() && has_no_weight(request.placement, candidate) {
        notes.push("it has no weight in staticWeightList".to_owned());
    }
    if !request.placement.spread_constraints.is_empty() {
        notes.push("spreadConstraints limit how many are chosen".to_owned());
    }
    notes
}

/// The room of a cluster, beyond the replicas that it has.
fn left(request: &Request<'_>, candidate: &Candidate<'_>) -> String {
    if room::capacity(request, candidate.name).is_none() {
        return "it reports no status.resourceSummary, and counts as full".to_owned();
    }
    let what = if request.components.is_empty() {
        "replicas"
    } else {
        "sets of the components"
    };
    match room::further(request, candidate.name) {
        0 => format!("it has no room for more {what}"),
        more => format!("it has room for {more} more {what}"),
    }
}

fn has_no_weight(placement: &Placement, candidate: &Candidate<'_>) -> bool {
    assign::is_divided(placement) && divide::weight(placement, candidate) == 0
}

#[cfg(test)]
mod tests {
    use entourage_api::{cluster::Cluster, policy::Placement};
    use entourage_model::object::{Gvk, StrMap};
    use serde_json::{Value, json};

    use super::*;

    fn placement(value: Value) -> Placement {
        serde_json::from_value(value).unwrap()
    }

    fn cluster(spec: &Value) -> Cluster {
        let mut object = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m"},
            "spec": {"syncMode": "Push"}});
        for (key, value) in spec.as_object().unwrap() {
            object["spec"][key] = value.clone();
        }
        serde_json::from_value(object).unwrap()
    }

    /// The names of the filters that object.
    fn objections(placement: &Placement, object: &Cluster) -> (String, Vec<&'static str>) {
        let (labels, gvk) = (StrMap::new(), Gvk::new("apps/v1", "Deployment"));
        let candidate = Candidate {
            name: "m",
            labels: &labels,
            cluster: object,
            ready: true,
            deleting: false,
        };
        let request = Request::first(placement, &gvk, Some(1));
        let mut all = fitness(&request, &[candidate], Some(""));
        assert_eq!(all.len(), 1);
        let fitness = all.remove(0);
        assert_eq!(fitness.checks.len(), FILTERS.len());
        let objecting = fitness.checks.iter().filter(|(_, objection)| objection.is_some());
        let names = objecting.map(|(filter, _)| filter.name).collect();
        (fitness.affinity, names)
    }

    #[test]
    fn every_filter_that_objects_is_named_and_not_the_first_alone() {
        let tainted = cluster(&json!({"taints": [{"key": "gpu", "effect": "NoSchedule"}]}));
        let plain = cluster(&json!({}));
        let named = |name: &str| placement(json!({"clusterAffinity": {"clusterNames": [name]}}));
        for (placement, cluster, wanted) in [
            (named("m"), &plain, vec![]),
            (named("m"), &tainted, vec!["taints"]),
            (named("n"), &plain, vec!["clusterAffinity"]),
            (named("n"), &tainted, vec!["clusterAffinity", "taints"]),
        ] {
            assert_eq!(
                objections(&placement, cluster),
                ("clusterAffinity".to_owned(), wanted)
            );
        }
    }

    #[test]
    fn of_several_affinities_the_one_by_which_it_fits_is_shown() {
        let of = |names: [&str; 2]| {
            let group = |name: &str, cluster: &str| json!({"affinityName": name, "clusterNames": [cluster]});
            placement(json!({"clusterAffinities": [group("one", names[0]), group("two", names[1])]}))
        };
        let plain = cluster(&json!({}));
        for (names, affinity) in [
            (["m", "n"], "clusterAffinities[0]"),
            (["n", "m"], "clusterAffinities[1]"),
            (["n", "o"], "clusterAffinities[0]"),
        ] {
            assert_eq!(objections(&of(names), &plain).0, affinity);
        }
    }
}
