//! The addresses of objects on an API server.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt::Write as _,
    sync::{PoisonError, RwLock},
};

use entourage_core::{
    interpreter::hook::Contract,
    object::{Gvk, NamespacedName, ResourceId},
    observation::{LEASES, Watch, kind_read_by},
    plan::HubObject,
    rights,
};

/// The address of an object or a collection, and the resource's plural for metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Path and query.
    pub uri: String,
    /// The plural.
    pub resource: Cow<'static, str>,
    /// The kind, if it is one of users.
    pub gvk: Option<Gvk>,
}

impl Path {
    /// An address that is not an object's.
    #[must_use]
    pub fn raw(uri: impl Into<String>, resource: &'static str) -> Self {
        Self {
            uri: uri.into(),
            resource: Cow::Borrowed(resource),
            gvk: None,
        }
    }

    /// An address of resources of this plural.
    #[must_use]
    pub fn of(uri: impl Into<String>, plural: String) -> Self {
        Self {
            uri: uri.into(),
            resource: Cow::Owned(plural),
            gvk: None,
        }
    }

    /// The address of an object.
    #[must_use]
    pub fn object(id: &ResourceId) -> Self {
        Self::within(&id.gvk, &id.namespace, Some(&id.name))
    }

    /// The address of an object's collection: objects are POSTed there.
    #[must_use]
    pub fn collection(id: &ResourceId) -> Self {
        Self::within(&id.gvk, &id.namespace, None)
    }

    /// The address of a Namespace, or with `None` of the collection of Namespaces.
    #[must_use]
    pub fn namespace(name: Option<&str>) -> Self {
        Self::build("/api/v1", Cow::Borrowed("namespaces"), "", name)
    }

    /// The address of a Work.
    #[must_use]
    pub fn work(name: &NamespacedName) -> Self {
        Self::build(WORKS, Cow::Borrowed("works"), &name.namespace, Some(&name.name))
    }

    /// The address of the Works of a namespace.
    #[must_use]
    pub fn works(namespace: &str) -> Self {
        Self::build(WORKS, Cow::Borrowed("works"), namespace, None)
    }

    /// The address of the Lease of an agent.
    #[must_use]
    pub fn lease(cluster: &str) -> Self {
        Self::build(COORDINATION, Cow::Borrowed("leases"), LEASES, Some(cluster))
    }

    /// The address that a watch reads, over all namespaces but for Leases.
    #[must_use]
    pub fn watched(watch: &Watch) -> Self {
        match watch {
            Watch::Policies => Self::build(POLICY, Cow::Borrowed("propagationpolicies"), "", None),
            Watch::ClusterPolicies => {
                Self::build(POLICY, Cow::Borrowed("clusterpropagationpolicies"), "", None)
            }
            Watch::Overrides => Self::build(POLICY, Cow::Borrowed("overridepolicies"), "", None),
            Watch::ClusterOverrides => {
                Self::build(POLICY, Cow::Borrowed("clusteroverridepolicies"), "", None)
            }
            Watch::Customizations => Self::build(
                CONFIG,
                Cow::Borrowed("resourceinterpretercustomizations"),
                "",
                None,
            ),
            Watch::TaintPolicies => Self::build(POLICY, Cow::Borrowed("clustertaintpolicies"), "", None),
            Watch::Hooks(Contract::Interpreter) => Self::build(
                CONFIG,
                Cow::Borrowed("resourceinterpreterwebhookconfigurations"),
                "",
                None,
            ),
            Watch::Hooks(Contract::Explorer) => Self::build(
                CONFIG,
                Cow::Borrowed("resourceexploringwebhookconfigurations"),
                "",
                None,
            ),
            Watch::Bindings => Self::build(WORK, Cow::Borrowed("resourcebindings"), "", None),
            Watch::ClusterBindings => Self::build(WORK, Cow::Borrowed("clusterresourcebindings"), "", None),
            Watch::Clusters => Self::build(CLUSTER, Cow::Borrowed("clusters"), "", None),
            Watch::Namespaces | Watch::MemberNamespaces(_) => Self::namespace(None),
            Watch::Templates(gvk) | Watch::Copies(_, gvk) | Watch::Distributed(_, gvk, _) => {
                Self::within(gvk, "", None)
            }
            Watch::Distributions => Self::build(KRUISE, Cow::Borrowed(DISTRIBUTIONS), "", None),
            Watch::Rebalancers => Self::build(APPS, Cow::Borrowed(REBALANCERS), "", None),
            Watch::Quotas => Self::build(POLICY, Cow::Borrowed(QUOTAS), "", None),
            Watch::QuotaCopies(_) => Self::build("/api/v1", Cow::Borrowed("resourcequotas"), "", None),
            Watch::PriorityClasses => Self::build(SCHEDULING, Cow::Borrowed("priorityclasses"), "", None),
            Watch::Works => Self::works(""),
            Watch::Leases => Self::build(COORDINATION, Cow::Borrowed("leases"), LEASES, None),
            Watch::Nodes(_) => Self::build("/api/v1", Cow::Borrowed("nodes"), "", None),
            Watch::Pods(_) => Self::build("/api/v1", Cow::Borrowed("pods"), "", None),
            Watch::ServiceParts(part) => Self::within(&part.gvk(), "", None),
            Watch::Endpoints(_, service) => Self::within(&kind_read_by(watch), &service.namespace, None),
        }
    }

