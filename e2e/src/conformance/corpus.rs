//! The files of the corpus.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{RECORDINGS, Recording};

/// A scenario: exchanges in order, on a cluster of its own.
#[derive(Debug, Deserialize)]
pub struct Scenario {
    /// Its name, also the name of its file.
    #[serde(rename = "scenario")]
    pub name: String,
    /// The directory of its recording.
    #[serde(skip)]
    pub recording: String,
    /// Its area.
    pub area: String,
    /// The subject.
    pub title: String,
    /// The objects that exist before the first step.
    #[serde(default)]
    pub(super) setup: Setup,
    pub(super) exchanges: Vec<Exchange>,
}

impl Scenario {
    /// The steps that are requests.
    pub fn steps(&self) -> impl Iterator<Item = &str> {
        self.exchanges
            .iter()
            .filter(|exchange| exchange.request.is_some())
            .map(|exchange| exchange.step.as_str())
    }

    /// The part of each answer that the recording keeps: `whole`, or as `body_kept` says.
    pub(super) fn kept(&self) -> impl Iterator<Item = &str> {
        let requests = self
            .exchanges
            .iter()
            .filter(|exchange| exchange.request.is_some());
        requests.map(|exchange| {
            let kept = exchange
                .response
                .as_ref()
                .and_then(|response| response.body_kept.as_ref());
            kept.map_or("whole", |kept| kept.how.as_str())
        })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Setup {
    pub(super) namespaces: Vec<String>,
    pub(super) objects: Vec<Made>,
}

/// An object that is made without being compared.
#[derive(Debug, Deserialize)]
pub(super) struct Made {
    pub(super) path: String,
    pub(super) body: Value,
}

#[derive(Debug, Deserialize)]
pub(super) struct Exchange {
    pub(super) step: String,
    #[serde(default)]
    pub(super) poll: bool,
    #[serde(default)]
    pub(super) watch: bool,
    pub(super) request: Option<Request>,
    pub(super) response: Option<Response>,
    pub(super) setup: Option<Made>,
    pub(super) action: Option<String>,
    pub(super) seconds: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    #[serde(default)]
    pub(super) auth: Option<String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, OneOrMany>,
    /// As it stands in the file: the server quotes the first bytes of some bodies.
    pub(super) body: Option<Box<RawValue>>,
    pub(super) body_text: Option<String>,
    pub(super) body_base64: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub(super) fn all(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Response {
    pub(super) status: u16,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, OneOrMany>,
    /// `Some(Value::Null)` is a body that is `null`.
    #[serde(default, deserialize_with = "present")]
    pub(super) body: Option<Value>,
    pub(super) body_text: Option<String>,
    pub(super) body_kept: Option<Kept>,
    #[serde(default)]
    pub(super) managed_fields_order_kept: bool,
    #[serde(default)]
    pub(super) events: Vec<Event>,
    pub(super) ended_by: Option<String>,
    pub(super) ended_after: Option<String>,
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[derive(Debug, Deserialize)]
pub(super) struct Kept {
    pub(super) how: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Event {
    pub(super) after: String,
    #[serde(flatten)]
    pub(super) event: serde_json::Map<String, Value>,
}

/// The scenarios of all recordings under a directory, by name.
///
/// # Errors
/// When a file cannot be read or is no scenario.
pub fn load_all(root: &Path) -> Result<Vec<Scenario>> {
    let mut scenarios = Vec::new();
    for recording in &RECORDINGS {
        scenarios.extend(load(root, recording)?);
    }
    Ok(scenarios)
}

/// The scenarios of a recording, by name.
///
/// # Errors
/// When a file cannot be read or is no scenario.
pub fn load(root: &Path, recording: &Recording) -> Result<Vec<Scenario>> {
    let dir = root.join(recording.dir);
    let mut scenarios = Vec::new();
    for file in std::fs::read_dir(&dir).with_context(|| format!("{}", dir.display()))? {
        let path = file?.path();
        let text = std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
        let mut scenario: Scenario =
            serde_json::from_str(&text).with_context(|| format!("{}", path.display()))?;
        recording.dir.clone_into(&mut scenario.recording);
        scenarios.push(scenario);
    }
    scenarios.sort_by(|one: &Scenario, other| one.name.cmp(&other.name));
    Ok(scenarios)
}
