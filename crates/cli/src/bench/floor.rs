//! The floor: the same objects written by a bare client at full speed.
//!
//! It writes only:
//!
//! - on the hub each Deployment once (POST), as the bench itself does in S1; and for each propagated template (every
//!   Deployment, ConfigMap and Secret) a binding of the size that a control plane writes: one POST and one PUT of its status.
//!   The bindings are objects of the bench's own copy of the ResourceBinding definition, with the same schema and a status
//!   subresource, so that the server does the same work and no control plane reads them;
//! - on each member one POST for each copy, with the ownership metadata of copies.
//!
//! No reads, no watches, no claims of templates, no order among objects beyond that of the list, a fixed number of requests in
//! flight per server. Namespaces exist before. The time is from the first request to the last response. It is deliberately less
//! than any control plane must do: a ratio of 1 cannot be reached.
//!
//! There are two further floors: one edit of a ConfigMap on the hub and then on all members at once (for S2), and the deletion
//! of all written objects, one DELETE per object (for S5).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use futures::{StreamExt as _, TryStreamExt as _, future::try_join_all, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

use super::{
    kind::{FLOOR_GROUP, Kind, ObjectId},
    objects::World,
    server::{Metadata, Server, Written},
    stats::percentile,
};
use crate::{
    connect,
    wait::{Waited, until},
};

mod bodies;

use bodies::{binding, copy, status};

/// The number of measured edits.
const EDITS: usize = 20;

/// The costs of a bare client.
#[derive(Clone, Debug)]
pub struct Floor {
    /// Seconds to write all objects.
    pub write_s: f64,
    /// The number of requests for that.
    pub writes: usize,
    /// The median time of an edit on the hub and all members, in milliseconds.
    pub edit_p50_ms: f64,
    /// Seconds to delete all objects.
    pub delete_s: f64,
}

/// Creates the definition of the floor's kind on the hub. Call [`remove_definition`] at the end.
///
/// # Errors
/// The hub does not serve ResourceBindings, or refuses.
pub async fn add_definition(hub: &Server) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(hub.client.clone());
    let name = format!("{}.{}", Kind::Binding.plural(), Kind::Binding.group());
    let found = api.get_opt(&name).await.map_err(connect::explain)?;
    let mut definition =
        found.with_context(|| format!("the hub does not serve {name}; entourage crds --apply creates it"))?;
    definition.metadata = kube::api::ObjectMeta {
        name: Some(definition_name()),
        ..Default::default()
    };
    definition.status = None;
    definition.spec.conversion = None;
    definition.spec.group = FLOOR_GROUP.to_owned();
    definition.spec.versions.retain(|version| version.storage);
    let names = &mut definition.spec.names;
    *names = Default::default();
    names.kind = Kind::FloorBinding.name().to_owned();
    names.plural = Kind::FloorBinding.plural().to_owned();
    if let Err(error) = api.create(&PostParams::default(), &definition).await
        && !matches!(&error, kube::Error::Api(status) if status.code == 409)
    {
        return Err(connect::explain(error)).context("cannot define what the floor writes");
    }
    let name = definition_name();
    let waited = until(&api, &name, Duration::from_secs(30), |crd| {
        let status = crd
            .and_then(|crd| crd.status.as_ref())
            .and_then(|status| status.conditions.as_ref());
        status.is_some_and(|all| {
            all.iter()
                .any(|each| each.type_ == "Established" && each.status == "True")
        })
    });
    if let Waited::TimedOut(_) = waited.await.map_err(connect::explain)? {
        bail!("the hub does not serve {} after 30 s", definition_name());
    }
    Ok(())
}

/// Reverts [`add_definition`], and deletes all objects of the kind.
///
/// # Errors
/// The hub refuses.
pub async fn remove_definition(hub: &Server) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(hub.client.clone());
    match api.delete(&definition_name(), &Default::default()).await {
        Ok(_) => Ok(()),
        Err(error) if connect::is_not_found(&error) => Ok(()),
        Err(error) => Err(connect::explain(error)).context("cannot remove what the floor defined"),
    }
}

