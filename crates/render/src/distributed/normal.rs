//! The normal form of a ConfigMap or Secret: equal for two objects that mean the same to a server.
//!
//! A server stores bytes. It folds `stringData` into `data`, writes base64 without line breaks, and gives a Secret without
//! a type the type Opaque; compared as they were written, such a resource and its copies would differ for ever.

use base64::{
    Engine as _,
    alphabet::STANDARD as ALPHABET,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};
use entourage_api::keys::annotation;
use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use entourage_model::{marks::is_mark, rendered::wipe};

/// The type of a Secret that names none.
pub(super) const OPAQUE: &str = "Opaque";

/// The fields of an object that copies hold beside their metadata: none but those of the kind, without what says nothing
/// (`immutable: false`, null, an empty map). Values that no server takes are left as they are, or out.
///
/// Cost: O(size of the object).
pub(super) fn content(kind: &str, object: &Value) -> Map<String, Value> {
    let mut content = Map::new();
    let mut put = |field: &str, map: Map<String, Value>| {
        if !map.is_empty() {
            content.insert(field.to_owned(), Value::Object(map));
        }
    };
    match kind {
        "ConfigMap" => {
            put("data", mapped(&object["data"], str::to_owned));
            put("binaryData", mapped(&object["binaryData"], canonical));
        }
        "Secret" => {
            let mut data = mapped(&object["data"], canonical);
            for (key, value) in mapped(&object["stringData"], |text| STANDARD.encode(text)) {
                if let Some(mut hidden) = data.insert(key, value) {
                    wipe(&mut hidden);
                }
            }
            put("data", data);
            content.insert("type".to_owned(), json!(secret_type(object)));
        }
        _ => return content,
    }
    if object["immutable"] == true {
        content.insert("immutable".to_owned(), json!(true));
    }
    content
}

/// The type of a Secret.
pub(super) fn secret_type(secret: &Value) -> &str {
    secret["type"]
        .as_str()
        .filter(|name| !name.is_empty())
        .unwrap_or(OPAQUE)
}

/// The bytes that a base64 text means to a server; line breaks and blanks in it mean nothing. `None` when it means none.
pub(super) fn decoded(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let dense: Zeroizing<Vec<u8>> =
        Zeroizing::new(text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect());
    LENIENT.decode(dense.as_slice()).ok().map(Zeroizing::new)
}

/// A text, as a server reads a value of a map of texts: null is the empty one. `None` for everything else.
pub(super) fn text(value: &Value) -> Option<&str> {
    match value {
        Value::Null => Some(""),
        value => value.as_str(),
    }
}

/// The labels or annotations of a resource that its copies carry.
pub(super) fn travelling(map: &Value) -> Map<String, Value> {
    let mut kept = mapped(map, str::to_owned);
    kept.retain(|key, _| travels(key));
    kept
}

/// Whether a label or annotation goes from a resource to its copies. What claims the resource for a policy does not claim
/// them; what a control plane records on an object, ours or another, is about that object; and where a tool keeps the whole
/// object, the whole Secret would travel. A wish that is written on templates does: how conflicts on members end.
pub(super) fn travels(key: &str) -> bool {
    key == annotation::CONFLICT_RESOLUTION
        || !(is_mark(key) || NEVER.iter().any(|prefix| key.starts_with(prefix)))
}

/// Prefixes of keys that stay where they are: claims of policies, records of distributions.
const NEVER: &[&str] = &[
    "clusterpropagationpolicy.karmada.io/",
    "propagationpolicy.karmada.io/",
    "kruise.io/resourcedistribution.resource.",
];

/// As servers, whose library is not strict about the last bits.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

fn canonical(text: &str) -> String {
    decoded(text).map_or_else(|| text.to_owned(), |bytes| STANDARD.encode(bytes.as_slice()))
}

/// The texts of a map, changed.
fn mapped(map: &Value, change: impl Fn(&str) -> String) -> Map<String, Value> {
    let all = map.as_object().into_iter().flatten();
    all.filter_map(|(key, value)| Some((key.clone(), change(text(value)?).into())))
        .collect()
}

#[cfg(test)]
mod tests {
    use entourage_api::keys::label;

    use super::*;

    #[test]
    fn a_secret_means_its_bytes() {
        let written = json!({
            "kind": "Secret",
            "data": {"wrapped": "aGVs\n bG8=\r\n", "bits": "YR==", "hidden": "YQ==", "none": null, "wrong": "a"},
            "stringData": {"plain": "hello", "hidden": "seen"},
            "immutable": false,
            "unknown": 1,
        });
        assert_eq!(
            Value::Object(content("Secret", &written)),
            json!({
                "type": "Opaque",
                "data": {
                    "wrapped": "aGVsbG8=", "bits": "YQ==", "none": "", "wrong": "a",
                    "plain": "aGVsbG8=", "hidden": "c2Vlbg==",
                },
            })
        );
    }

    #[test]
    fn a_config_map_means_its_texts_and_bytes() {
        let written = json!({
            "data": {"a": " x\n", "b": null, "no text": 3},
            "binaryData": {"c": "aGVs\nbG8="},
            "stringData": {"no": "field of it"},
            "immutable": true,
        });
        assert_eq!(
            Value::Object(content("ConfigMap", &written)),
            json!({"data": {"a": " x\n", "b": ""}, "binaryData": {"c": "aGVsbG8="}, "immutable": true})
        );
        let empty = json!({"data": {}, "binaryData": null});
        assert!(content("ConfigMap", &empty).is_empty());
    }

    #[test]
    fn claims_records_and_whole_objects_do_not_travel() {
        for key in [
            label::PROPAGATION_POLICY_ID,
            label::CLUSTER_PROPAGATION_POLICY_ID,
            label::DISTRIBUTED_BY,
            label::HUB,
            annotation::PROPAGATION_POLICY_NAME,
            annotation::PROPAGATION_POLICY_NAMESPACE,
            annotation::CLUSTER_PROPAGATION_POLICY_NAME,
            annotation::DISTRIBUTED_FROM,
            annotation::DISTRIBUTED_HASH,
            annotation::DISTRIBUTED_IN,
            annotation::DISTRIBUTED_KEYS,
            annotation::DISTRIBUTION_ALLOWED,
            annotation::LAST_APPLIED,
        ] {
            assert!(!travels(key), "{key}");
        }
        for key in ["app", "a.b/c", annotation::CONFLICT_RESOLUTION] {
            assert!(travels(key), "{key}");
        }
    }
}
