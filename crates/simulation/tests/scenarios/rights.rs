//! Kinds that a member does not grant to our account: what is proven gone there, and what is waited for and reported.

use entourage_core::{
    object::{Gvk, ResourceId},
    observation::{Observation, Probe, Watch},
};
use serde_json::{Value, json};

use crate::{condition, deployment, policies::world, policy_of, world::World};

fn net(name: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": name},
        "spec": {"podSelector": {}},
    })
}

fn nets(members: &[&str]) -> Value {
    policy_of("nets", "networking.k8s.io/v1", "NetworkPolicy", "net", members)
}

fn copies_on(member: &str) -> Watch {
    Watch::Copies(member.into(), Gvk::new("networking.k8s.io/v1", "NetworkPolicy"))
}

fn is_joined(world: &World, member: &str) -> bool {
    world.hub_object("Cluster", member).is_some()
}

fn released<'a>(world: &'a World, member: &str) -> &'a Value {
    let cluster = world.hub_object("Cluster", member).expect("cluster");
    let conditions = cluster["status"]["conditions"].as_array().expect("conditions");
    conditions
        .iter()
        .find(|each| each["type"] == "Released")
        .unwrap_or(&Value::Null)
}

fn bound(world: &World) -> bool {
    world.hub_object("ResourceBinding", "net-networkpolicy").is_some()
}

#[test]
fn a_kind_that_a_member_refuses_and_never_got_does_not_keep_it() {
    for restart in [false, true] {
        // For another cluster, and for this one.
        for members in [&["member2"][..], &["member1", "member2"], &["member1"]] {
            let mut world = world();
            world.forbidden.insert(copies_on("member1"));
            world.apply(deployment("one", &[]));
            world.apply(policy_of("p", "apps/v1", "Deployment", "one", &["member1"]));
            world.apply(net("net"));
            world.apply(nets(members));
            assert!(world.settle());
            if restart {
                world.restart();
            }
            world.delete("Cluster", "member1");
            assert!(world.settle());
            assert!(!is_joined(&world, "member1"), "{members:?}");
            let copy = world.on("member1", "Deployment", "one").expect("it stays");
            assert_eq!(
                copy["metadata"]["labels"]["entourage.dev/hub"],
                Value::Null,
                "released"
            );
        }
    }
}

#[test]
fn what_was_never_written_because_the_member_refuses_the_kind_keeps_no_binding() {
    for restart in [false, true] {
        let mut world = world();
        world.forbidden.insert(copies_on("member1"));
        world.apply(net("net"));
        world.apply(nets(&["member1", "member2"]));
        assert!(world.settle());
        assert_eq!(world.holders("NetworkPolicy", "net"), ["member2"]);
        if restart {
            world.restart();
        }
        world.delete("NetworkPolicy", "net");
        world.delete("PropagationPolicy", "nets");
        assert!(world.settle());
        assert!(world.holders("NetworkPolicy", "net").is_empty());
        assert!(!bound(&world), "restart: {restart}");
        assert!(world.hub_object("PropagationPolicy", "nets").is_none());
    }
}

#[test]
fn a_copy_of_a_kind_that_is_refused_since_keeps_binding_and_member_until_it_is_known_to_be_gone() {
    for restart in [false, true] {
        for leaves in [false, true] {
            let mut world = world();
            world.apply(net("net"));
            world.apply(net("other"));
            world.apply(nets(&["member1"]));
            assert!(world.settle());
            assert_eq!(world.holders("NetworkPolicy", "net"), ["member1"]);
            world.forbidden.insert(copies_on("member1"));
            if restart {
                world.restart();
            }
            assert!(world.settle());
            if leaves {
                world.delete("Cluster", "member1");
            } else {
                world.delete("NetworkPolicy", "net");
            }
            assert!(world.settle_for(120_000));
            assert!(
                is_joined(&world, "member1") && bound(&world),
                "restart: {restart}"
            );
            assert!(world.on("member1", "NetworkPolicy", "net").is_some());
            if leaves {
                let reported = released(&world, "member1");
                assert_eq!(
                    (&reported["status"], &reported["reason"]),
                    (&json!("False"), &json!("RightsMissing"))
                );
                let message = reported["message"].as_str().expect("message");
                assert!(
                    message.contains("networking.k8s.io/v1 NetworkPolicy (forbidden)")
                        && message.contains("entourage join member1 --"),
                    "{message}"
                );
            }
            let wrote = world.writes.len();
            assert!(world.settle_for(120_000));
            assert_eq!(world.writes[wrote..], [""; 0], "reported once");

            world.forbidden.clear();
            assert!(world.settle());
            if leaves {
                assert!(!is_joined(&world, "member1"));
                let copy = world.on("member1", "NetworkPolicy", "net").expect("it stays");
                assert_eq!(copy["metadata"]["labels"]["entourage.dev/hub"], Value::Null);
            } else {
                assert!(!bound(&world));
                assert_eq!(world.on("member1", "NetworkPolicy", "net"), None);
            }
        }
    }
}

