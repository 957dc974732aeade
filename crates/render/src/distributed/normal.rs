//! The normal form of a ConfigMap or Secret: two objects with the same meaning to a server have the same one.
//!
//! A server stores bytes. It merges `stringData` into `data`, writes base64 without line breaks, and gives a Secret without a
//! type the type Opaque; compared in their written form, such a resource and its copies would always differ.

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

/// The fields of a copy beside its metadata: only those of the kind, without empty ones (`immutable: false`, null, an empty
/// map). Values that no server accepts are kept unchanged, or omitted.
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

/// The bytes of a base64 text as a server decodes it; line breaks and blanks in it are ignored. `None` if it is invalid.
pub(super) fn decoded(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let dense: Zeroizing<Vec<u8>> =
        Zeroizing::new(text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect());
    LENIENT.decode(dense.as_slice()).ok().map(Zeroizing::new)
}

/// The text of a map value, as a server reads it: null is the empty text. `None` for every other type.
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

/// True if a label or annotation is propagated from a resource to its copies. The claim of the resource by a policy does not
/// claim the copies; the records of a control plane, ours or another, are about the object that they are on; and in an
/// annotation in which a tool keeps the whole object, the whole Secret would be propagated. A request on templates is
/// propagated: conflict resolution.
pub(super) fn travels(key: &str) -> bool {
    key == annotation::CONFLICT_RESOLUTION
        || !(is_mark(key) || NEVER.iter().any(|prefix| key.starts_with(prefix)))
}

/// Prefixes of keys that are not propagated: claims of policies, records of distributions.
const NEVER: &[&str] = &[
    "clusterpropagationpolicy.karmada.io/",
    "propagationpolicy.karmada.io/",
    "kruise.io/resourcedistribution.resource.",
];

/// Like servers, whose library accepts any trailing bits.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

fn canonical(text: &str) -> String {
    decoded(text).map_or_else(|| text.to_owned(), |bytes| STANDARD.encode(bytes.as_slice()))
}

/// The texts of a map, each changed.
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
