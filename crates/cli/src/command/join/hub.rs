//! The hub's half of a join: is the name free, the Secret, the Cluster, and the wait until it is ready.

use anyhow::{Context as _, Result, bail};
use entourage_api::keys::{TRUE, annotation, condition, label};
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::{JoinArgs, Reach, is_ours, made_by_us, token};
use crate::{
    apply::{CLUSTER, SECRET, Target},
    connect,
    wait::{Waited, until},
};

/// What the hub holds for the member before the join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing: the member is new.
    New,
    /// Its Cluster: this is a second join.
    Joined,
    /// Its Cluster, which is being removed: rights can still be given, which that may wait for.
    Leaving,
}

/// Whether `name` may stand for the cluster with this id beside these Clusters. With `replace` it may take the place of
/// another one.
///
/// # Errors
/// When the name stands for another cluster, or the member is joined under another name; each with the way out.
pub fn standing(clusters: &[DynamicObject], name: &str, member_id: &str, replace: bool) -> Result<Standing> {
    let id = |cluster: &DynamicObject| text(&cluster.data, "/spec/id").to_owned();
    let named = |cluster: &&DynamicObject| cluster.metadata.name.as_deref() == Some(name);
    if let Some(other) = clusters
        .iter()
        .find(|cluster| id(cluster) == member_id && !named(cluster))
    {
        let other = other.metadata.name.as_deref().unwrap_or_default();
        bail!(
            "this cluster is a member already, as {other}; its copies would be delivered twice. Use that name, or run \
             `entourage unjoin {other}` first"
        );
    }
    let Some(cluster) = clusters.iter().find(named) else {
        return Ok(Standing::New);
    };
    let held = id(cluster);
    if !held.is_empty() && held != member_id && !replace {
        bail!(
            "{name} stands for another cluster (id {held}, this one is {member_id}); choose another name, run `entourage \
             unjoin {name}` first, or pass --replace if this cluster takes its place"
        );
    }
    if cluster.metadata.deletion_timestamp.is_some() {
        return Ok(Standing::Leaving);
    }
    Ok(Standing::Joined)
}

/// All Clusters of the hub.
///
/// # Errors
/// When the hub cannot be read, or does not serve the kind: then with the command that brings it.
pub async fn list_clusters(hub: &Target<'_>) -> Result<Vec<DynamicObject>> {
    match hub.list(CLUSTER).await {
        Ok(clusters) => Ok(clusters),
        Err(error) if connect::is_not_found(&error) => {
            bail!(
                "the hub does not serve the kind Cluster; run `entourage crds --apply` with the same --kubeconfig first"
            )
        }
        Err(error) => Err(connect::explain(error)).context("cannot list the members on the hub"),
    }
}

/// The token that the hub holds for the member, from an earlier join.
///
/// # Errors
/// When the Secret cannot be read, or somebody else made it: it is not ours to replace, and what it holds is not sent to
/// the member.
pub async fn held_token(hub: &Target<'_>, namespace: &str, name: &str) -> Result<Option<token::Token>> {
    let Some(secret) = hub.get(SECRET, namespace, name).await? else {
        return Ok(None);
    };
    if !is_ours(&secret) {
        bail!(
            "the secret {namespace}/{name} on the hub was not made by `entourage join`; delete it, or choose another name"
        );
    }
    let value = secret.data["data"].get("token").cloned().and_then(token::decode);
    let expires = secret
        .metadata
        .annotations
        .and_then(|mut annotations| annotations.remove(annotation::TOKEN_EXPIRES));
    Ok(value.map(|value| token::Token { value, expires }))
}

