//! Drawings of small graphs, and of unusual names.

use std::{borrow::Cow, sync::Arc};

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::interpreter::{
    ask,
    customized::Engine,
    question::{Answer, Question, Rule},
};

fn objects(all: &[Value]) -> BTreeMap<ResourceId, Value> {
    all.iter()
        .filter_map(|object| Some((crate::object::ResourceId::of(object)?, object.clone())))
        .collect()
}

fn deployment(name: &str, config_map: &str, secret: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "shop", "name": name},
    "spec": {"template": {"spec": {"containers": [{"name": "c", "envFrom": [
        {"configMapRef": {"name": config_map}},
        {"secretRef": {"name": secret, "optional": true}},
    ]}]}}}})
}

fn binding(kind: &str, name: &str, clusters: &[&str], applied: bool) -> Value {
    let api_version = if kind == "Deployment" { "apps/v1" } else { "v1" };
    let targets: Vec<Value> = clusters.iter().map(|name| json!({"name": name})).collect();
    let items: Vec<Value> = clusters
        .iter()
        .map(|name| json!({"clusterName": name, "applied": applied}))
        .collect();
    json!({"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"namespace": "shop", "name": format!("{name}-{}", kind.to_lowercase())},
        "spec": {"clusters": targets, "resource": {"apiVersion": api_version, "kind": kind, "namespace": "shop", "name": name}},
        "status": {"aggregatedStatus": items}})
}

fn untaught(_: &Gvk) -> Interpretation {
    Interpretation::default()
}

fn example() -> Drawing {
    let all = objects(&[
        deployment("web", "settings", "login"),
        deployment("jobs", "settings", "login"),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "settings"}}),
        binding("Deployment", "web", &["east", "west"], true),
        binding("ConfigMap", "settings", &["east"], false),
    ]);
    Drawing::of(all.iter(), untaught)
}

#[test]
fn a_tree_says_where_each_object_is_and_what_is_missing() {
    assert_eq!(
        text::draw(&example()),
        "\
Deployment shop/jobs        goes nowhere
├─ ConfigMap shop/settings  east (not applied)
└─ Secret shop/login        optional; missing
Deployment shop/web         east, west
├─ ConfigMap shop/settings  east (not applied)
└─ Secret shop/login        optional; missing
"
    );
}

#[test]
fn what_a_dependency_refers_to_is_drawn_below_it() {
    let mut web = deployment("web", "settings", "login");
    web["spec"]["template"]["spec"] = json!({"serviceAccountName": "robot"});
    let all = objects(&[
        web,
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": "shop", "name": "robot"},
            "imagePullSecrets": [{"name": "registry"}]}),
    ]);
    assert_eq!(
        text::draw(&Drawing::of(all.iter(), untaught)),
        "\
Deployment shop/web           goes nowhere
└─ ServiceAccount shop/robot  goes nowhere
   └─ Secret shop/registry    missing
"
    );
}

