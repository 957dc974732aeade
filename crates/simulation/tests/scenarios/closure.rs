//! A workload brings the dependencies of its dependencies: over a ServiceAccount, and over kinds that are customized.

use entourage_core::{
    object::{Gvk, NamespacedName, ResourceId},
    observation::Watch,
};
use serde_json::{Value, json};

use crate::{
    binding, condition, config_map,
    customizations::{customization, quiet},
    deployment, policy_of,
    proof::orders,
    world::{World, id},
};

pub(crate) fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"a": "Yg=="}})
}

pub(crate) fn account(name: &str, pull_secrets: &[&str]) -> Value {
    let named: Vec<Value> = pull_secrets.iter().map(|name| json!({"name": name})).collect();
    json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}, "imagePullSecrets": named,
    })
}

/// A deployment whose pods run as an account.
pub(crate) fn acting(name: &str, config_maps: &[&str], account: &str) -> Value {
    let mut all = deployment(name, config_maps);
    all["spec"]["template"]["spec"]["serviceAccountName"] = json!(account);
    all
}

fn placed(name: &str, clusters: &[&str]) -> Value {
    policy_of(name, "apps/v1", "Deployment", name, clusters)
}

/// A deployment on member1 that runs as an account with registry credentials.
fn with_account() -> World {
    let mut world = World::new(&["member1", "member2"]);
    for object in [
        secret("registry"),
        account("robot", &["registry"]),
        acting("app", &[], "robot"),
        placed("app", &["member1"]),
    ] {
        world.apply(object);
    }
    assert!(world.settle());
    world
}

const CHAIN: [(&str, &str); 3] = [
    ("Deployment", "app"),
    ("ServiceAccount", "robot"),
    ("Secret", "registry"),
];

fn assert_chain_on(world: &World, members: &[&str]) {
    for (kind, name) in CHAIN {
        assert_eq!(world.holders(kind, name), members, "{kind} {name}");
    }
}

/// Asserts that the writes happened, in this order.
fn assert_order(writes: &[String], wanted: &[&str]) {
    let at = |what: &str| {
        let found = writes.iter().position(|each| each == what);
        found.unwrap_or_else(|| panic!("{what}: {writes:#?}"))
    };
    assert!(wanted.iter().map(|what| at(what)).is_sorted(), "{writes:#?}");
}

pub(crate) const SHOP: (&str, &str) = ("example.com/v1", "Shop");

pub(crate) fn shop(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": name}, "spec": spec})
}

/// A rule that has a shop need what stands at this path: shops with `kind`, else ConfigMaps.
pub(crate) fn rule(name: &str, script: &Value) -> Value {
    let script = json!({"dependencyInterpretation": {"luaScript": script.to_string()}});
    customization(name, SHOP, &script)
}

/// Shops that need other shops, at `/spec/shops`, and ConfigMaps, at `/spec/uses`.
fn interpretation(members: &[&str]) -> World {
    let mut world = World::new(members);
    let shops = json!({"at": "/spec/shops", "apiVersion": SHOP.0, "kind": SHOP.1});
    world.apply(rule("shops", &shops));
    world.apply(rule("uses", &json!({"at": "/spec/uses"})));
    world
}

fn placed_shop(name: &str, clusters: &[&str]) -> Value {
    policy_of(name, SHOP.0, SHOP.1, name, clusters)
}

// --- a workload, its account, and the account's credentials

