//! The tables against the schema of a pod spec, and the evaluation of generated pod specs.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::{
    core::v1::{PodSpec, ServiceAccount},
    networking::v1::Ingress,
};
use serde_json::{Value, json};

use entourage_model::object::ResourceId;

use super::*;
use crate::{NATIVE, NativeGvk, mentions::owned, native};

/// Every path in a schema, `[]` after arrays, with the names of the object's fields.
fn schema_paths<T: schemars::JsonSchema>() -> BTreeMap<String, BTreeSet<String>> {
    fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
        for key in ["allOf", "anyOf", "oneOf"] {
            if let Some(first) = schema[key]
                .as_array()
                .and_then(|all| all.iter().find(|each| each.get("$ref").is_some()))
            {
                return resolve(root, first);
            }
        }
        match schema["$ref"]
            .as_str()
            .and_then(|target| target.strip_prefix('#'))
        {
            Some(pointer) => resolve(root, root.pointer(pointer).unwrap()),
            None => schema,
        }
    }
    fn walk(root: &Value, schema: &Value, path: &str, found: &mut BTreeMap<String, BTreeSet<String>>) {
        let schema = resolve(root, schema);
        if schema["items"].is_object() {
            found.entry(format!("{path}[]")).or_default();
            return walk(root, &schema["items"], &format!("{path}[]"), found);
        }
        let fields = schema["properties"].as_object();
        let names = fields
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .collect();
        found.insert(path.to_owned(), names);
        for (name, below) in fields.into_iter().flatten() {
            let path = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            walk(root, below, &path, found);
        }
    }
    let root = serde_json::to_value(schemars::schema_for!(T)).unwrap();
    let mut found = BTreeMap::new();
    walk(&root, &root, "", &mut found);
    found
}

/// True if the last segment of a path is spelled like the name of an object, like a reference to one, or like the type of a
/// volume.
fn looks_like_a_reference(path: &str) -> bool {
    const ENDS: &[&str] = &[
        "Name",
        "Names",
        "Ref",
        "Refs",
        "Reference",
        "Secret",
        "Secrets",
        "Template",
        "Source",
    ];
    const WORDS: &[&str] = &[
        "backend",
        "claims",
        "configMap",
        "driver",
        "endpoints",
        "image",
        "pdID",
        "reference",
        "resource",
        "resourceClaims",
        "secret",
        "service",
        "volumeID",
    ];
    let last = path.rsplit('.').next().unwrap_or(path).trim_end_matches("[]");
    let is_type_of_volume =
        path.starts_with("volumes[].") && path.matches('.').count() == 1 && last != "name";
    last.starts_with("serviceAccount")
        || ENDS.iter().any(|end| last.ends_with(end))
        || WORDS.contains(&last)
        || is_type_of_volume
}

