//! Changes of a JSON or YAML document that a string of the object holds.
//!
//! The document is parsed, changed and serialised: unchanged parts keep their meaning, not their layout or comments (as in
//! Karmada). A document that would lose its meaning is refused: several documents in one string, and those that [`kept`]
//! refuses.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use entourage_api::policy::{FieldOverrider, PatchOperation};
use serde_json::Value;
use zeroize::{Zeroize as _, Zeroizing};

use super::{kept, patch};
use entourage_model::rendered::wipe;

/// The format of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Yaml,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Yaml => "YAML",
        }
    }
}

/// Changes the document at `change.field_path`. In the data of a Secret it is decoded and encoded again.
///
/// The operation and the cause. No message holds any content of the document.
pub(super) fn revise(is_secret: bool, object: &mut Value, change: &FieldOverrider) -> Result<(), String> {
    let path = &change.field_path;
    let (form, operations) = match (&*change.yaml, &*change.json) {
        ([], []) => return Err("neither json nor yaml has operations".into()),
        ([], json) => (Form::Json, json),
        (yaml, []) => (Form::Yaml, yaml),
        // A text is one of the two: operations of the other format would be dropped silently.
        _ => {
            return Err(
                "json and yaml are mutually exclusive; give operations under the one that the text is".into(),
            );
        }
    };
    let Value::String(field) = patch::find(object, path)? else {
        return Err(format!("{path} is not a string"));
    };
    let encoded = is_secret && path.starts_with("/data/");
    let text = if encoded {
        Zeroizing::new(decode(field).ok_or_else(|| format!("{path} is not base64 text"))?)
    } else {
        Zeroizing::new(field.clone())
    };
    let revised = Zeroizing::new(revised(form, &text, operations).map_err(|why| format!("{path}: {why}"))?);
    field.zeroize();
    *field = if encoded {
        STANDARD.encode(revised.as_bytes())
    } else {
        revised.to_string()
    };
    Ok(())
}

fn revised(form: Form, text: &str, operations: &[PatchOperation]) -> Result<String, String> {
    let mut document = Wiped(read(form, text)?);
    for (position, each) in operations.iter().enumerate() {
        patch::apply(&mut document.0, &each.sub_path, each.operator, &each.value)
            .map_err(|why| format!("{}[{position}]: {why}", form.name().to_lowercase()))?;
    }
    let written = match form {
        Form::Json => serde_json::to_string(&document.0).ok(),
        Form::Yaml => {
            // Lines are never folded: readers differ in how they join them.
            let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
            serde_saphyr::to_string_with_options(&document.0, options).ok()
        }
    };
    written.ok_or_else(|| format!("the changed document cannot be written as {}", form.name()))
}

/// Parses a document as Kubernetes' own tools do: YAML 1.1 where the versions differ.
fn read(form: Form, text: &str) -> Result<Value, String> {
    let unreadable = || format!("the value is not one {} document", form.name());
    let document = Wiped(match form {
        Form::Json => serde_json::from_str(text).map_err(|_| unreadable())?,
        Form::Yaml => read_yaml(text).ok_or_else(unreadable)?,
    });
    match form {
        Form::Json => kept::check_json(text),
        Form::Yaml => kept::check_yaml(text, read_yaml),
    }?;
    Ok(document.take())
}

fn read_yaml(text: &str) -> Option<Value> {
    let options = serde_saphyr::options! { legacy_octal_numbers: true, with_snippet: false };
    serde_saphyr::from_str_with_options(text, options).ok()
}

fn decode(field: &str) -> Option<String> {
    let bytes = Zeroizing::new(STANDARD.decode(field).ok()?);
    std::str::from_utf8(&bytes).ok().map(ToOwned::to_owned)
}

/// A document that may be part of a Secret.
struct Wiped(Value);

impl Wiped {
    fn take(mut self) -> Value {
        self.0.take()
    }
}

