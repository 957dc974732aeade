//! Random failures of clusters and applications: taints, members that are down or come and go, crashes and takeovers in the
//! middle of a failover. Nobody edits a policy or a template, so nothing but failover moves a copy, and:
//!
//! - nothing is taken from under a workload (I2; asserted by the world at each removal),
//! - a healthy copy is deleted only while another one is healthy,
//! - the replicas that the binding names are as many as the template asks for; where copies are purged directly no more run,
//! - in the end, when all clusters are well, each workload is on as many clusters as its policy asks for, with its
//!   dependencies, and nothing of it is anywhere else.

use std::collections::{BTreeMap, BTreeSet};

use entourage_core::failover::budget::Budget;
use serde_json::{Value, json};

use crate::{
    config_map, deployment, policy_of,
    world::{
        Random, World,
        disorder::{Ends, Rounds, seeds},
    },
};

const MEMBERS: [&str; 4] = ["member1", "member2", "member3", "member4"];
const REPLICAS: i64 = 6;

/// Name, purge mode, and whether its replicas are divided.
const WORKLOADS: [(&str, &str, bool); 4] = [
    ("one", "Gracefully", false),
    ("two", "Gracefully", true),
    ("three", "Directly", false),
    (SPREAD, "Directly", true),
];

/// The one that is divided among all clusters.
const SPREAD: &str = "four";

/// The number of clusters that each of the others is scheduled to.
const WIDTH: usize = 2;

fn policy(name: &str, mode: &str, divided: bool) -> Value {
    let mut policy = policy_of(name, "apps/v1", "Deployment", name, &MEMBERS);
    let placement = &mut policy["spec"]["placement"];
    if name != SPREAD {
        placement["spreadConstraints"] =
            json!([{"spreadByField": "cluster", "minGroups": WIDTH, "maxGroups": WIDTH}]);
    }
    if divided {
        placement["replicaScheduling"] =
            json!({"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"});
    }
    policy["spec"]["failover"] = json!({
        "cluster": {"purgeMode": mode},
        "application": {"decisionConditions": {"tolerationSeconds": 60}, "purgeMode": mode},
    });
    policy
}

