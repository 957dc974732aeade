//! `entourage plan` against a hub says exactly what then happens.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use clap::Parser as _;
use entourage::{
    command::{Cli, Command, graph, plan},
    manifests::{self, Manifest},
};
use entourage_e2e::{
    harness::{Scene, included, manifests as samples},
    tests,
};
use entourage_simulation::{Fate, Place, Report, shown};
use serde_json::{Value, json};

tests![
    a_plan_says_what_then_happens,
    a_plan_sees_what_stands_in_the_way,
    a_plan_without_the_members_says_the_same,
    a_plan_writes_nothing,
    a_plan_refuses_the_unknown_fields_that_the_hub_refuses,
    a_plan_of_a_kind_and_its_objects_goes_on_to_the_members,
    a_plan_of_a_distribution_says_what_then_happens,
    a_graph_of_the_hub_is_that_of_the_files,
];

/// The kinds of the copies that are compared.
const KINDS: [&str; 3] = ["ConfigMap", "Deployment", "Secret"];

/// The annotations that tools and API servers of the members add.
const THEIRS: [&str; 1] = ["deployment.kubernetes.io/revision"];

/// (member, kind, name) → the copy as it may be shown; `None` where a plan only says that it stays.
type Copies = BTreeMap<(String, String, String), Option<Value>>;

async fn a_plan_says_what_then_happens(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    for (number, step) in steps(&scene.ns).iter().enumerate() {
        let objects = parsed(step)?;
        let report = planned(scene, &objects, &[]).await?;
        check(scene, &objects, &report)
            .await
            .with_context(|| format!("step {number}"))?;
        let again = planned(scene, &objects, &[]).await?;
        ensure!(
            !again.has_changes(),
            "step {number} once more: {:#?}",
            changes(&again)
        );
    }
    Ok(())
}

/// A user's day: each entry is what is applied together.
fn steps(ns: &str) -> Vec<Vec<Value>> {
    let mut policy = samples::policy(&["member1", "member2"]);
    let mut web = samples::deployment("myapp", &["my-config"]);
    let secret = |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"password": value}});
    let config = |name: &str, value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}});
    let mut days = vec![vec![policy.clone(), web.clone(), config("my-config", "1")]];
    policy["spec"]["placement"]["clusterAffinity"]["clusterNames"] = json!(["member3", "member2"]);
    days.push(vec![policy.clone()]);
    days.push(vec![
        config("my-config", "2"),
        config("other", "1"),
        secret("one"),
    ]);
    let mut volumes = samples::deployment("myapp", &["other"]);
    volumes["spec"]["template"]["spec"]["containers"][0]["envFrom"] =
        json!([{"secretRef": {"name": "login"}}]);
    volumes["spec"]["template"]["spec"]["containers"][0]["image"] = json!("nginx:2");
    days.push(vec![volumes]);
    days.push(vec![secret("two")]);
    web["spec"]["replicas"] = json!(3);
    days.push(vec![web, samples::policy(&["member1", "member2", "member3"])]);
    let mirror = json!({"imageOverrider": [{"component": "Registry", "operator": "replace", "value": "mirror.example"}]});
    days.push(vec![json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy", "metadata": {"name": "mirror"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "myapp"}],
            "overrideRules": [{"targetCluster": {"clusterNames": ["member2"]}, "overriders": mirror}],
        },
    })]);
    for object in days.iter_mut().flatten() {
        object["metadata"]["namespace"] = json!(ns);
    }
    days
}

async fn a_plan_sees_what_stands_in_the_way(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "my-config"}, "data": {"key": "theirs"}});
    scene.apply_on("member1", foreign).await?;
    let mut example = samples::example().to_vec();
    for object in &mut example {
        object["metadata"]["namespace"] = json!(scene.ns);
    }
    let objects = parsed(&example)?;
    let report = planned(scene, &objects, &[]).await?;
    let refused: Vec<_> = report
        .outcomes
        .iter()
        .filter(|each| each.fate == Fate::Refused)
        .collect();
    ensure!(
        refused.len() == 1 && refused[0].place == Place::Member("member1".into()),
        "{:#?}",
        changes(&report)
    );
    check(scene, &objects, &report).await?;
    // Once the policy says so, it is taken over.
    let mut policy = samples::policy(&["member1", "member2"]);
    policy["metadata"]["namespace"] = json!(scene.ns);
    policy["spec"]["conflictResolution"] = json!("Overwrite");
    let objects = parsed(&[policy])?;
    let report = planned(scene, &objects, &[]).await?;
    check(scene, &objects, &report).await
}

