//! The ReplicaSets of a Deployment, and its status. Source: the deployment controller of kube-controller-manager.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Action,
    parts::{Around, create, hash_of, int, is_leaving, owned_by, part, path_of, remove_of, share, text},
};
use crate::object::Object;

mod status;

const APPS: &str = "apis/apps/v1";

/// The label that distinguishes the Pods of one template from those of another.
const HASH: &str = "pod-template-hash";

/// The annotation that numbers the templates of a Deployment, on it and on its ReplicaSets: what `kubectl rollout history`
/// and `undo` go by.
const REVISION: &str = "deployment.kubernetes.io/revision";

/// The size of the Deployment when a ReplicaSet was last scaled, and with its surge.
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MOST: &str = "deployment.kubernetes.io/max-replicas";

/// Annotations of the Deployment that its ReplicaSets do not have.
const OWN: [&str; 5] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    DESIRED,
    MOST,
];

/// A Deployment during one decision.
struct Rollout<'a> {
    deployment: &'a Object,
    spec: &'a Value,
    /// All ReplicaSets, the oldest first.
    sets: Vec<&'a Object>,
    /// The number of the one that has the template of the Deployment.
    current: Option<usize>,
    replicas: i64,
    surge: i64,
    unavailable: i64,
    around: &'a Around,
}

/// A Deployment has a ReplicaSet of its template, which replaces those of older templates as its strategy says.
pub(super) fn deployment(
    deployment: &Object,
    sets: &[Object],
    around: &Around,
) -> (Vec<Action>, Option<Duration>) {
    if is_leaving(deployment) {
        return (Vec::new(), None);
    }
    let rollout = Rollout::of(deployment, sets, around);
    let paused = rollout.spec["paused"] == true;
    let mut actions = Vec::new();
    let revision = rollout.revision();
    if rollout.current.is_some() || !paused {
        actions.extend(rollout.number(revision));
    }
    let mut sizes = rollout.sizes();
    let recreates = rollout.spec["strategy"]["type"] == "Recreate";
    let mut created = None;
    if paused || rollout.was_resized() {
        rollout.resize(&mut sizes);
    } else if recreates {
        rollout.recreate(&mut sizes);
    } else {
        rollout.roll(&mut sizes);
    }
    if rollout.current.is_none() && !paused {
        let of_older = rollout
            .older()
            .map(|at| rollout.observed(at, "replicas"))
            .sum::<i64>();
        let room = rollout.replicas + rollout.surge - sizes.iter().sum::<i64>();
        let size = if recreates {
            rollout.replicas
        } else {
            rollout.replicas.min(room.max(0))
        };
        if !recreates || of_older == 0 {
            created = Some(rollout.name());
            actions.push(rollout.create(size, revision));
        }
    }
    actions.extend(rollout.scale(&sizes));
    let complete = rollout.is_complete();
    if complete && !paused {
        actions.extend(rollout.outdated());
    }
    let (status, again) = rollout.status(created.as_deref(), paused);
    actions.extend(status.patch(APPS, "deployments", deployment));
    (actions, again)
}

impl<'a> Rollout<'a> {
    fn of(deployment: &'a Object, sets: &'a [Object], around: &'a Around) -> Self {
        let spec = part(deployment, "spec");
        let replicas = int(&spec["replicas"], 1);
        let mut sets: Vec<&Object> = sets.iter().filter(|set| !is_leaving(set)).collect();
        sets.sort_by_key(|set| {
            let meta = &set["metadata"];
            (
                text(&meta["creationTimestamp"]),
                revision_of(meta),
                text(&meta["name"]),
            )
        });
        let name = format!(
            "{}-{}",
            text(&deployment["metadata"]["name"]),
            hash_of(&spec["template"])
        );
        let wanted = without_hash(&spec["template"]);
        let current = sets.iter().position(|set| {
            set["metadata"]["name"] == name.as_str() || without_hash(&part(set, "spec")["template"]) == wanted
        });
        let (mut surge, mut unavailable) = (0, 0);
        if spec["strategy"]["type"] != "Recreate" {
            let rolling = &spec["strategy"]["rollingUpdate"];
            surge = share(&rolling["maxSurge"], replicas, true);
            unavailable = share(&rolling["maxUnavailable"], replicas, false).min(replicas);
            if surge == 0 && unavailable == 0 {
                unavailable = 1;
            }
        }
        Self {
            deployment,
            spec,
            sets,
            current,
            replicas,
            surge,
            unavailable,
            around,
        }
    }

    /// The name of the ReplicaSet of the template.
    fn name(&self) -> String {
        match self.current {
            Some(at) => text(&self.sets[at]["metadata"]["name"]).to_owned(),
            None => format!(
                "{}-{}",
                text(&self.deployment["metadata"]["name"]),
                hash_of(&self.spec["template"])
            ),
        }
    }

    fn older(&self) -> impl Iterator<Item = usize> {
        (0..self.sets.len()).filter(|at| Some(*at) != self.current)
    }

    /// The replicas that the ReplicaSets are to have now.
    fn sizes(&self) -> Vec<i64> {
        self.sets
            .iter()
            .map(|set| int(&part(set, "spec")["replicas"], 1))
            .collect()
    }

