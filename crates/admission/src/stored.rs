//! Fields and selections without effect: their author is warned. The condition `Effective` reports them later.

use entourage_model::problem::Problem;
use serde_json::Value;

use crate::request::items;

/// Placements that cannot select any cluster.
pub(super) fn excluded(object: &Value, warnings: &mut Vec<Problem>) {
    let placement = &object["spec"]["placement"];
    let groups = items(&placement["clusterAffinities"]).iter().enumerate();
    let groups = groups.flat_map(|(at, each)| {
        let path = format!("spec.placement.clusterAffinities[{at}]");
        let overflow = items(&each["overflowAffinities"]).iter().enumerate();
        let overflow = overflow.map(|(at, each)| (format!("{path}.overflowAffinities[{at}]"), each));
        let all: Vec<_> = overflow.collect();
        [(path, each)].into_iter().chain(all)
    });
    let one = (
        "spec.placement.clusterAffinity".to_owned(),
        &placement["clusterAffinity"],
    );
    let all = groups.chain([one]);
    warnings.extend(all.filter_map(|(path, affinity)| selects_none(&path, affinity)));
}

/// Override policies that cannot change any object.
pub(super) fn override_nothing(object: &Value, warnings: &mut Vec<Problem>) {
    let spec = &object["spec"];
    let says_something = |overriders: &Value| {
        overriders
            .as_object()
            .is_some_and(|all| all.values().any(|each| !items(each).is_empty()))
    };
    let rules = items(&spec["overrideRules"]);
    let mut all = rules.iter().map(|rule| &rule["overriders"]);
    if !all.any(says_something) && (!rules.is_empty() || !says_something(&spec["overriders"])) {
        warnings.push(Problem::new(
            "spec.overrideRules",
            "there are no overriders, so no copy is changed",
            "add some",
        ));
    }
    for (at, rule) in rules.iter().enumerate() {
        let path = format!("spec.overrideRules[{at}].targetCluster");
        warnings.extend(selects_none(&path, &rule["targetCluster"]));
    }
    warnings.extend(selects_none("spec.targetCluster", &spec["targetCluster"]));
}

/// An affinity that excludes every cluster that it names.
fn selects_none(path: &str, affinity: &Value) -> Option<Problem> {
    let (named, excluded) = (items(&affinity["clusterNames"]), items(&affinity["exclude"]));
    let is_empty = !named.is_empty() && named.iter().all(|name| excluded.contains(name));
    is_empty.then(|| {
        Problem::new(
            format!("{path}.exclude"),
            "every cluster in clusterNames is excluded, so none is selected",
            "take one out of exclude",
        )
    })
}
