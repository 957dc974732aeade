//! An engine whose scripts are JSON: what a rule answers is found in the object at the paths that the script names.

use std::{borrow::Cow, sync::Arc};

use entourage_api::work::{Component, DependentObjectReference};
use entourage_core::interpreter::{
    customized::Engine,
    operations::Operation,
    question::{Answer, Question, Rule},
};
use serde_json::{Value, json};

/// Compiles JSON; anything else has a mistake in line 1.
#[derive(Debug)]
pub(crate) struct Scripted;

impl Engine for Scripted {
    fn compile(&self, _: &str, _: Operation, source: &str) -> Result<Arc<dyn Rule>, String> {
        let script: Value = serde_json::from_str(source).map_err(|_| "line 1: this is no JSON".to_owned())?;
        Ok(Arc::new(Script(script)))
    }
}

/// `at`: where the answer is; `namespace`: of what is needed, the object's own without it; `apiVersion` and `kind`: of what
/// is needed, a ConfigMap without it. `from`: for retention, what is kept of the live copy. An object that has `broken: true` has no
/// answer.
#[derive(Debug)]
struct Script(Value);

impl Script {
    fn found<'a>(&self, object: &'a Value) -> &'a Value {
        let at = self.0["at"].as_str().unwrap_or_default();
        object.pointer(at).unwrap_or(&Value::Null)
    }

    fn put(&self, object: &Value, value: Value) -> Answer {
        let mut object = object.clone();
        if let Some(place) = object.pointer_mut(self.0["at"].as_str().unwrap_or_default()) {
            *place = value;
        }
        Answer::Object(object)
    }
}

impl Rule for Script {
    fn answer(&self, question: Question<'_>) -> Result<Answer, Cow<'static, str>> {
        let is_broken =
            |object: &Value| object["spec"]["broken"] == true || object["status"]["broken"] == true;
        let (Question::Replicas(asked)
        | Question::Components(asked)
        | Question::Prune(asked)
        | Question::Revise(asked, _)
        | Question::Retain { desired: asked, .. }
        | Question::Reflect(asked)
        | Question::Aggregate { template: asked, .. }
        | Question::Health(asked)
        | Question::Dependencies(asked)) = question;
        if is_broken(asked) {
            return Err("line 3: attempt to index a nil value".into());
        }
        Ok(match question {
            Question::Prune(object) => Answer::Object(object.clone()),
            Question::Replicas(object) => Answer::Replicas {
                replicas: self.found(object).as_i64().unwrap_or_default(),
                requirements: None,
            },
            // By name, how many there are.
            Question::Components(object) => {
                let parts = self.found(object).as_object().into_iter().flatten();
                let component = |(name, count): (&String, &Value)| Component {
                    name: name.clone(),
                    replicas: count
                        .as_i64()
                        .and_then(|count| count.try_into().ok())
                        .unwrap_or_default(),
                    replica_requirements: None,
                };
                Answer::Components(parts.map(component).collect())
            }
            Question::Revise(object, count) => self.put(object, json!(count)),
            Question::Retain { desired, live } => self.put(desired, self.found(live).clone()),
            Question::Reflect(object) => Answer::Status(Some(json!({"shown": self.found(object)}))),
            Question::Health(object) => Answer::Healthy(self.found(object) == "fine"),
            Question::Dependencies(object) => {
                let names = self.found(object).as_array().cloned().unwrap_or_default();
                let own = object["metadata"]["namespace"].as_str();
                let namespace = self.0["namespace"].as_str().or(own).unwrap_or_default();
                // With a label, what is named are its values.
                let label = self.0["label"].as_str();
                let reference = |name: Value| DependentObjectReference {
                    api_version: self.0["apiVersion"].as_str().unwrap_or("v1").into(),
                    kind: self.0["kind"].as_str().unwrap_or("ConfigMap").into(),
                    namespace: namespace.into(),
                    name: if label.is_some() {
                        ""
                    } else {
                        name.as_str().unwrap_or_default()
                    }
                    .into(),
                    label_selector: label.map(|label| {
                        serde_json::from_value(json!({"matchLabels": {label: name}})).expect("a selector")
                    }),
                };
                Answer::Dependencies(names.into_iter().map(reference).collect())
            }
            Question::Aggregate { template, items } => {
                let mut template = template.clone();
                let shown = |item: &entourage_api::work::AggregatedStatusItem| {
                    item.status
                        .as_ref()
                        .and_then(|status| status["shown"].as_str().map(str::to_owned))
                };
                let shown: Vec<String> = items.iter().filter_map(shown).collect();
                template["status"] = json!({"all": shown.join(",")});
                Answer::Object(template)
            }
        })
    }
}