/// Writes, edits and deletes a world; `limit` requests are in flight per server. The first of the servers is the hub.
///
/// # Errors
/// A server's.
pub async fn measure(servers: &[Arc<Server>], world: &World, limit: usize) -> Result<Floor> {
    let (hub, members) = servers.split_first().context("there is no hub")?;
    try_join_all(
        servers
            .iter()
            .map(|server| super::scenario::namespaces(server, world)),
    )
    .await?;

    let templates = world.deployments();
    let mut copies: Vec<_> = world
        .first()
        .into_iter()
        .filter(|(id, _)| id.kind != Kind::Policy)
        .collect();
    copies.extend(templates.iter().cloned());
    let bindings: Vec<_> = copies.iter().map(|(id, _)| binding(id, world)).collect();
    let marked: Vec<_> = copies
        .iter()
        .map(|(id, object)| (id.clone(), copy(id, object.clone())))
        .collect();
    let writes = templates.len() + 2 * bindings.len() + members.len() * marked.len();

    let begin = Instant::now();
    let on_hub = async {
        create(hub, &templates, limit).await?;
        let each = bindings
            .iter()
            .map(|(id, object)| create_with_status(hub, id, object, world));
        stream::iter(each)
            .buffer_unordered(limit)
            .try_collect::<()>()
            .await
    };
    let on_members = try_join_all(members.iter().map(|member| create(member, &marked, limit)));
    futures::try_join!(on_hub, on_members)?;
    let write_s = begin.elapsed().as_secs_f64();

    let edit_p50_ms = edits(hub, members, &copies, world).await?;

    let begin = Instant::now();
    let hub_ids = templates.iter().chain(&bindings).map(|(id, _)| id);
    let on_hub = stream::iter(hub_ids.map(|id| hub.delete(id))).buffer_unordered(limit);
    let on_members = try_join_all(members.iter().map(|member| {
        let each = stream::iter(marked.iter().map(|(id, _)| member.delete(id)));
        each.buffer_unordered(limit).try_for_each(|_| async { Ok(()) })
    }));
    futures::try_join!(on_hub.try_for_each(|_| async { Ok(()) }), on_members)?;
    Ok(Floor {
        write_s,
        writes,
        edit_p50_ms,
        delete_s: begin.elapsed().as_secs_f64(),
    })
}

fn definition_name() -> String {
    format!("{}.{FLOOR_GROUP}", Kind::FloorBinding.plural())
}

async fn create(server: &Server, objects: &[(ObjectId, Value)], limit: usize) -> Result<()> {
    let each = objects
        .iter()
        .map(|(id, object)| super::scenario::create(server, id, object));
    stream::iter(each)
        .buffer_unordered(limit)
        .try_collect::<()>()
        .await
}

async fn create_with_status(hub: &Server, id: &ObjectId, object: &Value, world: &World) -> Result<()> {
    #[derive(serde::Deserialize)]
    struct Answer {
        metadata: Metadata,
    }
    let (written, answer) = hub.create(id, object).await?;
    if written != Written::Done {
        bail!("{id} exists already on the hub");
    }
    let answer: Answer = serde_json::from_str(&answer)?;
    let mut object = object.clone();
    object["metadata"]["resourceVersion"] = json!(answer.metadata.resource_version);
    object["status"] = status(world);
    hub.replace_status(id, &object).await.map(drop)
}

/// Edits ConfigMaps one at a time, each on the hub and then on all members at once.
async fn edits(
    hub: &Server,
    members: &[Arc<Server>],
    copies: &[(ObjectId, Value)],
    world: &World,
) -> Result<f64> {
    let edited: Vec<_> = copies
        .iter()
        .filter(|(id, _)| id.kind == Kind::ConfigMap)
        .take(EDITS)
        .collect();
    let mut times = Vec::new();
    for (id, object) in edited {
        super::scenario::create(hub, id, object).await?;
        let patch = world.edit(id, "floor");
        let begin = Instant::now();
        hub.patch(id, &patch).await?;
        try_join_all(members.iter().map(|member| member.patch(id, &patch))).await?;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
        hub.delete(id).await?;
    }
    Ok(percentile(&times, 50.0))
}
