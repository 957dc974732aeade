//! The clusters that new templates of a hub go to: by the policy that claims them, and by the referrers that need them.

use std::{collections::BTreeSet, fmt, iter};

use entourage_api::{
    cluster::Cluster,
    policy::{ConflictResolution, Placement, PropagationSpec},
};
use serde::Deserialize as _;
use serde_json::Value;

use crate::{
    matching,
    object::{NamespacedName, ResourceId, Str, StrMap},
    promotion::OverridePolicies,
    scheduler::{Candidate, affinity},
    scope,
};

/// A policy of the hub, or the one that is to be created.
#[derive(Clone, Debug)]
pub struct Policy {
    name: NamespacedName,
    spec: PropagationSpec,
}

/// A member, as placements see it.
#[derive(Clone, Debug)]
pub struct Member {
    name: Str,
    labels: StrMap,
    cluster: Cluster,
}

/// A template of the hub with dependencies that are propagated.
#[derive(Clone, Debug)]
pub struct Referrer {
    /// The template.
    pub template: ResourceId,
    /// The clusters where it needs them.
    pub clusters: BTreeSet<Str>,
    /// Its dependencies.
    pub needs: BTreeSet<ResourceId>,
}

/// The objects of a hub that decide where new templates go.
#[derive(Clone, Debug, Default)]
pub struct Hub {
    /// The policies that are not being deleted.
    pub policies: Vec<Policy>,
    /// The members.
    pub members: Vec<Member>,
    /// The templates that may need the new ones.
    pub referrers: Vec<Referrer>,
    /// The policies that may change their copies.
    pub overriding: OverridePolicies,
}

/// New templates: the promoted object and its dependencies, and the cluster that they come from.
#[derive(Clone, Copy, Debug)]
pub struct Promoted<'a> {
    /// The member.
    pub cluster: &'a str,
    /// The object, and its labels.
    pub root: (&'a ResourceId, &'a StrMap),
    /// Its dependencies, and their labels.
    pub needed: &'a [(ResourceId, StrMap)],
    /// Those that the hub has already, and their labels there.
    pub present: &'a [(ResourceId, StrMap)],
    /// The policy that is to be created; `None` if an existing one is to place the object.
    pub policy: Option<&'a Policy>,
}

/// Says where the templates go if that is not their member alone, or if they do not take over the objects there as they are: as
/// an error if a policy is created, which cannot keep what it is made for then; else as notes. A namespace is an error while the
/// hub has further members: it is created there whatever a policy says. Cost: O(templates · (policies + referrers)).
///
/// # Errors
/// The policy or the referrer, and the remedy.
pub fn check(hub: &Hub, promoted: Promoted<'_>) -> Result<Vec<String>, String> {
    let all = || iter::once(promoted.root.0).chain(promoted.needed.iter().map(|(id, _)| id));
    if let Some(id) = all().find(|id| id.gvk.is_namespace())
        && hub.members.len() > 1
    {
        return Err(format!(
            "{id} would be created on every member, with its labels and annotations, as each namespace of the hub: create it on \
             the hub yourself if that is meant"
        ));
    }
    let mut notes = of_root(hub, promoted)?;
    let mut problems = overridden(hub, promoted);
    for (id, labels) in promoted.needed {
        let Some(policy) = hub.claimant(promoted.policy, id, labels) else {
            continue;
        };
        let clusters = hub.reach(&policy.spec.placement);
        if !is_only(&clusters, promoted.cluster) {
            problems.push(format!(
                "{policy} would claim its dependency {id}, and propagate it to {}, not to {} alone: narrow that policy, or \
                 promote without --deps",
                text(&clusters),
                promoted.cluster
            ));
        } else if policy.spec.conflict_resolution == ConflictResolution::Abort {
            notes.push(format!(
                "{policy} claims its dependency {id}, which is reported as Conflict until that policy has \
                 conflictResolution: Overwrite"
            ));
        }
    }
    for referrer in &hub.referrers {
        let mut others = referrer.clusters.clone();
        others.remove(promoted.cluster);
        let needs = all().find(|id| referrer.needs.contains(*id) && referrer.template != **id);
        if let Some(id) = needs.filter(|_| !others.is_empty()) {
            problems.push(format!(
                "{} needs {id} on {}, and would bring it there, too: narrow the policy of {}, or apply {id} on the hub yourself",
                referrer.template,
                text(&others),
                referrer.template
            ));
        }
    }
    if promoted.policy.is_some() && !problems.is_empty() {
        return Err(problems.swap_remove(0));
    }
    notes.append(&mut problems);
    Ok(notes)
}