#[test]
fn a_workload_takes_its_account_along_and_the_credentials_that_this_names() {
    let mut world = with_account();
    assert_chain_on(&world, &["member1"]);
    assert_order(
        &world.writes,
        &[
            "member1 POST Secret default/registry",
            "member1 POST ServiceAccount default/robot",
            "member1 POST Deployment default/app",
        ],
    );
    for attached in ["robot-serviceaccount", "registry-secret"] {
        let clusters = json!([{"name": "member1", "replicas": 1}]);
        assert_eq!(
            binding(&world, attached)["spec"]["requiredBy"],
            json!([{"namespace": "default", "name": "app-deployment", "clusters": clusters}]),
            "{attached}"
        );
    }
    let annotations = &binding(&world, "app-deployment")["metadata"]["annotations"];
    assert_eq!(
        annotations["resourcebinding.karmada.io/dependencies"],
        r#"[{"apiVersion":"v1","kind":"ServiceAccount","namespace":"default","name":"robot"}]"#,
        "what the template itself says"
    );
    let ready = condition(&world, "app-deployment", "DependenciesReady");
    assert_eq!(ready["status"], "True");
    quiet(&mut world);

    let wrote = world.writes.len();
    world.delete("Deployment", "app");
    assert!(world.settle());
    assert_chain_on(&world, &[]);
    assert!(!world.hub.keys().any(|id| &*id.gvk.kind == "ResourceBinding"));
    assert_order(
        &world.writes[wrote..],
        &[
            "member1 Delete Deployment default/app",
            "member1 Delete ServiceAccount default/robot",
            "member1 Delete Secret default/registry",
        ],
    );
}

#[test]
fn the_order_in_which_objects_appear_does_not_matter() {
    let all = [
        secret("registry"),
        account("robot", &["registry"]),
        acting("app", &[], "robot"),
        placed("app", &["member1"]),
    ];
    for order in orders(&all) {
        for together in [true, false] {
            let mut world = World::new(&["member1", "member2"]);
            for object in order.clone() {
                world.apply(object);
                assert!(together || world.settle());
            }
            assert!(world.settle());
            assert_chain_on(&world, &["member1"]);
            quiet(&mut world);
        }
    }
}

#[test]
fn a_crash_after_any_change_leads_to_the_same_end() {
    let undisturbed = with_account();
    for crash in 1..=undisturbed.writes.len() {
        let mut world = World::new(&["member1", "member2"]);
        for object in [
            secret("registry"),
            account("robot", &["registry"]),
            acting("app", &[], "robot"),
            placed("app", &["member1"]),
        ] {
            world.apply(object);
        }
        world.crash_in = Some(crash);
        if !world.settle() {
            world.restart();
            assert!(world.settle());
        }
        assert_eq!(undisturbed.outline(), world.outline(), "crash after {crash}");
    }
}

#[test]
fn other_credentials_arrive_before_the_account_names_them_and_the_former_ones_leave_after() {
    let mut world = with_account();
    world.apply(secret("other"));
    assert!(world.settle());
    let wrote = world.writes.len();
    world.apply(account("robot", &["other"]));
    assert!(world.settle());
    assert_eq!(world.holders("Secret", "other"), ["member1"]);
    assert!(world.holders("Secret", "registry").is_empty());
    assert_eq!(world.hub_object("ResourceBinding", "registry-secret"), None);
    assert_order(
        &world.writes[wrote..],
        &[
            "member1 PUT ServiceAccount default/robot",
            "member1 Delete Secret default/registry",
        ],
    );
    assert!(
        !world.writes[wrote..]
            .iter()
            .any(|each| each.contains("Deployment default/app")),
        "the workload itself is as it was"
    );
    quiet(&mut world);
}

#[test]
fn credentials_stay_while_the_accounts_copy_names_them() {
    let mut world = with_account();
    world.set_down("member1", true);
    world.apply(account("robot", &[]));
    assert!(world.settle());
    world.restart();
    assert!(world.settle());
    let wrote = world.writes.len();
    world.set_down("member1", false);
    assert!(world.settle_for(60_000));
    assert_order(
        &world.writes[wrote..],
        &[
            "member1 PUT ServiceAccount default/robot",
            "member1 Delete Secret default/registry",
        ],
    );
}

#[test]
fn an_account_that_is_deleted_leaves_after_the_grace_and_its_credentials_after_it() {
    let mut world = with_account();
    let wrote = world.writes.len();
    world.delete("ServiceAccount", "robot");
    assert!(world.settle_for(1_000));
    assert_chain_on(&world, &["member1"]);
    assert!(world.settle_for(60_000));
    assert_order(
        &world.writes[wrote..],
        &[
            "member1 Delete ServiceAccount default/robot",
            "member1 Delete Secret default/registry",
        ],
    );
    let ready = condition(&world, "app-deployment", "DependenciesReady");
    assert_eq!(ready["reason"], "DependencyMissing", "{ready}");
    quiet(&mut world);
    world.apply(account("robot", &["registry"]));
    assert!(world.settle());
    assert_chain_on(&world, &["member1"]);
}

