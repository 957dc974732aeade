//! The model of watches: what one covers and serves.

use std::collections::BTreeSet;

use entourage_api::keys::label;
use entourage_core::{
    Engine,
    interpreter::{self, Interpretation},
    object::{NamespacedName, ResourceId, Str},
    observation::{self, Subject, Watch, kind_read_by},
    pulled::REPORT,
};
use serde_json::{Value, json};

/// True if a watch of this hub covers an object of its server.
#[must_use]
pub fn covers(watch: &Watch, hub: &str, id: &ResourceId, object: &Value) -> bool {
    id.gvk == kind_read_by(watch)
        && match watch {
            Watch::Templates(_) => !interpreter::not_propagatable(object),
            Watch::Copies(..) => object["metadata"]["labels"][label::HUB] == *hub,
            Watch::Distributed(_, _, name) => id.name == *name,
            Watch::QuotaCopies(_) => object["metadata"]["labels"][label::FEDERATED_QUOTA] == *hub,
            Watch::Endpoints(_, service) => {
                id.namespace == service.namespace
                    && object["metadata"]["labels"][label::SERVICE_NAME] == *service.name
            }
            _ => true,
        }
}

/// The watches of a member that can cover an object in one of these states.
#[must_use]
pub fn of_member<'a>(
    cluster: &Str,
    id: &ResourceId,
    states: impl IntoIterator<Item = &'a Value>,
) -> Vec<Watch> {
    let services = states
        .into_iter()
        .filter_map(|object| object["metadata"]["labels"][label::SERVICE_NAME].as_str());
    let services = services.map(|service| NamespacedName::new(&id.namespace, service));
    let endpoints: BTreeSet<Watch> = services
        .map(|service| Watch::Endpoints(cluster.clone(), service))
        .collect();
    let others = [
        Watch::Copies(cluster.clone(), id.gvk.clone()),
        Watch::MemberNamespaces(cluster.clone()),
        Watch::Nodes(cluster.clone()),
        Watch::Pods(cluster.clone()),
        Watch::QuotaCopies(cluster.clone()),
        Watch::Distributed(Some(cluster.clone()), id.gvk.clone(), id.name.clone()),
    ];
    others.into_iter().chain(endpoints).collect()
}

/// An object as a watch serves it to a process: metadata alone where the shell asks for that. `interpretation` is that of the
/// object, with the responses of hooks. `None` if it cannot be read.
#[must_use]
pub fn project(
    engine: &Engine,
    watch: &Watch,
    interpretation: &Interpretation,
    object: &Value,
) -> Option<Subject> {
    if observation::is_whole(watch, &engine.interpretation_of(watch)) {
        return observation::project(watch, interpretation, object);
    }
    let mut metadata = json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": object["metadata"],
    });
    // The API of a member in Pull mode has it beside the metadata.
    if let Some(report) = object.get(REPORT) {
        metadata[REPORT] = report.clone();
    }
    observation::project(watch, interpretation, &metadata)
}
