//! The CustomResourceDefinitions of all groups: one table, and the functions that build the definitions from it.
//!
//! A definition starts as the schema that the types derive. `tidy` adapts it to the reference schema, [`rules`] adds the rules
//! that a server can check itself, and [`crds`] removes the fields that an older server cannot store. The result for a current
//! server is committed as `crds/<group>_<plural>.yaml`.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps, JSONSchemaPropsOrArray,
    JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;

pub mod facts;
pub mod rules;

use crate::scope::ClusterScoped;
use crate::{apps, cluster, config, kruise, policy, services, work};

/// One kind that is served as a CRD.
pub struct CrdEntry {
    /// Name of the definition: `<plural>.<group>`.
    pub name: &'static str,
    /// The purpose of the kind, in one line.
    pub summary: &'static str,
    /// Builds the definition for a current server.
    pub make: fn() -> CustomResourceDefinition,
}

/// Every CRD, sorted by name. The one place to add one.
pub const CRDS: &[CrdEntry] = &[
    CrdEntry {
        name: "clusteroverridepolicies.policy.karmada.io",
        summary: "What is changed in copies of any namespace or of none, and on which clusters.",
        make: || finish(policy::ClusterOverridePolicy::crd()),
    },
    CrdEntry {
        name: "clusterpropagationpolicies.policy.karmada.io",
        summary: "Which templates of any namespace, and cluster-scoped ones, are propagated, and to which clusters.",
        make: || finish(policy::ClusterPropagationPolicy::crd()),
    },
    CrdEntry {
        name: "clusterresourcebindings.work.karmada.io",
        summary: "The scheduling result of one cluster-scoped template, and its state.",
        make: || {
            let older = ClusterScoped::<work::legacy::ResourceBinding>::crd();
            finish(with_older(work::ClusterResourceBinding::crd(), older))
        },
    },
    CrdEntry {
        name: "clusters.cluster.karmada.io",
        summary: "A member cluster: its API server and its state.",
        make: || finish(cluster::Cluster::crd()),
    },
    CrdEntry {
        name: "clustertaintpolicies.policy.karmada.io",
        summary: "Which taints follow from the conditions of Clusters.",
        make: || finish(policy::ClusterTaintPolicy::crd()),
    },
    CrdEntry {
        name: "federatedresourcequotas.policy.karmada.io",
        summary: "How much the workloads of a namespace may use, over all clusters and on single ones.",
        make: || finish(policy::FederatedResourceQuota::crd()),
    },
    CrdEntry {
        name: "overridepolicies.policy.karmada.io",
        summary: "What is changed in copies of a namespace, and on which clusters.",
        make: || finish(policy::OverridePolicy::crd()),
    },
    CrdEntry {
        name: "propagationpolicies.policy.karmada.io",
        summary: "Which templates of a namespace are propagated, and to which clusters.",
        make: || finish(policy::PropagationPolicy::crd()),
    },
    CrdEntry {
        name: "resourcebindings.work.karmada.io",
        summary: "The scheduling result of one namespaced template, and its state.",
        make: || {
            let older = work::legacy::ResourceBinding::crd();
            finish(with_older(work::ResourceBinding::crd(), older))
        },
    },
    CrdEntry {
        name: "resourcedistributions.apps.kruise.io",
        summary: "One ConfigMap or Secret in many namespaces.",
        make: || finish(with_beta(without_a_spec(kruise::ResourceDistribution::crd()))),
    },
    CrdEntry {
        name: "resourceexploringwebhookconfigurations.config.karmada.io",
        summary: "Webhooks that explore kinds, as in the first proposal.",
        make: || finish(config::ResourceExploringWebhookConfiguration::crd()),
    },
    CrdEntry {
        name: "resourceinterpretercustomizations.config.karmada.io",
        summary: "Scripts that interpret a kind.",
        make: || finish(config::ResourceInterpreterCustomization::crd()),
    },
    CrdEntry {
        name: "resourceinterpreterwebhookconfigurations.config.karmada.io",
        summary: "Webhooks that interpret kinds.",
        make: || finish(config::ResourceInterpreterWebhookConfiguration::crd()),
    },
    CrdEntry {
        name: "serviceexports.multicluster.x-k8s.io",
        summary: "Services that are used from other clusters.",
        make: || finish(without_a_spec(services::ServiceExport::crd())),
    },
    CrdEntry {
        name: "serviceimports.multicluster.x-k8s.io",
        summary: "Services of other clusters.",
        make: || finish(without_a_spec(services::ServiceImport::crd())),
    },
    CrdEntry {
        name: "workloadrebalancers.apps.karmada.io",
        summary: "Workloads to be rescheduled once.",
        make: || finish(apps::WorkloadRebalancer::crd()),
    },
    CrdEntry {
        name: "works.work.karmada.io",
        summary: "The objects of one cluster in pull mode.",
        make: || finish(work::Work::crd()),
    },
];

/// The version of a Kubernetes API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerVersion {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
}

impl ServerVersion {
    /// The first version that checks `x-kubernetes-validations` by default. Older ones drop it.
    pub const CEL_RULES: Self = Self { major: 1, minor: 25 };
    /// The first version that stores `selectableFields` by default. Older ones drop it.
    pub const SELECTABLE_FIELDS: Self = Self { major: 1, minor: 31 };

