//! Copies that ResourceDistributions made on the hub, among `entourage get copies`: the distribution of each, its source, and
//! true if it is current. Only their metadata is read, never their content.

use entourage_api::keys::annotation;
use entourage_core::{distribution::hash::resource_hash, object::Time};
use serde_json::{Value, json};

use super::{
    Seen,
    distributions::Source,
    table::{Row, items, since, text},
};

/// The cluster column of such a copy.
const HUB: &str = "(hub)";

/// One row for each copy on the hub.
pub(super) fn rows(seen: &Seen, name: Option<&str>, now: Time) -> Vec<Row> {
    let mut copies: Vec<&Value> = seen
        .distributed
        .iter()
        .filter(|object| name.is_none_or(|name| text(object, "/metadata/name") == name))
        .filter(|object| !own(object, annotation::DISTRIBUTED_FROM).is_empty())
        .collect();
    copies.sort_by_key(|object| {
        let at = |pointer| text(object, pointer);
        (at("/metadata/namespace"), at("/kind"), at("/metadata/name"))
    });
    let read = copies.into_iter().map(|object| row(seen, object, now));
    read.chain(seen.unread.iter().map(unread)).collect()
}

/// Copies that cannot be read.
fn unread((kind, name, why): &(String, String, String)) -> Row {
    let message = format!("the hub does not let you list the {kind}s of this name: {why}");
    let copy = CopyState {
        state: "Unknown",
        from: None,
        current: None,
        message,
    };
    made(kind, ("", name), ("", ""), &copy, "")
}

fn own<'a>(object: &'a Value, key: &str) -> &'a str {
    object["metadata"]["annotations"][key]
        .as_str()
        .unwrap_or_default()
}

fn row(seen: &Seen, object: &Value, now: Time) -> Row {
    let at = |pointer| text(object, pointer);
    let maker = own(object, annotation::DISTRIBUTED_FROM);
    let hash = own(object, annotation::DISTRIBUTED_HASH);
    let copy = state_of(seen, object, maker);
    let name = (at("/metadata/namespace"), at("/metadata/name"));
    let age = since(at("/metadata/creationTimestamp"), now);
    made(at("/kind"), name, (maker, hash), &copy, &age)
}

/// The row of a copy: its namespace and name, its distribution and that one's hash.
fn made(
    kind: &str,
    (namespace, name): (&str, &str),
    (maker, hash): (&str, &str),
    copy: &CopyState,
    age: &str,
) -> Row {
    let by = if maker.is_empty() {
        String::new()
    } else {
        format!("ResourceDistribution {maker}")
    };
    Row {
        name: format!("{HUB}/{}/{name}", kind.to_lowercase()),
        cells: vec![
            namespace.to_owned(),
            format!("{kind} {name}"),
            HUB.to_owned(),
            copy.state.to_owned(),
            String::new(),
            String::new(),
            String::new(),
            by,
            age.to_owned(),
            copy.message.clone(),
        ],
        item: json!({
            "apiVersion": "v1", "kind": kind, "namespace": namespace, "name": name, "cluster": "", "state": copy.state,
            "distribution": maker, "from": copy.from, "hash": hash, "current": copy.current, "message": copy.message,
        }),
    }
}

/// The derived state of a copy.
struct CopyState {
    state: &'static str,
    /// `resource`, or `Kind namespace/name`; `None` if its distribution was deleted.
    from: Option<String>,
    /// True if it matches the present spec of its distribution; `None` if deciding that requires the content of the distributed
    /// object.
    current: Option<bool>,
    message: String,
}

fn state_of(seen: &Seen, object: &Value, maker: &str) -> CopyState {
    let unknown = |message: String| CopyState {
        state: "Unknown",
        from: None,
        current: None,
        message,
    };
    let mut all = seen.distributions.iter();
    let Some(distribution) = all.find(|each| text(each, "/metadata/name") == maker) else {
        return unknown(format!(
            "its ResourceDistribution {maker} does not exist: it is orphaned"
        ));
    };
    let uid = text(distribution, "/metadata/uid");
    let is_owned = items(object, "/metadata/ownerReferences")
        .iter()
        .any(|owner| owner["controller"] == true && text(owner, "/uid") == uid);
    if !is_owned {
        return unknown(format!(
            "it carries the ownership metadata of ResourceDistribution {maker} and is not managed by it"
        ));
    }
    let source = Source::of(distribution);
    let (kind, name) = (text(object, "/kind"), text(object, "/metadata/name"));
    if (source.kind, source.name) != (kind, name) {
        return unknown(format!(
            "its ResourceDistribution {maker} distributes {} {} now",
            source.kind, source.name
        ));
    }
    if !source.namespace.is_empty() {
        let from = format!("{kind} {}/{name}", source.namespace);
        return CopyState {
            state: "Applied",
            current: None,
            message: format!("rendered from {from}"),
            from: Some(from),
        };
    }
    let wanted = resource_hash(&distribution["spec"]["resource"]);
    let current = own(object, annotation::DISTRIBUTED_HASH) == wanted;
    CopyState {
        state: if current { "Applied" } else { "Pending" },
        from: Some("resource".to_owned()),
        current: Some(current),
        message: if current {
            "rendered from the current resource".to_owned()
        } else {
            format!(
                "rendered from another version of the resource; the status of ResourceDistribution {maker} reports why it stays"
            )
        },
    }
}
