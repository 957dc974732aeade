//! Creates the policy and the templates on the hub. Nothing that exists there is changed.

use anyhow::{Context as _, Result, anyhow, bail};
use entourage_core::{
    kinds::DISTRIBUTION,
    object::{Meta, ResourceId, StrMap},
    promotion,
    rendered::{Rendered, wipe},
};
use kube::{
    Api, Client,
    api::{DynamicObject, PostParams},
};
use serde_json::Value;

use super::{
    served,
    source::{Promoted, Source},
};
use crate::{
    apply::{self, covers, label, without_values},
    connect::{explain, within},
    kinds::Kinds,
    lists::api,
};

/// The longest name that every policy may have: that of a label's value.
const LONGEST_NAME: usize = 63;

/// The hub, and the output of the results.
pub(super) struct Write<'a> {
    pub(super) hub: &'a Client,
    pub(super) kinds: &'a Kinds,
    pub(super) out: &'a mut (dyn std::io::Write + Send),
}

impl Write<'_> {
    /// Creates all; the template of the object goes last. The member is read again before the first object is created, and before
    /// the last.
    ///
    /// # Errors
    /// With the objects that were created nevertheless.
    pub(super) async fn all(
        mut self,
        policy: Option<&Value>,
        needed: &[Promoted],
        root: &Promoted,
        source: &mut Source,
    ) -> Result<()> {
        for each in needed.iter().chain([root]) {
            source.check(each).await?;
        }
        let mut created = Vec::new();
        let result = self.each(policy, needed, root, source, &mut created).await;
        result.map_err(|error| left(error, &created))
    }

    async fn each(
        &mut self,
        policy: Option<&Value>,
        needed: &[Promoted],
        root: &Promoted,
        source: &mut Source,
        created: &mut Vec<String>,
    ) -> Result<()> {
        if let Some(policy) = policy
            && self.policy(policy).await?
        {
            created.extend(ResourceId::of(policy).map(|id| id.to_string()));
        }
        for each in needed {
            let verb = match self.create(each).await {
                Ok(()) => {
                    created.push(each.id.to_string());
                    "created"
                }
                Err(error) if is_there(&error) => {
                    self.check_existing(each).await?;
                    "exists on the hub and is not changed"
                }
                Err(error) => return Err(refused(&each.id, error)),
            };
            self.say(&each.id, verb)?;
        }
        for each in needed.iter().chain([root]) {
            source.check(each).await?;
        }
        self.create(root)
            .await
            .map_err(|error| refused(&root.id, error))?;
        self.say(&root.id, "created")
    }

    /// Fails if the hub would refuse a template or has another object of its name, or would not store all of a template: its copy
    /// would change the object. Writes nothing. Returns the dependencies that the hub has already, with their labels there.
    pub(super) async fn check(
        &self,
        policy: Option<&Value>,
        needed: &[Promoted],
        root: &Promoted,
    ) -> Result<Vec<(ResourceId, StrMap)>> {
        let id = &root.id;
        let held = within(self.api(id)?.get_opt(&id.name)).await;
        let held = held.map_err(without_values)?;
        if let Some(mut held) = held {
            wipe(&mut held.data);
            bail!("{id} already exists on the hub: edit its policy to propagate it to further clusters");
        }
        let mut present = Vec::new();
        for each in needed.iter().chain([root]) {
            let labels = self.check_one(each).await?;
            present.extend(labels.map(|labels| (each.id.clone(), labels)));
        }
        if let Some(policy) = policy {
            self.existing_policy(policy).await?;
        }
        Ok(present)
    }

    /// The labels of the object on the hub if it is there already.
    async fn check_one(&self, promoted: &Promoted) -> Result<Option<StrMap>> {
        let id = &promoted.id;
        let dry_run = PostParams {
            dry_run: true,
            ..apply::post()
        };
        let mut object = object(promoted)?;
        let answer = within(self.api(id)?.create(&dry_run, &object)).await;
        wipe(&mut object.data);
        let stored = match answer {
            Ok(stored) => Rendered(serde_json::to_value(stored).unwrap_or_default()),
            Err(error) if is_there(&error) => return self.check_existing(promoted).await.map(Some),
            Err(error) => return Err(refused(id, error)),
        };
        // What a server generates for each object of its own, such as the selector of a Job, does not become part of a copy.
        let stored = Rendered(promotion::pruned(id, stored.object()));
        if let Some(altered) = promotion::altered(promoted.template.object(), stored.object()) {
            bail!("the hub would store {id} {altered}. Update the hub, or create the template yourself");
        }
        Ok(None)
    }

    /// Fails if the hub has another object of a dependency's name: its copy would replace the member's. Returns its labels.
    async fn check_existing(&self, promoted: &Promoted) -> Result<StrMap> {
        let id = &promoted.id;
        let held = within(self.api(id)?.get(&id.name)).await;
        let held = held.map_err(|error| refused(id, error))?;
        let held = Rendered(serde_json::to_value(held).unwrap_or_default());
        if let Some(path) = promotion::differs(id, promoted.template.object(), held.object()) {
            bail!(
                "{id} already exists on the hub, and its {path} is not that of the member's, which would be changed: make them \
                 equal, or promote without --deps"
            );
        }
        Ok(Meta::of(held.object()).labels)
    }

    async fn create(&self, promoted: &Promoted) -> kube::Result<()> {
        let broken = |error: anyhow::Error| kube::Error::Service(error.into());
        let mut object = object(promoted).map_err(broken)?;
        let api = self.api(&promoted.id).map_err(broken)?;
        let answer = within(api.create(&apply::post(), &object)).await;
        wipe(&mut object.data);
        answer.map(|mut answer| wipe(&mut answer.data))
    }

    /// True if it was created, false if the hub has it already.
    async fn policy(&mut self, policy: &Value) -> Result<bool> {
        let id = ResourceId::of(policy).context("a policy has a name")?;
        let api = self.policies(&id).await?;
        let object: DynamicObject = serde_json::from_value(policy.clone())?;
        let is_new = match within(api.create(&apply::post(), &object)).await {
            Ok(_) => true,
            Err(error) if is_there(&error) => {
                self.existing_policy(policy).await?;
                false
            }
            Err(error) if id.name.len() > LONGEST_NAME => {
                let error = refused(&id, error);
                bail!("{error:#}; give a shorter one with --policy-name NAME")
            }
            Err(error) => return Err(refused(&id, error)),
        };
        self.say(&id, if is_new { "created" } else { "unchanged" })?;
        Ok(is_new)
    }

    /// Fails if the hub has another policy of this name, or one that does not propagate anything now.
    async fn existing_policy(&self, policy: &Value) -> Result<()> {
        let id = ResourceId::of(policy).context("a policy has a name")?;
        let api = self.policies(&id).await?;
        let Some(held) = within(api.get_opt(&id.name)).await.map_err(explain)? else {
            return Ok(());
        };
        let held = serde_json::to_value(held)?;
        match unusable(&held, policy) {
            Some(why) => bail!("{id} already exists on the hub and {why}: give --policy-name NAME"),
            None => Ok(()),
        }
    }

    async fn policies(&self, id: &ResourceId) -> Result<Api<DynamicObject>> {
        let mut kinds = Kinds::default();
        kinds.learn(self.hub, [id.gvk.clone()]).await?;
        Ok(api(self.hub, served(&kinds, id)?, &id.namespace))
    }

    fn api(&self, id: &ResourceId) -> Result<Api<DynamicObject>> {
        Ok(api(self.hub, served(self.kinds, id)?, &id.namespace))
    }

    fn say(&mut self, id: &ResourceId, verb: &str) -> Result<()> {
        let label = label(&id.gvk.api_version(), &id.gvk.kind);
        writeln!(self.out, "hub: {label}/{} {verb}", id.name).context("cannot write to the terminal")
    }
}

