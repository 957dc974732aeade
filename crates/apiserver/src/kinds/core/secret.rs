//! Secrets: keys, sizes, types, and what `immutable` forbids.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::{
    kinds::{
        core::config_map::{LARGEST, decoded_length, frozen, keyed},
        kind_def::{KindDef, fields},
    },
    object::{
        Object,
        tree::{Errors, at, below, default, made, text},
    },
    printer::{AGE, NAME, Printer, words},
};

/// The placeholder for a Secret's content in messages.
const REDACTED: &str = "<secret contents redacted>";

const TOKEN: &str = "kubernetes.io/service-account-token";

const ACCOUNT: &str = "kubernetes.io/service-account.name";

/// Keys that a type of Secrets demands: all of them, or (basic-auth) one of them.
const KEYS: &[(&str, &[&str])] = &[
    ("kubernetes.io/ssh-auth", &["ssh-privatekey"]),
    ("kubernetes.io/tls", &["tls.crt", "tls.key"]),
    ("kubernetes.io/dockercfg", &[".dockercfg"]),
    ("kubernetes.io/dockerconfigjson", &[".dockerconfigjson"]),
];

pub(super) static DEF: KindDef = KindDef {
    revalidates: true,
    defaults: |secret| {
        default(secret, "type", "Opaque");
        merge_string_data(secret);
    },
    errors: secret,
    changes: Some(|new, old, errors| {
        if text(new, "type") != text(old, "type") {
            errors.invalid("type", text(new, "type"), crate::object::tree::IMMUTABLE);
        }
        frozen(new, old, &["data"], errors);
        secret(new, errors);
    }),
    warnings: |secret, _| key_pair(secret),
    selectable: Some(|secret| fields([("type", text(secret, "type"))])),
    printer: Printer::of(&[
        NAME,
        words("Type", ".type"),
        words("Data", ".data").shows(|secret| {
            let entries = secret.count("data");
            entries.into()
        }),
        AGE,
    ]),
    ..KindDef::of::<k8s_openapi::api::core::v1::Secret>()
};

fn secret(secret: &Object, errors: &mut Errors) {
    let data = below(secret, "data");
    let mut size = 0;
    for (key, value) in data {
        keyed(key, "data", errors);
        size += value.as_str().map_or(0, decoded_length);
    }
    if size > LARGEST {
        errors.too_long("data", LARGEST);
    }
    let kind = text(secret, "type");
    match kind {
        TOKEN if text(at(secret, &["metadata", "annotations"]), ACCOUNT).is_empty() => {
            errors.required(format!("metadata.annotations[{ACCOUNT}]"), "");
        }
        "kubernetes.io/basic-auth" if !["username", "password"].iter().any(|key| data.contains_key(*key)) => {
            errors.required("data[username]", "");
            errors.required("data[password]", "");
        }
        _ => {}
    }
    for key in KEYS
        .iter()
        .find(|(name, _)| *name == kind)
        .map_or(&[][..], |(_, keys)| keys)
    {
        match data.get(*key) {
            None => errors.required(format!("data[{key}]"), ""),
            Some(value) if key.starts_with(".docker") => {
                if let Some(problem) = json_problem(value) {
                    errors.invalid(format!("data[{key}]"), REDACTED, &problem);
                }
            }
            Some(_) => {}
        }
    }
}

/// `stringData` goes into `data`, where it wins, and is never stored.
fn merge_string_data(secret: &mut Object) {
    let Some(Value::Object(plain)) = secret.remove("stringData") else {
        return;
    };
    if plain.is_empty() {
        return;
    }
    let data = made(secret, "data");
    for (key, value) in plain {
        data.insert(key, STANDARD.encode(value.as_str().unwrap_or_default()).into());
    }
}

fn content(value: &Value) -> Vec<u8> {
    STANDARD
        .decode(value.as_str().unwrap_or_default())
        .unwrap_or_default()
}

/// The error in a JSON object, in the words of Go's decoder where they are known, never with its content.
fn json_problem(value: &Value) -> Option<String> {
    let bytes = content(value);
    let error = match serde_json::from_slice::<Object>(&bytes) {
        Ok(_) => return None,
        Err(error) => error,
    };
    if error.is_eof() {
        return Some("unexpected end of JSON input".to_owned());
    }
    if error.is_data() {
        let found = match serde_json::from_slice::<Value>(&bytes) {
            Ok(Value::Null) => return None,
            Ok(Value::Array(_)) => "array",
            Ok(Value::String(_)) => "string",
            Ok(Value::Bool(_)) => "bool",
            _ => "number",
        };
        return Some(format!(
            "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        ));
    }
    // The decoder stops behind the character it cannot take.
    let line = bytes
        .split(|byte| *byte == b'\n')
        .nth(error.line().saturating_sub(1));
    let found = line.and_then(|line| line.get(error.column().saturating_sub(1)));
    let found = found.map_or(' ', |byte| char::from(*byte));
    let place = if error.to_string().starts_with("key must be a string") {
        "looking for beginning of object key string"
    } else {
        "looking for beginning of value"
    };
    Some(format!("invalid character '{found}' {place}"))
}

/// The error of loading the key pair of a TLS secret, as far as its PEM frames show it.
fn key_pair(secret: &Object) -> Vec<String> {
    if text(secret, "type") != "kubernetes.io/tls" {
        return Vec::new();
    }
    let data = below(secret, "data");
    let labels = |key: &str| {
        let bytes = data.get(key).map(content).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let begin = text.lines().filter_map(|line| {
            let label = line.trim_end().strip_prefix("-----BEGIN ")?;
            label.strip_suffix("-----").map(str::to_owned)
        });
        begin.collect::<Vec<_>>()
    };
    let (certificate, key) = (labels("tls.crt"), labels("tls.key"));
    let is_key = |label: &String| label == "PRIVATE KEY" || label.ends_with(" PRIVATE KEY");
    let problem = if certificate.is_empty() {
        "tls: failed to find any PEM data in certificate input"
    } else if !certificate.iter().any(|label| label == "CERTIFICATE") && certificate.iter().all(is_key) {
        "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched"
    } else if key.is_empty() {
        "tls: failed to find any PEM data in key input"
    } else if key.iter().all(|label| label == "CERTIFICATE") {
        "tls: found a certificate rather than a key in the PEM for the private key"
    } else {
        return Vec::new();
    };
    vec![problem.to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_docker_config_that_is_no_object_is_reported_without_its_content() {
        for (config, problem) in [
            ("{}", None),
            (
                "{nope",
                Some("invalid character 'n' looking for beginning of object key string"),
            ),
            ("", Some("unexpected end of JSON input")),
            ("{\"a\": ", Some("unexpected end of JSON input")),
            (
                "[1]",
                Some("json: cannot unmarshal array into Go value of type map[string]interface {}"),
            ),
            (
                "{\"a\": x}",
                Some("invalid character 'x' looking for beginning of value"),
            ),
        ] {
            let value = Value::from(STANDARD.encode(config));
            assert_eq!(json_problem(&value).as_deref(), problem, "{config}");
        }
    }

    #[test]
    fn sizes_are_those_of_the_bytes_not_of_the_text() {
        for length in 0..10 {
            assert_eq!(decoded_length(&STANDARD.encode(vec![7; length])), length);
        }
    }
}