#[test]
fn credentials_that_are_missing_are_reported_with_who_names_them_and_follow_when_they_appear() {
    let mut world = World::new(&["member1"]);
    world.apply(acting("app", &[], "robot"));
    world.apply(placed("app", &["member1"]));
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "app"), ["member1"]);
    world.apply(account("robot", &["registry"]));
    assert!(world.settle());
    assert_eq!(world.holders("ServiceAccount", "robot"), ["member1"]);
    assert_eq!(
        condition(&world, "app-deployment", "DependenciesReady")["message"],
        "Secret default/registry does not exist on the hub: create it, or remove the reference in ServiceAccount \
         default/robot"
    );
    world.apply(secret("registry"));
    assert!(world.settle());
    assert_chain_on(&world, &["member1"]);
    assert_eq!(
        condition(&world, "app-deployment", "DependenciesReady")["status"],
        "True"
    );
    quiet(&mut world);
}

#[test]
fn two_workloads_share_an_account_and_each_may_go() {
    let mut world = with_account();
    world.apply(acting("second", &[], "robot"));
    world.apply(placed("second", &["member1", "member2"]));
    assert!(world.settle());
    assert_eq!(world.holders("Secret", "registry"), ["member1", "member2"]);
    let required = &binding(&world, "registry-secret")["spec"]["requiredBy"];
    assert_eq!(required[0]["name"], "app-deployment");
    assert_eq!(required[1]["name"], "second-deployment");
    world.delete("Deployment", "app");
    assert!(world.settle());
    assert_eq!(world.holders("Secret", "registry"), ["member1", "member2"]);
    world.apply(placed("second", &["member2"]));
    assert!(world.settle());
    for (kind, name) in [("ServiceAccount", "robot"), ("Secret", "registry")] {
        assert_eq!(world.holders(kind, name), ["member2"], "{kind} {name}");
    }
    quiet(&mut world);
    world.delete("Deployment", "second");
    assert!(world.settle());
    assert_chain_on(&world, &[]);
}

#[test]
fn a_move_takes_everything_along_first_in_and_last_out() {
    let mut world = with_account();
    let wrote = world.writes.len();
    world.apply(placed("app", &["member2"]));
    assert!(world.settle());
    assert_chain_on(&world, &["member2"]);
    let since = &world.writes[wrote..];
    assert_order(
        since,
        &[
            "member2 POST Secret default/registry",
            "member2 POST ServiceAccount default/robot",
            "member2 POST Deployment default/app",
        ],
    );
    assert_order(
        since,
        &[
            "member1 Delete Deployment default/app",
            "member1 Delete ServiceAccount default/robot",
            "member1 Delete Secret default/registry",
        ],
    );
    quiet(&mut world);
}

#[test]
fn an_account_that_the_workload_does_not_name_any_more_leaves_before_its_credentials() {
    let mut world = with_account();
    let wrote = world.writes.len();
    world.apply(deployment("app", &[]));
    assert!(world.settle());
    assert_order(
        &world.writes[wrote..],
        &[
            "member1 PUT Deployment default/app",
            "member1 Delete ServiceAccount default/robot",
            "member1 Delete Secret default/registry",
        ],
    );
}

#[test]
fn a_workload_that_takes_nothing_along_takes_nothing_of_that_along() {
    let mut world = with_account();
    let mut policy = placed("app", &["member1"]);
    policy["spec"]["propagateDeps"] = json!(false);
    world.apply(policy);
    assert!(world.settle_for(60_000));
    assert_eq!(world.holders("Deployment", "app"), ["member1"]);
    assert!(world.holders("ServiceAccount", "robot").is_empty());
    assert!(world.holders("Secret", "registry").is_empty());
}