async fn a_plan_without_the_members_says_the_same(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    scene.quiet().await?;
    let mut policy = samples::policy(&["member2", "member3"]);
    policy["metadata"]["namespace"] = json!(scene.ns);
    let objects = parsed(&[policy])?;
    let read = planned(scene, &objects, &[]).await?;
    let recorded = planned(scene, &objects, &["--members", "recorded"]).await?;
    ensure!(
        changes(&read) == changes(&recorded),
        "read {:#?} recorded {:#?}",
        changes(&read),
        changes(&recorded)
    );
    ensure!(
        read.unread.is_empty() && recorded.unread.len() == 3,
        "{:?}",
        recorded.unread
    );
    Ok(())
}

async fn a_plan_writes_nothing(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    scene.quiet().await?;
    let versions = async |scene: &Scene| -> Result<BTreeSet<String>> {
        let mut all = BTreeSet::new();
        for server in scene.members.iter().chain([&scene.hub]) {
            let ours: &[&str] = if server.name == scene.hub.name {
                &["PropagationPolicy", "ResourceBinding"]
            } else {
                &[]
            };
            for kind in KINDS.iter().chain(ours) {
                for object in server.list(kind, &scene.ns, "").await? {
                    let meta = &object["metadata"];
                    all.insert(format!(
                        "{} {kind} {} {}",
                        server.name, meta["name"], meta["resourceVersion"]
                    ));
                }
            }
        }
        Ok(all)
    };
    let before = versions(scene).await?;
    let objects = parsed(&steps(&scene.ns).concat())?;
    let report = planned(scene, &objects, &[]).await?;
    ensure!(report.has_changes(), "{:#?}", changes(&report));
    ensure!(versions(scene).await? == before);
    Ok(())
}

async fn a_graph_of_the_hub_is_that_of_the_files(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    scene.quiet().await?;
    let Command::Graph(args) = Cli::try_parse_from([
        "entourage",
        "graph",
        "-n",
        &scene.ns,
        "-f",
        concat!(env!("CARGO_MANIFEST_DIR"), "/../config/samples/myapp"),
    ])?
    .command
    else {
        unreachable!()
    };
    let of_files = graph::of_files(&args)?;
    let live = graph::of_hub(&scene.hub.client, &scene.ns)
        .await?
        .around(|id| &*id.name == "myapp");
    ensure!(
        graph::rendered(&args, live.clone())? == graph::rendered(&args, of_files.clone())?,
        "live {live:#?} files {of_files:#?}"
    );
    Ok(())
}

/// The part of a plan about one object of the hub.
fn on_hub<'r>(report: &'r Report, namespace: &str, kind: &str, name: &str) -> Option<(Fate, &'r str)> {
    let mut outcomes = report.outcomes.iter();
    let found = outcomes.find(|each| {
        let id = &each.object;
        each.place == Place::Hub && (&*id.namespace, &*id.gvk.kind, &*id.name) == (namespace, kind, name)
    })?;
    Some((found.fate, &found.message))
}

async fn a_plan_refuses_the_unknown_fields_that_the_hub_refuses(scene: &mut Scene) -> Result<()> {
    let mut policy = samples::policy(&["member1"]);
    policy["spec"]["propagateDep"] = json!(true);
    let mut deployment = samples::deployment("myapp", &[]);
    deployment["spec"]["template"]["spec"]["container"] = json!([]);
    let objects = parsed(&[policy, deployment, samples::config_map("settings", "one")])?;
    let report = planned(scene, &objects, &[]).await?;
    for (kind, name, field) in [
        ("PropagationPolicy", "myapp-propagation", "spec.propagateDep"),
        ("Deployment", "myapp", "spec.template.spec.container"),
    ] {
        let (fate, why) = on_hub(&report, &scene.ns, kind, name).context("it is not in the plan")?;
        let wanted = format!("strict decoding error: unknown field {field:?}");
        ensure!(fate == Fate::Refused && why.contains(&wanted), "{fate:?} {why}");
    }
    let map = on_hub(&report, &scene.ns, "ConfigMap", "settings").map(|(fate, _)| fate);
    assert_eq!(map, Some(Fate::Created));
    let mut on_members = changes(&report);
    // The namespace is on every member anyway.
    on_members.retain(|each| each.starts_with("Member") && !each.contains(" created Namespace "));
    assert_eq!(on_members, Vec::<String>::new());
    Ok(())
}

