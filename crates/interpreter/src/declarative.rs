//! Declarative rules ([`DeclarativeRules`]), compiled once.
//!
//! The same rules come from the files that we ship ([`shipped`](crate::shipped)) and from users
//! (`spec.declarative` of a ResourceInterpreterCustomization). A compiled rule set cannot fail: what an object
//! lacks, or has in another shape, is absent.

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

/// A number that can be written: its path is made of names.
#[derive(Clone, Debug)]
struct Place {
    names: Vec<String>,
    default: Option<i64>,
}

/// A rule that cannot be kept: where, what is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// The field, as in `dependencies[2].paths[0]`.
    pub field: String,
    /// What is wrong, with the character's number where the field is a path.
    pub problem: String,
    /// What to do.
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
    /// At the first rule that cannot be kept.
    pub fn compile(rules: &DeclarativeRules) -> Result<Self, RuleError> {
        compile::compile(rules)
    }

    /// Whether the rules name anything that is taken along.
    #[must_use]
    pub fn refers(&self) -> bool {
        !(self.pods.is_empty() && self.containers.is_empty() && self.dependencies.is_empty())
    }

    /// Everything that the object needs, sorted, each object once. As
    /// [`references`](fn@crate::references::references) says, and: what lies in another namespace is named with that one,
    /// whether or not it may be taken along from there; what has neither a namespace said nor an object's own is left out.
    ///
    /// Cost: O(size of the parts of the object that paths lead through).
    #[must_use]
    pub fn references(&self, namespace: &str, object: &Value) -> Vec<DependencyReference> {
        mentions::references(self, namespace, object)
    }

    /// The pods that the object makes, by component, in the order of the rules. Where some templates say how many
    /// there are, these are the components.
    #[must_use]
    pub fn pods<'a>(&'a self, object: &'a Value) -> Vec<PodsOf<'a>> {
        mentions::pods(self, object)
    }

    /// Where the containers of these pods are in the object, those in these lists of a pod spec, as JSON pointers, each
    /// once; and containers that are outside of pod templates, if they have an image.
    #[must_use]
    pub fn containers(&self, object: &Value, lists: &[&str]) -> BTreeSet<String> {
        mentions::containers(self, object, lists)
    }

    /// Whether the object is made of parts with numbers of pods of their own, instead of replicas.
    #[must_use]
    pub fn has_components(&self) -> bool {
        self.replicas.is_none() && self.pods.iter().any(mentions::Pods::is_component)
    }

    /// How many replicas the object asks for; `None` where the rules do not say, or the object has no such part.
    #[must_use]
    pub fn replicas(&self, object: &Value) -> Option<i64> {
        let place = self.replicas.as_ref()?;
        let names = place.names();
        let (_, parents) = names.split_last()?;
        at(object, parents).as_object()?;
        int(object, &names).or(place.default)
    }

    /// Makes the object ask for this many replicas.
    pub fn revise_replicas(&self, object: &mut Value, replicas: i64) {
        if let Some(place) = &self.replicas {
            set(object, &place.names(), json!(replicas));
        }
    }

    /// Whether the live copy is asked for before a write. Looks at `metadata.labels` only.
    #[must_use]
    pub fn needs_live(&self, desired: &Value) -> bool {
        !self.retention.is_empty() || (self.replicas.is_some() && counters::retains_replicas(desired))
    }

    /// Takes over what belongs to the member, the number of replicas too where a label says so.
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

    /// What of a copy's status is reported; `None` where there is none yet.
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

    /// Whether the whole status is reported, of any size.
    #[must_use]
    pub fn reflects_all(&self) -> bool {
        self.reflection.is_empty()
    }

    /// How a live copy is doing; healthy where the rules do not say.
    #[must_use]
    pub fn health(&self, live: &Value) -> Health {
        self.health
            .as_ref()
            .map_or(Health::Healthy, |checks| checks.of(live))
    }

    /// The template's status, from what each cluster reported; `None` when it would not change, or where the rules
    /// do not say.
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
