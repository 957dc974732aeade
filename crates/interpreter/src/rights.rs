//! The native kinds that the controllers may manage by default: the roles on the hub (`config/rbac`) and those that `entourage
//! join` makes on members are generated from the resource of each kind.

use std::sync::LazyLock;

use crate::{NATIVE, kind::Resource};

/// The folder with the rights for kinds that are not granted by default, a folder each, under the root of the repository.
pub const KINDS_FOLDER: &str = "config/rbac-kinds";

/// A native kind in all its versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PropagatedKind {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// The resource: its plural, its scope, and the clusters on which it is granted by default.
    pub resource: Resource,
}

/// Every native kind, sorted by group and plural.
#[must_use]
pub fn propagated() -> &'static [PropagatedKind] {
    static PROPAGATED: LazyLock<Vec<PropagatedKind>> = LazyLock::new(|| {
        let mut all: Vec<_> = NATIVE
            .iter()
            .filter_map(|native| {
                let gvk = native.gvk();
                Some(PropagatedKind {
                    group: gvk.group,
                    kind: gvk.kind,
                    resource: native.resource()?,
                })
            })
            .collect();
        all.sort_by_key(|each| (each.group, each.resource.plural));
        all.dedup();
        all
    });
    &PROPAGATED
}

/// The native kind of this group and name, whatever its version. Cost: O(n), n ≈ 30.
#[must_use]
pub fn propagated_kind(group: &str, kind: &str) -> Option<&'static PropagatedKind> {
    propagated()
        .iter()
        .find(|each| each.group == group && each.kind == kind)
}

/// The instruction that gives the controllers the right to a kind that they may not list on the hub.
#[must_use]
pub fn remedy(group: &str, kind: &str) -> String {
    match propagated_kind(group, kind).filter(|each| !each.resource.on_hub) {
        Some(each) => format!("kubectl apply -k {KINDS_FOLDER}/{} grants it", each.resource.plural),
        None => "grant get, list, watch and patch of it, and update of its finalizers, to the controllers' account".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_native_kind_has_one_resource_in_all_its_versions() {
        for native in NATIVE {
            let gvk = native.gvk();
            assert!(native.resource().is_some(), "{gvk:?}: no resource");
            let known = propagated_kind(gvk.group, gvk.kind).map(|each| each.resource);
            assert_eq!(
                native.resource(),
                known,
                "{gvk:?}: another version has another resource"
            );
        }
        let plurals: BTreeSet<_> = propagated().iter().map(|each| each.resource.plural).collect();
        assert_eq!(
            plurals.len(),
            propagated().len(),
            "folders are named after plurals"
        );
    }

    #[test]
    fn what_decides_who_may_do_what_is_granted_nowhere_by_default() {
        let of = |plural| {
            let mut all = propagated().iter().map(|each| each.resource);
            all.find(|resource| resource.plural == plural)
        };
        for plural in [
            "apiservices",
            "clusterroles",
            "customresourcedefinitions",
            "mutatingwebhookconfigurations",
            "validatingwebhookconfigurations",
        ] {
            let found = of(plural);
            assert!(
                found.is_some_and(|each| !each.on_hub && !each.on_members),
                "{plural}"
            );
        }
        let secrets = of("secrets");
        assert!(secrets.is_some_and(|each| !each.on_hub && each.on_members));
    }

    #[test]
    fn a_missing_right_is_reported_with_what_grants_it() {
        let known = remedy("rbac.authorization.k8s.io", "ClusterRole");
        assert_eq!(known, "kubectl apply -k config/rbac-kinds/clusterroles grants it");
        for (group, kind) in [("example.com", "Widget"), ("apps", "Deployment")] {
            assert!(remedy(group, kind).contains("get, list, watch and patch"));
        }
    }
}
