//! The rights of the controllers on the hub, as their roles are generated, and the proof that each is used.
//!
//! The calls are those that the hub answered: a right counts as used when a call that needs it was answered, and as denied when
//! one was refused with 403.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use entourage_controllers::{controllers::SYSTEM_NAMESPACE, lease::Timing};
use entourage_e2e::{
    faults::{Answered, FaultPlan, Faults},
    harness::{Scene, eventually, eventually_within, status_code},
    tests,
};
use serde_json::{Value, json};

use super::{
    distribution_rights::roles,
    rights_life::{self, CREDENTIALS, Life},
};

tests![Embedded: each_right_that_is_granted_is_used_and_none_lacks];

/// The generated roles that these tests run with.
const ROLES: [(&str, &str); 11] = [
    ("config/rbac", include_str!("../../../config/rbac/role.yaml")),
    (
        "config/rbac-distribution",
        include_str!("../../../config/rbac-distribution/role.yaml"),
    ),
    (
        "config/rbac-services",
        include_str!("../../../config/rbac-services/role.yaml"),
    ),
    (
        "config/rbac-discovery",
        include_str!("../../../config/rbac-discovery/role.yaml"),
    ),
    (
        "config/rbac-kinds/clusterroles",
        include_str!("../../../config/rbac-kinds/clusterroles/role.yaml"),
    ),
    (
        "config/rbac-kinds/customresourcedefinitions",
        include_str!("../../../config/rbac-kinds/customresourcedefinitions/role.yaml"),
    ),
    (
        "config/rbac-kinds/mutatingwebhookconfigurations",
        include_str!("../../../config/rbac-kinds/mutatingwebhookconfigurations/role.yaml"),
    ),
    (
        "config/rbac-kinds/persistentvolumes",
        include_str!("../../../config/rbac-kinds/persistentvolumes/role.yaml"),
    ),
    (
        "config/rbac-kinds/resourcequotas",
        include_str!("../../../config/rbac-kinds/resourcequotas/role.yaml"),
    ),
    (
        "config/rbac-kinds/secrets",
        include_str!("../../../config/rbac-kinds/secrets/role.yaml"),
    ),
    (
        "config/rbac-kinds/validatingwebhookconfigurations",
        include_str!("../../../config/rbac-kinds/validatingwebhookconfigurations/role.yaml"),
    ),
];

/// The generated roles that these tests do not run with, and why.
const OTHER_ROLES: [(&str, &str); 3] = [
    (
        "config/rbac-registration",
        "registration.rs runs with this role: an agent must ask for a certificate",
    ),
    (
        "config/rbac-kinds/apiservices",
        "an APIService whose service does not answer takes the discovery of its group away from the hub",
    ),
    (
        "config/rbac-kinds/resourcedistributions",
        "the rights are among those of config/rbac-distribution, but for one on finalizers",
    ),
];

/// The rights that no call here needs: verb, resource or `*/subresource`, and the reason. A row that a call needs fails the test.
const UNUSED: [(&str, &str, &str); 1] = [(
    "update",
    "*/finalizers",
    "asked for by the admission plug-in OwnerReferencesPermissionEnforcement, which the hub of these tests does not have",
)];

/// A right that a role grants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Right {
    pub(super) verb: String,
    /// As in calls: `deployments.apps/status`.
    pub(super) resource: String,
    /// The only namespace in which it holds.
    pub(super) namespace: Option<String>,
    group: String,
    /// As in roles: `deployments/status`.
    plural: String,
    /// The only objects for which it holds.
    names: Vec<String>,
}

impl Right {
    fn rule(&self) -> Value {
        let mut rule = json!({"apiGroups": [self.group], "resources": [self.plural], "verbs": [self.verb]});
        if !self.names.is_empty() {
            rule["resourceNames"] = json!(self.names);
        }
        rule
    }

    /// The review of a request of this user that needs it.
    fn review(&self, user: &str) -> Value {
        let (resource, below) = self.plural.split_once('/').unwrap_or((&self.plural, ""));
        let attributes = json!({
            "verb": self.verb, "group": self.group, "resource": resource, "subresource": below,
            "namespace": self.namespace, "name": self.names.first(),
        });
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": user, "resourceAttributes": attributes}})
    }

    /// True if these tests need it, as far as [`UNUSED`] says.
    pub(super) fn is_used(&self) -> bool {
        !UNUSED.iter().any(|row| self.is_of(row))
    }

    /// As the log names it.
    pub(super) fn words(&self) -> String {
        format!("{} {}", self.verb, self.resource)
    }