/// The reason why a policy that exists does not do what this one would; `None` if it does.
fn unusable(held: &Value, policy: &Value) -> Option<&'static str> {
    if !held["metadata"]["deletionTimestamp"].is_null() {
        return Some("is being deleted");
    }
    let suspension = &held["spec"]["suspension"];
    let is_held_back = suspension["dispatching"] == true
        || suspension["scheduling"] == true
        || suspension["dispatchingOnClusters"].is_object();
    if is_held_back {
        return Some("suspends propagation");
    }
    (!covers(&held["spec"], &policy["spec"])).then_some("says otherwise")
}

fn object(promoted: &Promoted) -> Result<DynamicObject> {
    // The error's own text could quote a value.
    serde_json::from_value(promoted.template.object().clone())
        .map_err(|_| anyhow!("{} is malformed", promoted.id))
}

/// True if the server has an object of that name. Other conflicts have other reasons.
fn is_there(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409 && status.reason == "AlreadyExists")
}

/// The error of a run that ended early, with what it created. Deleting that could delete what another policy has taken over since.
fn left(error: anyhow::Error, created: &[String]) -> anyhow::Error {
    if created.is_empty() {
        return error;
    }
    anyhow!(
        "{error:#}; this run created on the hub, and leaves there: {}. If one of them is not that of the member's any more, make \
         them equal first",
        created.join(", ")
    )
}

/// The words of an error never quote a value of a Secret.
fn refused(id: &ResourceId, error: kube::Error) -> anyhow::Error {
    let is_missing = matches!(&error, kube::Error::Api(status) if status.code == 404);
    if is_missing && !id.namespace.is_empty() {
        return anyhow!(
            "namespace {} not found on the hub: create it there first; the controllers then create it on every member",
            id.namespace
        );
    }
    // A ResourceDistribution may embed a Secret.
    let cause = if ["Secret", DISTRIBUTION].contains(&&*id.gvk.kind) {
        without_values(error)
    } else {
        explain(error)
    };
    cause.context(format!("the hub refuses {id}"))
}

#[cfg(test)]
mod tests {
    use entourage_core::object::Gvk;
    use serde_json::json;

    use super::*;
    use crate::mock::Server;

