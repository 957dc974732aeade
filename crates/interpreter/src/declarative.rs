//! Kinds that are interpreted by rules instead of code: [`DeclarativeRules`], compiled once.
//!
//! The same rules come from the files that we ship ([`shipped`](crate::shipped)) and from users (`spec.declarative` of a
//! ResourceInterpreterCustomization). A compiled rule set cannot fail: a field that an object lacks, or has in another shape, is
//! absent.

mod aggregate;
mod compile;
mod health;
pub mod json_path;
mod mentions;
mod path;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, fmt};

use entourage_api::{config::declarative::DeclarativeRules, keys::annotation};
use serde_json::{Value, json};

use crate::{
    counters,
    health::Health,
    json::{at, int, set, text},
    mentions::DependencyReference,
};
pub use mentions::PodsOf;
use path::Path;

/// A compiled rule set.
#[derive(Clone, Debug)]
pub struct Declared {
    pods: Vec<mentions::Pods>,
    containers: Vec<Path>,
    dependencies: Vec<mentions::Dependency>,
    replicas: Option<Place>,
    retention: Vec<Vec<String>>,
    reflection: Vec<Vec<String>>,
    reflects_generations: bool,
    aggregation: Option<aggregate::Aggregation>,
    health: Option<health::Checks>,
}

/// A writable number: its path consists of names.
#[derive(Clone, Debug)]
struct Place {
    names: Vec<String>,
    default: Option<i64>,
}

/// An invalid rule: the field, the problem, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// The field, as in `dependencies[2].paths[0]`.
    pub field: String,
    /// The problem, with the character's number if the field is a path.
    pub problem: String,
    /// The remedy.
    pub remedy: &'static str,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.field, self.problem, self.remedy)
    }
}

impl std::error::Error for RuleError {}

impl Declared {
    /// Compiles rules. Paths are parsed here, and here only.
    ///
    /// # Errors
    /// The first invalid rule.
    pub fn compile(rules: &DeclarativeRules) -> Result<Self, RuleError> {
        compile::compile(rules)
    }

    /// True if the rules name any dependency.
    #[must_use]
    pub fn refers(&self) -> bool {
        !(self.pods.is_empty() && self.containers.is_empty() && self.dependencies.is_empty())
    }

    /// All dependencies of the object, sorted, each object once. As in [`references`](fn@crate::references::references), and: a
    /// dependency in another namespace is returned with that namespace, whether or not it may be propagated from there; one that
    /// has neither a namespace of its own nor the object's is omitted.
    ///
    /// Cost: O(size of the parts of the object that paths lead through).
    #[must_use]
    pub fn references(&self, namespace: &str, object: &Value) -> Vec<DependencyReference> {
        mentions::references(self, namespace, object)
    }

    /// The pods that the object creates, by component, in the order of the rules. If some templates define a number, these are
    /// the components.
    #[must_use]
    pub fn pods<'a>(&'a self, object: &'a Value) -> Vec<PodsOf<'a>> {
        mentions::pods(self, object)
    }

    /// The positions of the containers of these pods in the object, for these lists of a pod spec, as JSON pointers, each once;
    /// and of containers outside of pod templates, if they have an image.
    #[must_use]
    pub fn containers(&self, object: &Value, lists: &[&str]) -> BTreeSet<String> {
        mentions::containers(self, object, lists)
    }

    /// True if the object consists of components with pods of their own, instead of replicas.
    #[must_use]
    pub fn has_components(&self) -> bool {
        self.replicas.is_none() && self.pods.iter().any(mentions::Pods::is_component)
    }

    /// The number of replicas that the object requests; `None` if there is no rule, or no such field.
    #[must_use]
    pub fn replicas(&self, object: &Value) -> Option<i64> {
        let place = self.replicas.as_ref()?;
        let names = place.names();
        let (_, parents) = names.split_last()?;
        at(object, parents).as_object()?;
        int(object, &names).or(place.default)
    }

    /// Sets the number of replicas in the object.
    pub fn revise_replicas(&self, object: &mut Value, replicas: i64) {
        if let Some(place) = &self.replicas {
            set(object, &place.names(), json!(replicas));
        }
    }

    /// True if the live copy is needed before a write. Reads `metadata.labels` only.
    #[must_use]
    pub fn needs_live(&self, desired: &Value) -> bool {
        !self.retention.is_empty() || (self.replicas.is_some() && counters::retains_replicas(desired))
    }

    /// Retains the fields that belong to the member, the number of replicas too if a label requests it.
    pub fn retain(&self, desired: &mut Value, live: &Value) {
        let replicas = self
            .replicas
            .iter()
            .filter(|_| counters::retains_replicas(desired));
        let kept = self.retention.iter().chain(replicas.map(|place| &place.names));
        for names in kept.collect::<Vec<_>>() {
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            let value = at(live, &names);
            if !value.is_null() {
                set(desired, &names, value.clone());
            }
        }
    }

    /// The status of a copy to report; `None` if it has none yet.
    #[must_use]
    pub fn reflect(&self, live: &Value) -> Option<Value> {
        let status = live.get("status").filter(|status| status.is_object())?;
        let mut reflected = if self.reflection.is_empty() {
            status.clone()
        } else {
            let mut part = json!({});
            for names in &self.reflection {
                let names: Vec<_> = names.iter().map(String::as_str).collect();
                let value = at(status, &names);
                if !value.is_null() {
                    set(&mut part, &names, value.clone());
                }
            }
            part
        };
        if self.reflects_generations {
            let source = text(
                live,
                &["metadata", "annotations", annotation::TEMPLATE_GENERATION],
            );
            let generations = [
                (
                    "generation",
                    int(live, &["metadata", "generation"]).unwrap_or_default(),
                ),
                ("resourceTemplateGeneration", source.parse().unwrap_or_default()),
            ];
            for (name, value) in generations.into_iter().filter(|(_, value)| *value != 0) {
                set(&mut reflected, &[name], json!(value));
            }
        }
        Some(reflected)
    }

    /// True if the whole status is reported, of any size.
    #[must_use]
    pub fn reflects_all(&self) -> bool {
        self.reflection.is_empty()
    }

    /// The health of a live copy; healthy without a rule.
    #[must_use]
    pub fn health(&self, live: &Value) -> Health {
        self.health
            .as_ref()
            .map_or(Health::Healthy, |checks| checks.of(live))
    }

    /// The template's status, from the report of each cluster; `None` if it would not change, or without a rule.
    #[must_use]
    pub fn aggregate(&self, template: &Value, items: &[(&str, Option<&Value>)]) -> Option<Value> {
        self.aggregation.as_ref()?.of(template, items)
    }
}

impl Place {
    fn names(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }
}
