//! Simulation against a hub: reads go to the hub and its members; nothing is written.
//!
//! The hub's dry run returns each object as it would be stored, with defaults, or its refusal, as `kubectl diff` does. Members are
//! reached as the controllers reach them: through their Clusters and Secrets, or in Pull mode through their Works on the hub.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use entourage_core::{
    distribution,
    object::{Gvk, ResourceId, Str},
};
use entourage_simulation::{Progress, Simulation};
use kube::Client;
use serde_json::Value;

use super::{Assumed, Simulated, add_remarks, begin, settings};
use crate::{
    connect,
    kinds::{Kinds, defined},
};

mod apply;
mod read;

/// The maximum number of concurrent requests.
const AT_ONCE: usize = 16;

/// The deadline of a request to a member.
const MEMBER_DEADLINE: std::time::Duration = std::time::Duration::from_secs(10);

/// The source of the members' state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum MembersFrom {
    /// The hub's Clusters; each member is read through its credentials, one in Pull mode by its Works
    #[default]
    Fromhub,
    /// The hub's Clusters; no member is connected to: its copies are taken to be as the hub recorded them
    Recorded,
    /// The Clusters of the files and no others, without any copies
    File,
}

/// The options of a simulation against a hub.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// The source of the members' state.
    pub members: MembersFrom,
    /// The namespace of objects that name none.
    pub namespace: String,
    /// The only namespace that Secrets of Clusters may lie in.
    pub cluster_namespace: String,
    /// The assumed flags of the controllers.
    pub assumed: Assumed,
    /// Copies of another control plane that are taken to be this hub's, by member.
    pub adopted: BTreeMap<Str, BTreeSet<ResourceId>>,
}

/// The servers as far as they were met.
struct Live<'a> {
    hub: &'a Client,
    hub_id: String,
    options: &'a LiveOptions,
    kinds: Kinds,
    /// Kinds that the files define: group and kind.
    defined: BTreeSet<(String, String)>,
    /// A client, or why there is none.
    members: BTreeMap<Str, Result<Client, String>>,
    /// The members in Pull mode that are read: by their Works.
    pulled: BTreeSet<Str>,
    remarks: BTreeSet<String>,
    /// True if Secrets of the hub are read as a whole; false if their metadata is enough.
    reads_secrets: bool,
    /// The kinds that the hub serves and that could not be listed there.
    unread: BTreeSet<Gvk>,
}

/// Simulates an apply of the objects to the hub as it is.
///
/// # Errors
/// The hub cannot be read at all. Other errors of reading it or its members are among the remarks.
pub async fn simulate(hub: &Client, objects: Vec<Value>, options: &LiveOptions) -> Result<Simulated> {
    let (mut live, assumed) = open(hub, &objects, options).await?;
    let mut simulation = begin(&live.hub_id, &assumed);
    live.apply(objects, &mut simulation).await?;
    finish(live, simulation).await
}

/// Reads the hub as its controllers do, and changes nothing: the engine is in their present state. Nothing is rendered, so of Secrets only
/// the metadata is requested: their values do not leave the hub.
///
/// # Errors
/// As [`simulate`].
pub async fn observe(hub: &Client, options: &LiveOptions) -> Result<Simulated> {
    let (mut live, assumed) = open(hub, &[], options).await?;
    live.reads_secrets = false;
    let now = entourage_controllers::clock::now();
    let simulation = Simulation::observing(settings(&live.hub_id, &assumed), now);
    finish(live, simulation).await
}

/// The hub, before anything of it is read, and the settings that are assumed for it.
async fn open<'a>(
    hub: &'a Client,
    objects: &[Value],
    options: &'a LiveOptions,
) -> Result<(Live<'a>, Assumed)> {
    let hub_id = connect::cluster_id(hub, "the hub").await?;
    let mut assumed = options.assumed.clone();
    assumed.reserved.push(options.cluster_namespace.clone());
    let mut live = Live {
        hub,
        hub_id,
        options,
        kinds: Kinds::default(),
        defined: defined(objects).into_keys().collect(),
        members: BTreeMap::new(),
        pulled: BTreeSet::new(),
        remarks: BTreeSet::new(),
        reads_secrets: true,
        unread: BTreeSet::new(),
    };
    if assumed.distribute {
        let kind = distribution::gvk();
        live.kinds.learn(hub, [kind.clone()]).await?;
        // A hub that does not serve them refuses those of the files.
        assumed.distribute = live.kinds.get(&kind).is_some();
    }
    Ok((live, assumed))
}

/// Runs a simulation to its end, with the answers of the servers.
async fn finish(mut live: Live<'_>, mut simulation: Simulation) -> Result<Simulated> {
    let progress = loop {
        match simulation.run() {
            Progress::Asks(questions) => {
                for (question, answer) in live.answers(questions, &simulation).await? {
                    simulation.answer(question, answer);
                }
            }
            progress => break progress,
        }
    };
    live.remarks.extend(read_as_works(&live.pulled));
    let mut remarks = live.remarks.into_iter().collect();
    add_remarks(&progress, &mut remarks);
    Ok(Simulated {
        simulation,
        is_settled: progress == Progress::Settled,
        unread: live.unread,
        remarks,
        // A kind that the hub does not serve is refused.
        warnings: Vec::new(),
    })
}

/// The remark about members that are read by their Works.
fn read_as_works(pulled: &BTreeSet<Str>) -> Option<String> {
    let names: Vec<&str> = pulled.iter().map(|name| &**name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "members in Pull mode are read by their Works on the hub ({}): what changed there since, and objects there that are \
             not managed by this hub, are not seen",
            names.join(", ")
        )
    })
}
