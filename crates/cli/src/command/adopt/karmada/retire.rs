//! `--confirm`: Karmada's policies, bindings and Works go, in this order, where this hub manages every object of theirs.
//!
//! Each is written once more before it is deleted, in exactly the version that was decided on: a Work then preserves its objects, and
//! no finalizer of Karmada waits for a controller. The deletion names the version of that write: whoever writes in between, a
//! controller that somebody started, keeps the object.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
};

use anyhow::{Context as _, Result, anyhow};
use entourage_core::{
    adoption::karmada::{Retired, Retirement, Stored, retirement, retiring_patch},
    object::{Gvk, Meta, NamespacedName, ResourceId, Str},
    rendered::wipe,
    scope,
};
use futures::{StreamExt as _, stream};
use kube::{
    Client,
    api::{DeleteParams, Patch, Preconditions},
};
use serde_json::Value;

use super::{Fleet, Scan, both, finish, hub, read::work, stopped::Watched};
use crate::{
    apply::{self, without_values},
    command::{
        adopt::AT_ONCE,
        get::table::{Row, Shown, View},
    },
    connect::{is_not_found, within},
    kinds::{Kinds, Served},
    lists::api,
};

/// The order in which the kinds go.
const ORDER: [Retired; 3] = [Retired::Policy, Retired::Binding, Retired::Work];

/// The result for each object.
type Results = BTreeMap<(Retired, NamespacedName), Result<(), String>>;

pub(super) async fn confirm(
    fleet: &Fleet<'_>,
    watched: &mut Watched,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let state = hub::state(fleet.hub, &BTreeSet::new()).await?;
    let all = retirement(&fleet.karmada, (&*fleet.hub_id, &state), &objects(&fleet.scans));
    let mut results = Results::new();
    let mut ended = Ok(());
    if fleet.args.yes {
        ended = retire(fleet.server, &all, watched, &mut results).await;
    }
    let (mut gone, mut left, mut failed) = (0, 0, 0);
    let mut rows = Vec::new();
    for ((kind, name), decision) in &all {
        let result = results.get(&(*kind, name.clone()));
        let (counter, words) = match (decision, result) {
            (Ok(_), Some(Ok(()))) => (&mut gone, "deleted".to_owned()),
            (Ok(_), Some(Err(why))) => (&mut failed, format!("not deleted: {why}")),
            (Ok(_), None) => (&mut gone, "delete".to_owned()),
            (Err(stay), _) => (&mut left, stay.to_string()),
        };
        *counter += 1;
        rows.push(line(*kind, name, words));
    }
    write!(out, "{}", table(rows))?;
    if fleet.args.yes && ended.is_ok() {
        writeln!(out, "{gone} deleted, {left} left in Karmada")?;
    } else if !fleet.args.yes {
        writeln!(
            out,
            "{gone} to delete in Karmada, {left} stay; nothing was written: with --yes there is no way back to Karmada"
        )?;
    }
    if failed > 0 {
        let failures = Err(anyhow!("{failed} not deleted; run this again to continue"));
        ended = both(ended, failures);
    }
    both(ended, finish(out, &fleet.scans, 0))
}

/// The objects of the members that were read completely.
fn objects(scans: &[Scan]) -> BTreeMap<Str, BTreeMap<ResourceId, Meta>> {
    let mut all = BTreeMap::new();
    for scan in scans {
        if let Ok(member) = &scan.result
            && member.unread.is_empty()
        {
            all.insert(scan.cluster.clone(), member.objects.clone());
        }
    }
    all
}

/// Retires one kind after the other; the next one only when all of the last are gone.
async fn retire(
    server: &Client,
    all: &Retirement,
    watched: &mut Watched,
    results: &mut Results,
) -> Result<()> {
    let mut kinds = Kinds::default();
    let wanted = ORDER
        .iter()
        .flat_map(|kind| ["", "namespace"].map(|namespace| gvk(*kind, namespace)));
    kinds
        .learn(server, wanted)
        .await
        .context("cannot ask Karmada which kinds it serves")?;
    for kind in ORDER {
        watched.look().await?;
        let of_kind = all.iter().filter_map(|((each, name), decision)| {
            let stored = decision.as_ref().ok()?;
            (*each == kind).then_some((name, stored))
        });
        let (kinds, server) = (&kinds, server);
        let done: Vec<(NamespacedName, Result<(), String>)> = stream::iter(of_kind)
            .map(|(name, stored)| async move {
                let served = kinds.get(&gvk(kind, &name.namespace));
                let result = match served {
                    Some(served) => one(server, served, kind, name, stored).await,
                    None => Err("its kind is not served".to_owned()),
                };
                (name.clone(), result)
            })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let failed = done.iter().any(|(_, result)| result.is_err());
        results.extend(done.into_iter().map(|(name, result)| ((kind, name), result)));
        if failed {
            return Err(anyhow!(
                "what makes others is not gone yet: the rest is left as it is"
            ));
        }
    }
    watched.look().await
}

