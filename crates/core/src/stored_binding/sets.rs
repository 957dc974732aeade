//! The number of sets of components where a stored result does not say that it has any: one that was stored without the gate
//! `MultiplePodTemplatesScheduling`, or by an eviction task, names the cluster alone.

use std::borrow::Cow;

use entourage_api::work::TargetCluster;

/// The stored clusters; one without replicas and components is as in the result, if that has a set of components there. The set is there
/// already. Cost: O(clusters × log).
pub(crate) fn as_sets<'a>(stored: &'a [TargetCluster], result: &[TargetCluster]) -> Cow<'a, [TargetCluster]> {
    let counted = |target: &TargetCluster| {
        let is_bare = target.replicas == 0 && target.components.is_empty();
        let set = TargetCluster::find(result, &target.name).filter(|each| each.replicas == 0);
        set.filter(|each| is_bare && !each.components.is_empty()).cloned()
    };
    if stored.iter().all(|target| counted(target).is_none()) {
        return Cow::Borrowed(stored);
    }
    let all = stored
        .iter()
        .map(|target| counted(target).unwrap_or_else(|| target.clone()));
    Cow::Owned(all.collect())
}

#[cfg(test)]
mod tests {
    use entourage_api::work::TargetComponent;

    use super::*;

    fn target(name: &str, replicas: i32, heads: i32) -> TargetCluster {
        let head = TargetComponent {
            name: "head".into(),
            replicas: heads,
        };
        TargetCluster {
            name: name.into(),
            replicas,
            components: [head].into_iter().filter(|head| head.replicas > 0).collect(),
        }
    }

    #[test]
    fn a_set_that_is_stored_by_its_cluster_alone_counts_once() {
        let (bare, old, set) = (target("a", 0, 0), target("a", 0, 1), target("a", 0, 2));
        for (stored, result, want) in [
            (&bare, &set, 1),
            (&old, &set, 1),
            (&bare, &bare, 0),
            (&bare, &target("a", 3, 0), 0),
            (&bare, &target("b", 0, 2), 0),
            (&target("a", 2, 0), &set, 2),
        ] {
            let (stored, result) = (std::slice::from_ref(stored), std::slice::from_ref(result));
            let counted = as_sets(stored, result);
            assert_eq!(counted[0].units(), want, "{stored:?} {result:?}");
        }
    }
}
