//! The table of all controllers: their purpose, and their rights on the hub.
//!
//! `cargo xtask rbac` generates `config/rbac` from it. A row is a controller of the core ([`Key::controller`]) or a part of the
//! shell that sends requests of its own. Rights on members are granted there by `entourage join`.
//!
//! [`Key::controller`]: entourage_core::plan::Key::controller

// over 500 lines: one table, of which each row is short

use entourage_core::{
    cluster_info,
    interpreter::{NATIVE, native::has, operations::Operation},
    rights::{PropagatedKind, propagated},
};

/// The namespace on the hub for the Lease.
pub const SYSTEM_NAMESPACE: &str = "karmada-system";

/// The namespace on the hub for the members' credentials.
pub const CLUSTER_NAMESPACE: &str = "karmada-cluster";

/// One row of [`CONTROLLERS`].
#[derive(Clone, Copy, Debug)]
pub struct Controller {
    /// Its name in metrics, in logs and in the documentation.
    pub name: &'static str,
    /// Its purpose, in one line.
    pub summary: &'static str,
    /// The module that decides, or, for a part of the shell, the one that acts.
    pub module: &'static str,
    /// The feature gate, or the name in `--controllers`, that enables it; `None`: always enabled. Its rights are granted only if it is
    /// on.
    pub gate: Option<&'static str>,
    /// Its rights on the hub.
    pub rules: &'static [Rule],
}

/// The rights of a controller for some resources of the hub.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The resources.
    pub resources: Resources,
    /// RBAC verbs, sorted.
    pub verbs: &'static [&'static str],
    /// The scope.
    pub within: Within,
    /// The reason.
    pub reason: &'static str,
}