#[test]
fn a_record_of_one_copy_speaks_for_all_of_its_kind() {
    // The write of the second one was not recorded before the crash, and the rights are gone since.
    let mut world = world();
    world.apply(net("first"));
    let mut all = nets(&["member1"]);
    all["spec"]["resourceSelectors"] =
        json!([{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}]);
    world.apply(all);
    assert!(world.settle());
    world.apply(net("net"));
    let wrote = world.writes.len();
    while !world.writes[wrote..]
        .iter()
        .any(|write| write.starts_with("member1 POST"))
    {
        world.crash_in = Some(1);
        assert!(!world.settle());
        world.crash_in = None;
    }
    world.forbidden.insert(copies_on("member1"));
    world.restart();
    world.delete("NetworkPolicy", "net");
    assert!(world.settle_for(120_000));
    assert!(bound(&world) && world.on("member1", "NetworkPolicy", "net").is_some());
    world.forbidden.clear();
    assert!(world.settle());
    assert!(!bound(&world));
    assert_eq!(world.on("member1", "NetworkPolicy", "net"), None);
}

#[test]
fn a_member_that_refuses_everything_or_does_not_answer_proves_nothing() {
    for down in [false, true] {
        let mut world = world();
        world.forbidden.insert(copies_on("member1"));
        world.apply(net("net"));
        world.apply(nets(&["member1"]));
        assert!(world.settle());
        if down {
            world.set_down("member1", true);
        } else {
            world.forbidden.insert(Watch::MemberNamespaces("member1".into()));
        }
        world.restart();
        world.delete("NetworkPolicy", "net");
        assert!(world.settle_for(120_000));
        assert!(bound(&world), "down: {down}");
        if down {
            world.set_down("member1", false);
        } else {
            world.forbidden.remove(&Watch::MemberNamespaces("member1".into()));
        }
        assert!(world.settle());
        assert!(!bound(&world), "down: {down}");
    }
}

#[test]
fn a_member_does_not_leave_before_it_is_known_what_was_placed_there() {
    for shut in [Watch::Policies, Watch::Bindings] {
        let mut world = world();
        world.apply(net("net"));
        world.apply(nets(&["member1"]));
        assert!(world.settle());
        world.restart();
        world.shut.extend([shut.clone(), Watch::Policies]);
        world.delete("Cluster", "member1");
        assert!(world.settle());
        assert!(is_joined(&world, "member1"), "{shut:?}");
        world.shut.clear();
        assert!(world.settle());
        assert!(!is_joined(&world, "member1"), "{shut:?}");
        let copy = world.on("member1", "NetworkPolicy", "net").expect("it stays");
        assert_eq!(
            copy["metadata"]["labels"]["entourage.dev/hub"],
            Value::Null,
            "{shut:?}"
        );
    }
}

#[test]
fn a_record_that_comes_to_light_after_a_refusal_counts() {
    let mut world = world();
    world.apply(net("net"));
    world.apply(nets(&["member1"]));
    assert!(world.settle());
    world.forbidden.insert(copies_on("member1"));
    world.restart();
    // What is refused is reported before any binding is listed.
    world.shut.insert(Watch::Bindings);
    assert!(world.settle());
    world.shut.clear();
    world.delete("NetworkPolicy", "net");
    assert!(world.settle_for(120_000));
    assert!(bound(&world) && world.on("member1", "NetworkPolicy", "net").is_some());
}

#[test]
fn a_cluster_that_may_not_use_its_credentials_is_reported_at_once_and_in_the_words_of_now() {
    let mut world = world();
    assert!(world.settle());
    let ready = |world: &World| {
        let cluster = world.hub_object("Cluster", "member1").expect("cluster");
        let conditions = cluster["status"]["conditions"].as_array().cloned();
        let mut conditions = conditions.into_iter().flatten();
        conditions.find(|each| each["type"] == "Ready").expect("Ready")
    };
    assert_eq!(ready(&world)["status"], "True");
    for message in ["spec.apiEndpoint changed", "spec.proxyURL changed"] {
        let probe = Probe {
            healthy: false,
            reason: "CredentialsNotForAddress".into(),
            message: message.into(),
            ..Probe::default()
        };
        world.tell_again(Observation::Probed("member1".into(), probe));
        assert!(world.settle_for(1_000), "no half minute of patience");
        let reported = ready(&world);
        assert_eq!(
            (&reported["status"], &reported["message"]),
            (&json!("False"), &json!(message))
        );
    }
}

/// The condition of a policy that says whether it propagates anything.
fn matched(world: &World, policy: &str) -> Value {
    let policy = world.hub_object("PropagationPolicy", policy).expect("policy");
    let mut all = policy["status"]["conditions"].as_array().into_iter().flatten();
    all.find(|each| each["type"] == "Matched")
        .cloned()
        .unwrap_or_default()
}

