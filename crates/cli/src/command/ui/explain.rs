//! The answers that need more than the watches: why an object is on its clusters, or not, its tree of dependencies, its history.
//!
//! They are those of `entourage why`, `tree` and `history`. The first two read the hub anew, as its controllers do; what was read serves
//! for a few seconds.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use entourage_core::{
    inspection::{tree, why},
    object::ResourceId,
};
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::{
    super::{
        answer::Output,
        explained::{self, Assumptions},
        history::{self, HistoryArgs},
        pods, resource,
    },
    model,
};
use crate::{
    args::HubArgs,
    connect::{explain, is_not_found, within},
    lists::api,
    simulate::Simulated,
};

/// The time for which a state of the hub serves for further answers.
const FRESH: Duration = Duration::from_secs(10);

/// The time to answer within.
const DEADLINE: Duration = Duration::from_secs(120);

/// Answers questions about one object.
pub(super) struct Explainer {
    hub: Client,
    /// The namespace of a kind that has one, if the question names none.
    namespace: String,
    assumptions: Assumptions,
    /// One reader at a time: the next question is likely to be answered by what it reads.
    held: Arc<Mutex<Option<Held>>>,
}

/// A state of the hub.
struct Held {
    simulated: Simulated,
    read: Instant,
}

impl Held {
    fn is_fresh(&self) -> bool {
        self.read.elapsed() < FRESH
    }
}

impl Explainer {
    pub(super) fn new(hub: Client, namespace: String, assumptions: Assumptions) -> Self {
        Self {
            hub,
            namespace,
            assumptions,
            held: Arc::default(),
        }
    }

    /// The explanation and the tree of an object: `KIND/NAME`, in a namespace.
    ///
    /// # Errors
    /// The hub cannot be read, or serves no such kind.
    pub(super) async fn explain(&self, object: &str, namespace: &str) -> Result<Value> {
        let answer = tokio::time::timeout(DEADLINE, self.explained(object, namespace)).await;
        answer.context("the hub was not read within 120 s")?
    }

    async fn explained(&self, object: &str, namespace: &str) -> Result<Value> {
        let (id, exists) = self.found(object, namespace).await?;
        let mut held = self.held.lock().await;
        if !held.as_ref().is_some_and(Held::is_fresh) {
            *held = None;
            let simulated = observe(self.hub.clone(), id.namespace.to_string(), &self.assumptions).await?;
            *held = Some(Held {
                simulated,
                read: Instant::now(),
            });
            self.forget_later();
        }
        let Held { simulated, .. } = held.as_ref().context("nothing was read")?;
        let (engine, now) = (simulated.simulation.engine(), simulated.simulation.now());
        let why = why::why(engine, &id, exists, now);
        let tree = tree::tree(engine, &id, exists, now);
        Ok(json!({"exists": exists, "at": now.0, "why": why, "tree": tree, "remarks": simulated.remarks}))
    }

    /// The known changes of an object.
    ///
    /// # Errors
    /// As [`Self::explain`].
    pub(super) async fn history(&self, object: &str, namespace: &str) -> Result<Value> {
        let args = HistoryArgs {
            target: object.to_owned(),
            hub: HubArgs::default(),
            namespace: None,
            output: Output::Json,
        };
        let namespace = self.namespace_of(namespace);
        let known = history::of_hub(&args, &self.hub, namespace).await?;
        let entries = known.entries.iter().map(|entry| {
            json!({"time": model::millis(&entry.time), "source": entry.source, "object": entry.object,
                "what": entry.what, "message": entry.message})
        });
        let entries: Vec<Value> = entries.collect();
        Ok(json!({"exists": known.exists, "entries": entries, "remarks": known.remarks}))
    }

    /// A large hub takes much memory.
    fn forget_later(&self) {
        let held = self.held.clone();
        tokio::spawn(async move {
            tokio::time::sleep(FRESH).await;
            held.lock().await.take_if(|held| !held.is_fresh());
        });
    }

    async fn found(&self, object: &str, namespace: &str) -> Result<(ResourceId, bool)> {
        let (kind, name) = match pods::named(object)? {
            (Some(kind), name) => (kind, name),
            (None, _) => anyhow::bail!("{object:?} names no kind: give KIND/NAME, such as deploy/web"),
        };
        let (gvk, served) = resource::find(&self.hub, kind, "the hub").await?;
        let namespace = if served.namespaced {
            self.namespace_of(namespace)
        } else {
            ""
        };
        // The metadata alone: the object may be a Secret.
        let exists = match within(api(&self.hub, &served, namespace).get_metadata(name)).await {
            Ok(_) => true,
            Err(error) if is_not_found(&error) => false,
            Err(error) => {
                return Err(explain(error))
                    .with_context(|| format!("cannot read {} {name} of the hub", gvk.kind));
            }
        };
        Ok((ResourceId::new(gvk, namespace, name), exists))
    }

    fn namespace_of<'a>(&'a self, given: &'a str) -> &'a str {
        if given.is_empty() { &self.namespace } else { given }
    }
}

/// Reads the hub in a thread of its own: to plan all of it takes long, and the page is to be served meanwhile.
async fn observe(hub: Client, namespace: String, assumptions: &Assumptions) -> Result<Simulated> {
    let (runtime, assumptions) = (tokio::runtime::Handle::current(), assumptions.clone());
    let read = tokio::task::spawn_blocking(move || {
        runtime.block_on(explained::observe(&hub, &namespace, &assumptions))
    });
    read.await.context("reading the hub was aborted")?
}
