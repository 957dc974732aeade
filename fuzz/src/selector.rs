//! Label and field selectors: any text is read or refused; what is written of requirements is read back as they are.

use arbitrary::{Result, Unstructured};
use entourage_apiserver::{Entry, Object, resource::Resource, selector::Selection};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Case, make, patch};

/// Selectors, as requirements and as any text, and an object to select.
#[derive(Debug, Serialize, Deserialize)]
pub struct Selector {
    /// Plural of the kind.
    pub kind: String,
    /// Requirements on labels.
    pub labels: Vec<Requirement>,
    /// Conditions on fields: the field, whether it must differ, the value.
    pub fields: Vec<(String, bool, String)>,
    /// Any label selector.
    pub any_labels: String,
    /// Any field selector.
    pub any_fields: String,
    /// The labels of the object.
    pub of_object: Vec<(String, String)>,
    /// The number of the notation that is used.
    pub style: u8,
}

/// A requirement on a label.
#[derive(Debug, Serialize, Deserialize)]
pub struct Requirement {
    /// Name of the label.
    pub key: String,
    /// The operator.
    pub operator: Operator,
    /// Values of `In` and `NotIn`; the first for the others.
    pub values: Vec<String>,
    /// The limit of `Greater` and `Less`.
    pub number: i64,
}

/// The operators of requirements on labels.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Operator {
    /// It is there.
    Exists,
    /// It is not.
    Absent,
    /// It has the first value.
    Equals,
    /// It is not there, or has another value than the first.
    Differs,
    /// It has one of the values.
    In,
    /// It is not there, or has none of the values.
    NotIn,
    /// It is a number above the limit.
    Greater,
    /// It is a number below the limit.
    Less,
}

const KEYS: &[&str] = &[
    "a",
    "b",
    "in",
    "notin",
    "a.b/c",
    "A_b-c",
    "app.kubernetes.io/name",
    "x",
];

const VALUES: &[&str] = &[
    "",
    "a",
    "b",
    "in",
    "notin",
    "0",
    "7",
    "-7",
    "A_b.c",
    "9223372036854775807",
];

/// True if the text may be a label's name or value here: the properties are stated for common letters only.
fn is_plain(text: &str, key: bool) -> bool {
    if key {
        KEYS.contains(&text)
    } else {
        VALUES
            .iter()
            .any(|value| *value == text && !text.starts_with('-'))
    }
}

impl Case for Selector {
    fn make(u: &mut Unstructured<'_>) -> Result<Self> {
        use Operator::{Absent, Differs, Equals, Exists, Greater, In, Less, NotIn};
        let (.., kind) = u.choose(patch::KINDS)?;
        let style = u.arbitrary()?;
        let mut labels = Vec::new();
        for _ in 0..u.int_in_range(0..=3)? {
            let mut values = Vec::new();
            for _ in 0..u.int_in_range(1..=3)? {
                values.push(make::one_of(u, VALUES)?);
            }
            labels.push(Requirement {
                key: make::one_of(u, KEYS)?,
                operator: *u.choose(&[Exists, Absent, Equals, Differs, In, NotIn, Greater, Less])?,
                values,
                number: u.int_in_range(-8..=8)?,
            });
        }
        let mut fields = Vec::new();
        for _ in 0..u.int_in_range(0..=2)? {
            let field = make::one_of(
                u,
                &[
                    "metadata.name",
                    "metadata.namespace",
                    "spec.nodeName",
                    "status.phase",
                    "type",
                ],
            )?;
            fields.push((field, u.arbitrary()?, make::text(u, 6)?));
        }
        let mut of_object = Vec::new();
        for _ in 0..u.int_in_range(0..=3)? {
            of_object.push((make::one_of(u, KEYS)?, make::one_of(u, VALUES)?));
        }
        Ok(Self {
            kind: (*kind).to_owned(),
            labels,
            fields,
            any_labels: tokens(
                u,
                &[
                    "a", "b", "in", "notin", "=", "==", "!=", "!", ",", "(", ")", ">", "<", " ", "7", "/",
                    "\0",
                ],
            )?,
            any_fields: tokens(
                u,
                &[
                    "metadata.name",
                    "spec.nodeName",
                    "=",
                    "==",
                    "!=",
                    "!",
                    ",",
                    "\\",
                    "a",
                ],
            )?,
            of_object,
            style,
        })
    }

    fn check(&self) {
        let Some(resource) = patch::resource(&self.kind) else {
            return;
        };
        let labels: Vec<&(String, String)> = self
            .of_object
            .iter()
            .filter(|(key, _)| is_plain(key, true))
            .collect();
        let labels: serde_json::Map<String, Value> = labels
            .iter()
            .map(|(key, value)| (key.clone(), json!(value)))
            .collect();
        let object = json!({"metadata": {"namespace": "n", "name": "x", "labels": labels}});
        for (labels, fields) in [
            (Some(&*self.any_labels), None),
            (None, Some(&*self.any_fields)),
            (Some(&*self.any_labels), Some(&*self.any_fields)),
        ] {
            match Selection::parse(&resource, labels, fields) {
                Ok(selection) => drop(selects(&resource, &selection, &object)),
                Err(status) => assert_eq!(status.code, 400, "{status:?}"),
            }
        }
        self.check_labels(&resource, &object);
        self.check_fields(&resource);
    }
}

