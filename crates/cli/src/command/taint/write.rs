//! Applies changes of taints to Clusters: all are validated, then each that differs is written.

use anyhow::{Context as _, Result, bail};
use entourage_core::object::Time;
use kube::api::{DynamicObject, Patch};
use serde_json::{Value, json};

use super::change::{Change, Outcome, Rule, decide};
use crate::{
    apply::{CLUSTER, Target, patch},
    command::unjoin::members,
    connect,
    join::hub::list_clusters,
    suggest::hint,
};

/// The number of attempts on a conflict with another writer of the Cluster; its controllers write its status now and then.
const ATTEMPTS: usize = 5;

/// The requested changes of Clusters' taints.
pub struct TaintRequest<'a> {
    /// Names of the Clusters.
    pub clusters: &'a [String],
    /// The changes, the same for each.
    pub changes: &'a [Change],
    /// The changes that count as errors.
    pub rule: Rule,
    /// The lines about a Cluster.
    pub words: fn(&Outcome) -> Vec<&'static str>,
}

impl TaintRequest<'_> {
    fn decide(&self, name: &str, cluster: &DynamicObject, now: Time) -> Result<Outcome, Vec<String>> {
        let taints = cluster.data.pointer("/spec/taints").and_then(Value::as_array);
        let taints = taints.map(Vec::as_slice).unwrap_or_default();
        decide(name, taints, self.changes, self.rule, now)
    }
}

/// Applies the changes: one list, and one write for each Cluster that changes. The first write follows the validation of all.
///
/// # Errors
/// All errors of all Clusters; or an error in reading or writing.
pub async fn carry_out(request: &TaintRequest<'_>, target: &mut Target<'_>, now: Time) -> Result<()> {
    let known = list_clusters(target).await?;
    let (mut found, mut missing, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    for (at, name) in request.clusters.iter().enumerate() {
        if request.clusters[..at].contains(name) {
            continue;
        }
        match known
            .iter()
            .find(|each| each.metadata.name.as_ref() == Some(name))
        {
            None => {
                let names = known.iter().filter_map(|each| each.metadata.name.as_deref());
                missing.push(format!("cluster {name:?} not found{}", hint(name, names)));
            }
            Some(cluster) => match request.decide(name, cluster, now) {
                Ok(_) => found.push((name, cluster)),
                Err(more) => wrong.extend(more),
            },
        }
    }
    if !missing.is_empty() {
        missing.push(members(&known));
    }
    wrong.extend(missing);
    if !wrong.is_empty() {
        bail!("{}", wrong.join("; "));
    }
    let dry = if target.dry_run { " (dry run)" } else { "" };
    for (name, cluster) in found {
        let outcome = write(request, target, name, cluster.clone(), now).await?;
        for word in (request.words)(&outcome) {
            writeln!(target.out, "cluster/{name} {word}{dry}").context("cannot write to the terminal")?;
        }
    }
    Ok(())
}

/// Writes a Cluster that differs. On a conflict the taints are computed again: no change of another writer is lost.
async fn write(
    request: &TaintRequest<'_>,
    target: &Target<'_>,
    name: &str,
    mut cluster: DynamicObject,
    now: Time,
) -> Result<Outcome> {
    let api = target.api(CLUSTER, "");
    for _ in 0..ATTEMPTS {
        let outcome = match request.decide(name, &cluster, now) {
            Ok(outcome) => outcome,
            Err(wrong) => bail!("{}", wrong.join("; ")),
        };
        if outcome.is_unchanged() || target.dry_run {
            return Ok(outcome);
        }
        // An empty list would be stored as such.
        let taints = (!outcome.taints.is_empty()).then_some(&outcome.taints);
        let version = &cluster.metadata.resource_version;
        let body = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": taints}});
        match connect::within(api.patch(name, &patch(), &Patch::Merge(&body))).await {
            Ok(_) => return Ok(outcome),
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => {
                return Err(connect::explain(error))
                    .with_context(|| format!("cannot write the taints of cluster {name}"));
            }
        }
        cluster = target
            .get(CLUSTER, "", name)
            .await?
            .with_context(|| format!("cluster {name:?} was deleted meanwhile"))?;
    }
    bail!(
        "cannot write the taints of cluster {name}: another client changed it {ATTEMPTS} times meanwhile; run this \
         again"
    )
}