#[test]
fn the_same_in_mermaid_and_dot() {
    assert_eq!(
        mermaid::draw(&example()),
        "\
flowchart LR
  n0[\"ConfigMap shop/settings<br/>east (not applied)\"]
  n1[\"Secret shop/login<br/>missing\"]:::missing
  n2[\"Deployment shop/jobs\"]
  n3[\"Deployment shop/web<br/>east, west\"]
  n2 --> n0
  n2 -. optional .-> n1
  n3 --> n0
  n3 -. optional .-> n1
  classDef missing stroke-dasharray: 4 4
"
    );
    assert_eq!(
        dot::draw(&example()),
        "\
digraph dependencies {
  rankdir=LR;
  node [shape=box];
  n0 [label=\"ConfigMap shop/settings\\neast (not applied)\"];
  n1 [label=\"Secret shop/login\\nmissing\", style=dashed];
  n2 [label=\"Deployment shop/jobs\"];
  n3 [label=\"Deployment shop/web\\neast, west\"];
  n2 -> n0;
  n2 -> n1 [style=dotted, label=\"optional\"];
  n3 -> n0;
  n3 -> n1 [style=dotted, label=\"optional\"];
}
"
    );
}

#[test]
fn a_focus_keeps_what_it_needs_and_what_needs_it() {
    let web = example().around(|id| &*id.name == "web");
    let names: Vec<String> = web.nodes.keys().map(ToString::to_string).collect();
    assert_eq!(
        names,
        [
            "ConfigMap shop/settings",
            "Secret shop/login",
            "Deployment shop/web"
        ]
    );
    let settings = example().around(|id| &*id.name == "settings");
    assert_eq!(settings.nodes.len(), 3);
    assert!(!settings.nodes.keys().any(|id| &*id.gvk.kind == "Secret"));
}

#[test]
fn what_is_needed_by_its_labels_is_drawn_below_what_needs_it() {
    let import = json!({"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport",
        "metadata": {"namespace": "shop", "name": "web"}});
    let slice = |namespace: &str, name: &str, service: &str| {
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"namespace": namespace, "name": name, "labels": {"kubernetes.io/service-name": service}}})
    };
    let all = objects(&[
        import.clone(),
        slice("shop", "a", "derived-web"),
        slice("shop", "b", "derived-other"),
        slice("lab", "c", "derived-web"),
    ]);
    assert_eq!(
        text::draw(&Drawing::of(all.iter(), untaught)),
        "\
ServiceImport shop/web       goes nowhere
├─ Service shop/derived-web  missing
└─ EndpointSlice shop/a      optional; goes nowhere
"
    );
    let (id, import) = objects(&[import]).pop_first().unwrap();
    let kinds: Vec<String> = selected_kinds(&untaught(&id.gvk), &id, &import)
        .iter()
        .map(|(gvk, namespace)| format!("{gvk} {namespace}"))
        .collect();
    assert_eq!(kinds, ["EndpointSlice shop"]);
}

/// Returns the names in `spec.names`; a script without text does not compile.
#[derive(Debug)]
struct Names;

impl Engine for Names {
    fn compile(&self, _: &str, _: Operation, source: &str) -> Result<Arc<dyn Rule>, String> {
        if source.is_empty() {
            return Err("the script is empty".into());
        }
        Ok(Arc::new(Self))
    }
}

impl Rule for Names {
    fn answer(&self, question: Question<'_>) -> Result<Answer, Cow<'static, str>> {
        let names = &question.object()["spec"]["names"];
        Ok(Answer::Dependencies(
            serde_json::from_value(names.clone()).unwrap(),
        ))
    }
}

/// The interpretation of Shops by a script.
fn shops(script: &str) -> impl Fn(&Gvk) -> Interpretation {
    let object = json!({"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
        "metadata": {"name": "shops"}, "spec": {"target": {"apiVersion": "example.com/v1", "kind": "Shop"},
        "customizations": {"dependencyInterpretation": {"luaScript": script}}}});
    let customization = serde_json::from_value(object).unwrap();
    move |gvk: &Gvk| ask::interpretation(gvk, std::slice::from_ref(&customization), Some(&Names))
}

/// Refers to a ConfigMap in each namespace.
fn shop(namespaces: &[&str]) -> Value {
    let names: Vec<Value> = namespaces
        .iter()
        .map(|namespace| json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": namespace, "name": "goods"}))
        .collect();
    json!({"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"namespace": "shop", "name": "corner"},
        "spec": {"names": names}})
}

#[test]
fn what_is_taught_is_drawn_as_far_as_the_other_namespace_lets_it() {
    let namespace = |name: &str, from: &str| {
        json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "annotations": {"entourage.dev/references-from": from}}})
    };
    let all = objects(&[
        shop(&["shop", "vault", "safe", "attic", "kube-system"]),
        namespace("vault", "lab, shop"),
        namespace("safe", "lab"),
        namespace("kube-system", "*"),
    ]);
    let drawing = Drawing::of(all.iter(), shops("…"));
    assert_eq!(
        text::draw(&drawing),
        "\
Shop shop/corner          goes nowhere
├─ ConfigMap shop/goods   missing
└─ ConfigMap vault/goods  missing
"
    );
    assert_eq!(drawing.remarks, BTreeSet::new());
    assert!(Drawing::of(all.iter(), untaught).nodes.is_empty());
}

#[test]
fn objects_whose_dependencies_are_unknown_are_reported() {
    let all = objects(&[shop(&["shop"])]);
    let drawing = Drawing::of(all.iter(), shops(""));
    assert!(drawing.nodes.is_empty());
    let remarks: Vec<_> = drawing.remarks.iter().collect();
    assert_eq!(
        remarks,
        [
            "Shop shop/corner: ResourceInterpreterCustomization \"shops\": the script is empty; its last known \
             dependencies stay in force and are not drawn"
        ]
    );
}

#[test]
fn a_circle_is_drawn_once() {
    let id = |name: &str| ResourceId::new(Gvk::new("v1", "ConfigMap"), "shop", name);
    let mut drawing = Drawing::default();
    for (from, to) in [("a", "b"), ("b", "a")] {
        drawing.nodes.insert(
            id(from),
            Node {
                exists: true,
                ..Node::default()
            },
        );
        drawing.edges.entry(id(from)).or_default().insert(id(to), false);
    }
    let text = text::draw(&drawing);
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.contains("refers back"), "{text}");
}

#[test]
fn json_names_both_ends_of_every_edge() {
    let json = example().json();
    let ids: Vec<&Value> = json["nodes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|node| &node["id"])
        .collect();
    for edge in json["edges"].as_array().into_iter().flatten() {
        assert!(
            ids.contains(&&edge["from"]) && ids.contains(&&edge["to"]),
            "{edge}"
        );
    }
    assert_eq!(json["edges"][1]["missing"], true);
}

/// The text between the quotes of a label; fails if there is a quote in between.
fn inside_quotes(line: &str, escapes: bool) -> bool {
    let mut letters = line.chars();
    let mut quotes = 0;
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if escapes => drop(letters.next()),
            '"' => quotes += 1,
            _ => {}
        }
    }
    quotes % 2 == 0 && quotes <= 2
}

proptest! {
    #[test]
    fn no_name_breaks_out_of_its_label(from in ".*", to in "[\"\\\\\\]\\[;#<>`{}|\n\r\t a-z]*") {
        let id = |name: &str| ResourceId::new(Gvk::new("v1", "ConfigMap"), "shop", name);
        let mut drawing = Drawing::default();
        drawing.nodes.insert(id(&from), Node::default());
        drawing.nodes.insert(id(&to), Node { exists: true, clusters: [(from.clone(), true)].into() });
        drawing.edges.entry(id(&from)).or_default().insert(id(&to), true);
        let (nodes, edges) = (drawing.nodes.len(), 1);
        let dot = dot::draw(&drawing);
        prop_assert_eq!(dot.lines().count(), 4 + nodes + edges, "{}", dot);
        prop_assert!(dot.lines().all(|line| inside_quotes(line, true)), "{}", dot);
        let mermaid = mermaid::draw(&drawing);
        prop_assert!(mermaid.lines().all(|line| inside_quotes(line, false)), "{}", mermaid);
        let missing = usize::from(drawing.nodes.values().any(|node| !node.exists));
        prop_assert_eq!(mermaid.lines().count(), 1 + nodes + edges + missing, "{}", mermaid);
        prop_assert_eq!(text::draw(&drawing).lines().count(), 2);
    }
}
