//! Every controller in one table: what it is for, and what it may do on the hub.
//!
//! `cargo xtask rbac` makes `config/rbac` of it. A row is a controller of the core ([`Key::controller`]) or a part of the
//! shell that sends requests of its own. What controllers may do on members is granted there by `entourage join`.
//!
//! [`Key::controller`]: entourage_core::plan::Key::controller

use std::borrow::Cow;

use entourage_core::{
    interpreter::{
        NATIVE, NativeKind,
        operations::{Operation, has},
    },
    object::Gvk,
};

use crate::client::path::plural;

/// The namespace on the hub that holds the Lease.
pub const SYSTEM_NAMESPACE: &str = "karmada-system";

/// The namespace on the hub that holds the members' credentials.
pub const CLUSTER_NAMESPACE: &str = "karmada-cluster";

/// One row of [`CONTROLLERS`].
#[derive(Clone, Copy, Debug)]
pub struct Controller {
    /// The word for it: in metrics, in logs and in the documentation.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// The module that decides, or, for a part of the shell, the one that acts.
    pub module: &'static str,
    /// The feature gate that it runs with; `None`: always. Its rights are granted only where the gate is on.
    pub gate: Option<&'static str>,
    /// What it may do on the hub.
    pub rules: &'static [Rule],
}

/// What a controller may do with some resources of the hub.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Which resources.
    pub resources: Resources,
    /// RBAC verbs, sorted.
    pub verbs: &'static [&'static str],
    /// Where.
    pub within: Within,
    /// What needs it.
    pub reason: &'static str,
}