#[test]
fn what_lies_between_may_have_a_policy_of_its_own() {
    let mut world = with_account();
    world.apply(policy_of("robots", "v1", "ServiceAccount", "robot", &["member2"]));
    assert!(world.settle());
    for (kind, name) in [("ServiceAccount", "robot"), ("Secret", "registry")] {
        assert_eq!(world.holders(kind, name), ["member1", "member2"], "{kind} {name}");
    }
    let required = &binding(&world, "registry-secret")["spec"]["requiredBy"];
    assert_eq!(required[0]["name"], "app-deployment");
    assert_eq!(required[1]["name"], "robot-serviceaccount");
    quiet(&mut world);
    world.delete("Deployment", "app");
    assert!(world.settle());
    for (kind, name) in [("ServiceAccount", "robot"), ("Secret", "registry")] {
        assert_eq!(world.holders(kind, name), ["member2"], "{kind} {name}");
    }
}

// --- what is not known yet

#[test]
fn in_whatever_order_lists_come_after_a_start_nothing_is_released_or_written() {
    let kinds = [
        ("apps/v1", "Deployment"),
        ("v1", "ServiceAccount"),
        ("v1", "Secret"),
    ];
    let mut watches: Vec<Watch> = kinds
        .into_iter()
        .map(|(api_version, kind)| Watch::Templates(Gvk::new(api_version, kind)))
        .collect();
    watches.push(Watch::Bindings);
    let mut world = with_account();
    for order in orders(&watches) {
        let wrote = world.writes.len();
        world.restart();
        world.shut.extend(watches.clone());
        for watch in &order {
            assert!(world.settle_for(120_000));
            world.shut.remove(watch);
        }
        assert!(world.settle_for(120_000));
        assert_eq!(world.writes[wrote..], [] as [String; 0], "{order:?}");
        assert_chain_on(&world, &["member1"]);
    }
}

#[test]
fn while_accounts_cannot_be_listed_after_a_start_nothing_is_released_whatever_else_happens() {
    let mut world = with_account();
    world.restart();
    let accounts = Watch::Templates(Gvk::new("v1", "ServiceAccount"));
    world.lose(accounts.clone());
    world.apply(config_map("new", "a"));
    world.apply(acting("app", &["new"], "robot"));
    assert!(world.settle_for(600_000));
    assert_chain_on(&world, &["member1"]);
    world.shut.remove(&accounts);
    assert!(world.settle_for(600_000));
    assert_chain_on(&world, &["member1"]);
    assert_eq!(world.holders("ConfigMap", "new"), ["member1"]);
    quiet(&mut world);
}

#[test]
fn an_account_that_went_while_nobody_looked_is_looked_for_before_its_credentials_leave() {
    let mut world = with_account();
    let wrote = world.writes.len();
    world.hold_back("ServiceAccount");
    world.delete("ServiceAccount", "robot");
    world.apply(account("robot", &["registry"]));
    // Its end is reported late, and it has been made again since.
    world.tell_late();
    assert!(world.settle_for(60_000));
    world.tell_all_late();
    assert!(world.settle_for(60_000));
    assert_chain_on(&world, &["member1"]);
    let of_secret =
        |each: &&String| each.ends_with("Secret default/registry") || each.ends_with("registry-secret");
    let wrote: Vec<&String> = world.writes[wrote..].iter().filter(of_secret).collect();
    assert!(wrote.is_empty(), "{wrote:#?}");
}

// --- kinds that people teach us

