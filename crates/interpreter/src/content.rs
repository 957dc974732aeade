//! Content numbers: identify the content of an object, for kinds without a generation, too.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use entourage_model::object::{Gvk, Meta};

use crate::{NativeKind, native};

/// A number that changes with every field except `metadata` and `status`; `None` for an object with a generation, and for a kind
/// whose status is not reported: such objects are watched as metadata, and Secrets are among them.
///
/// A Service, a claim, a quota or an autoscaler has no generation, and its resourceVersion changes with every write of its
/// status. The number is the same in every process and release, whatever the order of the fields, and a JSON integer that every
/// tool keeps exactly (53 bits).
///
/// Cost: O(size of the object).
#[must_use]
pub fn content_number(native: &dyn NativeKind, object: &Value) -> Option<i64> {
    if !native.reports_status() || !object["metadata"]["generation"].is_null() {
        return None;
    }
    let mut hash = Sha256::new();
    for (key, value) in sorted(object.as_object()?) {
        if !LEFT_OUT.contains(&key.as_str()) {
            add_text(&mut hash, key);
            add(&mut hash, value);
        }
    }
    let first = hash.finalize();
    let number = first
        .iter()
        .take(8)
        .fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    i64::try_from(number >> 11).ok()
}

const LEFT_OUT: &[&str] = &["apiVersion", "kind", "metadata", "status"];

fn sorted(map: &serde_json::Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut fields: Vec<_> = map.iter().collect();
    fields.sort_unstable_by_key(|(key, _)| *key);
    fields
}

fn add(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Object(map) => {
            hash.update([b'{']);
            for (key, value) in sorted(map) {
                add_text(hash, key);
                add(hash, value);
            }
            hash.update([b'}']);
        }
        Value::Array(list) => {
            hash.update([b'[']);
            list.iter().for_each(|value| add(hash, value));
            hash.update([b']']);
        }
        Value::String(text) => {
            hash.update([b'"']);
            add_text(hash, text);
        }
        other => add_text(hash, &other.to_string()),
    }
}

fn add_text(hash: &mut Sha256, text: &str) {
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text.as_bytes());
}

/// The metadata of a template without the fields that the hub's own controllers set, which are neither propagated nor make a new
/// version.
#[must_use]
pub fn template_meta(gvk: &Gvk, object: &Value) -> Meta {
    let mut meta = Meta::of(object);
    if let Some(native) = native(&gvk.group, &gvk.version, &gvk.kind) {
        for key in native.hub_only_labels(object) {
            meta.labels.remove(key);
        }
        for key in native.hub_only_annotations() {
            meta.annotations.remove(key);
        }
        meta.content = content_number(native, object);
    }
    meta
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::NATIVE;

    fn of_service(object: &Value) -> Option<i64> {
        content_number(native("", "v1", "Service").unwrap(), object)
    }

    #[test]
    fn the_number_is_that_of_the_spec_alone() {
        let service =
            json!({"metadata": {"name": "a"}, "spec": {"type": "ClusterIP", "ports": [{"port": 80}]}});
        let number = of_service(&service).unwrap();
        assert!((0..1 << 53).contains(&number));
        let mut other = service;
        other["status"] = json!({"loadBalancer": {}});
        other["metadata"]["resourceVersion"] = json!("7");
        assert_eq!(of_service(&other), Some(number));
        other["spec"]["ports"][0]["port"] = json!(81);
        assert_ne!(of_service(&other), Some(number));
        other["spec"]["ports"] = json!([{"port": 80}, {}]);
        assert_ne!(of_service(&other), Some(number));
    }

    #[test]
    fn a_quota_in_use_is_no_other_version() {
        let quota =
            |used: &str| json!({"spec": {"hard": {"pods": "10"}}, "status": {"used": {"pods": used}}});
        let of_quota = |object: &Value| content_number(native("", "v1", "ResourceQuota").unwrap(), object);
        assert!(of_quota(&quota("1")).is_some());
        assert_eq!(of_quota(&quota("1")), of_quota(&quota("2")));
    }

    #[test]
    fn the_number_is_the_same_in_every_release() {
        let service = json!({"spec": {"b": [1, true, null], "a": "x"}});
        assert_eq!(of_service(&service), Some(NUMBER));
    }

    /// Stored in the bindings of existing control planes.
    const NUMBER: i64 = 8_694_579_997_261_917;

    #[test]
    fn an_object_with_a_generation_and_one_that_may_be_a_secret_have_none() {
        assert_eq!(
            of_service(&json!({"metadata": {"generation": 1}, "spec": {}})),
            None
        );
        for kind in NATIVE
            .iter()
            .filter(|kind| ["Secret", "ConfigMap"].contains(&kind.gvk().kind))
        {
            assert_eq!(content_number(*kind, &json!({"data": {"a": "b"}})), None);
        }
    }
}