/// Resources of the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resources {
    /// Resources of one API group; a subresource is `resource/subresource`.
    Of(&'static str, &'static [&'static str]),
    /// Every propagated kind: the core's table of kinds. Kinds that are not granted by default are granted one by one.
    Templates,
    /// A subresource of every propagated kind.
    TemplatesSub(&'static str),
    /// A subresource of every kind that runs pods.
    WorkloadsSub(&'static str),
}

/// The scope of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Within {
    /// In all namespaces, and for cluster-scoped resources.
    All,
    /// In one namespace.
    Namespace(&'static str),
    /// For these objects only, of a cluster-scoped kind.
    Objects(&'static [&'static str]),
    /// For one object only: its namespace and its name.
    Object(&'static str, &'static str),
}

const POLICY: &str = "policy.karmada.io";
const WORK: &str = "work.karmada.io";
const CLUSTER: &str = "cluster.karmada.io";
const CONFIG: &str = "config.karmada.io";
const KRUISE: &str = "apps.kruise.io";
const APPS: &str = "apps.karmada.io";
const SERVICES: &str = "multicluster.x-k8s.io";
const DISCOVERY: &str = "discovery.k8s.io";

/// All controllers, sorted by name.
pub const CONTROLLERS: &[Controller] = &[
    Controller {
        name: "cluster",
        summary: "reports for each Cluster whether its member responds and what it serves, taints it accordingly, \
            keeps its execution namespace, and removes its finalizer when no copy is left there",
        module: "entourage_core::cluster",
        gate: None,
        rules: &[
            rule(
                Resources::Of(CLUSTER, &["clusters"]),
                &["get", "list", "patch", "watch"],
                "finalizer and taints",
            ),
            rule(
                Resources::Of(CLUSTER, &["clusters/status"]),
                &["patch"],
                "Ready, version and APIs of the member",
            ),
            rule(
                Resources::Of(POLICY, &["clustertaintpolicies"]),
                &["list", "watch"],
                "which taints follow from conditions",
            ),
            rule(
                Resources::Of("", &["namespaces"]),
                &["create", "delete", "get", "list", "watch"],
                "the execution namespace of each Cluster, karmada-es-<cluster>",
            ),
            rule(
                Resources::Of(WORK, &["works"]),
                &["list"],
                "an execution namespace with a Work in it is not deleted",
            ),
        ],
    },
    Controller {
        name: "cluster_info",
        summary: "signs the ConfigMap kube-public/cluster-info with the bootstrap tokens, so that who has a token finds the hub by it",
        module: "entourage_core::cluster_info",
        gate: Some("bootstrapsigner"),
        rules: &[
            Rule {
                within: Within::Namespace(cluster_info::TOKENS),
                ..rule(
                    Resources::Of("", &["secrets"]),
                    &["list", "watch"],
                    "bootstrap tokens, which are Secrets: the right covers all Secrets of the namespace",
                )
            },
            Rule {
                within: Within::Object(cluster_info::NAMESPACE, cluster_info::NAME),
                ..rule(
                    Resources::Of("", &["configmaps"]),
                    &["list", "patch", "watch"],
                    "the signatures in cluster-info",
                )
            },
        ],
    },
    Controller {
        name: "delivery",
        summary: "delivers copies to members and deletes them",
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
        summary: "writes bindings: where a template is propagated by its policy, and where as a dependency",
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
                Resources::Of("scheduling.k8s.io", &["priorityclasses"]),
                &["list", "watch"],
                "the priorities that policies name, in which bindings are scheduled",
            ),
            rule(
                Resources::Of("apiextensions.k8s.io", &["customresourcedefinitions"]),
                &["get", "list"],
                "whether a kind that is not served is gone, with its objects, or is only not served for a while",
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
        summary: "reads how kinds are interpreted from customizations and webhooks",
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
                "where a webhook or an estimator behind a Service is",
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
                &["get", "patch"],
                "the members' credentials; where one without that record is first used is recorded on it",
            )
        }],
    },
    Controller {
        name: "namespaces",
        summary: "propagates the hub's namespaces to every member, with their labels",
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
        name: "pull",
        summary: "reads and writes the copies of members in Pull mode, which are Works",
        module: "entourage_controllers::pull",
        gate: None,
        rules: &[
            rule(
                Resources::Of(WORK, &["works"]),
                &["create", "delete", "get", "list", "patch", "watch"],
                "what the agent of a cluster in Pull mode applies",
            ),
            Rule {
                within: Within::Namespace(CLUSTER_NAMESPACE),
                ..rule(
                    Resources::Of("coordination.k8s.io", &["leases"]),
                    &["get", "list", "watch"],
                    "whether an agent lives",
                )
            },
        ],
    },
    Controller {
        name: "quotas",
        summary: "makes the ResourceQuotas of FederatedResourceQuotas on members, and reports their use",
        module: "entourage_core::quotas",
        gate: None,
        rules: &[
            rule(
                Resources::Of(POLICY, &["federatedresourcequotas"]),
                &["get", "list", "patch", "watch"],
                "limits, and a finalizer while members have ResourceQuotas",
            ),
            rule(
                Resources::Of(POLICY, &["federatedresourcequotas/status"]),
                &["update"],
                "what is used, overall and on each member",
            ),
        ],
    },
    Controller {
        name: "rebalancer",
        summary: "reschedules workloads where WorkloadRebalancers ask for it, and reports the results",
        module: "entourage_core::rebalancer",
        gate: None,
        rules: &[
            rule(
                Resources::Of(APPS, &["workloadrebalancers"]),
                &["delete", "get", "list", "watch"],
                "which workloads; one is deleted as long after it finished as it says",
            ),
            rule(
                Resources::Of(APPS, &["workloadrebalancers/status"]),
                &["patch"],
                "what came of each workload",
            ),
        ],
    },
    Controller {
        name: "registration",
        summary: "approves the CertificateSigningRequests of agents that register or renew their certificate",
        module: "entourage_core::registration",
        gate: Some("agentcsrapproving"),
        rules: &[
            rule(
                Resources::Of("certificates.k8s.io", &["certificatesigningrequests"]),
                &["list", "watch"],
                "which certificates agents ask for",
            ),
            rule(
                Resources::Of("certificates.k8s.io", &["certificatesigningrequests/approval"]),
                &["update"],
                "the condition Approved",
            ),
            Rule {
                within: Within::Objects(&["kubernetes.io/kube-apiserver-client"]),
                ..rule(
                    Resources::Of("certificates.k8s.io", &["signers"]),
                    &["approve"],
                    "the signer of client certificates; this permits to approve a certificate of any user",
                )
            },
            rule(
                Resources::Of("authorization.k8s.io", &["subjectaccessreviews"]),
                &["create"],
                "whether the sender of a request may have the certificate",
            ),
        ],
    },
    Controller {
        name: "services",
        summary: "collects the endpoints of Services that members export, and makes Services of ServiceImports",
        module: "entourage_core::services",
        gate: Some("serviceImport"),
        rules: &[
            rule(
                Resources::Of(SERVICES, &["serviceexports", "serviceimports"]),
                &["get", "list", "watch"],
                "which Services are exported and imported",
            ),
            rule(
                Resources::Of(DISCOVERY, &["endpointslices"]),
                &["create", "delete", "get", "list", "patch", "watch"],
                "one for each EndpointSlice of an exported Service on a member",
            ),
            rule(
                Resources::Of("", &["services"]),
                &["create", "delete", "get", "list", "patch", "watch"],
                "one for each ServiceImport",
            ),
        ],
    },
    Controller {
        name: "status",
        summary: "reports the status of a template on its members",
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
    Controller {
        name: "works",
        summary: "mirrors each copy as a Work in the execution namespace of its Cluster",
        module: "entourage_core::works",
        gate: None,
        rules: &[
            rule(
                Resources::Of(WORK, &["works"]),
                &["create", "delete", "get", "list", "patch", "watch"],
                "with --work-objects=mirror: a view of each copy",
            ),
            rule(
                Resources::Of(WORK, &["works/status"]),
                &["patch"],
                "with --work-objects=mirror: conditions, and what the member reports",
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
    /// API groups and resources as RBAC names them, of those granted by default: without duplicates, sorted.
    #[must_use]
    pub fn list(self) -> Vec<(&'static str, String)> {
        let mut all = match self {
            Self::Of(group, resources) => resources
                .iter()
                .map(|resource| (group, (*resource).to_owned()))
                .collect(),
            Self::Templates | Self::TemplatesSub(_) | Self::WorkloadsSub(_) => {
                let default = propagated().iter().filter(|kind| kind.resource.on_hub);
                default.flat_map(|kind| self.of_kind(kind)).collect::<Vec<_>>()
            }
        };
        all.sort();
        all.dedup();
        all
    }

    /// The API groups and resources for one propagated kind.
    #[must_use]
    pub fn of_kind(self, kind: &PropagatedKind) -> Vec<(&'static str, String)> {
        let plural = kind.resource.plural;
        let resource = match self {
            Self::Of(..) => None,
            Self::Templates => Some(plural.to_owned()),
            Self::TemplatesSub(sub) => Some(format!("{plural}/{sub}")),
            Self::WorkloadsSub(sub) => is_aggregated(kind).then(|| format!("{plural}/{sub}")),
        };
        resource
            .map(|resource| (kind.group, resource))
            .into_iter()
            .collect()
    }
}

/// True if the status of its copies is aggregated on the template.
fn is_aggregated(kind: &PropagatedKind) -> bool {
    NATIVE.iter().any(|native| {
        let gvk = native.gvk();
        gvk.group == kind.group && gvk.kind == kind.kind && has(*native, Operation::Aggregate)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use entourage_core::{
        distribution::Place,
        interpreter::hook::Contract,
        object::{Gvk, NamespacedName, ResourceId},
        observation::{ServicePart, Watch, kind_read_by},
        plan::Key,
    };

    use super::*;
    use crate::client::path::Path;

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
                        let grant = (group, resource.clone(), *verb, rule.within);
                        assert!(granted.insert(grant), "{}: {verb} {resource} twice", row.name);
                    }
                }
            }
        }
    }

    #[test]
    fn every_key_is_planned_by_a_controller_of_the_table() {
        let id = ResourceId::new(Gvk::new("apps/v1", "Deployment"), "ns", "a");
        let name = NamespacedName::new("ns", "a");
        let keys = [
            Key::Policy(name.clone()),
            Key::Override(name),
            Key::Template(id.clone()),
            Key::TemplateStatus(id.clone()),
            Key::Scaling(id.clone()),
            Key::Binding(id.clone()),
            Key::BindingStatus(id.clone()),
            Key::Copy(id, "m1".into()),
            Key::Cluster("m1".into()),
            Key::Namespace("ns".into(), "m1".into()),
            Key::Distribution("a".into()),
            Key::DistributionStatus("a".into()),
            Key::Rebalancer("a".into()),
            Key::Quota(NamespacedName::new("ns", "a")),
            Key::QuotaCopy(NamespacedName::new("ns", "a"), "m1".into()),
            Key::ExecutionNamespace("a".into()),
            Key::Endpoints("m1".into(), NamespacedName::new("ns", "a")),
            Key::DerivedService(NamespacedName::new("ns", "a")),
            Key::Work(ResourceId::new(Gvk::new("v1", "Secret"), "ns", "a"), "m1".into()),
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
                | Key::Override(_)
                | Key::Template(_)
                | Key::TemplateStatus(_)
                | Key::Scaling(_)
                | Key::Binding(_)
                | Key::BindingStatus(_)
                | Key::Copy(..)
                | Key::Cluster(_)
                | Key::Namespace(..)
                | Key::Distribution(_)
                | Key::DistributionStatus(_)
                | Key::Distributed(..)
                | Key::Rebalancer(_)
                | Key::Quota(_)
                | Key::QuotaCopy(..)
                | Key::ExecutionNamespace(_)
                | Key::Endpoints(..)
                | Key::DerivedService(_)
                | Key::Work(..) => {}
            }
            let row = row(key.controller());
            assert!(row.module.starts_with("entourage_core::"), "{}", row.name);
        }
    }

    #[test]
    fn every_watch_of_the_hub_is_granted_to_a_controller() {
        let watches = [
            Watch::Policies,
            Watch::ClusterPolicies,
            Watch::Overrides,
            Watch::ClusterOverrides,
            Watch::Bindings,
            Watch::ClusterBindings,
            Watch::Clusters,
            Watch::Customizations,
            Watch::Hooks(Contract::Interpreter),
            Watch::Hooks(Contract::Explorer),
            Watch::TaintPolicies,
            Watch::Namespaces,
            Watch::Templates(Gvk::new("apps/v1", "Deployment")),
            Watch::Distributions,
            Watch::Distributed(None, Gvk::new("v1", "ConfigMap"), "a".into()),
            Watch::Rebalancers,
            Watch::Quotas,
            Watch::PriorityClasses,
            Watch::Works,
            Watch::Leases,
            Watch::ServiceParts(ServicePart::Import),
            Watch::ServiceParts(ServicePart::Derived),
            Watch::ServiceParts(ServicePart::Imported),
        ];
        for watch in watches {
            // A new kind of watch has no arm here, which is a reminder to add it above if it is one of the hub.
            match watch {
                Watch::Policies
                | Watch::ClusterPolicies
                | Watch::Overrides
                | Watch::ClusterOverrides
                | Watch::Bindings
                | Watch::ClusterBindings
                | Watch::Clusters
                | Watch::Customizations
                | Watch::Hooks(_)
                | Watch::TaintPolicies
                | Watch::Namespaces
                | Watch::MemberNamespaces(_)
                | Watch::Nodes(_)
                | Watch::Pods(_)
                | Watch::Templates(_)
                | Watch::Copies(..)
                | Watch::Distributions
                | Watch::Distributed(..)
                | Watch::Rebalancers
                | Watch::Quotas
                | Watch::PriorityClasses
                | Watch::QuotaCopies(_)
                | Watch::Works
                | Watch::Leases
                | Watch::ServiceParts(_)
                | Watch::Endpoints(..) => {}
            }
            let group = kind_read_by(&watch).group;
            let resource = Path::watched(&watch).resource;
            let mut rules = CONTROLLERS.iter().flat_map(|row| row.rules);
            let is_granted = rules.any(|rule| {
                let lists = ["list", "watch"].iter().all(|verb| rule.verbs.contains(verb));
                lists && rule.resources.list().contains(&(&*group, resource.to_string()))
            });
            assert!(
                is_granted,
                "no rule of CONTROLLERS (crates/controllers/src/controllers.rs) grants list and watch of {resource} of {group:?}"
            );
        }
    }

    #[test]
    fn templates_are_the_kinds_that_are_granted_by_default_and_the_others_are_granted_one_by_one() {
        let all = Resources::Templates.list();
        assert!(all.contains(&("apps", "deployments".into())));
        assert!(all.contains(&("", "persistentvolumeclaims".into())));
        assert!(!all.contains(&("", "secrets".into())));
        assert!(!all.iter().any(|(group, _)| *group == "rbac.authorization.k8s.io"));
        let finalizers = Resources::TemplatesSub("finalizers").list();
        assert!(finalizers.contains(&("", "configmaps/finalizers".into())));
        let status = Resources::WorkloadsSub("status").list();
        assert!(status.contains(&("batch", "jobs/status".into())));
        assert!(!status.contains(&("", "configmaps/status".into())));
        let secrets = propagated().iter().find(|kind| kind.resource.plural == "secrets");
        let secrets = secrets.expect("in the table");
        assert_eq!(
            Resources::Templates.of_kind(secrets),
            [("", "secrets".to_owned())]
        );
        assert!(Resources::WorkloadsSub("status").of_kind(secrets).is_empty());
        assert!(Resources::Of("", &["secrets"]).of_kind(secrets).is_empty());
    }

    #[test]
    fn defaults_of_the_options_lie_where_the_rules_hold() {
        let options = crate::Options::default();
        assert_eq!(options.lease_namespace, SYSTEM_NAMESPACE);
        assert_eq!(options.cluster_namespace, CLUSTER_NAMESPACE);
    }
}