impl Policy {
    /// Reads a policy as stored, or as it is to be created; `None` if it is being deleted, or cannot be read.
    #[must_use]
    pub fn of(object: &Value) -> Option<Self> {
        let meta = &object["metadata"];
        let text = |field: &str| meta[field].as_str().unwrap_or_default();
        if !meta["deletionTimestamp"].is_null() {
            return None;
        }
        Some(Self {
            name: NamespacedName::new(text("namespace"), text("name")),
            spec: PropagationSpec::deserialize(&object["spec"]).ok()?,
        })
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", scope::policy(&self.name).kind, self.name)
    }
}

impl Member {
    /// A member from its Cluster.
    #[must_use]
    pub fn new(cluster: Cluster) -> Self {
        let labels = cluster.metadata.labels.iter().flatten();
        Self {
            name: cluster.metadata.name.as_deref().unwrap_or_default().into(),
            labels: labels
                .map(|(key, value)| (Str::from(key.as_str()), Str::from(value.as_str())))
                .collect(),
            cluster,
        }
    }

    fn candidate(&self) -> Candidate<'_> {
        Candidate {
            name: &self.name,
            labels: &self.labels,
            cluster: &self.cluster,
            ready: true,
            deleting: false,
        }
    }
}

impl Hub {
    /// The policy that would claim a template. One of the hub with the name of the created one is that one.
    fn claimant<'a>(
        &'a self,
        created: Option<&'a Policy>,
        id: &ResourceId,
        labels: &StrMap,
    ) -> Option<&'a Policy> {
        let is_created = |policy: &Policy| created.is_some_and(|created| created.name == policy.name);
        let others = self.policies.iter().filter(|policy| !is_created(policy));
        let all: Vec<&Policy> = created.into_iter().chain(others).collect();
        let specs = all.iter().copied().map(|policy| (&policy.name, &policy.spec));
        let best = matching::best(specs, id, labels)?;
        all.iter().copied().find(|policy| policy.name == *best)
    }

    /// The clusters that a placement allows; no more are ever scheduled to.
    fn reach(&self, placement: &Placement) -> BTreeSet<Str> {
        let groups = placement.cluster_affinities.iter().flat_map(|term| {
            let overflow = term.overflow_affinities.iter().map(|each| &each.affinity);
            iter::once(&term.affinity).chain(overflow)
        });
        let all: Vec<_> = placement.cluster_affinity.iter().chain(groups).collect();
        let is_allowed = |member: &&Member| {
            let candidate = member.candidate();
            all.is_empty() || all.iter().any(|each| affinity::selects(each, &candidate))
        };
        let allowed = self.members.iter().filter(is_allowed);
        allowed.map(|member| member.name.clone()).collect()
    }
}

/// The override policies that would change the objects on their member.
fn overridden(hub: &Hub, promoted: Promoted<'_>) -> Vec<String> {
    let is_it = |member: &&Member| *member.name == *promoted.cluster;
    let Some(member) = hub.members.iter().find(is_it) else {
        return Vec::new();
    };
    let others = promoted.needed.iter().chain(promoted.present);
    let all = iter::once(promoted.root).chain(others.map(|(id, labels)| (id, labels)));
    all.filter_map(|(id, labels)| {
        let policy = hub.overriding.of(id, labels, &member.candidate())?;
        Some(format!(
            "{policy} selects {id}, and would change it on {}: narrow that policy, or give the object on the member what it sets \
             and create the template yourself",
            promoted.cluster
        ))
    })
    .collect()
}