impl Drop for Wiped {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn yaml_is_read_as_kubernetes_tools_read_it() {
        let cases = [
            ("a: yes", json!({"a": true})),
            ("a: 'yes'", json!({"a": "yes"})),
            ("a: 0644", json!({"a": 420})),
            ("a: 1:30", json!({"a": "1:30"})),
            ("y: 1", json!({"y": 1})),
            ("a: &x {b: 1}\nc: {<<: *x}", json!({"a": {"b": 1}, "c": {"b": 1}})),
            ("a: |\n  x\n  y\n", json!({"a": "x\ny\n"})),
        ];
        for (text, value) in cases {
            assert_eq!(read(Form::Yaml, text), Ok(value), "{text}");
        }
        for text in ["a: 1\n---\nb: 2", "a: 1\na: 2", "a: .inf", "a: [", "? [a]\n: b"] {
            assert!(read(Form::Yaml, text).is_err(), "{text}");
        }
    }

    #[test]
    fn text_that_looks_like_something_else_stays_text() {
        let texts = [
            "yes",
            "on",
            "y",
            "1e3",
            "null",
            "~",
            "",
            " a",
            "a ",
            "a: b",
            "- a",
            "#a",
            "a #b",
            "0x1F",
            "0777",
            "=",
            "<<",
            "1:30",
            "2001-01-01",
            ".5",
            "+1",
            "1_0",
            "?",
            "-",
            "---",
            "|",
            "a\n",
            "a\n\n",
            "\na",
            "a\tb",
            "a\r\nb",
            "\u{feff}",
            "12345678901234567890123",
            "a: 1\nb: 2\n",
            "  a\nb",
        ];
        for text in texts {
            let document = json!({"a": text, "b": [text], text: 1});
            let written = revised(Form::Yaml, &serde_json::to_string(&document).unwrap(), &[]).unwrap();
            assert_eq!(read(Form::Yaml, &written), Ok(document), "{written}");
        }
    }

    #[test]
    fn a_number_that_would_lose_digits_is_refused() {
        for form in [Form::Json, Form::Yaml] {
            assert!(read(form, r#"{"a": 12345678901234567890123}"#).is_err());
            assert!(
                read(
                    form,
                    r#"{"a": 18446744073709551615, "b": 0.5, "c": "12345678901234567890123"}"#
                )
                .is_ok()
            );
            assert!(read(form, r#"{"a": 1.5e30}"#).is_ok());
        }
    }

    #[test]
    fn what_would_be_lost_in_a_round_trip_is_refused() {
        let cases = [
            (Form::Json, r#"{"a":0.12345678901234567891}"#, "digits"),
            (Form::Json, r#"{"\\\"":"9","a":-9223372036854775809}"#, "digits"),
            (Form::Yaml, "a: -9223372036854775809\n", "digits"),
            (Form::Yaml, "a: [0.12345678901234567891]\n", "digits"),
            (Form::Yaml, "a: !Ref x\n", "tag"),
            (Form::Yaml, "a: !Sub [x]\n", "tag"),
            (Form::Yaml, "k: !!binary aGk=\n", "tag"),
            (Form::Yaml, "%YAML 1.2\n---\na: 1\n", "directive"),
            (Form::Yaml, "a: {b: 1, 1: x}\n", "key"),
            (Form::Yaml, "- a: [b]\n  true: y\n", "key"),
            (Form::Yaml, "on: y\n", "key"),
        ];
        for (form, text, why) in cases {
            let error = read(form, text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
        let kept = [
            (
                Form::Json,
                r#"{"a":-0.5,"b":[1e3,18446744073709551615,-9223372036854775808,1.10],"c":"1\"0.12345678901234567891"}"#,
            ),
            (
                Form::Yaml,
                "a: 1.10\nb: 1e3\nc: 0o17\nd: 0x1F\ne: 0644\nf: 1_000\n",
            ),
            (Form::Yaml, "'1': x\n\"true\": y\n? a\n: b\n"),
            (
                Form::Yaml,
                "a: !!str 1\nb: 2001-01-01\nc: '0.12345678901234567891'\n...\n",
            ),
            (Form::Yaml, "x: &x {b: [1]}\nc: {<<: *x, d: *x}\n"),
        ];
        for (form, text) in kept {
            assert!(read(form, text).is_ok(), "{text}: {:?}", read(form, text));
        }
    }

    #[test]
    fn a_bomb_of_aliases_is_refused() {
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let former = vec![format!("*a{}", level - 1); 10].join(", ");
            text.push_str(&format!("a{level}: &a{level} [{former}]\n"));
        }
        assert!(read(Form::Yaml, &text).is_err());
    }
}
