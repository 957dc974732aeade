//! The pods and claims of a StatefulSet, and its status. Source: the statefulset controller of kube-controller-manager.

use std::{collections::BTreeMap, ops::Range, time::Duration};

use serde_json::{Value, json};

use super::{
    Action,
    owners::MOST,
    parts::{
        Around, Counts, available, count, create, int, is_leaving, is_over, owned_by, part, path_of, pod,
        ready, remove, share, text,
    },
    revisions::{HASH, Revisions},
};
use crate::object::Object;

const APPS: &str = "apis/apps/v1";

/// Reads a claim by its name.
pub(super) type Claims<'a> = &'a dyn Fn(&str) -> Option<Object>;

/// A StatefulSet during one decision.
struct Set<'a> {
    set: &'a Object,
    spec: &'a Value,
    revisions: Revisions<'a>,
    /// The revision that pods below the partition have.
    current: String,
    slots: Range<i64>,
    /// The pods by number.
    pods: BTreeMap<i64, &'a Object>,
    claims: Claims<'a>,
    around: &'a Around,
}

/// A StatefulSet has Pods by number, one after the other, each with its claims.
pub(super) fn stateful_set(
    set: &Object,
    pods: &[Object],
    revisions: &[Object],
    claims: Claims<'_>,
    around: &Around,
) -> (Vec<Action>, Option<Duration>) {
    if is_leaving(set) {
        return (Vec::new(), None);
    }
    let (revisions, mut actions) = Revisions::of(set, "StatefulSet", revisions);
    let spec = part(set, "spec");
    let noted = text(&part(set, "status")["currentRevision"]);
    let current = if noted.is_empty() || revisions.template(noted).is_none() {
        revisions.name.clone()
    } else {
        noted.to_owned()
    };
    let start = int(&spec["ordinals"]["start"], 0);
    let numbered = pods.iter().filter_map(|pod| Some((number_of(set, pod)?, pod)));
    let set = Set {
        set,
        spec,
        revisions,
        current,
        slots: start..start.saturating_add(int(&spec["replicas"], 1)),
        pods: numbered.collect(),
        claims,
        around,
    };
    actions.extend(set.owners_of_claims());
    set.sync(&mut actions);
    let (status, used, again) = set.status();
    actions.extend(status.patch(APPS, "statefulsets", set.set));
    let used: Vec<&str> = used.iter().map(String::as_str).collect();
    actions.extend(
        set.revisions
            .outdated(int(&spec["revisionHistoryLimit"], 10), &used),
    );
    (actions, again)
}

/// The number of a pod by its name: `db-3` is number 3 of the set `db`.
pub(super) fn number_of(set: &Object, pod: &Object) -> Option<i64> {
    let rest = text(&pod["metadata"]["name"]).strip_prefix(text(&set["metadata"]["name"]))?;
    let number = rest.strip_prefix('-')?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| number.parse().ok())?
}

