//! The requests of a simulation, read from the hub and its members.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail};
use entourage_api::{
    cluster::{Cluster, SyncMode},
    keys::{TRUE, label},
};
use entourage_core::{
    kinds::is_secret,
    object::{Gvk, ResourceId, Str},
    observation::{Server, Watch, kind_read_by},
    rendered::wipe,
};
use entourage_simulation::{Answer, Question, Simulation};
use futures::{StreamExt as _, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Client, api::ListParams};
use serde_json::{Value, json};

use super::{AT_ONCE, Live, MEMBER_DEADLINE, MembersFrom};
use crate::{
    connect::{self, explain, is_not_found, within},
    lists::{PAGE, api, list, list_metadata},
};

impl Live<'_> {
    pub(super) async fn answers(
        &mut self,
        questions: Vec<Question>,
        simulation: &Simulation,
    ) -> Result<Vec<(Question, Answer)>> {
        let wanted: Vec<Gvk> = questions.iter().map(read_kind).collect();
        self.kinds
            .learn(self.hub, wanted)
            .await
            .context("cannot ask the hub which kinds it serves")?;
        let members: BTreeSet<Str> = questions.iter().filter_map(member_of).collect();
        for name in members {
            if !self.members.contains_key(&name) {
                let client = self.connect(&name, simulation).await;
                let cluster = simulation.engine().cluster(&name);
                if client.is_ok() && cluster.is_some_and(|cluster| is_pull(&cluster)) {
                    self.pulled.insert(name.clone());
                }
                self.members.insert(name, client);
            }
        }
        let this = &*self;
        let answers: Vec<(Question, Result<Vec<Value>, String>)> = stream::iter(questions)
            .map(|question| async move {
                let answer = this.read(&question).await;
                (question, answer)
            })
            .buffered(AT_ONCE)
            .collect()
            .await;
        let mut results = Vec::with_capacity(answers.len());
        for (question, answer) in answers {
            let answer = match answer {
                Ok(objects) => Answer::Objects(objects),
                Err(why) if member_of(&question).is_none() => {
                    let gvk = read_kind(&question);
                    let kind = &gvk.kind;
                    if is_base(&question) {
                        bail!("{kind}s of the hub cannot be read: {why}");
                    }
                    self.remarks
                        .insert(format!("{kind}s of the hub cannot be read: {why}"));
                    if self.kinds.in_some_version(&gvk).is_some() {
                        self.unread.insert(gvk);
                    }
                    Answer::Unreadable(why)
                }
                Err(why) => Answer::Unreadable(why),
            };
            results.push((question, answer));
        }
        Ok(results)
    }

    /// A client of a member, or why there is none.
    async fn connect(&self, name: &Str, simulation: &Simulation) -> Result<Client, String> {
        let cluster = simulation.engine().cluster(name);
        let cluster = cluster.ok_or("it is not a member of the hub")?;
        if self.options.members != MembersFrom::Fromhub {
            return Err("it is not asked (--members)".into());
        }
        if cluster
            .metadata
            .uid
            .as_deref()
            .is_none_or(|uid| uid.starts_with("00000000-"))
        {
            return Err("its Cluster is new".into());
        }
        // Its Works are on the hub, whether or not its agent is there.
        if is_pull(&cluster) {
            return entourage_controllers::members::pulled(self.hub.clone(), &cluster);
        }
        if let Some(why) = not_ready(&cluster) {
            return Err(why);
        }
        let namespace = &self.options.cluster_namespace;
        let config =
            entourage_controllers::members::config_of(self.hub.clone(), &cluster, namespace, MEMBER_DEADLINE);
        let client = connect::client(config.await?).map_err(|error| format!("{error:#}"))?;
        // The first answer tells for all that follow, instead of each of them waiting for its deadline.
        let version = within(client.apiserver_version()).await;
        version.map_err(|error| match error {
            kube::Error::Api(status) if status.code == 401 => {
                "it refuses the credentials that the hub has for it (401); entourage join gives it new ones"
                    .to_owned()
            }
            error => explain(error).to_string(),
        })?;
        Ok(client)
    }

    async fn read(&self, question: &Question) -> Result<Vec<Value>, String> {
        let gvk = read_kind(question);
        let words = |error: kube::Error| explain(error).to_string();
        match question {
            Question::List(watch) => match watch.server() {
                Server::Hub if *watch == Watch::Clusters && self.options.members == MembersFrom::File => {
                    Ok(Vec::new())
                }
                Server::Hub => {
                    let served = self.kinds.in_some_version(&gvk);
                    if served.is_none() && self.is_defined(&gvk) {
                        return Ok(Vec::new());
                    }
                    let served = served.ok_or(
                        "the hub does not serve them; entourage crds --apply creates the control plane's own",
                    )?;
                    let params = params(watch, &self.hub_id);
                    if is_secret(&gvk) && !self.reads_secrets {
                        return list_metadata(self.hub, served, &params)
                            .await
                            .map(|all| all.iter().map(bare_secret).collect())
                            .map_err(words);
                    }
                    list(self.hub, served, "", &params).await.map_err(words)
                }
                Server::Member(_) if self.options.members == MembersFrom::File => Ok(Vec::new()),
                Server::Member(name) => {
                    let client = self.member(&name)?;
                    let Some(served) = self.kinds.in_some_version(&gvk) else {
                        return Ok(Vec::new());
                    };
                    let is_of_copies = matches!(watch, Watch::Copies(..));
                    let adopted = self.options.adopted.get(&name).filter(|_| is_of_copies);
                    let params = match adopted {
                        Some(_) => managed(),
                        None => params(watch, &self.hub_id),
                    };
                    match (list(client, served, "", &params).await, adopted) {
                        (Err(error), _) if is_not_found(&error) => Ok(Vec::new()),
                        (Ok(all), Some(adopted)) => Ok(self.as_adopted(all, &gvk, adopted)),
                        (answer, _) => answer.map_err(words),
                    }
                }
            },
            Question::Template(id) if is_secret(&gvk) && !self.reads_secrets => {
                let Some(served) = self.kinds.in_some_version(&gvk) else {
                    return Ok(Vec::new());
                };
                let api = api(self.hub, served, &id.namespace);
                match within(api.get_metadata(&id.name)).await {
                    Ok(mut found) => {
                        found.metadata.managed_fields = None;
                        Ok(vec![bare_secret(&found.metadata)])
                    }
                    Err(error) if is_not_found(&error) => Ok(Vec::new()),
                    Err(error) => Err(words(error)),
                }
            }
            Question::Template(id) => self.one(self.hub, &gvk, id).await,
            Question::Copy(..) if self.options.members == MembersFrom::File => Ok(Vec::new()),
            Question::Copy(name, id) => self.one(self.member(name)?, &gvk, id).await,
        }
    }

    /// The copies that this hub manages, and those that it is taken to have adopted, with its label.
    fn as_adopted(&self, all: Vec<Value>, gvk: &Gvk, adopted: &BTreeSet<ResourceId>) -> Vec<Value> {
        let mut kept = Vec::new();
        for mut object in all {
            let meta = &mut object["metadata"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (namespace, name) = (text(&meta["namespace"]), text(&meta["name"]));
            if adopted.contains(&ResourceId::new(gvk.clone(), &namespace, &name)) {
                meta["labels"][label::HUB] = json!(self.hub_id);
            }
            if meta["labels"][label::HUB] == *self.hub_id {
                kept.push(object);
            } else {
                wipe(&mut object);
            }
        }
        kept
    }

    /// True if the files define a kind, so that there are no objects of it before they are applied.
    fn is_defined(&self, gvk: &Gvk) -> bool {
        self.defined
            .contains(&(gvk.group.to_string(), gvk.kind.to_string()))
    }

    fn member(&self, name: &Str) -> Result<&Client, String> {
        match self.members.get(name) {
            Some(Ok(client)) => Ok(client),
            Some(Err(why)) => Err(why.clone()),
            None => Err("it was not connected to".into()),
        }
    }

    async fn one(&self, client: &Client, gvk: &Gvk, id: &ResourceId) -> Result<Vec<Value>, String> {
        let Some(served) = self.kinds.in_some_version(gvk) else {
            return Ok(Vec::new());
        };
        let api = api(client, served, &id.namespace);
        match within(api.get_opt(&id.name)).await {
            Ok(object) => Ok(object
                .and_then(|object| serde_json::to_value(object).ok())
                .into_iter()
                .collect()),
            Err(error) => Err(explain(error).to_string()),
        }
    }
}