async fn a_plan_of_a_kind_and_its_objects_goes_on_to_the_members(scene: &mut Scene) -> Result<()> {
    // The members' APIs are known when controllers ran.
    scene.start().await?;
    scene.quiet().await?;
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "cups.plan.e2e.entourage.dev"},
        "spec": {"group": "plan.e2e.entourage.dev", "scope": "Namespaced",
            "names": {"plural": "cups", "singular": "cup", "kind": "Cup", "listKind": "CupList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {
                    "size": {"type": "integer", "default": 2}}}}}}}]}});
    let cup = |name: &str, spec: Value| json!({"apiVersion": "plan.e2e.entourage.dev/v1", "kind": "Cup", "metadata": {"name": name}, "spec": spec});
    let policy = |kind: &str, selector: Value| {
        json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": kind, "metadata": {"name": scene.own("cups")},
            "spec": {"resourceSelectors": [selector], "placement": {"clusterAffinity": {"clusterNames": ["member1"]}}}})
    };
    let objects = parsed(&[
        definition,
        cup("good", json!({})),
        cup("bad", json!({"height": 1})),
        policy(
            "ClusterPropagationPolicy",
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "name": "cups.plan.e2e.entourage.dev"}),
        ),
        policy(
            "PropagationPolicy",
            json!({"apiVersion": "plan.e2e.entourage.dev/v1", "kind": "Cup"}),
        ),
    ])?;
    let report = planned(scene, &objects, &[]).await?;
    let (fate, why) = on_hub(&report, &scene.ns, "Cup", "bad").context("it is not in the plan")?;
    ensure!(
        fate == Fate::Refused && why.contains("unknown field \"spec.height\""),
        "{fate:?} {why}"
    );
    let copy = report
        .outcomes
        .iter()
        .find(|each| each.place == Place::Member("member1".into()) && &*each.object.gvk.kind == "Cup")
        .with_context(|| format!("no copy: {:#?} {:#?}", changes(&report), report.notes))?;
    assert_eq!((copy.fate, &*copy.object.name), (Fate::Created, "good"));
    let size = copy.after.as_ref().map(|after| after["spec"]["size"].clone());
    assert_eq!(size, Some(json!(2)), "with the defaults of its definition");
    Ok(())
}

async fn a_plan_of_a_distribution_says_what_then_happens(scene: &mut Scene) -> Result<()> {
    let other = scene.another_space().await?;
    other.apply(samples::config_map("shared", "theirs")).await?;
    let shared = samples::config_map("shared", "one");
    let mut targets = included(&[&scene.ns, &other.ns]);
    let name = scene.own("rd");
    let distribution = |targets: &Value| {
        parsed(&[
            json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution",
            "metadata": {"name": name}, "spec": {"resource": shared, "targets": targets}}),
        ])
    };
    let gate = ["--feature-gates", "ResourceDistributionGate=true"];
    let report = planned(scene, &distribution(&targets)?, &gate).await?;
    let (fate, _) = on_hub(&report, &scene.ns, "ConfigMap", "shared").context("it is not in the plan")?;
    assert_eq!(fate, Fate::Created);
    let (fate, why) = on_hub(&report, &other.ns, "ConfigMap", "shared").context("it is not in the plan")?;
    ensure!(
        fate == Fate::Refused && why.contains("already exists"),
        "{fate:?} {why}"
    );

    scene.start().await?;
    scene.distribute("rd", &shared, &targets).await?;
    scene.until_counts("rd", 2, 1, 1).await?;
    let live = scene.get("ConfigMap", "shared").await?;
    let reported = report
        .outcomes
        .iter()
        .find(|each| each.fate == Fate::Created && &*each.object.name == "shared");
    let reported = reported
        .and_then(|each| each.after.as_ref())
        .context("what it will be")?;
    let (_, is) = shown::pair(None, Some(&live));
    assert_eq!(is.as_ref().map(plain), Some(plain(reported)));

    // Applied again, nothing changes; without the namespace, its copy goes.
    let again = planned(scene, &distribution(&targets)?, &gate).await?;
    ensure!(!again.has_changes(), "{:#?}", changes(&again));
    targets = included(&[&other.ns]);
    let report = planned(scene, &distribution(&targets)?, &gate).await?;
    let (fate, _) = on_hub(&report, &scene.ns, "ConfigMap", "shared").context("it is not in the plan")?;
    assert_eq!(fate, Fate::Removed);
    Ok(())
}

