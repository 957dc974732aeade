//! Go's names of types and its base64: for errors that read like the server's, and for values written back as it does.

use crate::schema::{Schema, Type};

/// The Go type of a value, as errors name it: `int32`, `[]v1.Container`, `map[string]string`.
pub(super) fn type_of(schema: &Schema) -> String {
    if let Some(name) = &schema.definition {
        let mut parts = name.rsplit('.');
        let kind = parts.next().unwrap_or_default();
        return format!("{}.{kind}", parts.next().unwrap_or_default());
    }
    match schema.kind {
        Type::String if schema.format.as_deref() == Some("byte") => "[]uint8".to_owned(),
        Type::String => "string".to_owned(),
        Type::Boolean => "bool".to_owned(),
        Type::Number => "float64".to_owned(),
        Type::Integer => schema.format.clone().unwrap_or_else(|| "int64".to_owned()),
        Type::Array => format!(
            "[]{}",
            schema
                .items
                .as_ref()
                .map_or("interface {}".to_owned(), |items| type_of(items))
        ),
        Type::Object => format!(
            "map[string]{}",
            schema
                .additional
                .as_ref()
                .map_or("interface {}".to_owned(), |values| type_of(values))
        ),
        Type::Any | Type::IntOrString => "interface {}".to_owned(),
    }
}

/// The error of Go's converter of unstructured values for one that does not fit; `value` is the name of its JSON type, or
/// `number 1.5`.
pub(super) fn unconvertible(schema: &Schema, value: &str) -> String {
    let is_float = value.contains(['.', 'e', 'E']) && value.starts_with("number ");
    let source = match value {
        "object" => "map[string]interface {}",
        "array" => "[]interface {}",
        value if value.starts_with("number") => {
            if is_float {
                "float64"
            } else {
                "int64"
            }
        }
        other => other,
    };
    match schema.kind {
        Type::Object if schema.additional.is_some() => format!("cannot restore map from {}", simple(source)),
        Type::Object => format!("cannot restore struct from: {}", simple(source)),
        Type::Array => format!("cannot restore slice from {}", simple(source)),
        Type::String if source == "int64" => "cannot convert int64 to string".to_owned(),
        Type::Integer | Type::Number if value.starts_with("number") => {
            format!("cannot convert {source} to {}", type_of(schema))
        }
        _ => format!("unrecognized type: {}", type_of(schema)),
    }
}

/// The kind of a Go type.
fn simple(source: &str) -> &str {
    match source {
        "map[string]interface {}" => "map",
        "[]interface {}" => "slice",
        other => other,
    }
}

/// The struct that a schema stands for, as errors name it: `DeploymentSpec`.
pub(super) fn struct_of(schema: &Schema) -> Option<&str> {
    schema.definition.as_deref()?.rsplit('.').next()
}

/// Checks standard base64 and writes it again without line breaks.
///
/// # Errors
/// Go's text, with the offset it finds fault with.
pub(super) fn base64(text: &str) -> Result<String, String> {
    let bytes = text.as_bytes();
    let corrupt = |at: usize| format!("illegal base64 data at input byte {at}");
    let is_break = |byte: u8| byte == b'\r' || byte == b'\n';
    let mut out = String::with_capacity(bytes.len());
    let mut at = 0;
    let mut quantum = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        at += 1;
        if is_break(byte) {
            continue;
        }
        if byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/' {
            out.push(char::from(byte));
            quantum = (quantum + 1) % 4;
            continue;
        }
        if byte != b'=' || quantum < 2 {
            return Err(corrupt(at - 1));
        }
        out.push('=');
        if quantum == 2 {
            while at < bytes.len() && is_break(bytes[at]) {
                at += 1;
            }
            match bytes.get(at) {
                None => return Err(corrupt(bytes.len())),
                Some(b'=') => at += 1,
                Some(_) => return Err(corrupt(at - 1)),
            }
            out.push('=');
        }
        while at < bytes.len() && is_break(bytes[at]) {
            at += 1;
        }
        return if at < bytes.len() {
            Err(corrupt(at))
        } else {
            Ok(canonical(out))
        };
    }
    if quantum == 0 {
        Ok(out)
    } else {
        Err(corrupt(bytes.len() - quantum))
    }
}

/// The bits that padding leaves over are zero in what is written.
fn canonical(mut text: String) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    let Some(last) = text.len().checked_sub(padding + 1) else {
        return text;
    };
    let spare = if padding == 2 { 4 } else { 2 };
    if let Some(index) = ALPHABET.iter().position(|byte| *byte == text.as_bytes()[last]) {
        let cleared = char::from(ALPHABET[(index >> spare) << spare]);
        text.replace_range(last..=last, cleared.encode_utf8(&mut [0; 4]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_faults_are_reported_where_go_finds_them() {
        for (text, result) in [
            ("YWJj\nZGVm", Ok("YWJjZGVm")),
            ("YWI=", Ok("YWI=")),
            ("YWJ=", Ok("YWI=")),
            ("", Ok("")),
            ("not base64!", Err(3)),
            ("YWJ", Err(0)),
            ("-_-_", Err(0)),
            ("YW=", Err(3)),
            ("YW=x", Err(2)),
            ("YWI=YWI=", Err(4)),
        ] {
            let result = result
                .map(str::to_owned)
                .map_err(|at| format!("illegal base64 data at input byte {at}"));
            assert_eq!(base64(text), result, "{text}");
        }
    }

    #[test]
    fn odd_texts_make_no_panic() {
        for text in ["é", "=", "é=", "YWé="] {
            let _ = base64(text);
        }
    }
}
