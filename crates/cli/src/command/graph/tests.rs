//! The graph of a hub, by itself and together with files.

use entourage_core::{config::Config, object::Time};
use entourage_simulation::Progress;
use serde_json::{Value, json};

use super::*;
use crate::mock::Server;

#[test]
fn what_the_files_do_not_touch_is_not_drawn() {
    let deployment = |namespace: &str| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": namespace, "name": "web"},
            "spec": {"template": {"spec": {"containers": [{"name": "c", "envFrom": [
                {"configMapRef": {"name": "settings"}}]}]}}}})
    };
    let settings = |namespace: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": "settings"}});
    let mut simulation = Simulation::new(Config::new("hub"), Time(1_700_000_000_000));
    for namespace in ["shop", "lab"] {
        simulation.know(deployment(namespace));
        simulation.know(settings(namespace));
    }
    simulation.apply(Some(settings("shop")), settings("shop"));
    assert_eq!(simulation.run_alone(), Progress::Settled);
    let drawn: Vec<String> = touched(&simulation)
        .nodes
        .keys()
        .map(ToString::to_string)
        .collect();
    assert_eq!(drawn, ["ConfigMap shop/settings", "Deployment shop/web"]);
}

/// A hub that serves these kinds: group and version, kind, plural, true if namespaced.
fn hub(kinds: &[(&str, &str, &str, bool)]) -> Server {
    let server = Server::new("hub");
    for (version, ..) in kinds {
        let of_version = kinds.iter().filter(|(other, ..)| other == version);
        let resources: Vec<Value> = of_version
            .map(|(_, kind, plural, namespaced)| {
                json!({"name": plural, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": ["list"]})
            })
            .collect();
        let root = if version.contains('/') { "apis" } else { "api" };
        server.put(
            &format!("/{root}/{version}"),
            json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}),
        );
    }
    server
}

const NAMESPACES: (&str, &str, &str, bool) = ("v1", "Namespace", "namespaces", false);
const CONFIG_MAPS: (&str, &str, &str, bool) = ("v1", "ConfigMap", "configmaps", true);
const SHOPS: (&str, &str, &str, bool) = ("example.com/v1", "Shop", "shops", true);
const CUSTOMIZATIONS: (&str, &str, &str, bool) = (
    "config.karmada.io/v1alpha1",
    "ResourceInterpreterCustomization",
    "resourceinterpretercustomizations",
    false,
);
const HOOKS: (&str, &str, &str, bool) = (
    "config.karmada.io/v1alpha1",
    "ResourceInterpreterWebhookConfiguration",
    "resourceinterpreterwebhookconfigurations",
    false,
);

/// Adds a Shop that refers to a ConfigMap of its own namespace and to one of the vault, which exists.
fn stock(server: &Server) {
    let names = json!([{"namespace": "shop", "name": "goods"}, {"namespace": "vault", "name": "keys"}]);
    server.put(
        "/apis/example.com/v1/namespaces/shop/shops/corner",
        json!({"metadata": {"namespace": "shop", "name": "corner"}, "spec": {"uses": names}}),
    );
    server.put(
        "/api/v1/namespaces/vault/configmaps/keys",
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "vault", "name": "keys"}}),
    );
}

fn add_customization(server: &Server, script: &str) {
    server.put(
        "/apis/config.karmada.io/v1alpha1/resourceinterpretercustomizations/shops",
        json!({"metadata": {"name": "shops"}, "spec": {"target": {"apiVersion": "example.com/v1", "kind": "Shop"},
            "customizations": {"dependencyInterpretation": {"luaScript": script}}}}),
    );
}

fn consent(server: &Server) {
    server.put(
        "/api/v1/namespaces/vault",
        json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "vault", "annotations": {"entourage.dev/references-from": "shop"}}}),
    );
}

const SCRIPT: &str = "function GetDependencies(desiredObj)
  local found = {}
  for i, use in ipairs(desiredObj.spec.uses) do
    found[i] = { apiVersion = 'v1', kind = 'ConfigMap', namespace = use.namespace, name = use.name }
  end
  return found
end";

#[tokio::test]
async fn a_hub_is_drawn_with_what_its_customizations_teach() {
    let server = hub(&[NAMESPACES, CONFIG_MAPS, SHOPS, CUSTOMIZATIONS]);
    stock(&server);
    let unconfigured = of_hub(&server.client(), "").await.unwrap();
    assert_eq!((unconfigured.nodes.len(), unconfigured.remarks.len()), (0, 0));
    add_customization(&server, SCRIPT);
    // The vault does not allow it yet.
    let alone = "Shop shop/corner         goes nowhere\n└─ ConfigMap shop/goods  missing\n";
    assert_eq!(text::draw(&of_hub(&server.client(), "").await.unwrap()), alone);
    consent(&server);
    for namespace in ["", "shop"] {
        let drawing = of_hub(&server.client(), namespace).await.unwrap();
        assert_eq!(
            text::draw(&drawing),
            "\
Shop shop/corner         goes nowhere
├─ ConfigMap shop/goods  missing
└─ ConfigMap vault/keys  goes nowhere
",
            "{namespace:?}"
        );
        assert_eq!(drawing.remarks, BTreeSet::new());
    }
    assert_eq!(server.take_writes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_hub_without_the_definition_is_drawn_as_it_is_known() {
    let server = hub(&[
        NAMESPACES,
        CONFIG_MAPS,
        SHOPS,
        ("apps/v1", "Deployment", "deployments", true),
    ]);
    stock(&server);
    server.put(
        "/apis/apps/v1/namespaces/shop/deployments/web",
        json!({"metadata": {"namespace": "shop", "name": "web"}, "spec": {"template": {"spec": {"containers": [
            {"name": "c", "envFrom": [{"configMapRef": {"name": "settings"}}]}]}}}}),
    );
    let drawing = of_hub(&server.client(), "").await.unwrap();
    let drawn: Vec<String> = drawing.nodes.keys().map(ToString::to_string).collect();
    assert_eq!(drawn, ["ConfigMap shop/settings", "Deployment shop/web"]);
    assert_eq!(drawing.remarks, BTreeSet::new());
}

#[tokio::test]
async fn what_cannot_be_drawn_of_a_hub_is_reported() {
    let server = hub(&[NAMESPACES, CONFIG_MAPS, SHOPS, CUSTOMIZATIONS, HOOKS]);
    stock(&server);
    add_customization(
        &server,
        "function GetDependencies(desiredObj) return desiredObj.spec.no.such end",
    );
    server.put(
        "/apis/config.karmada.io/v1alpha1/resourceinterpreterwebhookconfigurations/hooks",
        json!({"metadata": {"name": "hooks"}, "webhooks": []}),
    );
    let drawing = of_hub(&server.client(), "").await.unwrap();
    let remarks: Vec<&str> = drawing.remarks.iter().map(String::as_str).collect();
    assert!(
        remarks[0]
            .starts_with("ResourceInterpreterWebhookConfiguration hooks: its hooks are not called here"),
        "{remarks:?}"
    );
    assert!(
        remarks[1].starts_with("Shop shop/corner: ResourceInterpreterCustomization \"shops\": script")
            && remarks[1].ends_with("are not drawn"),
        "{remarks:?}"
    );
    assert_eq!((remarks.len(), drawing.nodes.len()), (2, 0));
}