impl Selector {
    fn check_labels(&self, resource: &Resource, object: &Value) {
        let known = |requirement: &&Requirement| {
            is_plain(&requirement.key, true)
                && !requirement.values.is_empty()
                && requirement.values.iter().all(|value| is_plain(value, false))
                && (requirement.number >= 0
                    || !matches!(requirement.operator, Operator::Greater | Operator::Less))
        };
        let known: Vec<&Requirement> = self.labels.iter().filter(known).collect();
        let written = |style: u8| {
            let all: Vec<String> = known
                .iter()
                .map(|requirement| requirement.written(style))
                .collect();
            all.join([",", " ,", ", ", "\t,\n"][usize::from(style) % 4])
        };
        let read = |text: &str| match Selection::parse(resource, Some(text), None) {
            Ok(selection) => selection,
            Err(status) => panic!("{text:?}: {status:?}"),
        };
        let text = written(0);
        let selection = read(&text);
        assert_eq!(
            selection,
            read(&written(self.style)),
            "{text:?} written in another way"
        );
        assert_eq!(selection.is_everything(), known.is_empty(), "{text:?}");
        let label = |key: &str| object["metadata"]["labels"][key].as_str();
        let expected = known
            .iter()
            .all(|requirement| requirement.holds(label(&requirement.key)));
        assert_eq!(
            selects(resource, &selection, object),
            expected,
            "{text:?} of {object}"
        );
    }

    fn check_fields(&self, resource: &Resource) {
        for (field, differs, value) in &self.fields {
            let sign = match (differs, self.style % 2) {
                (true, _) => "!=",
                (_, 0) => "=",
                _ => "==",
            };
            let escaped = value
                .replace('\\', "\\\\")
                .replace(',', "\\,")
                .replace('=', "\\=");
            let Ok(selection) = Selection::parse(resource, None, Some(&format!("{field}{sign}{escaped}")))
            else {
                assert_ne!(field, "metadata.name", "every kind has a name: {value:?}");
                continue;
            };
            if field == "metadata.name" {
                assert_eq!(selection.name(), (!differs).then_some(value.as_str()));
                let object = json!({"metadata": {"namespace": "n", "name": value}});
                let Value::Object(object) = object else { return };
                assert_eq!(selection.matches(resource, &object), !differs, "{value:?}");
            }
        }
    }
}

impl Requirement {
    fn written(&self, style: u8) -> String {
        let first = self.values.first().map_or("", String::as_str);
        let (key, space) = (&self.key, ["", " ", "\t"][usize::from(style / 4) % 3]);
        // The empty value is written once, at an end: the grammar takes no other list with it.
        let (empty, mut values): (Vec<_>, Vec<_>) = self
            .values
            .iter()
            .map(String::as_str)
            .partition(|value| value.is_empty());
        if style & 1 == 1 {
            values.reverse();
            values.extend(empty.first());
        } else {
            values.extend(values.first().copied());
            values.splice(0..0, empty.first().copied());
        }
        let all = format!("({space}{}{space})", values.join(&format!("{space},{space}")));
        match self.operator {
            Operator::Exists => key.clone(),
            Operator::Absent => format!("!{space}{key}"),
            Operator::Equals if style & 2 == 2 => format!("{key}{space}=={space}{first}"),
            Operator::Equals => format!("{key}{space}={space}{first}"),
            Operator::Differs => format!("{key}{space}!={space}{first}"),
            Operator::In => format!("{key} in {all}"),
            Operator::NotIn => format!("{key} notin{space}{all}"),
            Operator::Greater => format!("{key}{space}>{space}{}", self.number),
            Operator::Less => format!("{key}{space}<{space}{}", self.number),
        }
    }

    fn holds(&self, label: Option<&str>) -> bool {
        let is_first = label == self.values.first().map(String::as_str);
        let is_among = label.is_some_and(|label| self.values.iter().any(|value| value == label));
        let number = label.and_then(|label| label.parse::<i64>().ok());
        match self.operator {
            Operator::Exists => label.is_some(),
            Operator::Absent => label.is_none(),
            Operator::Equals => is_first,
            Operator::Differs => !is_first,
            Operator::In => is_among,
            Operator::NotIn => !is_among,
            Operator::Greater => number.is_some_and(|number| number > self.number),
            Operator::Less => number.is_some_and(|number| number < self.number),
        }
    }
}

/// True if the object is selected; the result is the same for its stored and its served form.
fn selects(resource: &Resource, selection: &Selection, object: &Value) -> bool {
    let entry = Entry {
        key: resource.key("n", "x"),
        revision: 3,
        created: 3,
        object: object.to_string().into_bytes().into(),
    };
    let object: &Object = match object {
        Value::Object(object) => object,
        _ => return false,
    };
    let stored = selection.matches_stored(resource, &entry);
    // Cluster-scoped objects have no namespace; that of the sample is for the others.
    if resource.namespaced {
        assert_eq!(
            selection.matches(resource, object),
            stored,
            "{selection:?} of {object:?}"
        );
    }
    stored
}

/// Words of a grammar in any order, or any text.
fn tokens(u: &mut Unstructured<'_>, words: &[&str]) -> Result<String> {
    let mut text = String::new();
    for _ in 0..u.int_in_range(0..=12)? {
        if u.ratio(1, 16)? {
            text.push_str(&make::text(u, 4)?);
        } else {
            text.push_str(u.choose(words)?);
        }
    }
    Ok(text)
}
