//! The time line of the fleet: the latest known changes of Clusters and bindings, and the Events of the control plane.
//!
//! Pure. The records are those of `entourage history`, without the writes of managers of fields: a hub has too many of them.

use std::collections::BTreeMap;

use entourage_core::inspection::history::{Entry, Source, timeline};
use serde::Serialize;
use serde_json::Value;

use super::{super::get::table::text, model::millis};

/// The number of changes that are kept: the latest.
pub(super) const KEPT: usize = 1_000;

/// A change, as the page shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Change {
    /// Milliseconds since 1970.
    pub(super) time: i64,
    /// The record that it is from: `condition`, `event` and so on.
    source: &'static str,
    kind: String,
    namespace: String,
    name: String,
    pub(super) what: String,
    message: String,
    /// True for an Event of the type Warning.
    warning: bool,
}

/// The latest changes, by time.
#[derive(Debug, Default)]
pub(super) struct Journal {
    changes: BTreeMap<(i64, String), (u64, Change)>,
}

impl Journal {
    /// Adds a change at a revision of the board. False if it is known, or older than all of a full journal.
    pub(super) fn add(&mut self, change: Change, revision: u64) -> bool {
        let Change {
            kind,
            namespace,
            name,
            what,
            ..
        } = &change;
        let key = (change.time, format!("{kind}/{namespace}/{name}/{what}"));
        if self.changes.contains_key(&key) {
            return false;
        }
        if self.changes.len() >= KEPT {
            if self
                .changes
                .first_key_value()
                .is_some_and(|(oldest, _)| key < *oldest)
            {
                return false;
            }
            self.changes.pop_first();
        }
        self.changes.insert(key, (revision, change));
        true
    }

    /// The changes that were added after a revision and up to another, oldest first. Cost: O(kept).
    pub(super) fn between(&self, after: u64, up_to: u64) -> impl Iterator<Item = &Change> {
        let all = self.changes.values();
        all.filter(move |(added, _)| *added > after && *added <= up_to)
            .map(|(_, change)| change)
    }
}

/// The changes that a Cluster or a binding records; those of a binding are about its template.
pub(super) fn of_object(object: &Value) -> Vec<Change> {
    let resource = &object["spec"]["resource"];
    let is_binding = text(object, "/kind").ends_with("ResourceBinding");
    let (entries, about) = if is_binding {
        (timeline(&Value::Null, Some(object), &[]), resource)
    } else {
        (timeline(object, None, &[]), &object["metadata"])
    };
    let kind = text(if is_binding { resource } else { object }, "/kind");
    entries
        .into_iter()
        .filter(|entry| entry.source != Source::ManagedFields)
        .filter_map(|entry| {
            change(
                entry,
                [kind, text(about, "/namespace"), text(about, "/name")],
                false,
            )
        })
        .collect()
}

/// The change that an Event of the control plane reports; `None` for one of others.
pub(super) fn of_event(event: &Value) -> Option<Change> {
    if !is_ours(event) {
        return None;
    }
    let entry = timeline(&Value::Null, None, std::slice::from_ref(event)).pop()?;
    let involved = &event["involvedObject"];
    let about = ["/kind", "/namespace", "/name"].map(|field| text(involved, field));
    change(entry, about, event["type"] == "Warning")
}

/// True for an Event of the controllers, of an agent or of `entourage` itself.
fn is_ours(event: &Value) -> bool {
    let components = [
        text(event, "/reportingComponent"),
        text(event, "/source/component"),
    ];
    components.iter().any(|name| name.starts_with("entourage"))
}

fn change(entry: Entry, [kind, namespace, name]: [&str; 3], warning: bool) -> Option<Change> {
    Some(Change {
        time: millis(&entry.time)?,
        source: entry.source.word(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        what: entry.what,
        message: entry.message,
        warning,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(time: &str, component: &str) -> Value {
        json!({"involvedObject": {"kind": "Deployment", "namespace": "shop", "name": "web"}, "type": "Warning",
            "reason": "SyncFailed", "message": "refused", "lastTimestamp": time, "reportingComponent": component})
    }

    #[test]
    fn a_change_of_a_binding_is_about_its_template() {
        let binding = json!({"kind": "ResourceBinding", "metadata": {"namespace": "shop", "name": "web-deployment",
                "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{"time": "2026-01-01T00:00:01Z",
                    "manager": "a", "operation": "Update"}]},
            "spec": {"resource": {"kind": "Deployment", "namespace": "shop", "name": "web"}},
            "status": {"conditions": [{"type": "Scheduled", "status": "True", "reason": "Success",
                "lastTransitionTime": "2026-01-01T00:00:02Z"}]}});
        let changes = of_object(&binding);
        let lines: Vec<String> = changes
            .iter()
            .map(|each| {
                format!(
                    "{} {} {}/{}: {}",
                    each.source, each.kind, each.namespace, each.name, each.what
                )
            })
            .collect();
        assert_eq!(
            lines,
            [
                "metadata Deployment shop/web: created",
                "condition Deployment shop/web: Scheduled=True (Success)"
            ]
        );
    }

    #[test]
    fn only_events_of_the_control_plane_are_changes() {
        for (component, is_change) in [
            ("entourage", true),
            ("entourage-agent", true),
            ("deployment-controller", false),
            ("", false),
        ] {
            let change = of_event(&event("2026-01-01T00:00:00Z", component));
            assert_eq!(change.is_some(), is_change, "{component}");
            assert!(change.is_none_or(|change| change.warning && change.what == "SyncFailed"));
        }
    }

    #[test]
    fn a_full_journal_keeps_the_latest_changes_once() {
        let at = |time: i64| Change {
            time,
            ..of_event(&event("2026-01-01T00:00:00Z", "entourage")).unwrap()
        };
        let mut journal = Journal::default();
        for time in 0..1_500 {
            assert!(journal.add(at(time), 1));
            assert!(!journal.add(at(time), 2), "{time} twice");
        }
        assert!(!journal.add(at(3), 3), "older than all that are kept");
        let times: Vec<i64> = journal.between(0, 9).map(|each| each.time).collect();
        assert_eq!((times.len(), times[0], times[KEPT - 1]), (KEPT, 500, 1_499));
        assert_eq!(journal.between(1, 9).count(), 0);
    }
}
