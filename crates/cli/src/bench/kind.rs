//! The kinds that a bench reads or writes, and their paths on a server.

/// One kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// v1 Namespace.
    Namespace,
    /// v1 ConfigMap.
    ConfigMap,
    /// v1 Secret.
    Secret,
    /// apps/v1 Deployment.
    Deployment,
    /// PropagationPolicy.
    Policy,
    /// ResourceBinding.
    Binding,
    /// The bench's own copy of the ResourceBinding definition, which no control plane reads: the floor's kind.
    FloorBinding,
    /// ResourceDistribution.
    Distribution,
    /// Cluster.
    Cluster,
}

/// The group of the floor's kind.
pub const FLOOR_GROUP: &str = "bench.entourage.dev";

/// The names of a kind: group, version, plural, kind.
type Row = (Kind, &'static str, &'static str, &'static str, &'static str);

const ROWS: &[Row] = &[
    (Kind::Namespace, "", "v1", "namespaces", "Namespace"),
    (Kind::ConfigMap, "", "v1", "configmaps", "ConfigMap"),
    (Kind::Secret, "", "v1", "secrets", "Secret"),
    (Kind::Deployment, "apps", "v1", "deployments", "Deployment"),
    (
        Kind::Policy,
        "policy.karmada.io",
        "v1alpha1",
        "propagationpolicies",
        "PropagationPolicy",
    ),
    (
        Kind::Binding,
        "work.karmada.io",
        "v1alpha2",
        "resourcebindings",
        "ResourceBinding",
    ),
    (
        Kind::FloorBinding,
        FLOOR_GROUP,
        "v1alpha2",
        "floorbindings",
        "FloorBinding",
    ),
    (
        Kind::Distribution,
        "apps.kruise.io",
        "v1alpha1",
        "resourcedistributions",
        "ResourceDistribution",
    ),
    (
        Kind::Cluster,
        "cluster.karmada.io",
        "v1alpha1",
        "clusters",
        "Cluster",
    ),
];

impl Kind {
    /// The kinds that the bench propagates to members.
    pub const COPIED: [Self; 3] = [Self::Deployment, Self::ConfigMap, Self::Secret];

    fn row(self) -> Row {
        let found = ROWS.iter().find(|row| row.0 == self);
        *found.unwrap_or(&ROWS[0])
    }

    /// The API group; empty for the core group.
    #[must_use]
    pub fn group(self) -> &'static str {
        self.row().1
    }

    /// The name in paths and metrics, such as `configmaps`.
    #[must_use]
    pub fn plural(self) -> &'static str {
        self.row().3
    }

    /// The name in objects, such as `ConfigMap`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().4
    }

    /// `apiVersion` of its objects.
    #[must_use]
    pub fn api_version(self) -> String {
        match self.row() {
            (_, "", version, ..) => version.to_owned(),
            (_, group, version, ..) => format!("{group}/{version}"),
        }
    }

    /// The path of its objects in a namespace, or in all namespaces if the namespace is empty.
    #[must_use]
    pub fn path(self, namespace: &str) -> String {
        let (_, group, version, plural, _) = self.row();
        let root = if group.is_empty() {
            format!("/api/{version}")
        } else {
            format!("/apis/{group}/{version}")
        };
        if namespace.is_empty() || self == Self::Namespace {
            format!("{root}/{plural}")
        } else {
            format!("{root}/namespaces/{namespace}/{plural}")
        }
    }
}

/// One object of a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace; empty if the kind has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl ObjectId {
    /// Builds an id from its parts.
    #[must_use]
    pub fn new(kind: Kind, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            kind,
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl std::fmt::Display for ObjectId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}/{}", self.kind.name(), self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_one_row_and_a_path() {
        let kinds: std::collections::BTreeSet<_> = ROWS.iter().map(|row| row.0).collect();
        assert_eq!(kinds.len(), ROWS.len());
        assert_eq!(Kind::ConfigMap.path("a"), "/api/v1/namespaces/a/configmaps");
        assert_eq!(Kind::Deployment.path(""), "/apis/apps/v1/deployments");
        assert_eq!(Kind::Namespace.path("a"), "/api/v1/namespaces");
        assert_eq!(Kind::Binding.api_version(), "work.karmada.io/v1alpha2");
        for row in ROWS {
            assert_eq!((row.0.plural(), row.0.name()), (row.3, row.4));
        }
    }
}
