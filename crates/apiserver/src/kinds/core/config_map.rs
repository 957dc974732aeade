//! ConfigMaps: keys, sizes, and what `immutable` forbids.

use crate::{
    kinds::kind_def::KindDef,
    names,
    object::{
        Object,
        tree::{Errors, below, flag, same},
    },
    printer::{AGE, NAME, Printer, words},
};

/// Bytes that the values of one object may have together.
pub(super) const LARGEST: usize = 1 << 20;

const FROZEN: &str = "field is immutable when `immutable` is set";

pub(super) static DEF: KindDef = KindDef {
    short: &["cm"],
    revalidates: true,
    errors: config_map,
    changes: Some(|new, old, errors| {
        frozen(new, old, &["data", "binaryData"], errors);
        config_map(new, errors);
    }),
    printer: Printer::of(&[
        NAME,
        words("Data", ".data").shows(|map| {
            let entries = map.count("data") + map.count("binaryData");
            entries.into()
        }),
        AGE,
    ]),
    ..KindDef::of::<k8s_openapi::api::core::v1::ConfigMap>()
};

fn config_map(map: &Object, errors: &mut Errors) {
    let (data, binary) = (below(map, "data"), below(map, "binaryData"));
    let mut size = 0;
    for (key, value) in data {
        keyed(key, "data", errors);
        if binary.contains_key(key) {
            errors.invalid(
                format!("data[{key}]"),
                key.as_str(),
                "duplicate of key present in binaryData",
            );
        }
        size += value.as_str().map_or(0, str::len);
    }
    for (key, value) in binary {
        keyed(key, "binaryData", errors);
        size += value.as_str().map_or(0, decoded_length);
    }
    if size > LARGEST {
        errors.too_long("[]", LARGEST);
    }
}

/// The fields that may not change once `immutable` is set.
pub(super) fn frozen(new: &Object, old: &Object, parts: &[&str], errors: &mut Errors) {
    if !flag(old, "immutable") {
        return;
    }
    if !flag(new, "immutable") {
        errors.forbidden("immutable", FROZEN);
    }
    for part in parts {
        if !same(new.get(*part), old.get(*part)) {
            errors.forbidden(*part, FROZEN);
        }
    }
}

pub(super) fn keyed(key: &str, map: &str, errors: &mut Errors) {
    errors.all_invalid(&format!("{map}[{key}]"), key, names::config_map_key(key));
}

/// Bytes that base64 text (with padding, without newlines) stands for.
pub(super) fn decoded_length(text: &str) -> usize {
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}
