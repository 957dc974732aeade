//! The hash that OpenKruise writes on copies: that of the bytes in which a Kubernetes API server serves the resource of a
//! distribution.

use serde_json::{Number, Value};
use sha2::{Digest as _, Sha256};

/// Lower-case hex SHA-256 of a resource as a Go server serves it: compact JSON, keys sorted by their bytes at every level,
/// characters with a meaning in HTML escaped. Source: ResourceDistribution reference 3.5.
///
/// The hash is for other readers; no decision depends on it alone. Cost: O(size of the resource), without a copy of it.
#[must_use]
pub fn resource_hash(resource: &Value) -> String {
    let mut hash = Sha256::new();
    write(resource, &mut |bytes| hash.update(bytes));
    let mut hex = String::with_capacity(64);
    for byte in hash.finalize() {
        for digit in [byte >> 4, byte & 15] {
            hex.extend(char::from_digit(u32::from(digit), 16));
        }
    }
    hex
}

/// The receiver of the bytes, in pieces.
pub(super) type Sink<'a> = dyn FnMut(&[u8]) + 'a;

/// Writes a value as a Go server serves it.
pub(super) fn write(value: &Value, sink: &mut Sink<'_>) {
    match value {
        Value::Null => sink(b"null"),
        Value::Bool(true) => sink(b"true"),
        Value::Bool(false) => sink(b"false"),
        Value::Number(number) => write_number(number, sink),
        Value::String(text) => write_text(text, sink),
        Value::Array(items) => {
            sink(b"[");
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    sink(b",");
                }
                write(item, sink);
            }
            sink(b"]");
        }
        Value::Object(map) => {
            // Whether a map of serde_json is sorted depends on a feature that any crate of a build can switch off.
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            sink(b"{");
            for (at, (key, value)) in fields.into_iter().enumerate() {
                if at > 0 {
                    sink(b",");
                }
                write_text(key, sink);
                sink(b":");
                write(value, sink);
            }
            sink(b"}");
        }
    }
}

/// A number that fits into 64 signed bits is an integer to a Kubernetes server, every other number is a float.
fn write_number(number: &Number, sink: &mut Sink<'_>) {
    if let Some(integer) = number.as_i64() {
        sink(integer.to_string().as_bytes());
    } else if let Some(float) = number.as_f64() {
        sink(float_text(float).as_bytes());
    }
}

/// The shortest digits of the number; with an exponent below 1e-6 and from 1e21 on, of at least two digits only if it is
/// positive.
fn float_text(float: f64) -> String {
    let size = float.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return format!("{float}");
    }
    let text = format!("{float:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        _ => text,
    }
}