fn parsed(objects: &[Value]) -> Result<Vec<Manifest>> {
    manifests::parse(
        &json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string(),
        "the test",
    )
}

async fn planned(scene: &Scene, objects: &[Manifest], more: &[&str]) -> Result<Report> {
    let line = ["entourage", "plan", "-f", "-", "-n", scene.ns.as_str()];
    let Command::Plan(args) = Cli::try_parse_from(line.iter().chain(more))?.command else {
        unreachable!()
    };
    let simulated = plan::against(&args, &scene.hub.client, &scene.ns, objects).await?;
    ensure!(simulated.remarks.is_empty(), "{:?}", simulated.remarks);
    Ok(simulated.simulation.report())
}

/// The changes, without the content of bindings.
fn changes(report: &Report) -> Vec<String> {
    let changes = report.outcomes.iter().filter(|each| each.fate != Fate::Unchanged);
    changes
        .map(|each| {
            format!(
                "{:?} {} {}: {}",
                each.place,
                each.fate.word(),
                each.object,
                each.message
            )
        })
        .collect()
}

/// Applies the objects and compares what is on the members then with what the plan reported.
async fn check(scene: &Scene, objects: &[Manifest], report: &Report) -> Result<()> {
    let before = copies(scene).await?;
    for object in objects {
        manifests::apply(&scene.hub.client, object).await?;
    }
    scene.quiet().await?;
    let after = copies(scene).await?;
    ensure!(!after.is_empty(), "nothing is propagated");
    let mut reported: Copies = before;
    for outcome in &report.outcomes {
        let Place::Member(member) = &outcome.place else {
            continue;
        };
        if *outcome.object.namespace != *scene.ns {
            continue;
        }
        let id = &outcome.object;
        let key = (member.to_string(), id.gvk.kind.to_string(), id.name.to_string());
        match outcome.fate {
            Fate::Created | Fate::Changed => drop(reported.insert(key, outcome.after.as_ref().map(plain))),
            Fate::Removed => drop(reported.remove(&key)),
            _ => {}
        }
    }
    for key in reported.keys().chain(after.keys()) {
        ensure!(
            reported.get(key) == after.get(key),
            "{key:?}: reported {:#?}, is {:#?}; plan {:#?}",
            reported.get(key),
            after.get(key),
            changes(report)
        );
    }
    Ok(())
}

/// Everything that the members hold in the test's namespace.
async fn copies(scene: &Scene) -> Result<Copies> {
    let mut all = Copies::new();
    for member in &scene.members {
        for kind in KINDS {
            for object in member.list(kind, &scene.ns, "").await? {
                let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                if name == "kube-root-ca.crt" {
                    continue;
                }
                let (_, shown) = shown::pair(None, Some(&object));
                all.insert(
                    (member.name.clone(), kind.to_owned(), name),
                    shown.as_ref().map(plain),
                );
            }
        }
    }
    Ok(all)
}

/// An object as it is compared: a Secret's values are not shown either way.
fn plain(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(data) = object.get_mut("data").and_then(Value::as_object_mut)
        && object_is_secret(data)
    {
        data.values_mut().for_each(|value| *value = json!("<redacted>"));
    }
    if let Some(all) = object
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut)
    {
        all.retain(|key, _| !THEIRS.contains(&key.as_str()));
    }
    object
}

fn object_is_secret(data: &serde_json::Map<String, Value>) -> bool {
    data.values()
        .all(|value| value.as_str().is_some_and(|text| text.starts_with("<redacted")))
}