#[test]
fn a_circle_goes_along_as_a_whole_and_leaves_as_a_whole() {
    let mut world = interpretation(&["member1", "member2"]);
    world.apply(config_map("goods", "a"));
    world.apply(shop("a", &json!({"shops": ["b"]})));
    world.apply(shop("b", &json!({"shops": ["c", "b"]})));
    world.apply(shop("c", &json!({"shops": ["a", "b"], "uses": ["goods"]})));
    let all = [
        ("Shop", "a"),
        ("Shop", "b"),
        ("Shop", "c"),
        ("ConfigMap", "goods"),
    ];
    let assert_on = |world: &World, members: &[&str]| {
        for (kind, name) in all {
            assert_eq!(world.holders(kind, name), members, "{kind} {name}");
        }
    };
    world.apply(placed_shop("a", &["member1"]));
    assert!(world.settle_for(5_000), "they do not wait for each other");
    assert_on(&world, &["member1"]);
    let root = binding(&world, "a-shop");
    assert!(root["spec"]["requiredBy"].is_null(), "{root}");
    quiet(&mut world);
    // Two of them are placed: each needs the other.
    world.apply(placed_shop("c", &["member1"]));
    assert!(world.settle());
    world.apply(placed_shop("a", &["member2"]));
    world.apply(placed_shop("c", &["member2"]));
    assert!(world.settle_for(60_000));
    assert_on(&world, &["member2"]);
    quiet(&mut world);
    for name in ["a", "b", "c"] {
        world.delete("Shop", name);
    }
    assert!(world.settle_for(60_000));
    assert_on(&world, &[]);
}

#[test]
fn of_a_chain_the_last_one_goes_first_and_leaves_last() {
    let mut world = interpretation(&["member1", "member2"]);
    // In the order of names it would be the other way round.
    world.apply(shop("z", &json!({"shops": ["a"]})));
    world.apply(shop("a", &json!({"shops": ["b"]})));
    world.apply(shop("b", &json!({"shops": ["c"]})));
    world.apply(shop("c", &json!({})));
    world.apply(placed_shop("z", &["member1"]));
    assert!(world.settle());
    assert_order(
        &world.writes,
        &["c", "b", "a", "z"]
            .map(|name| format!("member1 POST Shop default/{name}"))
            .each_ref()
            .map(String::as_str),
    );
    world.apply(placed_shop("z", &["member2"]));
    assert!(world.settle());
    assert_order(
        &world.writes,
        &["z", "a", "b", "c"]
            .map(|name| format!("member1 Delete Shop default/{name}"))
            .each_ref()
            .map(String::as_str),
    );
}

#[test]
fn a_circle_that_nobody_needs_any_more_leaves() {
    let mut world = interpretation(&["member1"]);
    world.apply(config_map("goods", "a"));
    world.apply(shop("root", &json!({"shops": ["b"]})));
    world.apply(shop("b", &json!({"shops": ["c"]})));
    world.apply(shop("c", &json!({"shops": ["b"], "uses": ["goods"]})));
    world.apply(placed_shop("root", &["member1"]));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "goods"), ["member1"]);
    world.apply(shop("root", &json!({})));
    assert!(world.settle_for(60_000));
    for (kind, name) in [("Shop", "b"), ("Shop", "c"), ("ConfigMap", "goods")] {
        assert!(world.holders(kind, name).is_empty(), "{kind} {name}");
    }
    assert_eq!(world.holders("Shop", "root"), ["member1"]);
}

#[test]
fn a_chain_is_followed_eight_steps_and_no_further() {
    let mut world = interpretation(&["member1"]);
    for at in 0..12 {
        let next = format!("s{}", at + 1);
        world.apply(shop(&format!("s{at}"), &json!({"shops": [next]})));
    }
    world.apply(placed_shop("s0", &["member1"]));
    assert!(world.settle_for(60_000));
    for at in 0..12 {
        let there = !world.holders("Shop", &format!("s{at}")).is_empty();
        assert_eq!(there, at <= 8, "s{at}");
    }
    // A shorter way brings the rest.
    world.apply(shop("s1", &json!({"shops": ["s2", "s8"]})));
    assert!(world.settle_for(60_000));
    for at in 0..12 {
        assert_eq!(world.holders("Shop", &format!("s{at}")), ["member1"], "s{at}");
    }
    world.apply(shop("s1", &json!({"shops": []})));
    assert!(world.settle_for(60_000));
    for at in 2..12 {
        assert!(world.holders("Shop", &format!("s{at}")).is_empty(), "s{at}");
    }
    quiet(&mut world);
}