    fn observed(&self, at: usize, field: &str) -> i64 {
        int(&part(self.sets[at], "status")[field], 0)
    }

    fn sum(&self, field: &str) -> i64 {
        (0..self.sets.len()).map(|at| self.observed(at, field)).sum()
    }

    fn annotated(&self, at: usize, name: &str) -> Option<i64> {
        text(&self.sets[at]["metadata"]["annotations"][name]).parse().ok()
    }

    /// The number of the template: a template that is back is the newest again.
    fn revision(&self) -> i64 {
        let before = self.older().map(|at| revision_of(&self.sets[at]["metadata"]));
        let before = before.max().unwrap_or(0);
        let now = self.current.map(|at| revision_of(&self.sets[at]["metadata"]));
        now.filter(|now| *now > before).unwrap_or(before + 1)
    }

    /// Writes the number on the Deployment and on its ReplicaSet, which follows it in its other annotations, too.
    fn number(&self, revision: i64) -> Vec<Action> {
        let mut actions = Vec::new();
        if revision_of(&self.deployment["metadata"]) != revision {
            let path = path_of(APPS, "deployments", self.deployment);
            let patch = json!({"metadata": {"annotations": {REVISION: revision.to_string()}}});
            actions.push(Action::Patch { path, patch });
        }
        if let Some(at) = self.current {
            let set = self.sets[at];
            let mut annotations = self.annotations(revision);
            annotations.retain(|name, value| set["metadata"]["annotations"][name] != *value);
            let least = self.least_ready();
            if !annotations.is_empty() || int(&part(set, "spec")["minReadySeconds"], 0) != least {
                let path = path_of(APPS, "replicasets", set);
                let patch =
                    json!({"metadata": {"annotations": annotations}, "spec": {"minReadySeconds": least}});
                actions.push(Action::Patch { path, patch });
            }
        }
        actions
    }

    /// The annotations of the ReplicaSet of the template.
    fn annotations(&self, revision: i64) -> Object {
        let given = self.deployment["metadata"]["annotations"].as_object();
        let mut annotations = given.cloned().unwrap_or_default();
        annotations.retain(|name, _| !OWN.contains(&name.as_str()));
        annotations.insert(REVISION.to_owned(), revision.to_string().into());
        annotations
    }

    fn least_ready(&self) -> i64 {
        int(&self.spec["minReadySeconds"], 0)
    }