    #[test]
    fn a_policy_that_exists_must_do_what_the_new_one_would() {
        let policy = json!({"spec": {"placement": {"clusterAffinity": {"clusterNames": ["m1"]}}, "propagateDeps": false}});
        let with = |field: &str, value: Value| {
            let mut held = policy.clone();
            held["spec"][field] = value;
            held
        };
        let mut ends = policy.clone();
        ends["metadata"]["deletionTimestamp"] = json!("2026-11-26T00:00:00Z");
        let on_clusters = json!({"dispatchingOnClusters": {"clusterNames": ["m1"]}});
        for (held, expected) in [
            (policy.clone(), None),
            (with("priority", json!(1)), None),
            (with("suspension", json!({"dispatching": false})), None),
            (
                with("suspension", json!({"dispatching": true})),
                Some("suspends propagation"),
            ),
            (
                with("suspension", json!({"scheduling": true})),
                Some("suspends propagation"),
            ),
            (with("suspension", on_clusters), Some("suspends propagation")),
            (with("propagateDeps", json!(true)), Some("says otherwise")),
            (ends, Some("is being deleted")),
        ] {
            assert_eq!(unusable(&held, &policy), expected, "{held}");
        }
    }

    #[test]
    fn a_refusal_quotes_no_value_of_a_kind_that_may_hold_a_secret() {
        for (api_version, kind, quotes) in [
            ("v1", "Secret", false),
            ("apps.kruise.io/v1alpha1", "ResourceDistribution", false),
            ("v1", "ConfigMap", true),
        ] {
            let status = serde_json::from_value(
                json!({"code": 422, "reason": "Invalid", "message": "Invalid value: canary"}),
            );
            let id = ResourceId::new(Gvk::new(api_version, kind), "", "login");
            let error = format!("{:#}", refused(&id, kube::Error::Api(status.unwrap())));
            assert_eq!(error.contains("canary"), quotes, "{error}");
        }
    }

    #[test]
    fn only_an_object_of_that_name_is_there() {
        for (code, reason, expected) in [
            (409, "AlreadyExists", true),
            (409, "Conflict", false),
            (404, "NotFound", false),
        ] {
            let status = serde_json::from_value(json!({"code": code, "reason": reason, "message": "m"}));
            assert_eq!(
                is_there(&kube::Error::Api(status.unwrap())),
                expected,
                "{code} {reason}"
            );
        }
    }

    /// A ConfigMap of the member.
    fn conf(name: &str, version: &str, value: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": value},
            "metadata": {"name": name, "namespace": "shop", "uid": name, "resourceVersion": version}})
    }

    #[tokio::test]
    async fn what_changed_on_the_member_is_noticed_before_anything_is_written_and_what_was_written_is_named()
    {
        const ROOT: &str = "/api/v1/namespaces/shop/configmaps/root";
        let serving = |id: &str| {
            let server = Server::new(id);
            let resource = json!({"name": "configmaps", "singularName": "", "namespaced": true, "kind": "ConfigMap", "verbs": ["get"]});
            let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": [resource]});
            server.put("/api/v1", list);
            server
        };
        for (when, expected) in [
            ("before", vec![]),
            ("between", vec!["POST /api/v1/namespaces/shop/configmaps"]),
        ] {
            let (member, hub) = (serving("member"), serving("hub"));
            let mut promoted = Vec::new();
            for name in ["needed", "root"] {
                member.put(
                    &format!("/api/v1/namespaces/shop/configmaps/{name}"),
                    conf(name, "1", "a"),
                );
                let id = ResourceId::new(Gvk::new("v1", "ConfigMap"), "shop", name);
                promoted.push(
                    Promoted::new(id, &conf(name, "1", "a"), "hub").unwrap_or_else(|why| panic!("{why}")),
                );
            }
            let change = {
                let member = member.clone();
                move || member.put(ROOT, conf("root", "2", "b"))
            };
            let hub = if when == "before" {
                change();
                hub
            } else {
                hub.reacting(move |method, _, _| {
                    if method == "POST" {
                        change();
                    }
                })
            };
            let mut kinds = Kinds::default();
            let gvk = Gvk::new("v1", "ConfigMap");
            kinds.learn(&hub.client(), [gvk]).await.unwrap();
            let mut source = Source {
                client: member.client(),
                cluster: "m1".into(),
                hub_id: "hub".into(),
                kinds: Kinds::default(),
            };
            let (client, mut out) = (hub.client(), Vec::new());
            let write = Write {
                hub: &client,
                kinds: &kinds,
                out: &mut out,
            };
            let error = write.all(None, &promoted[..1], &promoted[1], &mut source).await;
            let error = error.unwrap_err().to_string();
            assert!(
                error.contains("ConfigMap shop/root changed on m1 meanwhile"),
                "{error}"
            );
            let is_named = error.contains("created on the hub, and leaves there: ConfigMap shop/needed");
            assert_eq!(is_named, when == "between", "{error}");
            assert_eq!(hub.take_writes(), expected, "{when}");
        }
    }
}
