//! The same disorder as in `chaos`, over every feature of the policy contract: both kinds of policies with priorities,
//! preemption, lazy activation and suspension, overrides that come, change, go bad and go, divided replicas, spread
//! constraints, namespaces, cluster-scoped templates, kinds that nothing is known of, dependencies by label.
//!
//! What is claimed and lazy depends on the order of what happened; so the laws are stated over what the hub's objects say
//! in the end (`model`), and two runs are compared after policies that leave nothing to history.

mod inputs;
mod model;

use std::collections::BTreeSet;

use entourage_api::keys::annotation;
use serde_json::json;

use crate::world::{
    Random, World,
    disorder::{Ends, seeds},
};

const MEMBERS: [&str; 3] = ["member1", "member2", "member3"];

/// One run of a seed.
struct Run {
    world: World,
    /// The source of the users' actions: independent of what the world makes of them, so that both worlds get the same.
    users: Random,
    /// Crashes.
    bad_luck: Random,
    ends: Ends,
    /// Users delete bindings too: in a crash right after, what accounted for their copies is lost.
    delete_bindings: bool,
    seed: u64,
    /// Every namespace that a member ever had.
    namespaces: BTreeSet<(String, String)>,
}

impl Run {
    fn new(seed: u64, ends: Ends, delete_bindings: bool) -> Self {
        let mut world = World::new(&MEMBERS);
        for (member, region) in MEMBERS.into_iter().zip(["eu", "us", "eu"]) {
            world.apply(json!({
                "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": member},
                "spec": {"syncMode": "Push", "apiEndpoint": "https://x", "region": region},
            }));
        }
        assert!(world.settle());
        world.disturb(Random::new(seed ^ 0xffff), 50);
        world.rollouts = 100;
        world.meddle("member1", "ConfigMap", "red", |_| Some(inputs::theirs()));
        world.meddle("member1", "Namespace", "shop", |_| {
            Some(inputs::namespace("shop", &json!({"theirs": "x"})))
        });
        Self {
            world,
            users: Random::new(seed),
            bad_luck: Random::new(seed ^ 0xbad),
            ends,
            delete_bindings,
            seed,
            namespaces: BTreeSet::new(),
        }
    }

    fn go(&mut self) {
        for _ in 0..40 {
            self.world.begin_round(&mut self.bad_luck, self.ends.into());
            self.step();
            self.world.end_round(&mut self.users, self.ends.into());
            self.look_at_namespaces();
        }
        self.calm();
        self.check("as it is");
        self.quiet("as it is");
        inputs::put_right(&mut self.world);
        self.settle("put right");
        inputs::touch_all(&mut self.world);
        self.settle("touched");
        model::check_all(&self.world, &self.about("put right"));
        self.check("put right");
        self.quiet("put right");
    }

    /// The inputs stop changing.
    fn calm(&mut self) {
        self.world.calm();
        self.settle("calm");
        self.world.rollouts = 0;
        self.settle("calm");
    }

    fn settle(&mut self, what: &str) {
        assert!(self.world.settle_for(120_000), "{}", self.about(what));
        self.look_at_namespaces();
    }

    fn about(&self, what: &str) -> String {
        let with = if self.ends == Ends::Never {
            ""
        } else {
            ", with crashes"
        };
        format!("seed {}{with}, {what}", self.seed)
    }

    fn look_at_namespaces(&mut self) {
        for (name, member) in &self.world.members {
            let all = member.keys().filter(|key| &*key.gvk.kind == "Namespace");
            self.namespaces
                .extend(all.map(|key| (name.to_string(), key.name.to_string())));
        }
    }

    /// Checks the invariants of any quiet moment.
    fn check(&self, what: &str) {
        let about = self.about(what);
        model::check_claims(&self.world, &about);
        model::check_foreign(&self.world, &about);
        for (member, name) in &self.namespaces {
            let there = self.world.on(member, "Namespace", name).is_some();
            let deleted = format!("{member} Delete namespace {name}");
            let is_proven = self.world.writes.contains(&deleted);
            assert!(
                there || is_proven,
                "{about}: namespace {name} was taken from {member}"
            );
        }
        self.check_ended(&about);
    }

    /// Objects that the hub deleted are deleted, or released, wherever we created them.
    fn check_ended(&self, about: &str) {
        for (name, member) in &self.world.members {
            for (key, live) in member.iter().filter(|(key, _)| &*key.gvk.kind == "Namespace") {
                let creator = &live["metadata"]["annotations"][annotation::CREATED_BY];
                let is_done = creator.is_null() || self.world.hub.contains_key(key);
                assert!(is_done, "{about}: namespace {} is left on {name}", key.name);
            }
        }
    }

    /// A restart of a quiet system writes nothing.
    fn quiet(&mut self, what: &str) {
        let (wrote, reported) = (self.world.writes.len(), self.world.events.len());
        self.world.restart();
        self.settle(what);
        let about = self.about(what);
        let news = &self.world.writes[wrote..];
        assert!(news.is_empty(), "{about}: a restart writes {news:#?}");
        let news = &self.world.events[reported..];
        assert!(news.is_empty(), "{about}: a restart tells {news:#?}");
    }

    fn step(&mut self) {
        let (world, users) = (&mut self.world, &mut self.users);
        let member = MEMBERS[users.below(3)];
        match users.below(24) {
            0..=2 => inputs::apply(world, inputs::random_deployment(users)),
            3 => inputs::apply(world, inputs::random_config(users)),
            4 => inputs::apply(world, inputs::random_config(users)),
            5 | 6 => inputs::apply(world, inputs::random_other(users)),
            7 | 8 => inputs::delete_template(world, users),
            9..=12 => inputs::apply(world, inputs::random_policy(users)),
            13 => inputs::delete_policy(world, users),
            14..=16 => inputs::apply(world, inputs::random_override(users)),
            17 => inputs::delete_override(world, users),
            18 => inputs::apply(world, inputs::random_namespace(users)),
            19 => inputs::delete_namespace(world, users),
            20 => world.set_down(member, users.below(2) == 0),
            21 => inputs::edit_copy(world, users, member),
            22 => inputs::touch_one(world, users),
            _ => {
                let key = inputs::random_binding(users);
                if self.delete_bindings && world.hub.contains_key(&key) {
                    let crash = world.crash_in.take();
                    world.delete_at(&key);
                    assert!(world.settle());
                    world.crash_in = crash;
                }
            }
        }
    }

    /// Policies that leave nothing to history: every template is claimed by one that all others yield to.
    fn level(&mut self) {
        inputs::level(&mut self.world);
        self.settle("levelled");
        inputs::touch_all(&mut self.world);
        self.settle("levelled");
        // What is divided, or chosen among many, is chosen once more.
        self.check("levelled");
        model::check_all(&self.world, &self.about("levelled"));
        self.quiet("levelled");
    }
}

