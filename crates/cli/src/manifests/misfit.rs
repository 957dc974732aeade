//! Errors of deserialization without the names of types of Rust.

/// The reason why a value does not have the required form, in terms of JSON: serde names types of Rust.
#[must_use]
pub fn misfit(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let Some((found, wanted)) = text.split_once(", expected ") else {
        return text;
    };
    let found = match found.split_once(": ").map_or(found, |(_, found)| found) {
        "sequence" => "a list",
        "map" => "an object",
        "null" => "nothing",
        found => found,
    };
    let is_number = |text: &str| {
        let digits = text.strip_prefix(['i', 'u', 'f']);
        digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|each| each.is_ascii_digit()))
    };
    let wanted = match wanted.split(' ').next().unwrap_or_default() {
        "struct" | "map" => "an object",
        "sequence" | "tuple" => "a list",
        "enum" | "variant" | "unit" | "string" => "a text",
        "internally" => "an object",
        word if is_number(word) => "a number",
        _ => match wanted.strip_prefix("a ").unwrap_or(wanted) {
            "map" => "an object",
            "sequence" => "a list",
            "string" => "a text",
            "boolean" => "true or false",
            _ => wanted,
        },
    };
    format!("{found} found where {wanted} is expected")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn what_does_not_fit_is_reported_without_types_of_rust() {
        #[derive(Debug, serde::Deserialize)]
        struct Inner {
            #[serde(rename = "count")]
            _count: u32,
        }
        #[derive(Debug, serde::Deserialize)]
        struct Outer {
            #[serde(default, rename = "inner")]
            _inner: Option<Inner>,
            #[serde(default, rename = "list")]
            _list: Vec<String>,
            #[serde(default, rename = "map")]
            _map: std::collections::BTreeMap<String, bool>,
        }
        for (text, words) in [
            (r#"{"inner": 5}"#, "integer `5` found where an object is expected"),
            (
                r#"{"inner": {"count": "x"}}"#,
                r#"string "x" found where a number is expected"#,
            ),
            (r#"{"inner": {}}"#, "missing field `count`"),
            (r#"{"list": "x"}"#, r#"string "x" found where a list is expected"#),
            (
                r#"{"list": [true]}"#,
                "boolean `true` found where a text is expected",
            ),
            (r#"{"map": []}"#, "a list found where an object is expected"),
            (
                r#"{"map": {"a": 1}}"#,
                "integer `1` found where true or false is expected",
            ),
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            let error = serde_json::from_value::<Outer>(value).unwrap_err();
            assert_eq!(misfit(&error), words);
        }
    }
}
