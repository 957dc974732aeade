//! The cost of one event of a policy over many templates and policies: it is observed, and every key that it makes dirty
//! is planned, on one core. Nothing is sent anywhere.
//!
//! `cargo run --release -p entourage-core --example match` prints a table; figures are in docs/performance.md.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a measurement reads the clock; no decision does"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use entourage_core::{
    Engine,
    config::Config,
    object::{Gvk, Time},
    observation::{self, ObjectRef, Observation, Watch},
};
use serde_json::{Value, json};

/// Templates and policies of each measurement; every policy names ten of the templates, ten select by label, ten the kind.
const SIZES: [(usize, usize); 3] = [(2_500, 250), (5_000, 500), (10_000, 1_000)];

fn main() {
    println!("| Templates | Policies | Event | Keys planned | Changes | CPU |");
    println!("|---|---|---|---|---|---|");
    for (templates, policies) in SIZES {
        for (name, claimed, event) in events() {
            let mut world = World::new(templates, policies, claimed);
            let (keys, changes, spent) = world.measure(&event);
            println!("| {templates} | {policies} | {name} | {keys} | {changes} | {spent:.1?} |");
        }
    }
}

/// The events: name, true if the templates are claimed before, and the policy after the event.
fn events() -> Vec<(&'static str, bool, Value)> {
    let whole_kind = json!([{"apiVersion": "v1", "kind": "ConfigMap"}]);
    let labelled =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"tier": "7"}}}]);
    let named = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "t00001"}]);
    let event = |selectors: &Value, fields: &Value| {
        let mut policy = policy("new", selectors);
        for (key, value) in fields.as_object().into_iter().flatten() {
            policy["spec"][key] = value.clone();
        }
        policy
    };
    let preempts = json!({"priority": 9, "preemption": "Always"});
    vec![
        ("selects one by name", true, event(&named, &json!({}))),
        (
            "selects a tenth by label, all are held by others",
            true,
            event(&labelled, &json!({})),
        ),
        (
            "selects the kind, all are held by others",
            true,
            event(&whole_kind, &json!({})),
        ),
        (
            "selects the kind and takes it over",
            true,
            event(&whole_kind, &preempts),
        ),
        (
            "selects the kind, none is held",
            false,
            event(&whole_kind, &json!({"priority": 9})),
        ),
    ]
}

struct World {
    engine: Engine,
    seen: BTreeMap<Watch, BTreeSet<ObjectRef>>,
    version: u64,
}

impl World {
    fn new(templates: usize, policies: usize, claimed: bool) -> Self {
        let mut world = Self {
            engine: Engine::new(Config::new("hub")),
            seen: BTreeMap::new(),
            version: 0,
        };
        for number in 0..policies {
            let each = 10 * number..10 * number + 10;
            let names: Vec<Value> = each
                .map(|template| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": format!("t{template:05}")}))
                .collect();
            world.see(&Watch::Policies, policy(&format!("p{number:04}"), &json!(names)));
        }
        for number in 0..10 {
            let by_label = json!([{"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"tier": number.to_string()}}}]);
            world.see(&Watch::Policies, policy(&format!("label{number}"), &by_label));
            let by_kind = json!([{"apiVersion": "v1", "kind": "ConfigMap"}]);
            world.see(&Watch::Policies, policy(&format!("kind{number}"), &by_kind));
        }
        let config_maps = Watch::Templates(Gvk::new("v1", "ConfigMap"));
        for number in 0..templates {
            let mut template = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"namespace": "default", "name": format!("t{number:05}"), "uid": format!("u{number}"),
                    "labels": {"app": format!("a{number}"), "tier": (number % 10).to_string()}},
            });
            if claimed {
                let holder = format!("p{:04}", number / 10);
                template["metadata"]["annotations"] = json!({
                    "propagationpolicy.karmada.io/namespace": "default", "propagationpolicy.karmada.io/name": holder,
                });
                template["metadata"]["labels"]["propagationpolicy.karmada.io/permanent-id"] = json!(holder);
            }
            world.see(&config_maps, template);
        }
        for watch in world.engine.demand().clone() {
            world.list(watch);
        }
        world
    }

    /// Keys planned, changes decided, and the time that took.
    fn measure(&mut self, policy: &Value) -> (usize, usize, Duration) {
        let subject = self.project(&Watch::Policies, policy.clone());
        let begin = Instant::now();
        let dirty: BTreeSet<_> = self
            .engine
            .observe(Observation::Seen(subject), Time(1))
            .into_iter()
            .collect();
        let plans = dirty.iter().map(|key| self.engine.preview(key, Time(1)));
        let changes = plans.map(|plan| plan.changes.len()).sum();
        (dirty.len(), changes, begin.elapsed())
    }

    fn project(&mut self, watch: &Watch, mut object: Value) -> observation::Subject {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.seen
            .entry(watch.clone())
            .or_default()
            .extend(observation::which(watch, &object));
        let Some(subject) = observation::project(watch, &Default::default(), &object) else {
            unreachable!("an object made here is readable")
        };
        subject
    }

    fn see(&mut self, watch: &Watch, object: Value) {
        let subject = self.project(watch, object);
        let _ = self.engine.observe(Observation::Seen(subject), Time(0));
    }

    fn list(&mut self, watch: Watch) {
        let present = self.seen.get(&watch).cloned().unwrap_or_default();
        let revision = self.version;
        let _ = self.engine.observe(
            Observation::Listed {
                watch,
                present,
                revision,
            },
            Time(0),
        );
    }
}

fn policy(name: &str, selectors: &Value) -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {"namespace": "default", "name": name, "uid": name, "generation": 1,
            "labels": {"propagationpolicy.karmada.io/permanent-id": name},
            "finalizers": ["karmada.io/propagation-policy-controller"]},
        "spec": {"resourceSelectors": selectors, "placement": {}},
    })
}
