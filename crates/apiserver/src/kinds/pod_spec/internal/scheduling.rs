//! Types about where pods run, and others that messages quote.

use super::types::{
    Fields,
    Form::{Always, Many, Maybe, Number, Plain, Text},
};

/// Each type: its fields in order, by their own names and those in JSON.
pub(super) const TYPES: &[(&str, Fields)] = &[
    (
        "Affinity",
        &[
            ("NodeAffinity", "nodeAffinity", Maybe("NodeAffinity")),
            ("PodAffinity", "podAffinity", Maybe("PodAffinity")),
            ("PodAntiAffinity", "podAntiAffinity", Maybe("PodAffinity")),
        ],
    ),
    (
        "NodeAffinity",
        &[
            (
                "RequiredDuringSchedulingIgnoredDuringExecution",
                "requiredDuringSchedulingIgnoredDuringExecution",
                Maybe("NodeSelector"),
            ),
            (
                "PreferredDuringSchedulingIgnoredDuringExecution",
                "preferredDuringSchedulingIgnoredDuringExecution",
                Many("PreferredTerm"),
            ),
        ],
    ),
    (
        "NodeSelector",
        &[("NodeSelectorTerms", "nodeSelectorTerms", Many("NodeTerm"))],
    ),
    (
        "NodeTerm",
        &[
            ("MatchExpressions", "matchExpressions", Many("NodeRequirement")),
            ("MatchFields", "matchFields", Many("NodeRequirement")),
        ],
    ),
    (
        "NodeRequirement",
        &[
            ("Key", "key", Text),
            ("Operator", "operator", Text),
            ("Values", "values", Plain),
        ],
    ),
    (
        "PreferredTerm",
        &[
            ("Weight", "weight", Number),
            ("Preference", "preference", Always("NodeTerm")),
        ],
    ),
    (
        "PodAffinity",
        &[
            (
                "RequiredDuringSchedulingIgnoredDuringExecution",
                "requiredDuringSchedulingIgnoredDuringExecution",
                Many("PodTerm"),
            ),
            (
                "PreferredDuringSchedulingIgnoredDuringExecution",
                "preferredDuringSchedulingIgnoredDuringExecution",
                Many("WeightedPodTerm"),
            ),
        ],
    ),
    (
        "PodTerm",
        &[
            ("LabelSelector", "labelSelector", Plain),
            ("Namespaces", "namespaces", Plain),
            ("TopologyKey", "topologyKey", Text),
            ("NamespaceSelector", "namespaceSelector", Plain),
            ("MatchLabelKeys", "matchLabelKeys", Plain),
            ("MismatchLabelKeys", "mismatchLabelKeys", Plain),
        ],
    ),
    (
        "WeightedPodTerm",
        &[
            ("Weight", "weight", Number),
            ("PodAffinityTerm", "podAffinityTerm", Always("PodTerm")),
        ],
    ),
    (
        "SELinuxOptions",
        &[
            ("User", "user", Text),
            ("Role", "role", Text),
            ("Type", "type", Text),
            ("Level", "level", Text),
        ],
    ),
    (
        "WindowsOptions",
        &[
            ("GMSACredentialSpecName", "gmsaCredentialSpecName", Plain),
            ("GMSACredentialSpec", "gmsaCredentialSpec", Plain),
            ("RunAsUserName", "runAsUserName", Plain),
            ("HostProcess", "hostProcess", Plain),
        ],
    ),
    (
        "Taint",
        &[
            ("Key", "key", Text),
            ("Value", "value", Text),
            ("Effect", "effect", Text),
            ("TimeAdded", "timeAdded", Plain),
        ],
    ),
    (
        "ObjectReference",
        &[
            ("Kind", "kind", Text),
            ("Namespace", "namespace", Text),
            ("Name", "name", Text),
            ("UID", "uid", Text),
            ("APIVersion", "apiVersion", Text),
            ("ResourceVersion", "resourceVersion", Text),
            ("FieldPath", "fieldPath", Text),
        ],
    ),
    (
        "EventSource",
        &[("Component", "component", Text), ("Host", "host", Text)],
    ),
    (
        "BudgetSpec",
        &[
            ("MinAvailable", "minAvailable", Plain),
            ("Selector", "selector", Plain),
            ("MaxUnavailable", "maxUnavailable", Plain),
            ("UnhealthyPodEvictionPolicy", "unhealthyPodEvictionPolicy", Plain),
        ],
    ),
];