    /// The address of an object of the hub.
    #[must_use]
    pub fn hub(object: &HubObject) -> Self {
        Self::of_hub(object, true)
    }

    /// The address of the collection of an object of the hub.
    #[must_use]
    pub fn hub_collection(object: &HubObject) -> Self {
        Self::of_hub(object, false)
    }

    /// The address of its status subresource.
    #[must_use]
    pub fn status(mut self) -> Self {
        self.uri.push_str("/status");
        self
    }

    /// Adds a query parameter; the value is escaped.
    #[must_use]
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.uri.push(if self.uri.contains('?') { '&' } else { '?' });
        self.uri.push_str(name);
        self.uri.push('=');
        escape(&mut self.uri, value);
        self
    }

    fn of_hub(object: &HubObject, one: bool) -> Self {
        let (prefix, resource, NamespacedName { namespace, name }) = match object {
            HubObject::Policy(named) if named.namespace.is_empty() => {
                (POLICY, "clusterpropagationpolicies", named.clone())
            }
            HubObject::Policy(named) => (POLICY, "propagationpolicies", named.clone()),
            HubObject::Binding(named) if named.namespace.is_empty() => {
                (WORK, "clusterresourcebindings", named.clone())
            }
            HubObject::Binding(named) => (WORK, "resourcebindings", named.clone()),
            HubObject::Cluster(name) => (CLUSTER, "clusters", NamespacedName::new("", name)),
            HubObject::Distribution(name) => (KRUISE, DISTRIBUTIONS, NamespacedName::new("", name)),
            HubObject::Rebalancer(name) => (APPS, REBALANCERS, NamespacedName::new("", name)),
            HubObject::Quota(named) => (POLICY, QUOTAS, named.clone()),
            HubObject::Work(named) => (WORKS, "works", named.clone()),
            HubObject::Namespace(name) => return Self::namespace(one.then_some(&**name)),
            HubObject::ServicePart(part, name) => {
                return Self::within(&part.gvk(), &name.namespace, one.then_some(&*name.name));
            }
            HubObject::Template(id) => {
                return if one {
                    Self::object(id)
                } else {
                    Self::collection(id)
                };
            }
        };
        Self::build(prefix, Cow::Borrowed(resource), &namespace, one.then_some(&*name))
    }

    /// The discovery address of a group version.
    #[must_use]
    pub fn group_version(gvk: &Gvk) -> Self {
        Self::raw(root(gvk), "discovery")
    }

    /// The address of a CustomResourceDefinition, or with `None` of their collection.
    #[must_use]
    pub fn definitions(name: Option<&str>) -> Self {
        let resource = Cow::Borrowed("customresourcedefinitions");
        Self::build("/apis/apiextensions.k8s.io/v1", resource, "", name)
    }

    /// The address of the collection of APIServices.
    #[must_use]
    pub fn api_services() -> Self {
        let resource = Cow::Borrowed("apiservices");
        Self::build("/apis/apiregistration.k8s.io/v1", resource, "", None)
    }

    fn within(gvk: &Gvk, namespace: &str, name: Option<&str>) -> Self {
        Self {
            gvk: Some(gvk.clone()),
            ..Self::build(&root(gvk), plural(gvk), namespace, name)
        }
    }

    fn build(prefix: &str, resource: Cow<'static, str>, namespace: &str, name: Option<&str>) -> Self {
        let mut uri = String::with_capacity(prefix.len() + resource.len() + namespace.len() + 64);
        uri.push_str(prefix);
        if !namespace.is_empty() {
            uri.push_str("/namespaces/");
            escape(&mut uri, namespace);
        }
        uri.push('/');
        uri.push_str(&resource);
        if let Some(name) = name {
            uri.push('/');
            escape(&mut uri, name);
        }
        Self {
            uri,
            resource,
            gvk: None,
        }
    }
}

const POLICY: &str = "/apis/policy.karmada.io/v1alpha1";
const WORK: &str = "/apis/work.karmada.io/v1alpha2";
const WORKS: &str = "/apis/work.karmada.io/v1alpha1";
const CLUSTER: &str = "/apis/cluster.karmada.io/v1alpha1";
const CONFIG: &str = "/apis/config.karmada.io/v1alpha1";
const KRUISE: &str = "/apis/apps.kruise.io/v1alpha1";
const DISTRIBUTIONS: &str = "resourcedistributions";
const APPS: &str = "/apis/apps.karmada.io/v1alpha1";
const REBALANCERS: &str = "workloadrebalancers";
const COORDINATION: &str = "/apis/coordination.k8s.io/v1";
const SCHEDULING: &str = "/apis/scheduling.k8s.io/v1";
const QUOTAS: &str = "federatedresourcequotas";