#[test]
fn a_template_that_may_not_be_claimed_is_reported_on_its_policy_with_what_grants_the_right() {
    let mut world = world();
    world.unclaimable = Some("ResourceQuota");
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {}});
    world.apply(quota);
    world.apply(policy_of("quotas", "v1", "ResourceQuota", "q", &["member1"]));
    assert!(world.settle());
    let reported = matched(&world, "quotas");
    assert_eq!(
        (&reported["status"], &reported["reason"]),
        (&json!("False"), &json!("ClaimRefused")),
        "{reported}"
    );
    let message = reported["message"].as_str().expect("message");
    for needed in [
        "may not patch ResourceQuota default/q on the hub (forbidden)",
        "kubectl apply -k config/rbac-kinds/resourcequotas",
    ] {
        assert!(message.contains(needed), "{message}");
    }
    // It changes, and is refused again: nothing is reported twice.
    let wrote = world.writes.len();
    let mut object = world.hub_object("ResourceQuota", "q").expect("quota").clone();
    object["spec"] = json!({"hard": {"pods": "1"}});
    world.replace(object);
    assert!(world.settle());
    assert_eq!(world.writes[wrote..], [""; 0]);
    world.unclaimable = None;
    world.restart();
    assert!(world.settle());
    assert_eq!(matched(&world, "quotas")["status"], "True");
    assert_eq!(world.holders("ResourceQuota", "q"), ["member1"]);
}

#[test]
fn a_claim_that_is_refused_is_reported_while_another_policy_holds_the_template() {
    let mut world = world();
    world.apply(json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {}}));
    world.apply(policy_of("first", "v1", "ResourceQuota", "q", &["member1"]));
    assert!(world.settle());
    assert_eq!(matched(&world, "first")["status"], "True");
    world.unclaimable = Some("ResourceQuota");
    let mut second = policy_of("second", "v1", "ResourceQuota", "q", &["member2"]);
    second["spec"]["priority"] = json!(5);
    second["spec"]["preemption"] = json!("Always");
    world.apply(second);
    assert!(world.settle_for(60_000));
    assert_eq!(matched(&world, "second")["reason"], "ClaimRefused");
    assert_eq!(matched(&world, "first")["status"], "True");
    // Each change of the template has the claim tried again, and refused in the same words.
    let wrote = world.writes.len();
    let mut object = world.hub_object("ResourceQuota", "q").expect("quota").clone();
    object["metadata"]["labels"] = json!({"seen": "again"});
    world.replace(object);
    assert!(world.settle_for(60_000));
    assert_eq!(matched(&world, "second")["reason"], "ClaimRefused");
    let news = &world.writes[wrote..];
    assert!(!news.iter().any(|write| write.contains("Policy")), "{news:?}");
    let id = ResourceId::new(Gvk::new("v1", "ResourceQuota"), "default", "q");
    let again = Observation::Unclaimed(id, "forbidden".into());
    let now = world.now;
    assert_eq!(world.process.engine.observe(again, now), []);
    // The policy that holds it is not reported to lack it when the other one is gone.
    world.delete("PropagationPolicy", "second");
    assert!(world.settle_for(60_000));
    assert_eq!(matched(&world, "first")["status"], "True");
}

#[test]
fn a_dependency_that_may_not_be_read_is_reported_on_the_workload_with_what_grants_the_right() {
    let mut world = world();
    world
        .forbidden
        .insert(Watch::Templates(Gvk::new("v1", "ServiceAccount")));
    let mut app = deployment("app", &[]);
    app["spec"]["template"]["spec"]["serviceAccountName"] = json!("robot");
    world.apply(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}));
    world.apply(app);
    let mut policy = policy_of("p", "apps/v1", "Deployment", "app", &["member1"]);
    policy["spec"]["propagateDeps"] = json!(true);
    world.apply(policy);
    assert!(world.settle());
    let reported = condition(&world, "app-deployment", "DependenciesReady");
    assert_eq!(
        (&reported["status"], &reported["reason"]),
        (&json!("False"), &json!("DependencyMissing")),
        "{reported}"
    );
    let message = reported["message"].as_str().expect("message");
    for needed in [
        "may not get ServiceAccount default/robot on the hub (forbidden)",
        "grant get, list, watch and patch",
    ] {
        assert!(message.contains(needed), "{message}");
    }
    let wrote = world.writes.len();
    assert!(world.settle_for(600_000));
    assert_eq!(world.writes[wrote..], [""; 0], "reported once");
    world.forbidden.clear();
    assert!(world.settle_for(120_000));
    assert_eq!(
        condition(&world, "app-deployment", "DependenciesReady")["status"],
        "True"
    );
    assert_eq!(world.holders("ServiceAccount", "robot"), ["member1"]);
    // One that does not exist is looked for when it may be.
    world
        .forbidden
        .insert(Watch::Templates(Gvk::new("v1", "ServiceAccount")));
    world.delete("ServiceAccount", "robot");
    world.restart();
    assert!(world.settle_for(600_000));
    world.forbidden.clear();
    assert!(world.settle_for(600_000));
    let reported = condition(&world, "app-deployment", "DependenciesReady");
    assert!(
        reported["message"]
            .as_str()
            .is_some_and(|message| message.contains("robot does not exist on the hub")),
        "{reported}"
    );
}
