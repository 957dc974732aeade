//! The golden cases in `testdata/overrides`: one file a case, `want` last. `UPDATE_GOLDEN=1` rewrites `want`.

use std::collections::BTreeMap;

use entourage_api::{cluster::Cluster, policy::OverridePolicy};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Candidates, Policy, apply, records, select};
use entourage_golden as golden;
use entourage_model::object::{Gvk, Meta, NamespacedName, ResourceId, Str, StrMap};
use entourage_scheduler::Candidate;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    /// The template.
    object: Value,
    /// Override policies; one without a namespace is a ClusterOverridePolicy.
    policies: Vec<OverridePolicy>,
    /// The cluster: its labels and the rest of its spec.
    #[serde(default)]
    cluster: Member,
    /// Compared as text.
    #[serde(default, rename = "want")]
    _want: serde::de::IgnoredAny,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Member {
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    provider: String,
    #[serde(default)]
    region: String,
}

#[test]
fn every_case_comes_out_as_its_file_says() {
    golden::run("overrides", 30, |case: &Case| golden::wanted(&outcome(case)));
}

/// The changes of the object and their record, or the error; an error must never contain a canary.
fn outcome(case: &Case) -> Value {
    let policies: Vec<(NamespacedName, Policy)> = case
        .policies
        .iter()
        .map(|policy| {
            let meta = &policy.metadata;
            let name = NamespacedName::new(
                meta.namespace.as_deref().unwrap_or_default(),
                meta.name.as_deref().unwrap(),
            );
            (name.clone(), Policy::new(&name, &Meta::default(), &policy.spec))
        })
        .collect();
    let mut candidates = Candidates::default();
    for (name, policy) in &policies {
        let scope = if name.namespace.is_empty() {
            &mut candidates.cluster_wide
        } else {
            &mut candidates.of_namespace
        };
        scope.push((name, policy));
    }
    let text = |pointer: &str| {
        case.object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let gvk = Gvk::new(text("/apiVersion"), text("/kind"));
    let id = ResourceId::new(gvk, text("/metadata/namespace"), text("/metadata/name"));
    let labels: StrMap = case
        .cluster
        .labels
        .iter()
        .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
        .collect();
    let mut cluster = Cluster::default();
    cluster.spec.provider = case.cluster.provider.clone();
    cluster.spec.region = case.cluster.region.clone();
    let candidate = Candidate {
        name: "member1",
        labels: &labels,
        cluster: &cluster,
        ready: true,
        deleting: false,
    };
    let rules = select(&candidates, &id, &Meta::of(&case.object).labels, &candidate);
    let mut object = case.object.clone();
    match apply(&rules, &id, "member1", &mut object) {
        Err(bad) => {
            let message = bad.to_string();
            assert!(!message.contains("canary"), "{message}");
            json!({ "error": message })
        }
        Ok(()) => {
            let records: BTreeMap<&str, Str> = records(&rules, &id).into_iter().collect();
            json!({ "object": golden::changes(&case.object, &object), "records": records })
        }
    }
}