struct Run {
    world: World,
    random: Random,
    seed: u64,
    /// The number of writes that were looked at.
    read: usize,
    /// The copies that were healthy before what is looked at next was done.
    healthy: BTreeSet<(String, String)>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut world = World::new(&MEMBERS);
        if seed.is_multiple_of(2) {
            world.process.engine.config_mut().eviction_budget = Budget {
                fleet: Some(500),
                region: None,
                member: Some(2_000),
            };
        }
        assert!(world.settle());
        for (name, mode, divided) in WORKLOADS {
            let mut workload = deployment(name, &["shared", name]);
            workload["spec"]["replicas"] = json!(REPLICAS);
            for object in [config_map(name, "a"), workload, policy(name, mode, divided)] {
                world.apply(object);
            }
        }
        world.apply(config_map("shared", "a"));
        assert!(world.settle());
        let mut run = Self {
            world,
            random: Random::new(seed),
            seed,
            read: 0,
            healthy: BTreeSet::new(),
        };
        run.report_all();
        assert!(run.world.settle());
        run.world.disturb(Random::new(seed ^ 0xffff), 20);
        run.read = run.world.writes.len();
        run
    }

    /// All members that answer report all their copies healthy.
    fn report_all(&mut self) {
        for member in MEMBERS {
            for (name, ..) in WORKLOADS {
                self.report(member, name, true);
            }
        }
    }

    fn report(&mut self, member: &str, name: &str, healthy: bool) {
        let world = &mut self.world;
        if world.down.contains(member) || world.on(member, "Deployment", name).is_none() {
            return;
        }
        world.meddle(member, "Deployment", name, |mut object| {
            let replicas = object["spec"]["replicas"].clone();
            let ready = if healthy { replicas.clone() } else { json!(0) };
            object["status"] = json!({
                "observedGeneration": object["metadata"]["generation"], "replicas": replicas,
                "updatedReplicas": replicas, "readyReplicas": ready, "availableReplicas": ready,
            });
            Some(object)
        });
    }

    fn step(&mut self) {
        let member = MEMBERS[self.random.below(4)];
        let (name, ..) = WORKLOADS[self.random.below(WORKLOADS.len())];
        match self.random.below(10) {
            0..=1 => self.taint(member, true),
            2..=3 => self.taint(member, false),
            4 => {
                let down = self.random.below(2) == 0;
                self.world.set_down(member, down);
            }
            5 => self.report(member, name, false),
            _ => self.report_all(),
        }
    }

    fn taint(&mut self, member: &str, broken: bool) {
        let mut object = self
            .world
            .hub_object("Cluster", member)
            .cloned()
            .expect("cluster");
        let added = serde_json::to_value(self.world.now.to_k8s()).expect("time");
        object["spec"]["taints"] = if broken {
            json!([{"key": "broken", "effect": "NoExecute", "timeAdded": added}])
        } else {
            json!([])
        };
        self.world.replace(object);
    }

    /// Reads the changes since the last look, and the present state.
    fn look(&mut self) {
        let seed = self.seed;
        let mut deleted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for write in &self.world.writes[self.read..] {
            let words: Vec<&str> = write.split_whitespace().collect();
            if let [member, "Delete", "Deployment", name, ..] = words[..] {
                let name = name.rsplit('/').next().unwrap_or(name);
                deleted.entry(name).or_default().insert(member);
            }
        }
        for (name, members) in deleted {
            let of_it = |member: &str| self.healthy.contains(&(name.to_owned(), member.to_owned()));
            let graceful = WORKLOADS
                .iter()
                .any(|(each, mode, _)| *each == name && *mode == "Gracefully");
            let left = MEMBERS
                .iter()
                .any(|member| of_it(member) && !members.contains(member));
            assert!(
                !graceful || left || !members.iter().any(|member| of_it(member)),
                "seed {seed}: the last healthy copy of {name} was deleted on {members:?}; healthy were {:?}",
                self.healthy
            );
        }
        self.read = self.world.writes.len();
        for (name, _, divided) in WORKLOADS {
            let binding = self
                .world
                .hub_object("ResourceBinding", &format!("{name}-deployment"));
            let clusters = binding.map(|binding| &binding["spec"]["clusters"]);
            let targets = clusters.and_then(Value::as_array).into_iter().flatten();
            let replicas: Vec<i64> = targets.filter_map(|target| target["replicas"].as_i64()).collect();
            let wanted = if divided {
                REPLICAS
            } else {
                REPLICAS * WIDTH as i64
            };
            assert_eq!(
                replicas.iter().sum::<i64>(),
                wanted,
                "seed {seed}: {name}: {binding:?}"
            );
        }
        // What a cluster has more than its share, or had when it was evicted, is about to end there; nothing waits for that.
        let name = format!("{SPREAD}-deployment");
        let binding = self.world.hub_object("ResourceBinding", &name);
        let share = |member: &str| {
            let spec = &binding?["spec"];
            let mut targets = spec["clusters"].as_array().into_iter().flatten();
            let mut tasks = spec["gracefulEvictionTasks"].as_array().into_iter().flatten();
            let target = targets.find(|target| target["name"] == member);
            let entry = target.or_else(|| tasks.find(|task| task["fromCluster"] == member));
            entry?["replicas"].as_i64()
        };
        let evicted = |member: &str| {
            let tasks = binding.and_then(|binding| binding["spec"]["gracefulEvictionTasks"].as_array());
            tasks
                .into_iter()
                .flatten()
                .any(|task| task["fromCluster"] == member)
        };
        let running = MEMBERS.iter().filter_map(|member| {
            let copy = self.world.on(member, "Deployment", SPREAD)?;
            let running = copy["spec"]["replicas"].as_i64()?;
            Some(share(member).map_or(running, |share| share.min(running)))
        });
        let running: Vec<i64> = running.collect();
        // What a dead one has is not what it should have.
        let is_known = |member: &str| !self.world.down.contains(member) || evicted(member);
        assert!(
            !MEMBERS.into_iter().all(is_known) || running.iter().sum::<i64>() <= REPLICAS,
            "seed {seed}: {running:?} of {binding:?}"
        );
    }

    /// Notes the copies that are healthy now.
    fn note_health(&mut self) {
        self.healthy.clear();
        for (name, ..) in WORKLOADS {
            for member in MEMBERS {
                let copy = self.world.on(member, "Deployment", name);
                let copy = copy.filter(|_| !self.world.down.contains(member));
                let status = copy.map(|copy| (&copy["status"]["readyReplicas"], &copy["spec"]["replicas"]));
                if status.is_some_and(|(ready, wanted)| ready == wanted) {
                    self.healthy.insert((name.into(), member.into()));
                }
            }
        }
    }

    fn finish(&mut self) {
        for member in MEMBERS {
            self.taint(member, false);
        }
        self.world.calm();
        for _ in 0..6 {
            self.report_all();
            self.note_health();
            assert!(self.world.settle_for(120_000), "seed {}", self.seed);
            self.look();
        }
        let seed = self.seed;
        for (name, _, divided) in WORKLOADS {
            let object = self
                .world
                .hub_object("ResourceBinding", &format!("{name}-deployment"))
                .expect("binding");
            assert!(
                object["spec"]["gracefulEvictionTasks"].is_null(),
                "seed {seed}: {object:#}"
            );
            let targets = object["spec"]["clusters"].as_array().into_iter().flatten();
            let replicas = targets.clone().filter_map(|target| target["replicas"].as_i64());
            let wanted = if divided {
                REPLICAS
            } else {
                REPLICAS * WIDTH as i64
            };
            assert_eq!(replicas.sum::<i64>(), wanted, "seed {seed}: {object:#}");
            let placed: Vec<&str> = targets.filter_map(|target| target["name"].as_str()).collect();
            assert!(name == SPREAD || placed.len() == WIDTH, "seed {seed}: {object:#}");
            assert_eq!(self.world.holders("Deployment", name), placed, "seed {seed}");
            assert_eq!(self.world.holders("ConfigMap", name), placed, "seed {seed}");
        }
        let all: BTreeSet<&str> = WORKLOADS
            .iter()
            .flat_map(|(name, ..)| self.world.holders("Deployment", name))
            .collect();
        let shared: BTreeSet<&str> = self.world.holders("ConfigMap", "shared").into_iter().collect();
        assert_eq!(shared, all, "seed {seed}");
        assert_eq!(self.world.writes_of_a_restart(120_000), [""; 0], "seed {seed}");
    }
}

/// Each run has long waits in it: there are fewer.
fn run(seed: u64, ends: Ends) {
    let mut run = Run::new(seed);
    let rounds = Rounds {
        patience: &[0, 100, 1_000, 20_000, 100_000],
        ..ends.into()
    };
    for _ in 0..40 {
        run.world.begin_round(&mut run.random, rounds);
        run.step();
        run.note_health();
        run.world.end_round(&mut run.random, rounds);
        run.look();
    }
    run.finish();
}

#[test]
fn failures_of_clusters_and_applications_end_in_what_the_policies_ask_for() {
    seeds(15, &[]).into_iter().for_each(|seed| run(seed, Ends::Never));
}

#[test]
fn failures_with_crashes_end_in_what_the_policies_ask_for() {
    seeds(15, &[])
        .into_iter()
        .for_each(|seed| run(seed, Ends::Crashes));
}

#[test]
fn failures_with_takeovers_end_in_what_the_policies_ask_for() {
    seeds(15, &[])
        .into_iter()
        .for_each(|seed| run(seed, Ends::Takeovers));
}