/// Resources of the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resources {
    /// Resources of one API group; a subresource is `resource/subresource`.
    Of(&'static str, &'static [&'static str]),
    /// Every kind that is propagated: the core's table of kinds.
    Templates,
    /// A subresource of every kind that is propagated.
    TemplatesSub(&'static str),
    /// A subresource of every kind that runs pods.
    WorkloadsSub(&'static str),
}

/// Where a rule holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Within {
    /// In every namespace, and for what has none.
    All,
    /// In one namespace.
    Namespace(&'static str),
    /// For these objects only, of a kind that has no namespace.
    Objects(&'static [&'static str]),
}

const POLICY: &str = "policy.karmada.io";
const WORK: &str = "work.karmada.io";
const CLUSTER: &str = "cluster.karmada.io";
const CONFIG: &str = "config.karmada.io";
const KRUISE: &str = "apps.kruise.io";

/// Every controller, sorted by name.
pub const CONTROLLERS: &[Controller] = &[
    Controller {
        name: "cluster",
        summary: "says of each Cluster whether its member answers and what it serves, and lets it go when nothing is left there",
        module: "entourage_core::cluster",
        gate: None,
        rules: &[
            rule(
                Resources::Of(CLUSTER, &["clusters"]),
                &["get", "list", "patch", "watch"],
                "finalizer",
            ),
            rule(
                Resources::Of(CLUSTER, &["clusters/status"]),
                &["patch"],
                "Ready, version and APIs of the member",
            ),
        ],
    },
    Controller {
        name: "delivery",
        summary: "brings copies to members and takes them away",
        module: "entourage_core::delivery",
        gate: None,
        rules: &[rule(
            Resources::Templates,
            &["get"],
            "what is delivered, read when it is delivered",
        )],
    },
    Controller {
        name: "dependencies",
        summary: "writes bindings: where a template goes by its policy, and where because something there needs it",
        module: "entourage_core::binding",
        gate: None,
        rules: &[
            rule(
                Resources::Of(WORK, &["clusterresourcebindings", "resourcebindings"]),
                &["create", "delete", "get", "list", "update", "watch"],
                "the one writer of bindings",
            ),
            rule(
                Resources::Templates,
                &["get", "list", "watch"],
                "what refers to what, and what is gone for certain",
            ),
            rule(
                Resources::TemplatesSub("finalizers"),
                &["update"],
                "a binding is owned by its template and blocks its deletion: some hubs ask for this then",
            ),
        ],
    },
    Controller {
        name: "detector",
        summary: "decides which policy claims a template",
        module: "entourage_core::detector",
        gate: None,
        rules: &[
            rule(
                Resources::Of(POLICY, &["clusterpropagationpolicies", "propagationpolicies"]),
                &["get", "list", "patch", "watch"],
                "permanent id and finalizer",
            ),
            rule(
                Resources::Of(
                    POLICY,
                    &["clusterpropagationpolicies/status", "propagationpolicies/status"],
                ),
                &["patch"],
                "the condition Matched",
            ),
            rule(
                Resources::Templates,
                &["get", "list", "patch", "watch"],
                "the claim: one label, two annotations",
            ),
        ],
    },
    Controller {
        name: "distribution",
        summary: "keeps the copies of ResourceDistributions in step",
        module: "entourage_core::distribution",
        gate: Some("ResourceDistributionGate"),
        rules: &[
            rule(
                Resources::Of(KRUISE, &["resourcedistributions"]),
                &["get", "list", "patch", "watch"],
                "what is distributed, where to; its finalizer",
            ),
            rule(
                Resources::Of(KRUISE, &["resourcedistributions/status"]),
                &["patch"],
                "counts and six conditions",
            ),
            rule(
                Resources::Of(KRUISE, &["resourcedistributions/finalizers"]),
                &["update"],
                "a copy is owned by its distribution and blocks its deletion: some hubs ask for this then",
            ),
            rule(
                Resources::Of("", &["configmaps", "secrets"]),
                &["create", "delete", "get", "list", "update", "watch"],
                "the copies; all but create may be limited to the distributed names with resourceNames",
            ),
            rule(
                Resources::Of("", &["namespaces"]),
                &["get", "list", "watch"],
                "which are meant",
            ),
        ],
    },
    Controller {
        name: "events",
        summary: "records Events on the objects that they are about",
        module: "entourage_controllers::execute::events",
        gate: None,
        rules: &[rule(
            Resources::Of("", &["events"]),
            &["create", "patch"],
            "a repeated Event is counted up",
        )],
    },
    Controller {
        name: "identity",
        summary: "reads the id of the hub, which marks its copies on members",
        module: "entourage_controllers",
        gate: None,
        rules: &[Rule {
            within: Within::Objects(&["kube-system"]),
            ..rule(
                Resources::Of("", &["namespaces"]),
                &["get"],
                "its uid is the hub's id",
            )
        }],
    },
    Controller {
        name: "interpreter",
        summary: "learns kinds from customizations and webhooks",
        module: "entourage_core::interpreter",
        gate: None,
        rules: &[
            rule(
                Resources::Of(
                    CONFIG,
                    &[
                        "resourceinterpretercustomizations",
                        "resourceinterpreterwebhookconfigurations",
                        "resourceexploringwebhookconfigurations",
                    ],
                ),
                &["list", "watch"],
                "how objects of a kind are understood",
            ),
            rule(
                Resources::Of("", &["services"]),
                &["get"],
                "where a webhook behind a Service is",
            ),
        ],
    },
    Controller {
        name: "lease",
        summary: "lets one process act at a time",
        module: "entourage_controllers::lease",
        gate: None,
        rules: &[Rule {
            within: Within::Namespace(SYSTEM_NAMESPACE),
            ..rule(
                Resources::Of("coordination.k8s.io", &["leases"]),
                &["create", "get", "update"],
                "leader election",
            )
        }],
    },
    Controller {
        name: "members",
        summary: "connects to members and probes them",
        module: "entourage_controllers::members",
        gate: None,
        rules: &[Rule {
            within: Within::Namespace(CLUSTER_NAMESPACE),
            ..rule(
                Resources::Of("", &["secrets"]),
                &["get"],
                "the members' credentials",
            )
        }],
    },
    Controller {
        name: "namespaces",
        summary: "brings the hub's namespaces to every member, with their labels",
        module: "entourage_core::namespaces",
        gate: None,
        rules: &[rule(
            Resources::Of("", &["namespaces"]),
            &["get", "list", "watch"],
            "what members get",
        )],
    },
    Controller {
        name: "overrides",
        summary: "changes copies where override policies say so",
        module: "entourage_core::overrides",
        gate: None,
        rules: &[rule(
            Resources::Of(POLICY, &["clusteroverridepolicies", "overridepolicies"]),
            &["list", "watch"],
            "what is changed, where",
        )],
    },
    Controller {
        name: "status",
        summary: "reports how a template fares on its members",
        module: "entourage_core::status",
        gate: None,
        rules: &[
            rule(
                Resources::Of(
                    WORK,
                    &["clusterresourcebindings/status", "resourcebindings/status"],
                ),
                &["update"],
                "conditions and one entry per member",
            ),
            rule(
                Resources::WorkloadsSub("status"),
                &["patch"],
                "the sum of the members' status",
            ),
            rule(
                Resources::Of("", &["nodes"]),
                &["list"],
                "a hub with Nodes runs workload controllers, which write that status themselves",
            ),
        ],
    },
];

const fn rule(resources: Resources, verbs: &'static [&'static str], reason: &'static str) -> Rule {
    Rule {
        resources,
        verbs,
        within: Within::All,
        reason,
    }
}

impl Resources {
    /// API groups and resources as RBAC names them, without duplicates, sorted.
    #[must_use]
    pub fn list(self) -> Vec<(Cow<'static, str>, Cow<'static, str>)> {
        let kind = |native: &&dyn NativeKind| {
            let gvk = native.gvk();
            let resource = plural(&Gvk {
                group: gvk.group.into(),
                version: gvk.version.into(),
                kind: gvk.kind.into(),
            });
            (Cow::Borrowed(gvk.group), resource)
        };
        let with = |sub: &'static str| {
            move |(group, resource): (Cow<'static, str>, Cow<'static, str>)| {
                (group, Cow::Owned(format!("{resource}/{sub}")))
            }
        };
        let is_aggregated = |native: &&&dyn NativeKind| has(**native, Operation::Aggregate);
        let mut all: Vec<_> = match self {
            Self::Of(group, resources) => resources
                .iter()
                .map(|resource| (Cow::Borrowed(group), Cow::Borrowed(*resource)))
                .collect(),
            Self::Templates => NATIVE.iter().map(kind).collect(),
            Self::TemplatesSub(sub) => NATIVE.iter().map(kind).map(with(sub)).collect(),
            Self::WorkloadsSub(sub) => NATIVE
                .iter()
                .filter(is_aggregated)
                .map(kind)
                .map(with(sub))
                .collect(),
        };
        all.sort();
        all.dedup();
        all
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use entourage_core::{
        distribution::Place,
        object::{Id, Named},
        plan::Key,
    };

    use super::*;

    fn row(name: &str) -> &'static Controller {
        let found = CONTROLLERS.iter().find(|row| row.name == name);
        found.unwrap_or_else(|| panic!("{name} has no row"))
    }

    #[test]
    fn every_row_stands_once_in_order_and_says_what_it_does() {
        assert!(CONTROLLERS.is_sorted_by(|one, other| one.name < other.name));
        for row in CONTROLLERS {
            assert!(
                !row.summary.is_empty() && !row.summary.ends_with('.'),
                "{}",
                row.name
            );
            assert!(row.module.starts_with("entourage_"), "{}", row.name);
            assert!(!row.rules.is_empty(), "{}", row.name);
        }
    }

    #[test]
    fn every_rule_grants_something_for_a_reason_and_nothing_twice() {
        for row in CONTROLLERS {
            let mut granted = BTreeSet::new();
            for rule in row.rules {
                assert!(!rule.reason.is_empty() && !rule.verbs.is_empty(), "{}", row.name);
                assert!(rule.verbs.is_sorted_by(|one, other| one < other), "{}", row.name);
                for (group, resource) in rule.resources.list() {
                    assert!(
                        !resource.contains('*') && !rule.verbs.contains(&"*"),
                        "{} asks for everything",
                        row.name
                    );
                    for verb in rule.verbs {
                        let grant = (group.clone(), resource.clone(), *verb, rule.within);
                        assert!(granted.insert(grant), "{}: {verb} {resource} twice", row.name);
                    }
                }
            }
        }
    }

    #[test]
    fn every_key_is_planned_by_a_controller_of_the_table() {
        let id = Id::new(Gvk::new("apps/v1", "Deployment"), "ns", "a");
        let name = Named::new("ns", "a");
        let keys = [
            Key::Policy(name),
            Key::Template(id.clone()),
            Key::TemplateStatus(id.clone()),
            Key::Binding(id.clone()),
            Key::BindingStatus(id.clone()),
            Key::Copy(id, "m1".into()),
            Key::Cluster("m1".into()),
            Key::Namespace("ns".into(), "m1".into()),
            Key::Distribution("a".into()),
            Key::DistributionStatus("a".into()),
            Key::Distributed(
                "a".into(),
                Place {
                    cluster: None,
                    namespace: "ns".into(),
                },
            ),
        ];
        for key in keys {
            // A new kind of key has no arm here, which is a reminder to add it above.
            match key {
                Key::Policy(_)
                | Key::Template(_)
                | Key::TemplateStatus(_)
                | Key::Binding(_)
                | Key::BindingStatus(_)
                | Key::Copy(..)
                | Key::Cluster(_)
                | Key::Namespace(..)
                | Key::Distribution(_)
                | Key::DistributionStatus(_)
                | Key::Distributed(..) => {}
            }
            let row = row(key.controller());
            assert!(row.module.starts_with("entourage_core::"), "{}", row.name);
        }
    }

    #[test]
    fn templates_are_the_kinds_of_the_core() {
        let all = Resources::Templates.list();
        let kinds: BTreeSet<_> = NATIVE
            .iter()
            .map(|native| (native.gvk().group, native.gvk().kind))
            .collect();
        assert_eq!(all.len(), kinds.len());
        assert!(all.contains(&("apps".into(), "deployments".into())));
        assert!(all.contains(&("".into(), "persistentvolumeclaims".into())));
        let finalizers = Resources::TemplatesSub("finalizers").list();
        assert!(finalizers.contains(&("".into(), "secrets/finalizers".into())));
        let status = Resources::WorkloadsSub("status").list();
        assert!(status.contains(&("batch".into(), "jobs/status".into())));
        assert!(!status.contains(&("".into(), "secrets/status".into())));
    }

    #[test]
    fn defaults_of_the_options_lie_where_the_rules_hold() {
        let options = crate::Options::default();
        assert_eq!(options.lease_namespace, SYSTEM_NAMESPACE);
        assert_eq!(options.cluster_namespace, CLUSTER_NAMESPACE);
    }
}