/// Writes the Secret with the credentials.
///
/// # Errors
/// As [`Target::ensure`].
pub async fn ensure_secret(
    hub: &mut Target<'_>,
    args: &JoinArgs,
    reach: &Reach,
    token: &token::Token,
) -> Result<()> {
    let base64 = |text: &str| serde_json::to_value(k8s_openapi::ByteString(text.as_bytes().to_vec()));
    let ca_bundle = reach.ca_bundle.as_deref().map(base64).transpose()?;
    let mut labels = made_by_us();
    labels.insert(label::SYSTEM, TRUE);
    let object = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": args.name, "namespace": args.cluster_namespace, "labels": labels,
            "annotations": {annotation::TOKEN_EXPIRES: token.expires},
        },
        // null removes what an earlier join left there.
        "data": {"token": base64(&token.value)?, "caBundle": ca_bundle},
    });
    hub.ensure(SECRET, object).await.map(drop)
}

/// Writes the Cluster. Fields of flags that are not given stay as they are.
///
/// # Errors
/// As [`Target::ensure`].
pub async fn ensure_cluster(
    hub: &mut Target<'_>,
    args: &JoinArgs,
    reach: &Reach,
    member_id: &str,
) -> Result<()> {
    let mut spec = json!({
        "id": member_id,
        "syncMode": "Push",
        "apiEndpoint": reach.endpoint,
        "secretRef": {"namespace": args.cluster_namespace, "name": args.name},
        "insecureSkipTLSVerification": args.insecure_skip_tls_verification,
    });
    let optional = [
        ("provider", &args.provider),
        ("region", &args.region),
        ("proxyURL", &args.proxy_url),
    ];
    for (field, value) in optional {
        if let Some(value) = value {
            spec[field] = json!(value);
        }
    }
    if !args.zone.is_empty() {
        spec["zones"] = json!(args.zone);
    }
    let object = json!({
        "apiVersion": CLUSTER.api_version, "kind": CLUSTER.kind,
        "metadata": {"name": args.name, "labels": args.labels},
        "spec": spec,
    });
    hub.ensure(CLUSTER, object).await.map(drop)
}

/// Waits until the controllers find the member ready, and says what to try next.
///
/// # Errors
/// When it is not ready in time: with the controllers' reason, or that none has looked at it.
pub async fn wait_ready(hub: &mut Target<'_>, args: &JoinArgs, before: Standing) -> Result<()> {
    let name = &args.name;
    let api = hub.api(CLUSTER, "");
    let is_ready = |cluster: Option<&DynamicObject>| {
        cluster
            .and_then(|cluster| ready(&cluster.data))
            .is_some_and(|(status, _)| status == "True")
    };
    let waited = until(&api, name, args.wait, is_ready).await;
    match waited
        .map_err(connect::explain)
        .with_context(|| format!("cannot read the cluster {name} on the hub"))?
    {
        Waited::Met(cluster) => {
            let version = cluster.map(|cluster| text(&cluster.data, "/status/kubernetesVersion").to_owned());
            let version = version
                .filter(|version| !version.is_empty())
                .map_or_else(String::new, |v| format!(" ({v})"));
            hub.say(CLUSTER, name, &format!("is ready{version}"))?;
            if before == Standing::New {
                writeln!(
                    hub.out,
                    "next: kubectl get clusters; then a PropagationPolicy whose placement names {name}"
                )?;
            }
            Ok(())
        }
        Waited::TimedOut(cluster) => {
            let seconds = args.wait.as_secs();
            match cluster.as_ref().and_then(|cluster| ready(&cluster.data)) {
                Some((_, why)) => bail!("{name} is joined, but not ready after {seconds} s: {why}"),
                None => bail!(
                    "{name} is joined, but no controller has looked at it within {seconds} s; is `entourage \
                     controllers` running against this hub?"
                ),
            }
        }
    }
}

/// Status of a Cluster's condition Ready, and its reason and message; `None` when no controller has looked at it.
#[must_use]
pub fn ready(cluster: &Value) -> Option<(&str, String)> {
    let conditions = cluster.pointer("/status/conditions")?.as_array()?;
    let ready = conditions.iter().find(|each| each["type"] == condition::READY)?;
    Some((
        text(ready, "/status"),
        format!("{}: {}", text(ready, "/reason"), text(ready, "/message")),
    ))
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