    /// True if a line of the log has the words of the server about it.
    pub(super) fn is_quoted_by(&self, line: &str) -> bool {
        let words = format!(
            "cannot {} resource \"{}\" in API group \"{}\"",
            self.verb, self.plural, self.group
        );
        line.replace('\\', "").contains(&words)
    }

    /// True if a process that starts needs it, of the places in which such a right holds.
    pub(super) fn is_first(&self) -> bool {
        let place = match &*self.plural {
            "leases" => Some(SYSTEM_NAMESPACE),
            "secrets" => Some(CREDENTIALS),
            _ => None,
        };
        self.namespace.as_deref() == place
    }

    /// True if another right gives this one, alone or with it.
    pub(super) fn is_granted_by(&self, other: &Self) -> bool {
        let holds = other.namespace.is_none() || other.namespace == self.namespace;
        holds && (&self.verb, &self.resource) == (&other.verb, &other.resource)
    }

    fn is_of(&self, (verb, resource, _): &(&str, &str, &str)) -> bool {
        let is_named = match resource.strip_prefix('*') {
            Some(below) => self.resource.ends_with(below),
            None => self.resource == *resource,
        };
        *verb == self.verb && is_named
    }

    /// The numbers of calls that need it and were refused, and that were answered otherwise.
    pub(super) fn counted(&self, answers: &Answers) -> (u64, u64) {
        let needs = |answered: &&Answered| {
            answered.scope == "hub"
                && answered.verb.to_string() == self.verb
                && answered.resource == self.resource
                && (self.namespace.is_none() || self.namespace == answered.namespace)
        };
        let mut counts = (0, 0);
        for (answered, count) in answers.iter().filter(|(answered, _)| needs(answered)) {
            match answered.status {
                403 => counts.0 += count,
                _ => counts.1 += count,
            }
        }
        counts
    }
}

/// The answers of servers so far.
pub(super) type Answers = BTreeMap<Answered, u64>;

/// All rights of the roles.
pub(super) fn all() -> Result<BTreeSet<Right>> {
    let mut all = BTreeSet::new();
    for (folder, text) in ROLES {
        all.extend(of(text).context(folder)?);
    }
    Ok(all)
}

/// The rights of the roles in a file.
pub(super) fn of(text: &str) -> Result<BTreeSet<Right>> {
    let mut all = BTreeSet::new();
    let (everywhere, there) = roles(text)?;
    add(&mut all, None, &json!(everywhere));
    for (namespace, rules) in there {
        add(&mut all, Some(&namespace), &rules);
    }
    Ok(all)
}

fn add(all: &mut BTreeSet<Right>, namespace: Option<&str>, rules: &Value) {
    let strings = |value: &Value| -> Vec<String> {
        let all = value.as_array().into_iter().flatten();
        all.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    for rule in rules.as_array().into_iter().flatten() {
        for group in strings(&rule["apiGroups"]) {
            for plural in strings(&rule["resources"]) {
                for verb in strings(&rule["verbs"]) {
                    let (base, below) = plural.split_at(plural.find('/').unwrap_or(plural.len()));
                    let dot = if group.is_empty() { "" } else { "." };
                    all.insert(Right {
                        resource: format!("{base}{dot}{group}{below}"),
                        verb,
                        namespace: namespace.map(str::to_owned),
                        names: strings(&rule["resourceNames"]),
                        group: group.clone(),
                        plural: plural.clone(),
                    });
                }
            }
        }
    }
}

/// Has the account of the controllers exactly these rights, and those on the custom kind of [`rights_life`].
pub(super) async fn grant<'a>(scene: &mut Scene, rights: impl IntoIterator<Item = &'a Right>) -> Result<()> {
    let user = scene.own("limited");
    let mut places = Places::from([(None, rights_life::rules())]);
    for right in all()? {
        places.entry(right.namespace).or_default();
    }
    grant_to(scene, &user, places, rights).await?;
    scene.user = Some(user);
    Ok(())
}

/// The rules that hold in a namespace, or everywhere.
pub(super) type Places = BTreeMap<Option<String>, Vec<Value>>;

