//! What of a hub is drawn next to files.

use entourage_core::{index::Config, object::Time, rehearsal::Progress};

use super::*;

#[test]
fn what_the_files_do_not_touch_is_not_drawn() {
    let deployment = |namespace: &str| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": namespace, "name": "web"},
            "spec": {"template": {"spec": {"containers": [{"name": "c", "envFrom": [
                {"configMapRef": {"name": "settings"}}]}]}}}})
    };
    let settings = |namespace: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": "settings"}});
    let mut rehearsal = Rehearsal::new(Config::new("hub"), Time(1_700_000_000_000));
    for namespace in ["shop", "lab"] {
        rehearsal.know(deployment(namespace));
        rehearsal.know(settings(namespace));
    }
    rehearsal.apply(Some(settings("shop")), settings("shop"));
    assert_eq!(rehearsal.run_alone(), Progress::Settled);
    let drawn: Vec<String> = touched(&rehearsal)
        .nodes
        .keys()
        .map(ToString::to_string)
        .collect();
    assert_eq!(drawn, ["ConfigMap shop/settings", "Deployment shop/web"]);
}
