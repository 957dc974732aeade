//! The ControllerRevisions of a StatefulSet or a DaemonSet: its templates by number. Source: the package `history` of
//! kube-controller-manager.

use serde_json::{Value, json};

use super::{
    Action,
    parts::{create, hash_of, int, owned_by, part, path_of, remove_of, text},
};
use crate::object::Object;

const APPS: &str = "apis/apps/v1";

/// The label by which pods and revisions name their template.
pub(super) const HASH: &str = "controller-revision-hash";

/// The templates of a workload.
pub(super) struct Revisions<'a> {
    known: Vec<&'a Object>,
    /// The name of the revision of the workload's template, and its hash.
    pub(super) name: String,
    pub(super) hash: String,
}

impl<'a> Revisions<'a> {
    /// The revisions of a workload, and the requests that make its template the newest of them.
    pub(super) fn of(owner: &Object, kind: &str, known: &'a [Object]) -> (Self, Vec<Action>) {
        let meta = &owner["metadata"];
        let template = &part(owner, "spec")["template"];
        let data = data(template);
        let newest = known.iter().map(number).max().unwrap_or(0);
        let known: Vec<&Object> = known.iter().collect();
        let same = known.iter().find(|one| one.get("data") == Some(&data));
        let hash = match same {
            Some(one) => text(&one["metadata"]["labels"][HASH]).to_owned(),
            None => hash_of(template),
        };
        let mut actions = Vec::new();
        let name = match same {
            Some(one) => {
                if number(one) < newest {
                    let path = path_of(APPS, "controllerrevisions", one);
                    let patch = json!({"revision": newest + 1});
                    actions.push(Action::Patch { path, patch });
                }
                text(&one["metadata"]["name"]).to_owned()
            }
            None => {
                let name = format!("{}-{hash}", text(&meta["name"]));
                let mut labels = template["metadata"]["labels"].clone();
                labels[HASH] = json!(hash);
                let made = json!({"apiVersion": "apps/v1", "kind": "ControllerRevision",
                    "metadata": {"name": name, "labels": labels, "annotations": meta["annotations"],
                        "ownerReferences": owned_by("apps/v1", kind, meta)},
                    "data": data, "revision": newest + 1});
                actions.push(create(APPS, "controllerrevisions", owner, made));
                name
            }
        };
        (Self { known, name, hash }, actions)
    }

    /// The template of a revision.
    pub(super) fn template(&self, name: &str) -> Option<Value> {
        let found = self.known.iter().find(|one| one["metadata"]["name"] == name)?;
        let mut template = part(found, "data")["spec"]["template"].clone();
        if let Value::Object(template) = &mut template {
            template.remove("$patch");
        }
        Some(template)
    }

    /// The deletions of revisions that are in no use and older than the history goes back.
    pub(super) fn outdated(&self, limit: i64, used: &[&str]) -> Vec<Action> {
        let mut unused: Vec<&&Object> = self
            .known
            .iter()
            .filter(|one| {
                let names = [&one["metadata"]["name"], &one["metadata"]["labels"][HASH]].map(text);
                names[0] != self.name && !names.iter().any(|name| used.contains(name))
            })
            .collect();
        unused.sort_by_key(|one| number(one));
        let too_many = unused.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        let gone = unused.iter().take(too_many);
        gone.map(|one| remove_of(APPS, "controllerrevisions", one))
            .collect()
    }
}

fn number(revision: &Object) -> i64 {
    int(part(revision, "revision"), 0)
}

/// The template as a patch of the workload, which `kubectl rollout undo` applies.
fn data(template: &Value) -> Value {
    let mut template = template.clone();
    template["$patch"] = json!("replace");
    json!({"spec": {"template": template}})
}