/// Has an account exactly these rights, and what the rules say, where it had others.
pub(super) async fn grant_to<'a>(
    scene: &Scene,
    user: &str,
    mut places: Places,
    rights: impl IntoIterator<Item = &'a Right>,
) -> Result<()> {
    for right in rights {
        let rules = places.entry(right.namespace.clone()).or_default();
        rules.push(right.rule());
    }
    for (namespace, rules) in places {
        let (root, kind) = root(namespace.as_deref());
        let plural = kind.to_lowercase();
        let path = format!("{root}/{plural}s");
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": user},
            "rules": rules});
        match scene
            .hub
            .call("PUT", &format!("{path}/{user}"), Some(&role))
            .await
        {
            Err(error) if status_code(&error) == 404 => scene.hub.call("POST", &path, Some(&role)).await?,
            result => result?,
        };
        let api = "rbac.authorization.k8s.io";
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"), "metadata": {"name": user},
            "roleRef": {"apiGroup": api, "kind": kind, "name": user},
            "subjects": [{"apiGroup": api, "kind": "User", "name": user}],
        });
        match scene
            .hub
            .call("POST", &format!("{root}/{plural}bindings"), Some(&binding))
            .await
        {
            Err(error) if status_code(&error) == 409 => {}
            result => drop(result?),
        }
    }
    Ok(())
}