/// Retires one object. The words of an error never quote a value: a Work may contain a Secret.
async fn one(
    server: &Client,
    served: &Served,
    kind: Retired,
    name: &NamespacedName,
    stored: &Stored,
) -> Result<(), String> {
    let api = api(server, served, &name.namespace);
    let words = |error: kube::Error| match error {
        kube::Error::Api(status) if status.code == 409 => {
            "it was changed meanwhile: see that no controller of Karmada runs".to_owned()
        }
        error => without_values(error).to_string(),
    };
    let patch = retiring_patch(kind, stored);
    let patched = within(api.patch(&name.name, &apply::patch(), &Patch::Merge(&patch))).await;
    let mut object = match patched {
        Err(error) if is_not_found(&error) => return Ok(()),
        answer => answer.map_err(words)?,
    };
    wipe(&mut object.data);
    let preconditions = Preconditions {
        uid: object.metadata.uid,
        resource_version: object.metadata.resource_version,
    };
    let params = DeleteParams::background().preconditions(preconditions);
    match within(api.delete(&name.name, &params)).await {
        Err(error) if is_not_found(&error) => Ok(()),
        Err(error) => Err(words(error)),
        Ok(deleted) => {
            let mut kept = deleted.left();
            if let Some(object) = &mut kept {
                wipe(&mut object.data);
            }
            let finalizers = kept.and_then(|object| object.metadata.finalizers);
            match finalizers.filter(|finalizers| !finalizers.is_empty()) {
                Some(finalizers) => Err(format!("it waits for {}", finalizers.join(", "))),
                None => Ok(()),
            }
        }
    }
}

/// The kind of an object in a namespace; in none, that of the cluster-scoped counterpart.
fn gvk(kind: Retired, namespace: &str) -> Gvk {
    match kind {
        Retired::Policy if namespace.is_empty() => Gvk::new(scope::POLICY_API, scope::CLUSTER_POLICY.kind),
        Retired::Policy => Gvk::new(scope::POLICY_API, scope::POLICY.kind),
        Retired::Binding => Gvk::new(scope::BINDING_API, scope::binding(namespace).kind),
        Retired::Work => work(),
    }
}

fn line(kind: Retired, name: &NamespacedName, words: String) -> Row {
    let gvk = gvk(kind, &name.namespace);
    let cells = vec![
        name.namespace.to_string(),
        format!("{} {}", gvk.kind, name.name),
        words,
    ];
    Row {
        name: String::new(),
        cells,
        item: Value::Null,
    }
}

fn table(rows: Vec<Row>) -> String {
    let view = View {
        columns: vec![
            ("NAMESPACE", Shown::Always),
            ("OBJECT IN KARMADA", Shown::Always),
            ("DECISION", Shown::Always),
        ],
        rows,
        more: Vec::new(),
    };
    view.table(false, true)
}

#[cfg(test)]
mod tests {
    use entourage_core::adoption::{HubState, karmada::Karmada};
    use serde_json::json;

    use super::super::tests as in_memory;
    use super::*;
    use crate::mock::Server;

    const POLICY: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/shop/propagationpolicies/web";
    const BINDING: &str = "/apis/work.karmada.io/v1alpha2/namespaces/shop/resourcebindings/web-deployment";
    const WORK: &str = "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-m1/works/web-1";

    /// A Karmada with one of each, and what is decided on them when this hub has the copy.
    async fn prepared(server: &Server) -> (Karmada, Retirement) {
        let karmada = super::super::read::karmada(&server.client()).await.unwrap();
        let copy = json!({"metadata": {"labels": {"entourage.dev/hub": "hub"},
            "annotations": {"work.karmada.io/namespace": "karmada-es-m1"}}});
        let id = ResourceId::new(Gvk::new("apps/v1", "Deployment"), "shop", "web");
        let member = BTreeMap::from([(id, Meta::of(&copy))]);
        let members = BTreeMap::from([("m1".into(), member)]);
        let all = retirement(&karmada, ("hub", &HubState::default()), &members);
        assert!(all.values().all(Result::is_ok), "{all:?}");
        (karmada, all)
    }

    async fn retired(server: &Server) -> (Result<()>, Results) {
        let (karmada, all) = prepared(server).await;
        let client = server.client();
        let mut watched = Watched::karmada(&client, &karmada);
        let mut results = Results::new();
        let ended = retire(&client, &all, &mut watched, &mut results).await;
        (ended, results)
    }

    #[tokio::test]
    async fn what_makes_works_goes_first_and_a_work_preserves_its_object() {
        let server = in_memory::karmada_server();
        let (ended, results) = retired(&server).await;
        ended.unwrap();
        assert!(
            results.len() == 3 && results.values().all(Result::is_ok),
            "{results:?}"
        );
        let writes = server.take_writes();
        let expected: Vec<String> = [POLICY, BINDING, WORK]
            .iter()
            .flat_map(|path| [format!("PATCH {path}"), format!("DELETE {path}")])
            .collect();
        assert_eq!(writes, expected);
        for path in [POLICY, BINDING, WORK] {
            assert_eq!(server.object(path), None);
        }
    }

    #[tokio::test]
    async fn a_work_that_was_changed_meanwhile_stays() {
        let server = in_memory::karmada_server();
        let server = server.reacting(|method, path, objects| {
            // A controller that was started: it writes when the binding goes.
            if (method, path) == ("DELETE", BINDING)
                && let Some(work) = objects.get_mut(WORK)
            {
                work["metadata"]["resourceVersion"] = json!("99");
            }
        });
        let (ended, results) = retired(&server).await;
        assert!(ended.is_err());
        let work = results.iter().find(|((kind, _), _)| *kind == Retired::Work);
        let words = work
            .and_then(|(_, result)| result.clone().err())
            .unwrap_or_default();
        assert!(words.contains("no controller of Karmada runs"), "{words}");
        let work = server.object(WORK).unwrap();
        assert_eq!(
            work["metadata"]["finalizers"],
            json!(["karmada.io/execution-controller"])
        );
    }

    #[tokio::test]
    async fn a_binding_that_cannot_go_keeps_its_works() {
        let server = in_memory::karmada_server().forbidding("DELETE", BINDING);
        let (ended, results) = retired(&server).await;
        let error = ended.unwrap_err().to_string();
        assert!(error.contains("the rest is left as it is"), "{error}");
        assert_eq!(results.len(), 2);
        let work = server.object(WORK).unwrap();
        assert!(work["spec"]["preserveResourcesOnDeletion"].is_null(), "{work}");
    }
}
