//! The reference schemas as lines of facts: what `crates/api/testdata/upstream-fields.txt` holds.
//!
//! The reference is a folder of Karmada's CRDs, without descriptions, and of the OpenAPI definitions of the
//! group that Karmada serves from an aggregated API server. It is not part of this repository: only its
//! facts are.

use std::fs;
use std::path::Path;

use anyhow::Context;
use entourage_api::crds::facts::facts;
use serde_json::{Value, json};

/// The CRDs whose facts are kept, by file name in the reference folder. It has none of FederatedResourceQuota: its facts are a file of
/// their own beside the list, kept by hand.
const CRDS: &[&str] = &[
    "apps.karmada.io_workloadrebalancers.yaml",
    "apps.kruise.io_resourcedistributions.yaml",
    "config.karmada.io_resourceinterpretercustomizations.yaml",
    "config.karmada.io_resourceinterpreterwebhookconfigurations.yaml",
    "policy.karmada.io_clusteroverridepolicies.yaml",
    "policy.karmada.io_clusterpropagationpolicies.yaml",
    "policy.karmada.io_clustertaintpolicies.yaml",
    "policy.karmada.io_overridepolicies.yaml",
    "policy.karmada.io_propagationpolicies.yaml",
    "work.karmada.io_clusterresourcebindings.yaml",
    "work.karmada.io_resourcebindings.yaml",
    "work.karmada.io_works.yaml",
];

/// The definitions of the aggregated group, by file name in the reference folder.
const DEFINITIONS: &str = "cluster.karmada.io.definitions.yaml";

/// The start of the definition of the Cluster kind.
const CLUSTER: &str = "#/definitions/com.github.karmada-io.karmada.pkg.apis.cluster.v1alpha1.Cluster";

/// The facts of the kinds that we serve, read from the reference folder `dir`: one line for each path of
/// each version. Fails when a file is missing or is not what it should be.
pub(crate) fn upstream_fields(dir: &Path) -> anyhow::Result<String> {
    let mut lines = Vec::new();
    let mut condition = None;
    for file in CRDS {
        let crd = read(&dir.join(file))?;
        condition = condition.or_else(|| find_condition(&crd));
        lines.extend(facts(&crd));
    }
    let definitions = read(&dir.join(DEFINITIONS))?;
    let condition = condition.context("no reference CRD has status.conditions")?;
    let schema = resolve(&json!({ "$ref": CLUSTER }), &definitions, &condition)?;
    // The aggregated API has no names, columns or scope that a CRD could be held against: schema lines only.
    let cluster = json!({ "spec": {
        "names": { "plural": "clusters" },
        "versions": [{ "name": "v1alpha1", "schema": { "openAPIV3Schema": schema } }],
    } });
    lines.extend(facts(&cluster).into_iter().filter(|line| !line.contains(" #")));
    Ok(lines.join("\n") + "\n")
}

/// A YAML file as JSON.
fn read(path: &Path) -> anyhow::Result<Value> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    serde_saphyr::from_str(&text).with_context(|| format!("parsing {}", path.display()))
}

/// The schema of a condition, as a CRD with `status.conditions` states it: one of Kubernetes, not a kind's own.
fn find_condition(crd: &Value) -> Option<Value> {
    let versions = crd["spec"]["versions"].as_array()?;
    let path = "/schema/openAPIV3Schema/properties/status/properties/conditions/items";
    let mut conditions = versions.iter().filter_map(|version| version.pointer(path));
    conditions
        .find(|condition| condition.pointer("/properties/observedGeneration").is_some())
        .cloned()
}

/// A schema with every `$ref` replaced by what it names. Defaults are dropped: an OpenAPI definition states
/// Go's zero values there, which a server does not fill in.
fn resolve(schema: &Value, definitions: &Value, condition: &Value) -> anyhow::Result<Value> {
    let Some(fields) = schema.as_object() else {
        return Ok(schema.clone());
    };
    if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
        let name = reference.trim_start_matches("#/definitions/");
        return match definitions.get(name) {
            Some(definition) => resolve(definition, definitions, condition),
            None => foreign(name, condition),
        };
    }
    let mut resolved = fields.clone();
    resolved.remove("default");
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get(key) {
            resolved.insert(key.into(), resolve(inner, definitions, condition)?);
        }
    }
    if let Some(properties) = fields.get("properties").and_then(Value::as_object) {
        let properties: Result<serde_json::Map<_, _>, anyhow::Error> = properties
            .iter()
            .map(|(name, inner)| Ok((name.clone(), resolve(inner, definitions, condition)?)))
            .collect();
        resolved.insert("properties".into(), properties?.into());
    }
    Ok(resolved.into())
}

/// The schema of a Kubernetes type that the definitions refer to without stating it.
fn foreign(name: &str, condition: &Value) -> anyhow::Result<Value> {
    Ok(match name.rsplit('.').next().unwrap_or_default() {
        "ObjectMeta" => json!({ "type": "object" }),
        "Condition" => condition.clone(),
        "Quantity" => json!({
            "pattern": "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
            "x-kubernetes-int-or-string": true,
        }),
        "Taint" => json!({
            "type": "object",
            "required": ["key", "effect"],
            "properties": {
                "key": { "type": "string" },
                "value": { "type": "string" },
                "effect": { "type": "string" },
                "timeAdded": { "type": "string", "format": "date-time" },
            },
        }),
        _ => anyhow::bail!("unknown definition {name}"),
    })
}