/// Has an account the rights of a role but for some, and waits until the hub decides so: it may learn of roles a moment later.
pub(super) async fn grant_but(
    scene: &Scene,
    user: &str,
    all: &BTreeSet<Right>,
    denied: &[(&str, &str)],
) -> Result<()> {
    let is_denied = |right: &Right| denied.contains(&(&*right.verb, &*right.resource));
    let places = all.iter().map(|right| (right.namespace.clone(), Vec::new()));
    let kept = all.iter().filter(|right| !is_denied(right));
    grant_to(scene, user, places.collect(), kept).await?;
    for right in all {
        let review = right.review(user);
        eventually(&format!("the hub decides about {}", right.words()), async || {
            let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
            let answer = scene.hub.call("POST", path, Some(&review)).await?;
            ensure!(
                answer["status"]["allowed"] == !is_denied(right),
                "{}",
                answer["status"]
            );
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// Takes all rights of an account away, and its roles.
pub(super) async fn forget(scene: &Scene, user: &str, all: &BTreeSet<Right>) -> Result<()> {
    let places: BTreeSet<Option<&str>> = all.iter().map(|right| right.namespace.as_deref()).collect();
    for namespace in places {
        let (root, kind) = root(namespace);
        let plural = kind.to_lowercase();
        for plural in [format!("{plural}bindings"), format!("{plural}s")] {
            match scene
                .hub
                .call("DELETE", &format!("{root}/{plural}/{user}"), None)
                .await
            {
                Err(error) if status_code(&error) == 404 => {}
                gone => drop(gone?),
            }
        }
    }
    Ok(())
}

/// The path of the roles for a namespace, or for all, and their kind.
fn root(namespace: Option<&str>) -> (String, &'static str) {
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    match namespace {
        Some(namespace) => (format!("{RBAC}/namespaces/{namespace}"), "Role"),
        None => (RBAC.to_owned(), "ClusterRole"),
    }
}

/// Options with which every part of the controllers runs that one of the roles is for, and what they need on the hub.
pub(super) async fn prepare(scene: &mut Scene) -> Result<()> {
    let options = &mut scene.options;
    (options.distribute, options.share_services) = (true, true);
    (options.mirror_works, options.sign_cluster_info) = (true, true);
    options.cluster_monitor_grace = Duration::from_secs(1);
    options.lease_timing = Timing {
        duration: Duration::from_secs(4),
        renew_deadline: Duration::from_millis(2_500),
        retry: Duration::from_millis(300),
    };
    rights_life::prepare(scene).await
}

/// The answers of servers to a process.
pub(super) fn answers(faults: &Faults) -> Answers {
    faults.recorder().answers()
}

/// A plan under which every write to the hub meets a conflict: what was written is read.
pub(super) fn conflicts() -> Result<FaultPlan> {
    "error-before=100% status=409 only=hub".parse()
}

fn merge(all: &mut Answers, more: Answers) {
    for (answered, count) in more {
        *all.entry(answered).or_default() += count;
    }
}

async fn each_right_that_is_granted_is_used_and_none_lacks(scene: &mut Scene) -> Result<()> {
    rows_are_of_roles()?;
    let rights = all()?;
    prepare(scene).await?;
    grant(scene, &rights).await?;
    let mut seen = Answers::new();

    // Everything is made, and changed.
    scene.options.leader_election = true;
    scene.start().await?;
    let life = Life::begin(scene, 1).await?;
    scene.quiet().await?;
    life.change(scene, 1).await?;
    scene.quiet().await?;
    life.change(scene, 2).await?;
    scene.quiet().await?;
    merge(&mut seen, answers(&scene.faults));
    scene.kill();

    // Every write meets a conflict, with changes to what exists and new objects.
    scene.options.leader_election = false;
    forget_the_lease(scene).await?;
    scene.launch(conflicts()?)?;
    life.change(scene, 3).await?;
    let second = Life::begin(scene, 2).await?;
    rights_life::undefine(scene).await?;
    let reads = eventually_within(Duration::from_secs(60), "conflicts are read", async || {
        let mut seen = seen.clone();
        merge(&mut seen, answers(&scene.faults));
        let missing = rights
            .iter()
            .filter(|right| right.verb == "get" && right.is_used());
        let missing: Vec<_> = missing.filter(|right| right.counted(&seen).1 == 0).collect();
        ensure!(missing.is_empty(), "{missing:?}");
        Ok(())
    });
    // What is missing is named below.
    let _ = reads.await;
    merge(&mut seen, answers(&scene.faults));
    scene.kill();

    // Everything is deleted.
    scene.start().await?;
    scene.quiet().await?;
    life.leave_loose_ends().await?;
    for life in [life, second] {
        life.end(scene).await?;
    }
    scene.quiet().await?;
    merge(&mut seen, answers(&scene.faults));
    scene.kill();

    let refused: Vec<_> = seen
        .iter()
        .filter(|(answered, _)| answered.scope == "hub" && answered.status == 403)
        .collect();
    let unused: Vec<String> = rights
        .iter()
        .filter(|right| right.is_used() && right.counted(&seen).1 == 0)
        .map(|right| format!("{} {} {:?}", right.verb, right.resource, right.namespace))
        .collect();
    let stale: Vec<_> = UNUSED
        .iter()
        .filter(|row| {
            rights
                .iter()
                .any(|right| right.is_of(row) && right.counted(&seen).1 > 0)
        })
        .collect();
    ensure!(
        refused.is_empty() && unused.is_empty() && stale.is_empty(),
        "refused for want of a right, which a row of CONTROLLERS must grant: {refused:#?}\ngranted and never needed; take the right \
         out of CONTROLLERS, have rights_life.rs need it, or say in UNUSED why not: {unused:#?}\nneeded, so no row of UNUSED may \
         say otherwise: {stale:#?}"
    );
    Ok(())
}

/// Each row of [`UNUSED`] is of a right that is granted, and each generated role is in one of the tables.
fn rows_are_of_roles() -> Result<()> {
    let rights = all()?;
    for row in &UNUSED {
        ensure!(
            rights.iter().any(|right| right.is_of(row)),
            "no role grants {row:?}"
        );
    }
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../config");
    let mut generated = BTreeSet::new();
    for folder in ["", "rbac-kinds"] {
        for entry in std::fs::read_dir(root.join(folder))? {
            let path = entry?.path();
            let is_generated = std::fs::read_to_string(path.join("role.yaml"))
                .is_ok_and(|text| text.starts_with("# Generated by `cargo xtask rbac`"));
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            let above = if folder.is_empty() {
                "config"
            } else {
                "config/rbac-kinds"
            };
            if is_generated {
                generated.insert(format!("{above}/{name}"));
            }
        }
    }
    let known = ROLES
        .iter()
        .chain(&OTHER_ROLES)
        .map(|(folder, _)| (*folder).to_owned());
    let known: BTreeSet<String> = known.collect();
    ensure!(
        generated == known,
        "generated: {generated:#?}, in the tables: {known:#?}"
    );
    Ok(())
}

/// Deletes the Lease of a leader that was killed.
pub(super) async fn forget_the_lease(scene: &Scene) -> Result<()> {
    let namespace = &scene.options.lease_namespace;
    let all = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
    match scene
        .hub
        .call("DELETE", &format!("{all}/{}", rights_life::LEASE), None)
        .await
    {
        Err(error) if status_code(&error) == 404 => Ok(()),
        result => result.map(drop),
    }
}

/// Takes the record of the address off the credentials of a member: the next process writes it again.
pub(super) async fn forget_the_address(scene: &Scene) -> Result<()> {
    let secrets = scene.hub.list("Secret", CREDENTIALS, "").await?;
    let mut names = secrets
        .iter()
        .filter_map(|secret| secret["metadata"]["name"].as_str());
    let name = names
        .find(|name| name.starts_with("member3"))
        .context("its Secret")?;
    let bare = |live: &mut Value| {
        if let Some(all) = live["metadata"]["annotations"].as_object_mut() {
            all.retain(|key, _| !key.starts_with("entourage.dev/"));
        }
    };
    scene.hub.edit("Secret", CREDENTIALS, name, bare).await?;
    Ok(())
}