impl Set<'_> {
    /// Creates, removes and replaces pods as far as the order permits.
    fn sync(&self, actions: &mut Vec<Action>) {
        let monotonic = self.spec["podManagementPolicy"] != "Parallel";
        for number in self.slots.clone() {
            match self.pods.get(&number) {
                _ if actions.len() >= MOST => return,
                None => {
                    actions.extend(self.create(number));
                    if monotonic {
                        return;
                    }
                }
                Some(pod) if is_over(pod) && !is_leaving(pod) => {
                    actions.push(remove(pod));
                    if monotonic {
                        return;
                    }
                }
                Some(pod) => {
                    actions.extend(self.missing_claims(number));
                    if monotonic && !self.is_available(pod) {
                        return;
                    }
                }
            }
        }
        let mut condemned = self
            .pods
            .iter()
            .rev()
            .filter(|(number, _)| !self.slots.contains(*number));
        if monotonic {
            if let Some((_, pod)) = condemned.next() {
                if !is_leaving(pod) {
                    actions.push(remove(pod));
                }
                return;
            }
        } else {
            let live = condemned.filter(|(_, pod)| !is_leaving(pod)).take(MOST);
            actions.extend(live.map(|(_, pod)| remove(pod)));
        }
        self.update(actions);
    }

    /// Replaces pods of another revision, the last first.
    fn update(&self, actions: &mut Vec<Action>) {
        if self.spec["updateStrategy"]["type"] == "OnDelete" {
            return;
        }
        let rolling = &self.spec["updateStrategy"]["rollingUpdate"];
        let size = self.slots.end - self.slots.start;
        let most = share(&rolling["maxUnavailable"], size, false).max(1);
        let first = self.slots.start + int(&rolling["partition"], 0);
        let mut unavailable = 0;
        for (_, pod) in self.pods.range(first.min(self.slots.end)..self.slots.end).rev() {
            let is_old = self.revision_of(pod) != self.revisions.name;
            if is_leaving(pod) || !self.is_available(pod) {
                unavailable += 1;
                // One that does not become ready is replaced as well, and nothing beside it.
                if is_old && !is_leaving(pod) && unavailable <= most {
                    actions.push(remove(pod));
                }
            } else if is_old && unavailable < most {
                actions.push(remove(pod));
                unavailable += 1;
            }
            if unavailable >= most {
                return;
            }
        }
    }

    fn is_available(&self, pod: &Object) -> bool {
        let least = int(&self.spec["minReadySeconds"], 0);
        !is_leaving(pod) && available(&[pod], least, self.around).0 == 1
    }

    fn revision_of<'p>(&self, pod: &'p Object) -> &'p str {
        text(&pod["metadata"]["labels"][HASH])
    }

    /// The pod of a number and its claims.
    fn create(&self, number: i64) -> Vec<Action> {
        let name = format!("{}-{number}", text(&self.set["metadata"]["name"]));
        let partition = &self.spec["updateStrategy"]["rollingUpdate"]["partition"];
        let kept = match partition.as_i64() {
            Some(partition) => partition,
            None => int(&part(self.set, "status")["currentReplicas"], 0),
        };
        let is_rolling = self.spec["updateStrategy"]["type"] != "OnDelete";
        let old = is_rolling && number < self.slots.start + kept;
        let revision = if old { &self.current } else { &self.revisions.name };
        let mut template = self
            .revisions
            .template(revision)
            .unwrap_or_else(|| self.spec["template"].clone());
        let mut volumes = Vec::new();
        for claim in self.templates() {
            let volume = &claim["metadata"]["name"];
            volumes.push(json!({"name": volume,
                "persistentVolumeClaim": {"claimName": format!("{}-{name}", text(volume))}}));
        }
        if !volumes.is_empty() {
            let given = template["spec"]["volumes"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let others = given
                .into_iter()
                .filter(|one| !volumes.iter().any(|claim| claim["name"] == one["name"]))
                .collect::<Vec<_>>();
            volumes.extend(others);
            template["spec"]["volumes"] = json!(volumes);
        }
        template["spec"]["hostname"] = json!(name);
        if !text(&self.spec["serviceName"]).is_empty() {
            template["spec"]["subdomain"] = self.spec["serviceName"].clone();
        }
        let number_text = number.to_string();
        let labels = [
            (HASH, revision.as_str()),
            ("statefulset.kubernetes.io/pod-name", name.as_str()),
            ("apps.kubernetes.io/pod-index", number_text.as_str()),
        ];
        let owner = ("apps/v1", "StatefulSet");
        let made = pod(self.set, owner, &name, &template, &labels, &self.around.node);
        let mut actions = self.missing_claims(number);
        actions.push(create("api/v1", "pods", self.set, made));
        actions
    }

    fn templates(&self) -> impl Iterator<Item = &Value> {
        self.spec["volumeClaimTemplates"].as_array().into_iter().flatten()
    }

    /// The names of the claims of a number.
    fn claims_of(&self, number: i64) -> impl Iterator<Item = (&Value, String)> {
        let set = text(&self.set["metadata"]["name"]);
        let name = move |template: &Value| format!("{}-{set}-{number}", text(&template["metadata"]["name"]));
        self.templates().map(move |template| (template, name(template)))
    }

    fn missing_claims(&self, number: i64) -> Vec<Action> {
        let missing = self
            .claims_of(number)
            .filter(|(_, name)| (self.claims)(name).is_none());
        missing
            .map(|(template, name)| {
                let mut claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                    "metadata": template["metadata"], "spec": template["spec"]});
                let labels = self.spec["selector"]["matchLabels"]
                    .as_object()
                    .into_iter()
                    .flatten();
                for (key, value) in labels {
                    claim["metadata"]["labels"][key] = value.clone();
                }
                claim["metadata"]["name"] = json!(name);
                if let Some(owner) = self.owner_of_claims(number) {
                    claim["metadata"]["ownerReferences"] = owner;
                }
                create("api/v1", "persistentvolumeclaims", self.set, claim)
            })
            .collect()
    }

    /// The owner with which the claims of a number go: the set, or its pod when the set shrinks.
    fn owner_of_claims(&self, number: i64) -> Option<Value> {
        let policy = &self.spec["persistentVolumeClaimRetentionPolicy"];
        if policy["whenScaled"] == "Delete" && !self.slots.contains(&number) {
            let pod = self.pods.get(&number)?;
            return Some(owned_by("v1", "Pod", &pod["metadata"]));
        }
        (policy["whenDeleted"] == "Delete").then(|| owned_by("apps/v1", "StatefulSet", &self.set["metadata"]))
    }

    /// Changes the owners of the claims of pods that are there, if the policy asks for others.
    fn owners_of_claims(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        if !self.spec["persistentVolumeClaimRetentionPolicy"].is_object() {
            return actions;
        }
        for number in self.pods.keys() {
            let wanted = self.owner_of_claims(*number);
            for (_, name) in self.claims_of(*number) {
                let Some(claim) = (self.claims)(&name) else {
                    continue;
                };
                let meta = &claim["metadata"];
                let owners = meta["ownerReferences"].as_array().cloned().unwrap_or_default();
                let is_ours = |one: &Value| {
                    one["kind"] == "Pod"
                        && text(&one["name"]).starts_with(text(&self.set["metadata"]["name"]))
                        || one["uid"] == self.set["metadata"]["uid"]
                };
                let mut next: Vec<Value> = owners.iter().filter(|one| !is_ours(one)).cloned().collect();
                next.extend(wanted.iter().filter_map(Value::as_array).flatten().cloned());
                let uids = |owners: &[Value]| owners.iter().map(|one| one["uid"].clone()).collect::<Vec<_>>();
                if uids(&next) != uids(&owners) {
                    actions.push(Action::Patch {
                        path: path_of("api/v1", "persistentvolumeclaims", &claim),
                        patch: json!({"metadata": {"ownerReferences": next,
                            "resourceVersion": meta["resourceVersion"]}}),
                    });
                }
            }
        }
        actions
    }

    /// The status, the revisions in use, and the time until another pod is available.
    fn status(&self) -> (Counts, Vec<String>, Option<Duration>) {
        let live: Vec<&Object> = self
            .pods
            .values()
            .filter(|pod| !is_leaving(pod))
            .copied()
            .collect();
        let of = |revision: &str| {
            count(
                live.iter()
                    .filter(|pod| self.revision_of(pod) == revision)
                    .count(),
            )
        };
        let (number, again) = available(&live, int(&self.spec["minReadySeconds"], 0), self.around);
        let (updated, all) = (of(&self.revisions.name), count(live.len()));
        let ready = ready(&live);
        let wanted = self.slots.end - self.slots.start;
        let is_rolling = self.spec["updateStrategy"]["type"] != "OnDelete";
        let done = is_rolling && updated == wanted && ready == wanted && all == wanted;
        let current = if done { &self.revisions.name } else { &self.current };
        let mut status = Counts::default();
        status.count("replicas", all);
        status.count("readyReplicas", ready);
        status.count("currentReplicas", of(current));
        status.count("updatedReplicas", updated);
        status.set("availableReplicas", number);
        status.set("currentRevision", current.as_str());
        status.set("updateRevision", self.revisions.name.as_str());
        let mut used: Vec<String> = live.iter().map(|pod| self.revision_of(pod).to_owned()).collect();
        used.push(current.clone());
        (status, used, again)
    }
}