#[test]
fn what_lies_between_and_ceases_to_be_understood_keeps_what_it_took_along_over_a_restart_too() {
    let mut world = interpretation(&["member1"]);
    world.apply(config_map("goods", "a"));
    world.apply(shop("root", &json!({"shops": ["b"]})));
    world.apply(shop("b", &json!({"uses": ["goods"]})));
    world.apply(placed_shop("root", &["member1"]));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "goods"), ["member1"]);
    quiet(&mut world);
    world.apply(shop("b", &json!({"uses": [], "broken": true})));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "goods"), ["member1"]);
    quiet(&mut world);
    assert_eq!(world.holders("ConfigMap", "goods"), ["member1"]);
    assert_eq!(condition(&world, "b-shop", "Interpreted")["status"], "False");
    world.apply(shop("b", &json!({"uses": []})));
    assert!(world.settle());
    assert!(world.holders("ConfigMap", "goods").is_empty());
    quiet(&mut world);
}

#[test]
fn what_lies_between_and_is_taught_otherwise_changes_what_goes_along() {
    let mut world = with_account();
    world.apply(config_map("goods", "a"));
    let mut rule = rule("accounts", &json!({"at": "/metadata/annotations/uses"}));
    rule["spec"]["target"] = json!({"apiVersion": "v1", "kind": "ServiceAccount"});
    world.apply(rule);
    assert!(world.settle());
    assert!(
        world.holders("Secret", "registry").is_empty(),
        "the rule answers alone"
    );
    world.delete("ResourceInterpreterCustomization", "accounts");
    assert!(world.settle());
    assert_chain_on(&world, &["member1"]);
    quiet(&mut world);
}

#[test]
fn each_step_to_another_namespace_takes_the_consent_of_that_one() {
    let in_vault = |mut object: Value| {
        object["metadata"]["namespace"] = json!("vault");
        object
    };
    let mut world = World::new(&["member1"]);
    let shops = json!({"at": "/spec/shops", "apiVersion": SHOP.0, "kind": SHOP.1, "namespace": "vault"});
    let safe = json!({"at": "/spec/safe", "namespace": "safe"});
    world.apply(rule("shops", &shops));
    world.apply(rule("uses", &json!({"at": "/spec/uses"})));
    world.apply(rule("safe", &safe));
    let namespace = |name: &str, lets: &str| {
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "annotations": {"entourage.dev/references-from": lets}},
        })
    };
    for (name, lets) in [("vault", ""), ("safe", "default")] {
        world.apply(namespace(name, lets));
    }
    let mut gold = config_map("gold", "a");
    gold["metadata"]["namespace"] = json!("safe");
    world.apply(gold);
    world.apply(in_vault(config_map("goods", "a")));
    world.apply(in_vault(shop("b", &json!({"uses": ["goods"], "safe": ["gold"]}))));
    world.apply(shop("root", &json!({"shops": ["b"]})));
    world.apply(placed_shop("root", &["member1"]));
    assert!(world.settle());
    let stands = |world: &World| {
        let on = |kind: &str, namespace: &str, name: &str| {
            let key = id(kind, namespace, name);
            world.at("member1", &key).is_some()
        };
        (
            on("Shop", "vault", "b"),
            on("ConfigMap", "vault", "goods"),
            on("ConfigMap", "safe", "gold"),
        )
    };
    assert_eq!(stands(&world), (false, false, false));
    for (vault, safe, wanted) in [
        // That the safe lets the root's namespace does not let the vault's.
        ("default", "default", (true, true, false)),
        ("default", "vault", (true, true, true)),
        ("default", "", (true, true, false)),
        ("default", "vault", (true, true, true)),
        ("", "vault", (false, false, false)),
    ] {
        world.replace(namespace("vault", vault));
        world.replace(namespace("safe", safe));
        assert!(world.settle_for(60_000));
        assert_eq!(stands(&world), wanted, "vault: {vault}, safe: {safe}");
        quiet(&mut world);
        assert_eq!(stands(&world), wanted, "vault: {vault}, safe: {safe}, restarted");
    }
}