/// A Secret of which only the metadata was read.
fn bare_secret(meta: &ObjectMeta) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta})
}

fn is_pull(cluster: &Cluster) -> bool {
    cluster.spec.sync_mode == SyncMode::Pull
}

/// The reason why a member is not called: its Cluster is not ready.
fn not_ready(cluster: &Cluster) -> Option<String> {
    let conditions = &cluster.status.as_ref()?.conditions;
    let ready = conditions.iter().find(|each| each.type_ == "Ready")?;
    (ready.status != "True").then(|| format!("it is not ready: {}", ready.message))
}

fn read_kind(question: &Question) -> Gvk {
    match question {
        Question::List(watch) => kind_read_by(watch),
        Question::Template(id) | Question::Copy(_, id) => id.gvk.clone(),
    }
}

/// True if the simulation is impossible without the response.
fn is_base(question: &Question) -> bool {
    matches!(question, Question::List(watch)
        if !matches!(watch, Watch::Templates(_) | Watch::Distributed(..) | Watch::Rebalancers | Watch::Works | Watch::Leases | Watch::Nodes(_) | Watch::Pods(_) | Watch::Quotas | Watch::QuotaCopies(_) | Watch::PriorityClasses | Watch::ServiceParts(_) | Watch::Endpoints(..)))
}

fn member_of(question: &Question) -> Option<Str> {
    match question {
        Question::List(watch) => match watch.server() {
            Server::Hub => None,
            Server::Member(name) => Some(name),
        },
        Question::Template(_) => None,
        Question::Copy(name, _) => Some(name.clone()),
    }
}

/// The objects that some control plane manages.
fn managed() -> ListParams {
    ListParams::default()
        .limit(PAGE)
        .labels(&format!("{}={TRUE}", label::MANAGED))
}

fn params(watch: &Watch, hub_id: &str) -> ListParams {
    let all = ListParams::default().limit(PAGE);
    match watch {
        Watch::Distributed(_, _, name) => all.fields(&format!("metadata.name={name}")),
        Watch::Copies(..) => all.labels(&format!("{}={hub_id}", label::HUB)),
        Watch::QuotaCopies(_) => all.labels(&format!("{}={hub_id}", label::FEDERATED_QUOTA)),
        Watch::Endpoints(_, service) => all.labels(&format!("{}={}", label::SERVICE_NAME, service.name)),
        Watch::Templates(gvk) if is_secret(gvk) => all.fields("type!=kubernetes.io/service-account-token"),
        _ => all,
    }
}