/// Seeds of an earlier generator that found something once: a namespace that two planners wrote in turn for ever after its
/// policy was gone, and a binding of a former template that never ended (97, 152); a copy that was reported as not delivered yet
/// before it could be (153).
const FOUND: [u64; 3] = [97, 152, 153];

/// Runs every seed, and then fails with all that failed. To reproduce one:
/// `CHAOS_SEED=<seed> cargo test -p entourage-simulation --test scenarios chaos_policies`.
fn each_seed(run: impl Fn(u64) + std::panic::RefUnwindSafe) {
    let failed: Vec<u64> = seeds(20, &FOUND)
        .into_iter()
        .filter(|seed| std::panic::catch_unwind(|| run(*seed)).is_err())
        .collect();
    assert!(failed.is_empty(), "seeds that failed: {failed:?}");
}

#[test]
fn chaos_of_policies_ends_in_what_the_hub_asks_for() {
    each_seed(|seed| Run::new(seed, Ends::Never, true).go());
}

#[test]
fn chaos_of_policies_with_crashes_ends_as_without() {
    each_seed(|seed| {
        let mut twins = [Ends::Never, Ends::Crashes].map(|ends| Run::new(seed, ends, false));
        for run in &mut twins {
            run.go();
            run.level();
        }
        let [smooth, crashed] = twins.map(|run| model::comparable(&run.world));
        model::assert_same(&smooth, &crashed, &format!("seed {seed}"));
    });
}
