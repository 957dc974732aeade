//! The cost of one event of a ServiceAccount over many workloads, some of which share it: it is observed, and every key that
//! it makes dirty is planned, on one core. Nothing is sent anywhere.
//!
//! `cargo run --release -p entourage-core --example closure` prints a table.

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

/// Workloads of each measurement. A tenth of them share one account, the others have one each.
const SIZES: [usize; 3] = [1_000, 4_000, 16_000];

fn main() {
    println!("| Workloads | Event | Keys planned | CPU |");
    println!("|---|---|---|---|");
    for workloads in SIZES {
        let begin = Instant::now();
        let mut world = World::new(workloads);
        let spent = begin.elapsed();
        println!("| {workloads} | everything is listed | | {spent:.1?} |");
        let events = [
            (
                "an account of one workload is annotated",
                "robot00001",
                "robot00001-registry",
                "new",
            ),
            (
                "an account of one workload names another Secret",
                "robot00001",
                "other",
                "",
            ),
            (
                "the shared account is annotated",
                "shared",
                "shared-registry",
                "new",
            ),
            ("the shared account names another Secret", "shared", "other", ""),
        ];
        for (name, account, secret, note) in events {
            let (keys, spent) = world.measure(self::account(account, secret, note));
            println!("| {workloads} | {name} | {keys} | {spent:.1?} |");
        }
    }
}

struct World {
    engine: Engine,
    seen: BTreeMap<Watch, BTreeSet<ObjectRef>>,
    version: u64,
}

impl World {
    fn new(workloads: usize) -> Self {
        let mut world = Self {
            engine: Engine::new(Config::new("hub")),
            seen: BTreeMap::new(),
            version: 0,
        };
        for number in 0..workloads {
            let own = format!("robot{number:05}");
            let account = if number % 10 == 0 { "shared" } else { &own };
            world.see(&Watch::Bindings, &binding(number));
            world.see(&templates("apps/v1", "Deployment"), &deployment(number, account));
            world.see(
                &accounts(),
                &self::account(account, &format!("{account}-registry"), ""),
            );
        }
        for watch in world.engine.demand().clone() {
            world.list(watch);
        }
        world
    }

    /// Keys planned, and the time that it all took.
    fn measure(&mut self, account: Value) -> (usize, Duration) {
        let subject = self.project(&accounts(), account);
        let begin = Instant::now();
        let seen = Observation::Seen(subject);
        let dirty: BTreeSet<_> = self.engine.observe(seen, Time(1)).into_iter().collect();
        for key in &dirty {
            let _ = self.engine.preview(key, Time(1));
        }
        (dirty.len(), begin.elapsed())
    }

    fn project(&mut self, watch: &Watch, mut object: Value) -> observation::Subject {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let named = observation::which(watch, &object);
        self.seen.entry(watch.clone()).or_default().extend(named);
        let Some(subject) = observation::project(watch, &Default::default(), &object) else {
            unreachable!("an object made here is readable")
        };
        subject
    }

    fn see(&mut self, watch: &Watch, object: &Value) {
        let subject = self.project(watch, object.clone());
        let _ = self.engine.observe(Observation::Seen(subject), Time(0));
    }

    fn list(&mut self, watch: Watch) {
        let present = self.seen.get(&watch).cloned().unwrap_or_default();
        let revision = self.version;
        let listed = Observation::Listed {
            watch,
            present,
            revision,
        };
        let _ = self.engine.observe(listed, Time(0));
    }
}

fn templates(api_version: &str, kind: &str) -> Watch {
    Watch::Templates(Gvk::new(api_version, kind))
}

fn accounts() -> Watch {
    templates("v1", "ServiceAccount")
}

fn account(name: &str, secret: &str, note: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "imagePullSecrets": [{"name": secret}],
        "metadata": {"namespace": "default", "name": name, "uid": name, "annotations": {"note": note}},
    })
}

fn deployment(number: usize, account: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": "default", "name": format!("app{number:05}"), "uid": format!("u{number}"), "generation": 1},
        "spec": {"replicas": 1, "template": {"spec": {"serviceAccountName": account}}},
    })
}

fn binding(number: usize) -> Value {
    let name = format!("app{number:05}");
    json!({
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"namespace": "default", "name": format!("{name}-deployment"), "uid": format!("b{number}")},
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": name, "uid": format!("u{number}")},
            "propagateDeps": true, "placement": {}, "clusters": [{"name": "member1"}],
        },
    })
}