/// Text in quotes. Backspace and form feed have short escapes from Go 1.22 on, and here; a server that was built with an older
/// Go writes them as `\u0008` and `\u000c`: its hash of such a text differs.
fn write_text(text: &str, sink: &mut Sink<'_>) {
    sink(b"\"");
    let mut plain = 0;
    for (at, character) in text.char_indices() {
        let code;
        let escaped = match character {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\u{8}' => "\\b",
            '\u{c}' => "\\f",
            '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                code = format!("\\u{:04x}", u32::from(character));
                &code
            }
            _ => continue,
        };
        sink(&text.as_bytes()[plain..at]);
        sink(escaped.as_bytes());
        plain = at + character.len_utf8();
    }
    sink(&text.as_bytes()[plain..]);
    sink(b"\"");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(value: &Value) -> String {
        let mut bytes = Vec::new();
        write(value, &mut |piece| bytes.extend_from_slice(piece));
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn the_hash_is_the_one_that_openkruise_wrote() {
        // The example of OpenKruise's documentation, with the hash that its controller wrote on the copies.
        let resource = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "game-demo"},
            "data": {
                "game.properties": "enemy.types=aliens,monsters\nplayer.maximum-lives=5\n",
                "player_initial_lives": "3",
                "ui_properties_file_name": "user-interface.properties",
                "user-interface.properties": "color.good=purple\ncolor.bad=yellow\nallow.textmode=true\n",
            },
        });
        assert_eq!(
            resource_hash(&resource),
            "0821a13321b2c76b5bd63341a0d97fb46bfdbb2f914e2ad6b613d10632fa4b63"
        );
    }

    /// Each value, its encoding by Go's encoding/json according to the documentation, and the hash of that, which is the output
    /// of `printf %s TEXT | sha256sum`.
    fn vectors() -> Vec<(Value, &'static str, &'static str)> {
        vec![
            (
                json!({}),
                "{}",
                "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
            ),
            (
                json!({"a": "<a href=\"x\">&amp;</a>"}),
                r#"{"a":"\u003ca href=\"x\"\u003e\u0026amp;\u003c/a\u003e"}"#,
                "56713d9abfa5317660ce981761c16635e8cb9090dbdb87be1a543a740b8827b7",
            ),
            (
                json!({"a<b": "\u{2028}\u{2029}\\/\t\r\n\u{8}\u{c}\0\u{1f}"}),
                r#"{"a\u003cb":"\u2028\u2029\\/\t\r\n\b\f\u0000\u001f"}"#,
                "221c4d60f69b4aa64f19abb68671aeeba0841467edbd6b494abdf671cfbb3298",
            ),
            (
                json!(["\u{7f}é😀", null, true, false, [], {}]),
                "[\"\u{7f}é😀\",null,true,false,[],{}]",
                "05850ceda4ddfeac3e5ca0031e1d9aed9d53a079c99c362d08c9ffc2bec2d322",
            ),
            (
                json!({
                    "kind": "Secret",
                    "apiVersion": "v1",
                    "metadata": {"name": "s", "labels": {"app": "web"}, "annotations": {"note": "1 < 2 && 3 > 2"}},
                    "type": "Opaque",
                    "immutable": true,
                    "data": {"url": "aHR0cHM6Ly9hP2I9MSZjPTI=", "cert": "LS0tLS1CRUdJTg=="},
                }),
                concat!(
                    r#"{"apiVersion":"v1","data":{"cert":"LS0tLS1CRUdJTg==","url":"aHR0cHM6Ly9hP2I9MSZjPTI="},"#,
                    r#""immutable":true,"kind":"Secret","metadata":{"annotations":{"note":"#,
                    r#""1 \u003c 2 \u0026\u0026 3 \u003e 2"},"labels":{"app":"web"},"name":"s"},"type":"Opaque"}"#,
                ),
                "ae90a992a67b40eaecdc32bffe54bce9af549b05cee299cfe3785be0f7497fbd",
            ),
            (
                json!({"a": 1e-7, "b": 1e21, "c": 1e-6, "d": i64::MIN, "e": 1.5}),
                r#"{"a":1e-7,"b":1e+21,"c":0.000001,"d":-9223372036854775808,"e":1.5}"#,
                "fd0519c72b33bb2a335438740d60d18f4660488a8709045dd6dbb11fc8c2492a",
            ),
        ]
    }

    #[test]
    fn everything_is_written_as_go_writes_it() {
        for (value, text, hash) in vectors() {
            assert_eq!(written(&value), text);
            assert_eq!(resource_hash(&value), hash, "{text}");
        }
    }

    #[test]
    fn floats_are_written_as_go_writes_them() {
        for (float, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.5, "0.5"),
            (-1.25, "-1.25"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e-6, "0.000001"),
            (9.99e-7, "9.99e-7"),
            (1e-7, "1e-7"),
            (-1.5e-9, "-1.5e-9"),
            (1e-10, "1e-10"),
            (5e-324, "5e-324"),
            (1e20, "100000000000000000000"),
            (123_456_789e12, "123456789000000000000"),
            (1e21, "1e+21"),
            (-1.5e22, "-1.5e+22"),
            (f64::MAX, "1.7976931348623157e+308"),
        ] {
            assert_eq!(float_text(float), text);
        }
    }

    #[test]
    fn what_is_no_signed_integer_is_a_float() {
        assert_eq!(written(&json!(i64::MAX)), "9223372036854775807");
        assert_eq!(written(&json!(i64::MIN)), "-9223372036854775808");
        assert_eq!(written(&json!(u64::MAX)), "18446744073709552000");
        assert_eq!(written(&json!(1000.0)), "1000");
    }

    #[test]
    fn keys_are_sorted_by_their_bytes_at_every_level() {
        let value: Value =
            serde_json::from_str(r#"{"b":{"z":1,"é":2,"Z":3,"":4},"a":[{"y":1,"x":2}]}"#).unwrap();
        assert_eq!(
            written(&value),
            r#"{"a":[{"x":2,"y":1}],"b":{"":4,"Z":3,"z":1,"é":2}}"#
        );
    }
}