    fn create(&self, replicas: i64, revision: i64) -> Action {
        let meta = &self.deployment["metadata"];
        let hash = hash_of(&self.spec["template"]);
        let mut template = self.spec["template"].clone();
        template["metadata"]["labels"][HASH] = json!(hash);
        let mut selector = self.spec["selector"].clone();
        selector["matchLabels"][HASH] = json!(hash);
        let mut annotations = self.annotations(revision);
        annotations.extend(self.size_annotations());
        let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": self.name(), "labels": template["metadata"]["labels"], "annotations": annotations,
                "ownerReferences": owned_by("apps/v1", "Deployment", meta)},
            "spec": {"replicas": replicas, "selector": selector, "template": template,
                "minReadySeconds": self.least_ready()}});
        create(APPS, "replicasets", self.deployment, set)
    }

    fn size_annotations(&self) -> Object {
        let most = if self.replicas > 0 {
            self.replicas + self.surge
        } else {
            0
        };
        [(DESIRED, self.replicas), (MOST, most)]
            .map(|(name, size)| (name.to_owned(), size.to_string().into()))
            .into_iter()
            .collect()
    }

    /// Gives the ReplicaSets their sizes, and notes on those with pods what the size of the Deployment is.
    fn scale(&self, sizes: &[i64]) -> Vec<Action> {
        let annotations = self.size_annotations();
        let mut actions = Vec::new();
        for ((at, set), size) in self.sets.iter().enumerate().zip(sizes) {
            let resized = part(set, "spec")["replicas"] != *size;
            let noted = &set["metadata"]["annotations"];
            let outdated = annotations.iter().any(|(name, value)| noted[name] != *value);
            if resized || outdated && (*size > 0 || Some(at) == self.current) {
                let mut patch = json!({"metadata": {"annotations": annotations}});
                if resized {
                    patch["spec"]["replicas"] = json!(size);
                }
                let path = path_of(APPS, "replicasets", set);
                actions.push(Action::Patch { path, patch });
            }
        }
        actions
    }

    /// True if the Deployment has another size than when its ReplicaSets were scaled.
    fn was_resized(&self) -> bool {
        let sizes = self.sizes();
        let mut noted = (0..sizes.len()).filter(|at| sizes[*at] > 0);
        noted.any(|at| {
            self.annotated(at, DESIRED)
                .is_some_and(|size| size != self.replicas)
        })
    }

    /// Spreads another size over the ReplicaSets, in proportion to what each has.
    fn resize(&self, sizes: &mut [i64]) {
        let active: Vec<usize> = (0..sizes.len()).filter(|at| sizes[*at] > 0).collect();
        let only = match active.as_slice() {
            [] => self.current.or(sizes.len().checked_sub(1)),
            [one] => Some(*one),
            _ => None,
        };
        if let Some(at) = only {
            sizes[at] = self.replicas;
            return;
        }
        let saturated = self.current.is_some_and(|at| {
            sizes[at] == self.replicas
                && self.annotated(at, DESIRED) == Some(self.replicas)
                && self.observed(at, "availableReplicas") == self.replicas
        });
        if saturated {
            for at in self.older() {
                sizes[at] = 0;
            }
            return;
        }
        if self.spec["strategy"]["type"] == "Recreate" {
            return;
        }
        let allowed = if self.replicas > 0 {
            self.replicas + self.surge
        } else {
            0
        };
        let to_add = allowed - active.iter().map(|at| sizes[*at]).sum::<i64>();
        let mut order = active;
        if to_add > 0 {
            order.reverse();
        }
        order.sort_by_key(|at| std::cmp::Reverse(sizes[*at]));
        let mut added = 0;
        for at in &order {
            let wanted = self.proportion(*at, sizes[*at]);
            let left = to_add - added;
            let part = match to_add {
                0 => 0,
                1.. => wanted.clamp(0, left.max(0)),
                _ => wanted.clamp(left.min(0), 0),
            };
            sizes[*at] += part;
            added += part;
        }
        if let Some(first) = order.first() {
            sizes[*first] = (sizes[*first] + to_add - added).max(0);
        }
    }

    /// The replicas that a ReplicaSet gains or loses with the Deployment.
    fn proportion(&self, at: usize, size: i64) -> i64 {
        if self.replicas == 0 {
            return -size;
        }
        let observed = int(&part(self.deployment, "status")["replicas"], 0);
        let before = self
            .annotated(at, MOST)
            .filter(|most| *most > 0)
            .unwrap_or(observed)
            .max(1);
        let scaled = size.saturating_mul(self.replicas + self.surge);
        // Rounded half up.
        (scaled.saturating_mul(2) + before) / (before * 2) - size
    }

    /// Removes the older pods first.
    fn recreate(&self, sizes: &mut [i64]) {
        for at in self.older() {
            sizes[at] = 0;
        }
        let left: i64 = self.older().map(|at| self.observed(at, "replicas")).sum();
        if let Some(at) = self.current
            && left == 0
        {
            sizes[at] = self.replicas;
        }
    }

    /// One step of a rolling update: the new ReplicaSet grows as far as the surge permits; else the older ones shrink as far as
    /// enough pods stay available.
    fn roll(&self, sizes: &mut [i64]) {
        let total: i64 = sizes.iter().sum();
        let Some(new) = self.current else { return };
        if sizes[new] != self.replicas {
            let room = (self.replicas + self.surge - total).max(0);
            let grown = sizes[new] + room.min(self.replicas - sizes[new]);
            let next = if sizes[new] > self.replicas {
                self.replicas
            } else {
                grown
            };
            if next != sizes[new] {
                sizes[new] = next;
                return;
            }
        }
        let least = self.replicas - self.unavailable;
        let new_unavailable = sizes[new] - self.observed(new, "availableReplicas");
        let mut room = total - least - new_unavailable;
        // Those that are not available go first.
        for at in self.older().collect::<Vec<_>>() {
            let unhealthy = (sizes[at] - self.observed(at, "availableReplicas")).max(0);
            let gone = unhealthy.min(room).max(0);
            sizes[at] -= gone;
            room -= gone;
        }
        let mut spare = (self.sum("availableReplicas") - least).min(room);
        for at in self.older().collect::<Vec<_>>() {
            let gone = sizes[at].min(spare).max(0);
            sizes[at] -= gone;
            spare -= gone;
        }
    }

    fn is_complete(&self) -> bool {
        let updated = self.current.map_or(0, |at| self.observed(at, "replicas"));
        let available = self.sum("availableReplicas");
        updated == self.replicas && self.sum("replicas") == self.replicas && available == self.replicas
    }

    /// ReplicaSets that are older than the history goes back.
    fn outdated(&self) -> Vec<Action> {
        let limit = usize::try_from(int(&self.spec["revisionHistoryLimit"], 10)).unwrap_or(usize::MAX);
        let sizes = self.sizes();
        let mut unused: Vec<usize> = self.older().collect();
        unused.retain(|at| sizes[*at] == 0 && self.observed(*at, "replicas") == 0);
        unused.sort_by_key(|at| revision_of(&self.sets[*at]["metadata"]));
        let too_many = self.older().count().saturating_sub(limit);
        let gone = unused.iter().take(too_many);
        gone.map(|at| remove_of(APPS, "replicasets", self.sets[*at]))
            .collect()
    }
}

/// The number of a template; 0 without one.
fn revision_of(meta: &Value) -> i64 {
    text(&meta["annotations"][REVISION]).parse().unwrap_or(0)
}

/// A template without the label that its ReplicaSet adds.
fn without_hash(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(Value::Object(labels)) = template.pointer_mut("/metadata/labels") {
        labels.remove(HASH);
    }
    template
}
