//! JSON as the Go encoder writes it: HTML characters escaped, whole floats without a fraction, and the fields of an
//! object in the order of the Go types where people see it (kind, apiVersion, metadata first).

use std::io::Write as _;

use serde_json::{Map, Number, Value};

/// The first fields of an object.
const OBJECT: &[&str] = &["kind", "apiVersion", "metadata"];

/// The fields of `ObjectMeta`, in the order of the Go type.
const METADATA: &[&str] = &[
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// The fields of an entry of `managedFields`, in that order.
const MANAGED: &[&str] = &[
    "manager",
    "operation",
    "apiVersion",
    "time",
    "fieldsType",
    "fieldsV1",
    "subresource",
];

/// The type of a map, for the order of its fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Object,
    Metadata,
    Managed,
    Plain,
}

impl Place {
    const fn first(self) -> &'static [&'static str] {
        match self {
            Self::Object => OBJECT,
            Self::Metadata => METADATA,
            Self::Managed => MANAGED,
            Self::Plain => &[],
        }
    }

    fn below(self, key: &str) -> Self {
        match (self, key) {
            (Self::Object, "metadata") => Self::Metadata,
            (Self::Object, "items" | "object") => Self::Object,
            (Self::Metadata, "managedFields") => Self::Managed,
            _ => Self::Plain,
        }
    }
}

/// A value, as Go prints it without its type: `map[a:1 b:[x y]]`.
pub(crate) fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) => {
            let all: Vec<String> = list.iter().map(printed).collect();
            format!("[{}]", all.join(" "))
        }
        Value::Object(map) => {
            let all: Vec<String> = map
                .iter()
                .map(|(name, value)| format!("{name}:{}", printed(value)))
                .collect();
            format!("map[{}]", all.join(" "))
        }
        other => other.to_string(),
    }
}

/// One line without a newline.
#[must_use]
pub(crate) fn compact(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    write(&mut out, value, Place::Object, None);
    out
}

/// The same of a map.
#[must_use]
pub(crate) fn compact_map(map: &Map<String, Value>) -> Vec<u8> {
    let mut out = Vec::with_capacity(4096);
    write_map(&mut out, map, Place::Object, None);
    out
}

/// Indented by two spaces, as people like it.
#[must_use]
pub(crate) fn pretty(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    write(&mut out, value, Place::Object, Some(0));
    out
}

fn write(out: &mut Vec<u8>, value: &Value, place: Place, indent: Option<usize>) {
    match value {
        Value::Null => out.extend(b"null"),
        Value::Bool(true) => out.extend(b"true"),
        Value::Bool(false) => out.extend(b"false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            if items.is_empty() {
                out.extend(b"[]");
                return;
            }
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                line(out, indent.map(|depth| depth + 1));
                write(out, item, place, indent.map(|depth| depth + 1));
            }
            line(out, indent);
            out.push(b']');
        }
        Value::Object(map) => write_map(out, map, place, indent),
    }
}

fn write_map(out: &mut Vec<u8>, map: &Map<String, Value>, place: Place, indent: Option<usize>) {
    if map.is_empty() {
        out.extend(b"{}");
        return;
    }
    let first = place.first();
    let ordered = first.iter().filter_map(|key| map.get_key_value(*key));
    let others = map.iter().filter(|(key, _)| !first.contains(&key.as_str()));
    out.push(b'{');
    for (at, (key, value)) in ordered.chain(others).enumerate() {
        if at > 0 {
            out.push(b',');
        }
        line(out, indent.map(|depth| depth + 1));
        write_string(out, key);
        out.push(b':');
        if indent.is_some() {
            out.push(b' ');
        }
        write(out, value, place.below(key), indent.map(|depth| depth + 1));
    }
    line(out, indent);
    out.push(b'}');
}

fn line(out: &mut Vec<u8>, indent: Option<usize>) {
    if let Some(depth) = indent {
        out.push(b'\n');
        out.resize(out.len() + 2 * depth, b' ');
    }
}

fn write_number(out: &mut Vec<u8>, number: &Number) {
    // Writing into a vector does not fail.
    let _ = match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e21 => {
            write!(out, "{float:.0}")
        }
        _ => write!(out, "{number}"),
    };
}

/// Bytes that are written in other words, and one that begins characters of which two are.
static SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        special[byte] = byte < 0x20 || matches!(byte as u8, b'"' | b'\\' | b'<' | b'>' | b'&' | 0xe2);
        byte += 1;
    }
    special
};

/// A string with its quotes.
pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if !SPECIAL[usize::from(byte)] {
            continue;
        }
        // U+2028 and U+2029 are e2 80 a8 and e2 80 a9.
        if byte == 0xe2 && !matches!(text.as_bytes().get(at + 1..at + 3), Some([0x80, 0xa8 | 0xa9])) {
            continue;
        }
        out.extend(&text.as_bytes()[from..at]);
        from = at + 1;
        let _ = match byte {
            b'"' | b'\\' => out.write_all(&[b'\\', byte]),
            b'\n' => out.write_all(b"\\n"),
            b'\r' => out.write_all(b"\\r"),
            b'\t' => out.write_all(b"\\t"),
            8 => out.write_all(b"\\b"),
            12 => out.write_all(b"\\f"),
            0xe2 => {
                from = at + 3;
                let last = text.as_bytes().get(at + 2).copied().unwrap_or(0xa8) - 0xa8;
                write!(out, "\\u202{}", 8 + last)
            }
            _ => write!(out, "\\u{byte:04x}"),
        };
    }
    out.extend(&text.as_bytes()[from..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn fields_come_in_the_order_of_the_go_types() {
        let value = json!({"data": {"b": "1", "a": "2"}, "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"uid": "u", "namespace": "n", "name": "a", "managedFields": [{"time": "t", "manager": "m"}]}});
        let text = String::from_utf8(compact(&value)).expect("JSON is text");
        assert_eq!(
            text,
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u","managedFields":[{"manager":"m","time":"t"}]},"data":{"a":"2","b":"1"}}"#
        );
    }

    #[test]
    fn pretty_is_indented_and_empty_things_stay_on_their_line() {
        let text = String::from_utf8(pretty(&json!({"a": [], "b": {}, "c": [1, {"d": null}]})))
            .expect("JSON is text");
        assert_eq!(
            text,
            "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n    1,\n    {\n      \"d\": null\n    }\n  ]\n}"
        );
    }

    #[test]
    fn strings_are_escaped_as_go_does() {
        let cases = [
            ("a<b>&c", r#""a\u003cb\u003e\u0026c""#),
            ("\u{2028}x\u{2029}", r#""\u2028x\u2029""#),
            ("\u{1}\u{8}\u{c}\n\r\t\"\\", r#""\u0001\b\f\n\r\t\"\\""#),
            ("é\u{20ac}", "\"é\u{20ac}\""),
        ];
        for (text, expected) in cases {
            let mut out = Vec::new();
            write_string(&mut out, text);
            assert_eq!(String::from_utf8(out).expect("text"), expected);
        }
    }

    #[test]
    fn whole_floats_lose_their_fraction() {
        assert_eq!(compact(&json!([2.0, 2.5, -0.5, 3])), b"[2,2.5,-0.5,3]");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_the_same(text in ".*", key in ".*", number in any::<i64>()) {
            let value = json!({key: [text, number, {"metadata": {}}]});
            prop_assert_eq!(&serde_json::from_slice::<Value>(&compact(&value)).expect("valid"), &value);
            prop_assert_eq!(&serde_json::from_slice::<Value>(&pretty(&value)).expect("valid"), &value);
        }
    }
}
