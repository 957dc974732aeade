//! Declarative rules of a user as a layer.

use std::{borrow::Cow, sync::Arc};

use entourage_api::config::declarative::DeclarativeRules;
use serde_json::Value;

use crate::{
    declarative::Declared,
    health::Health,
    operations::Operation,
    question::{Answer, Question, Rule},
    requirements,
};

/// The operations that rules define; all others are left to other layers.
pub fn operations(rules: &DeclarativeRules) -> Vec<Operation> {
    let refers =
        !(rules.pod_templates.is_empty() && rules.containers.is_empty() && rules.dependencies.is_empty());
    [
        (Operation::References, refers),
        (Operation::Replicas, rules.replicas.is_some()),
        (
            Operation::Components,
            rules.pod_templates.iter().any(|pods| pods.replicas.is_some()),
        ),
        (Operation::Revise, rules.replicas.is_some()),
        (Operation::Retain, !rules.retention.is_empty()),
        (Operation::Reflect, rules.status_reflection.is_some()),
        (Operation::Aggregate, rules.status_aggregation.is_some()),
        (Operation::Health, rules.health.is_some()),
    ]
    .into_iter()
    .filter_map(|(operation, given)| given.then_some(operation))
    .collect()
}

/// A rule set as a layer.
pub fn rule(declared: Declared) -> Arc<dyn Rule> {
    Arc::new(Asked(declared))
}

#[derive(Debug)]
struct Asked(Declared);

impl Rule for Asked {
    fn answer(&self, question: Question<'_>) -> Result<Answer, Cow<'static, str>> {
        let rules = &self.0;
        Ok(match question {
            Question::Dependencies(object) => Answer::References(rules.references(namespace(object), object)),
            Question::Replicas(object) => Answer::Replicas {
                replicas: rules
                    .replicas(object)
                    .ok_or("the number of replicas is not where spec.declarative.replicas says")?,
                requirements: match rules.pods(object).as_slice() {
                    [pods] => requirements::of_pod(namespace(object), pods.spec),
                    _ => None,
                },
            },
            Question::Components(object) => Answer::Components(requirements::components_of(rules, object)),
            // No rule is for that, so it is never called.
            Question::Prune(object) => Answer::Object(object.clone()),
            Question::Revise(object, replicas) => {
                let mut object = object.clone();
                rules.revise_replicas(&mut object, replicas);
                Answer::Object(object)
            }
            Question::Retain { desired, live } => {
                let mut desired = desired.clone();
                rules.retain(&mut desired, live);
                Answer::Object(desired)
            }
            Question::Reflect(live) => Answer::Status(rules.reflect(live)),
            Question::Health(live) => Answer::Healthy(rules.health(live) == Health::Healthy),
            Question::Aggregate { template, items } => {
                let items: Vec<(&str, Option<&Value>)> = items
                    .iter()
                    .map(|item| (item.cluster_name.as_str(), item.status.as_ref()))
                    .collect();
                let mut object = template.clone();
                if let Some(status) = rules.aggregate(template, &items) {
                    object["status"] = status;
                }
                Answer::Object(object)
            }
        })
    }
}

fn namespace(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}