    /// Reads a response of `/version`. Suffixes of vendors, such as `20+`, are ignored. `None` if no number is found.
    pub fn parse(major: &str, minor: &str) -> Option<Self> {
        Some(Self {
            major: leading_number(major)?,
            minor: leading_number(minor)?,
        })
    }
}

/// Returns all definitions, sorted by name. With the version of an older server they omit the fields that it would drop, so
/// that the stored definition equals the sent one. `None` stands for a current server.
pub fn crds(server: Option<ServerVersion>) -> Vec<CustomResourceDefinition> {
    CRDS.iter()
        .map(|entry| {
            let mut crd = (entry.make)();
            if let Some(server) = server {
                leave_out(&mut crd, server);
            }
            crd
        })
        .collect()
}

/// Returns a definition as YAML, as it is committed and printed. Fails only if the serializer does.
pub fn to_yaml(crd: &CustomResourceDefinition) -> Result<String, serde_saphyr::ser::Error> {
    serde_saphyr::to_string(crd)
}

/// Returns the committed files: file name in `crds/` to content. The generator and the check both use this.
pub fn files() -> Result<BTreeMap<String, String>, serde_saphyr::ser::Error> {
    crds(None)
        .iter()
        .map(|crd| {
            let name = format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural);
            Ok((
                name,
                format!("# Generated from crates/api: do not edit.\n{}", to_yaml(crd)?),
            ))
        })
        .collect()
}

/// Returns a definition that also serves the versions of an older one.
fn with_older(
    mut crd: CustomResourceDefinition,
    older: CustomResourceDefinition,
) -> CustomResourceDefinition {
    crd.spec.versions.splice(..0, older.spec.versions);
    crd
}

/// Returns a definition that serves its one version as v1beta1 also, with the same fields and without conversion.
fn with_beta(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let beta: Vec<_> = crd
        .spec
        .versions
        .iter()
        .map(|version| CustomResourceDefinitionVersion {
            name: "v1beta1".into(),
            storage: false,
            ..version.clone()
        })
        .collect();
    crd.spec.versions.extend(beta);
    crd
}

/// Returns a definition whose objects may have no spec, as in the reference.
fn without_a_spec(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for schema in crd.spec.versions.iter_mut().filter_map(root) {
        schema.required = schema
            .required
            .take()
            .map(|all| all.into_iter().filter(|name| name != "spec").collect::<Vec<_>>())
            .filter(|all| !all.is_empty());
    }
    crd
}

/// Brings a derived definition to its final form.
fn finish(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        if let Some(schema) = root(version) {
            tidy(schema);
        }
    }
    crd.spec.names.list_kind = Some(format!("{}List", crd.spec.names.kind));
    rules::add(&mut crd);
    crd
}

/// Adapts a derived schema to the reference: no `nullable` (a server would then accept an explicit null where Karmada's refuses
/// it), the type's own fields named, each paragraph of a description on one line.
fn tidy(root: &mut JSONSchemaProps) {
    each(root, &mut |schema| {
        schema.nullable = None;
        schema.title = None;
        if let Some(description) = &mut schema.description {
            let paragraphs: Vec<String> = description
                .split("\n\n")
                .map(|paragraph| paragraph.replace('\n', " "))
                .collect();
            *description = paragraphs.join("\n\n");
        }
    });
    // A server refuses a description on `metadata`.
    let own = [
        (
            "apiVersion",
            "string",
            Some("Group and version of the object's schema."),
        ),
        ("kind", "string", Some("Kind of the object.")),
        ("metadata", "object", None),
    ];
    for (name, type_, description) in own {
        let schema = JSONSchemaProps {
            type_: Some(type_.into()),
            description: description.map(Into::into),
            ..JSONSchemaProps::default()
        };
        root.properties
            .get_or_insert_default()
            .insert(name.into(), schema);
    }
}

/// Removes the fields that `server` is too old to store.
fn leave_out(crd: &mut CustomResourceDefinition, server: ServerVersion) {
    for version in &mut crd.spec.versions {
        if server < ServerVersion::SELECTABLE_FIELDS {
            version.selectable_fields = None;
        }
        if server < ServerVersion::CEL_RULES
            && let Some(schema) = root(version)
        {
            each(schema, &mut |schema| schema.x_kubernetes_validations = None);
        }
    }
}

/// The schema of a version.
fn root(version: &mut CustomResourceDefinitionVersion) -> Option<&mut JSONSchemaProps> {
    version.schema.as_mut()?.open_api_v3_schema.as_mut()
}

/// Calls `visit` for a schema and all schemas in it.
fn each(schema: &mut JSONSchemaProps, visit: &mut dyn FnMut(&mut JSONSchemaProps)) {
    visit(schema);
    for property in schema.properties.iter_mut().flat_map(BTreeMap::values_mut) {
        each(property, visit);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => each(items, visit),
        Some(JSONSchemaPropsOrArray::Schemas(all)) => all.iter_mut().for_each(|one| each(one, visit)),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        each(values, visit);
    }
}

fn leading_number(text: &str) -> Option<u32> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..digits].parse().ok()
}

#[cfg(test)]
mod tests;