fn of_root(hub: &Hub, promoted: Promoted<'_>) -> Result<Vec<String>, String> {
    let (id, labels) = promoted.root;
    let Some(policy) = hub.claimant(promoted.policy, id, labels) else {
        return Ok(vec![format!(
            "no policy of the hub selects {id}: nothing happens on {} until one does",
            promoted.cluster
        )]);
    };
    let clusters = hub.reach(&policy.spec.placement);
    let is_kept = policy.spec.conflict_resolution == ConflictResolution::Abort;
    let Some(created) = promoted.policy else {
        let effect = if is_kept {
            "an object of its name there is reported as Conflict, until the policy has conflictResolution: Overwrite"
        } else {
            "an object of its name there is overwritten"
        };
        return Ok(vec![format!(
            "{policy} claims {id} and propagates it to {}: {effect}",
            text(&clusters)
        )]);
    };
    if policy.name == created.name {
        return Ok(Vec::new());
    }
    let effect = if !is_only(&clusters, promoted.cluster) {
        format!(
            "propagate it to {}, not to {} alone",
            text(&clusters),
            promoted.cluster
        )
    } else if is_kept {
        "report the object as Conflict instead of taking it over (conflictResolution: Abort)".to_owned()
    } else {
        return Ok(vec![format!(
            "{policy} claims {id}, not the policy that is created"
        )]);
    };
    Err(format!(
        "{policy} would claim {id}, and {effect}: narrow that policy, or leave the object to it with \
         --auto-create-policy=false"
    ))
}

fn is_only(clusters: &BTreeSet<Str>, cluster: &str) -> bool {
    clusters.len() == 1 && clusters.contains(cluster)
}