fn lies_under(path: &str, top: &str) -> bool {
    path.strip_prefix(top)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

const ACCOUNT: Within = Within::Object("", "ServiceAccount");
const INGRESS: Within = Within::Object("networking.k8s.io", "Ingress");

/// True if a path starts in a pod spec, or with `Some` at the objects of a kind.
fn starts_at(within: Within, object: Option<Within>) -> bool {
    match object {
        Some(object) => within == object,
        None => !matches!(within, Within::Object(..)),
    }
}

/// The rows about pod specs.
fn all_rows() -> Vec<(String, &'static ReferenceRow)> {
    rows_of(None)
}

fn rows_of(object: Option<Within>) -> Vec<(String, &'static ReferenceRow)> {
    REFERENCES
        .iter()
        .filter(|row| starts_at(row.within, object))
        .flat_map(|row| {
            full_paths(row.within, row.path)
                .into_iter()
                .map(move |path| (path, row))
        })
        .collect()
}

/// The non-references of pod specs.
fn all_non_references() -> Vec<String> {
    non_references_of(None)
}

fn non_references_of(object: Option<Within>) -> Vec<String> {
    NON_REFERENCES
        .iter()
        .filter(|each| starts_at(each.within, object))
        .flat_map(|each| full_paths(each.within, each.path))
        .collect()
}

fn undecided(schema: &BTreeMap<String, BTreeSet<String>>, object: Option<Within>) -> Vec<String> {
    let (rows, not) = (rows_of(object), non_references_of(object));
    let decided = |path: &str| {
        rows.iter().any(|(row, _)| lies_under(row, path))
            || not
                .iter()
                .any(|top| lies_under(path, top) || lies_under(top, path))
    };
    let looks = |path: &&String| looks_like_a_reference(path) && !decided(path);
    schema.keys().filter(looks).cloned().collect()
}

#[test]
fn every_field_that_looks_like_a_reference_is_decided_about() {
    let in_pods = undecided(&schema_paths::<PodSpec>(), None);
    let of_ingress: BTreeMap<_, _> = schema_paths::<Ingress>()
        .into_iter()
        .filter(|(path, _)| path.starts_with("spec."))
        .collect();
    let in_ingresses = undecided(&of_ingress, Some(INGRESS));
    let of_account: BTreeMap<_, _> = schema_paths::<ServiceAccount>()
        .into_iter()
        .filter(|(path, _)| !path.starts_with("metadata"))
        .collect();
    let in_accounts = undecided(&of_account, Some(ACCOUNT));
    assert!(
        of_account.contains_key("imagePullSecrets[].name"),
        "{of_account:?}"
    );
    assert!(
        in_pods.is_empty() && in_ingresses.is_empty() && in_accounts.is_empty(),
        "put each into REFERENCES or NON_REFERENCES (crates/interpreter/src/mentions/table.rs): {in_pods:#?} {in_ingresses:#?} {in_accounts:#?}"
    );
}

#[test]
fn every_row_is_in_the_schema_with_its_optional_flag() {
    let schema = schema_paths::<PodSpec>();
    for (path, row) in all_rows() {
        let (holder, _) = path.rsplit_once('.').unwrap_or(("", &path));
        let fields = schema
            .get(holder)
            .unwrap_or_else(|| panic!("REFERENCES: {path} is not in the schema of a pod spec"));
        assert!(
            schema.contains_key(&path),
            "REFERENCES: {path} is not in the schema of a pod spec"
        );
        assert_eq!(
            fields.contains("optional"),
            row.optional.is_some(),
            "{path}: optional flag"
        );
    }
    for path in all_non_references() {
        assert!(
            schema.contains_key(&path) || schema.contains_key(&format!("{path}[]")),
            "{path} is not in the schema"
        );
    }
}

#[test]
fn no_path_is_decided_twice_and_every_row_says_what_it_is() {
    let rows: Vec<_> = all_rows().into_iter().map(|(path, _)| path).collect();
    let not = all_non_references();
    let unique: BTreeSet<_> = rows.iter().chain(&not).collect();
    assert_eq!(unique.len(), rows.len() + not.len());
    for top in &not {
        assert!(
            !rows.iter().any(|row| lies_under(row, top)),
            "{top} covers a reference"
        );
    }
    assert!(
        REFERENCES
            .iter()
            .all(|row| !row.summary.is_empty() && !row.source.is_empty())
    );
    assert!(NON_REFERENCES.iter().all(|row| !row.reason.is_empty()));
    assert!(EVERYWHERE.iter().all(|row| !row.reason.is_empty()));
}

/// A pod spec with a value at one path only.
fn pod_spec_with(path: &str, name: &str, flag: Option<(&str, bool)>) -> Value {
    let (segment, rest) = path
        .split_once('.')
        .map_or((path, None), |(segment, rest)| (segment, Some(rest)));
    let inner = match rest {
        Some(rest) => pod_spec_with(rest, name, flag),
        None => json!(name),
    };
    let mut object = match segment.strip_suffix("[]") {
        Some(list) => json!({ list: [inner] }),
        None => json!({ segment: inner }),
    };
    if let (None, Some((flag, value))) = (rest, flag) {
        object[flag] = json!(value);
    }
    object
}

fn of_deployment(pod_spec: &Value) -> Vec<DependencyReference> {
    let deployment = native("apps", "v1", "Deployment").unwrap();
    references(
        deployment,
        "shop",
        &json!({"spec": {"template": {"spec": pod_spec}}}),
    )
}

fn reference(gvk: NativeGvk<'_>, name: &str, optional: bool) -> DependencyReference {
    DependencyReference {
        id: ResourceId::new(owned(gvk), "shop", name),
        optional,
    }
}

fn core(kind: &'static str) -> NativeGvk<'static> {
    NativeGvk {
        group: "",
        version: "v1",
        kind,
    }
}

#[test]
fn every_row_is_read_wherever_it_applies() {
    for (path, row) in all_rows() {
        let found = of_deployment(&pod_spec_with(&path, "it", None));
        assert_eq!(found, [reference(row.gvk, "it", false)], "{path}");
        if let Some(flag) = row.optional {
            for value in [true, false] {
                let found = of_deployment(&pod_spec_with(&path, "it", Some((flag, value))));
                assert_eq!(found, [reference(row.gvk, "it", value)], "{path}");
            }
        }
        assert_eq!(
            of_deployment(&pod_spec_with(&path, "", None)),
            [],
            "{path}: an empty name"
        );
    }
}

#[test]
fn no_non_reference_is_read() {
    for path in all_non_references() {
        for below in ["", ".name", "[].name", ".secretRef.name"] {
            assert_eq!(
                of_deployment(&pod_spec_with(&format!("{path}{below}"), "it", None)),
                [],
                "{path}{below}"
            );
        }
    }
}

#[test]
fn what_every_cluster_makes_itself_is_left_out() {
    for each in EVERYWHERE {
        for (path, row) in all_rows() {
            let found = of_deployment(&pod_spec_with(&path, each.name, None));
            assert_eq!(found.is_empty(), row.gvk == each.gvk, "{path}");
        }
    }
}

#[test]
fn references_are_optional_only_if_every_mention_is_and_come_sorted_once() {
    let found = of_deployment(&json!({
        "containers": [{"envFrom": [
            {"secretRef": {"name": "b", "optional": true}},
            {"configMapRef": {"name": "z", "optional": true}},
            {"configMapRef": {"name": "a"}},
        ]}],
        "initContainers": [{"env": [
            {"valueFrom": {"secretKeyRef": {"name": "b", "key": "k"}}},
            {"valueFrom": {"configMapKeyRef": {"name": "z", "key": "k", "optional": true}}},
        ]}],
        "serviceAccount": "robot",
        "serviceAccountName": "robot",
    }));
    assert_eq!(
        found,
        [
            reference(core("ConfigMap"), "a", false),
            reference(core("ConfigMap"), "z", true),
            reference(core("Secret"), "b", false),
            reference(core("ServiceAccount"), "robot", false),
        ]
    );
}

#[test]
fn every_kind_that_is_named_is_interpreted() {
    for row in REFERENCES {
        let NativeGvk { group, version, kind } = row.gvk;
        assert!(native(group, version, kind).is_some(), "{kind}");
        if let Within::Object(group, kind) = row.within {
            assert!(
                NATIVE.iter().any(|each| is_of(row.within, each.gvk())),
                "{group} {kind}"
            );
        }
    }
}