fn root(gvk: &Gvk) -> String {
    // Users name groups and versions: whatever they contain, the address must be valid.
    let mut uri = String::with_capacity(64);
    if gvk.group.is_empty() {
        uri.push_str("/api/");
    } else {
        uri.push_str("/apis/");
        escape(&mut uri, &gvk.group);
        uri.push('/');
    }
    escape(&mut uri, &gvk.version);
    uri
}

/// Plurals learnt from API servers: a fact of a kind's definition, the same on every server that serves it.
static LEARNT: RwLock<BTreeMap<Gvk, &'static str>> = RwLock::new(BTreeMap::new());

/// True if the plural of a kind is certain.
#[must_use]
pub fn is_known(gvk: &Gvk) -> bool {
    known(gvk).is_some()
}

/// Records the plural of a kind that an API server reports. It is kept until the process ends: there are as many entries as
/// kinds.
pub fn learn(gvk: &Gvk, plural: &str) {
    let mut learnt = LEARNT.write().unwrap_or_else(PoisonError::into_inner);
    if learnt.get(gvk).is_none_or(|held| *held != plural) {
        learnt.insert(gvk.clone(), String::leak(plural.to_owned()));
    }
}

/// True if every API server can be expected to serve the kind: it needs no CustomResourceDefinition.
#[must_use]
pub fn is_built_in(gvk: &Gvk) -> bool {
    fixed(gvk).is_some()
}

fn fixed(gvk: &Gvk) -> Option<&'static str> {
    rights::propagated_kind(&gvk.group, &gvk.kind).map(|kind| kind.resource.plural)
}

fn known(gvk: &Gvk) -> Option<&'static str> {
    if let Some(plural) = fixed(gvk) {
        return Some(plural);
    }
    let learnt = LEARNT.read().unwrap_or_else(PoisonError::into_inner);
    learnt.get(gvk).copied()
}

/// The plural of a kind. An unknown one gets the regular English plural, which is correct for almost all.
#[must_use]
pub fn plural(gvk: &Gvk) -> Cow<'static, str> {
    if let Some(plural) = known(gvk) {
        return Cow::Borrowed(plural);
    }
    let kind = gvk.kind.to_lowercase();
    Cow::Owned(match kind.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ if kind.ends_with(['s', 'x']) || kind.ends_with("ch") || kind.ends_with("sh") => {
            format!("{kind}es")
        }
        _ => format!("{kind}s"),
    })
}

/// Appends a path segment or query value. Names of some kinds have characters with a meaning in a URL.
fn escape(uri: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            uri.push(char::from(byte));
        } else {
            write!(uri, "%{byte:02X}").unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_the_api_conventions() {
        let secret = ResourceId::new(Gvk::new("v1", "Secret"), "ns", "a");
        assert_eq!(Path::object(&secret).uri, "/api/v1/namespaces/ns/secrets/a");
        let deployment = ResourceId::new(Gvk::new("apps/v1", "Deployment"), "ns", "a");
        assert_eq!(
            Path::collection(&deployment).uri,
            "/apis/apps/v1/namespaces/ns/deployments"
        );
        assert_eq!(
            Path::hub(&HubObject::Binding(NamespacedName::new("ns", "b")))
                .status()
                .uri,
            "/apis/work.karmada.io/v1alpha2/namespaces/ns/resourcebindings/b/status"
        );
        assert_eq!(
            Path::hub(&HubObject::Cluster("m1".into())).uri,
            "/apis/cluster.karmada.io/v1alpha1/clusters/m1"
        );
        assert_eq!(
            Path::watched(&Watch::Templates(secret.gvk)).uri,
            "/api/v1/secrets"
        );
    }

    #[test]
    fn odd_names_and_selectors_are_escaped() {
        let role = ResourceId::new(
            Gvk::new("rbac.authorization.k8s.io/v1", "ClusterRole"),
            "",
            "system:a/b",
        );
        assert_eq!(
            Path::object(&role).query("fieldSelector", "type!=x").uri,
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Aa%2Fb?fieldSelector=type%21%3Dx"
        );
    }

    #[test]
    fn a_version_that_cannot_be_one_still_makes_an_address() {
        let gvk = Gvk::new("batch/v1 beta/1", "CronJob");
        assert_eq!(
            Path::watched(&Watch::Templates(gvk)).uri,
            "/apis/batch/v1%20beta%2F1/cronjobs"
        );
    }

    #[test]
    fn an_unknown_kind_gets_the_regular_plural() {
        let plurals =
            ["NetworkPolicy", "Ingress", "Gateway", "Widget"].map(|kind| plural(&Gvk::new("x/v1", kind)));
        assert_eq!(plurals, ["networkpolicies", "ingresses", "gateways", "widgets"]);
    }
}