#[test]
fn what_is_reached_over_something_optional_only_is_optional() {
    let mut world = interpretation(&["member1"]);
    // What a selector matches is optional.
    let selected = json!({"at": "/spec/some", "apiVersion": SHOP.0, "kind": SHOP.1, "label": "shop"});
    world.apply(rule("some", &selected));
    let mut other = shop("b", &json!({"uses": ["missing"]}));
    other["metadata"]["labels"] = json!({"shop": "b"});
    world.apply(other);
    world.apply(shop("root", &json!({"some": ["b"]})));
    world.apply(placed_shop("root", &["member1"]));
    assert!(world.settle());
    assert_eq!(world.holders("Shop", "b"), ["member1"]);
    let ready = |world: &World| condition(world, "root-shop", "DependenciesReady")["status"].clone();
    assert_eq!(ready(&world), "True");
    world.apply(shop("c", &json!({"shops": ["b"]})));
    world.apply(shop("root", &json!({"some": ["b"], "shops": ["c"]})));
    assert!(world.settle());
    assert_eq!(ready(&world), "False", "another way demands it");
    world.apply(shop("root", &json!({"some": ["b"]})));
    assert!(world.settle());
    assert_eq!(ready(&world), "True");
}

#[test]
fn preserved_is_what_is_reached_too() {
    let mut world = with_account();
    let mut policy = placed("app", &["member1"]);
    policy["spec"]["preserveResourcesOnDeletion"] = json!(true);
    world.apply(policy);
    assert!(world.settle());
    // Nobody names it any more, by a user's act: it stays, without our marks.
    world.apply(account("robot", &[]));
    assert!(world.settle_for(60_000));
    assert_chain_on(&world, &["member1"]);
    let marks = |world: &World| {
        world.on("member1", "Secret", "registry").expect("stays")["metadata"]["labels"]["entourage.dev/hub"]
            .clone()
    };
    assert_eq!(marks(&world), Value::Null);
    world.apply(account("robot", &["registry"]));
    world.apply(secret("registry"));
    assert!(world.settle_for(60_000));
    world.delete("Deployment", "app");
    assert!(world.settle_for(60_000));
    assert_chain_on(&world, &["member1"]);
    assert!(!world.hub.keys().any(|id| &*id.gvk.kind == "ResourceBinding"));
}

// --- what it costs

#[test]
fn an_event_costs_what_it_affects_however_much_there_is() {
    let keys = |chains: usize| {
        let mut world = World::new(&["member1"]);
        for at in 0..chains {
            let (app, robot, registry) = (format!("app{at}"), format!("robot{at}"), format!("registry{at}"));
            world.apply(secret(&registry));
            world.apply(account(&robot, &[&registry]));
            world.apply(acting(&app, &[], &robot));
            world.apply(placed(&app, &["member1"]));
        }
        assert!(world.settle_for(60_000));
        world.apply(account("robot0", &[]));
        let touched = world.process.queue.len();
        let names: Vec<String> = world.process.queue.iter().map(|key| format!("{key:?}")).collect();
        assert!(
            !names
                .iter()
                .any(|name| name.contains("app1") || name.contains("robot1")),
            "{names:#?}"
        );
        touched
    };
    assert_eq!(keys(2), keys(20));
}

#[test]
fn an_event_that_changes_no_reference_has_nobody_elses_closure_computed_again() {
    let mut world = with_account();
    let mut robot = world
        .hub_object("ServiceAccount", "robot")
        .cloned()
        .expect("account");
    robot["metadata"]["annotations"] = json!({"note": "new"});
    world.replace(robot);
    let names: Vec<String> = world.process.queue.iter().map(|key| format!("{key:?}")).collect();
    assert!(!names.iter().any(|name| name.contains("\"app\"")), "{names:#?}");
    assert!(world.settle());
    let root = world
        .process
        .engine
        .by_binding(&NamespacedName::new("default", "app-deployment"));
    let links = world.process.engine.links(root.expect("root"));
    let reached: Vec<&ResourceId> = links.references.iter().map(|each| &each.id).collect();
    assert_eq!(reached.len(), 2, "{reached:?}");
}