fn text(clusters: &BTreeSet<Str>) -> String {
    if clusters.is_empty() {
        return "no cluster".to_owned();
    }
    let names: Vec<&str> = clusters.iter().map(|name| &**name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::Gvk;

    fn policy(namespace: &str, name: &str, spec: &Value) -> Policy {
        let object = json!({"metadata": {"namespace": namespace, "name": name}, "spec": spec});
        Policy::of(&object).unwrap_or_else(|| panic!("{object}"))
    }

    fn on(kind: &str, placement: &Value, conflict_resolution: &str) -> Value {
        let api_version = if kind == "Deployment" { "apps/v1" } else { "v1" };
        json!({"resourceSelectors": [{"apiVersion": api_version, "kind": kind}], "placement": placement,
            "conflictResolution": conflict_resolution})
    }

    fn hub(policies: Vec<Policy>, referrers: Vec<Referrer>) -> Hub {
        let member = |name: &str, env: &str| {
            let object = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
                "metadata": {"name": name, "labels": {"env": env}}, "spec": {"syncMode": "Push"}});
            Member::new(serde_json::from_value(object).unwrap_or_else(|why| panic!("{why}")))
        };
        Hub {
            policies,
            members: vec![member("m1", "prod"), member("m2", "dev")],
            referrers,
            overriding: OverridePolicies::default(),
        }
    }

    fn id(api_version: &str, kind: &str, name: &str) -> ResourceId {
        ResourceId::new(Gvk::new(api_version, kind), "shop", name)
    }

    /// The notes of a promotion of Deployment web with ConfigMap conf, or the error.
    fn checked(hub: &Hub, creates: bool) -> Result<Vec<String>, String> {
        let root = id("apps/v1", "Deployment", "web");
        let created = super::super::policy(&root, "m1", "web-deployment", true);
        let created = Policy::of(&created).unwrap_or_else(|| panic!("{created}"));
        let labels = StrMap::new();
        check(
            hub,
            Promoted {
                cluster: "m1",
                root: (&root, &labels),
                needed: &[(id("v1", "ConfigMap", "conf"), StrMap::new())],
                present: &[(
                    id("v1", "Secret", "login"),
                    StrMap::from([("app".into(), "web".into())]),
                )],
                policy: creates.then_some(&created),
            },
        )
    }

    fn m1() -> Value {
        json!({"clusterAffinity": {"clusterNames": ["m1"]}})
    }

    #[test]
    fn a_policy_that_takes_a_template_elsewhere_is_named() {
        let prod = || json!({"clusterAffinity": {"labelSelector": {"matchLabels": {"env": "prod"}}}});
        let both = || {
            json!({"clusterAffinities": [{"affinityName": "a", "clusterNames": ["m1"]},
                {"affinityName": "b", "clusterNames": ["m2"]}]})
        };
        let first = |mut spec: Value| {
            spec["priority"] = json!(1);
            spec
        };
        for (sentence, policies, expected) in [
            ("none", vec![], Ok(vec![])),
            (
                "one of less specificity",
                vec![policy("shop", "all", &on("Deployment", &json!({}), "Abort"))],
                Ok(vec![]),
            ),
            (
                "one with priority, everywhere",
                vec![policy(
                    "shop",
                    "all",
                    &first(on("Deployment", &json!({}), "Abort")),
                )],
                Err(
                    "PropagationPolicy shop/all would claim Deployment shop/web, and propagate it to m1, m2, not to m1 alone",
                ),
            ),
            (
                "one with priority, and groups",
                vec![policy(
                    "shop",
                    "all",
                    &first(on("Deployment", &both(), "Overwrite")),
                )],
                Err("propagate it to m1, m2"),
            ),
            (
                "one with priority, that keeps what is there",
                vec![policy("shop", "all", &first(on("Deployment", &prod(), "Abort")))],
                Err("conflictResolution: Abort"),
            ),
            (
                "one with priority, that does the same",
                vec![policy(
                    "shop",
                    "all",
                    &first(on("Deployment", &prod(), "Overwrite")),
                )],
                Ok(vec!["not the policy that is created"]),
            ),
            (
                "a dependency, everywhere",
                vec![policy("", "configs", &on("ConfigMap", &json!({}), "Overwrite"))],
                Err(
                    "ClusterPropagationPolicy configs would claim its dependency ConfigMap shop/conf, and propagate it to m1, m2",
                ),
            ),
            (
                "a dependency, nowhere",
                vec![policy(
                    "",
                    "configs",
                    &on(
                        "ConfigMap",
                        &json!({"clusterAffinity": {"clusterNames": ["m3"]}}),
                        "Overwrite",
                    ),
                )],
                Err("propagate it to no cluster"),
            ),
            (
                "a dependency, the same",
                vec![policy("", "configs", &on("ConfigMap", &m1(), "Overwrite"))],
                Ok(vec![]),
            ),
            (
                "a dependency, kept",
                vec![policy("", "configs", &on("ConfigMap", &m1(), "Abort"))],
                Ok(vec!["reported as Conflict"]),
            ),
            (
                "another namespace's",
                vec![policy(
                    "other",
                    "all",
                    &first(on("Deployment", &json!({}), "Abort")),
                )],
                Ok(vec![]),
            ),
        ] {
            let result = checked(&hub(policies, vec![]), true);
            match (&result, expected) {
                (Ok(notes), Ok(parts)) => {
                    assert_eq!(notes.len(), parts.len(), "{sentence}: {notes:?}");
                    assert!(
                        notes.iter().zip(parts).all(|(note, part)| note.contains(part)),
                        "{sentence}: {notes:?}"
                    );
                }
                (Err(why), Err(part)) => assert!(why.contains(part), "{sentence}: {why}"),
                _ => panic!("{sentence}: {result:?}"),
            }
        }
    }

    #[test]
    fn an_override_policy_that_would_change_an_object_is_named() {
        let label = json!([{"operator": "add", "path": "/metadata/labels/a", "value": "b"}]);
        let rule = |clusters: Value| json!([{"targetCluster": clusters, "overriders": {"plaintext": label}}]);
        let on_m1 = || rule(json!({"clusterNames": ["m1"]}));
        let web = || json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}]);
        let logins = |app: &str| json!([{"apiVersion": "v1", "kind": "Secret", "labelSelector": {"matchLabels": {"app": app}}}]);
        for (sentence, namespace, selectors, rules, expected) in [
            (
                "the object",
                "shop",
                web(),
                on_m1(),
                Some("OverridePolicy shop/over selects Deployment shop/web"),
            ),
            (
                "everything",
                "",
                json!([]),
                rule(json!({})),
                Some("ClusterOverridePolicy over selects Deployment shop/web"),
            ),
            (
                "a new dependency",
                "",
                json!([{"apiVersion": "v1", "kind": "ConfigMap"}]),
                on_m1(),
                Some("ConfigMap shop/conf"),
            ),
            (
                "a dependency of the hub",
                "shop",
                logins("web"),
                on_m1(),
                Some("Secret shop/login"),
            ),
            ("another one", "shop", logins("api"), on_m1(), None),
            ("another namespace", "other", web(), on_m1(), None),
            (
                "another cluster",
                "shop",
                web(),
                rule(json!({"clusterNames": ["m2"]})),
                None,
            ),
            ("no rule", "shop", web(), json!([]), None),
        ] {
            let over = json!({"metadata": {"namespace": namespace, "name": "over"},
                "spec": {"resourceSelectors": selectors, "overrideRules": rules}});
            let mut hub = hub(vec![], vec![]);
            hub.overriding = OverridePolicies::new(&[over]);
            let refused = checked(&hub, true).err().unwrap_or_default();
            assert_eq!(refused.is_empty(), expected.is_none(), "{sentence}: {refused}");
            assert!(
                refused.contains(expected.unwrap_or_default()),
                "{sentence}: {refused}"
            );
            let notes = checked(&hub, false).unwrap_or_else(|why| panic!("{why}"));
            let is_noted = notes.iter().any(|note| note.contains("would change it on m1"));
            assert_eq!(is_noted, expected.is_some(), "{sentence}: {notes:?}");
        }
    }

    #[test]
    fn a_namespace_is_promoted_to_a_hub_with_one_member() {
        let namespace = ResourceId::new(Gvk::new("v1", "Namespace"), "", "shop");
        let labels = StrMap::new();
        for (members, expected) in [(1, false), (2, true)] {
            let mut hub = hub(vec![], vec![]);
            hub.members.truncate(members);
            let promoted = Promoted {
                cluster: "m1",
                root: (&namespace, &labels),
                needed: &[],
                present: &[],
                policy: None,
            };
            let refused = check(&hub, promoted).err().unwrap_or_default();
            assert_eq!(refused.contains("on every member"), expected, "{refused}");
        }
    }

    #[test]
    fn without_a_new_policy_it_is_said_what_the_others_do() {
        for (policies, expected) in [
            (
                vec![],
                "no policy of the hub selects Deployment shop/web: nothing happens on m1",
            ),
            (
                vec![policy("shop", "all", &on("Deployment", &json!({}), "Abort"))],
                "PropagationPolicy shop/all claims Deployment shop/web and propagates it to m1, m2: an object of its name there is \
                 reported as Conflict",
            ),
            (
                vec![policy("shop", "all", &on("Deployment", &m1(), "Overwrite"))],
                "to m1: an object of its name there is overwritten",
            ),
        ] {
            let notes = checked(&hub(policies, vec![]), false).unwrap_or_else(|why| panic!("{why}"));
            assert!(notes[0].contains(expected), "{notes:?}");
            assert_eq!(notes.len(), 1);
        }
    }

    #[test]
    fn a_referrer_that_needs_a_dependency_elsewhere_is_named() {
        let referrer = |clusters: &[&str], needs: &str| Referrer {
            template: id("apps/v1", "Deployment", "api"),
            clusters: clusters.iter().map(|name| Str::from(*name)).collect(),
            needs: BTreeSet::from([id("v1", "ConfigMap", needs)]),
        };
        for (referrer, is_refused) in [
            (referrer(&["m1"], "conf"), false),
            (referrer(&["m1", "m2"], "conf"), true),
            (referrer(&["m2"], "conf"), true),
            (referrer(&["m2"], "other"), false),
            (referrer(&[], "conf"), false),
        ] {
            let hub = hub(vec![], vec![referrer.clone()]);
            let refused = checked(&hub, true).err();
            assert_eq!(refused.is_some(), is_refused, "{referrer:?} {refused:?}");
            if let Some(why) = refused {
                assert!(
                    why.contains("Deployment shop/api needs ConfigMap shop/conf on m2"),
                    "{why}"
                );
            }
            let notes = checked(&hub, false).unwrap_or_else(|why| panic!("{why}"));
            assert_eq!(notes.len(), 1 + usize::from(is_refused), "{notes:?}");
        }
    }
}
