//! The hub's half of a join: the use of the name, the Secret, the Cluster, and the wait until it is ready.

use anyhow::{Context as _, Result, bail};
use entourage_api::keys::{TRUE, annotation, condition, label};
use entourage_core::cluster::credentials::{Address, plain, record};
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::{JoinArgs, Reach, is_ours, made_by_us, token};
use crate::{
    apply::{CLUSTER, SECRET, Target},
    connect,
    wait::{Waited, until},
};

/// The state of the member on the hub before the join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// No objects: the member is new.
    New,
    /// Its Cluster exists: this is a second join.
    Joined,
    /// Its Cluster exists and is being removed: rights can still be granted, which the removal may wait for.
    Leaving,
}

/// Returns the state of `name` for the cluster with this id among these Clusters. With `replace` it may replace another
/// cluster.
///
/// # Errors
/// The name is used for another cluster, or the member is joined under another name; each with the remedy.
pub fn standing(clusters: &[DynamicObject], name: &str, member_id: &str, replace: bool) -> Result<Standing> {
    let id = |cluster: &DynamicObject| text(&cluster.data, "/spec/id").to_owned();
    let named = |cluster: &&DynamicObject| cluster.metadata.name.as_deref() == Some(name);
    if let Some(other) = clusters
        .iter()
        .find(|cluster| id(cluster) == member_id && !named(cluster))
    {
        let other = other.metadata.name.as_deref().unwrap_or_default();
        bail!(
            "this cluster is already a member, as {other}; its copies would be delivered twice. Use that name, or \
             run \
             `entourage unjoin {other}` first"
        );
    }
    let Some(cluster) = clusters.iter().find(named) else {
        return Ok(Standing::New);
    };
    let held = id(cluster);
    if !held.is_empty() && held != member_id && !replace {
        bail!(
            "{name} is the name of another cluster (id {held}, this one is {member_id}); choose another name, run \
             `entourage \
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
/// The hub cannot be read, or does not serve the kind: then with the command that installs it.
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

/// The objects of an earlier join on the hub.
#[derive(Default)]
pub struct Held {
    /// The token.
    pub token: Option<token::Token>,
    /// The proxy that the token may be sent through, empty for none; `None` if an older version wrote the Secret.
    pub proxy: Option<String>,
    /// True if it was said whom the member lets the hub impersonate.
    pub is_chosen: bool,
}

/// The content of the member's Secret on the hub, from an earlier join.
///
/// # Errors
/// The Secret cannot be read, or another tool created it: then it is not replaced, and its content is not sent to the member.
pub async fn held(hub: &Target<'_>, namespace: &str, name: &str) -> Result<Held> {
    let Some(secret) = hub.get(SECRET, namespace, name).await? else {
        return Ok(Held::default());
    };
    if !is_ours(&secret) {
        bail!(
            "the secret {namespace}/{name} on the hub was not made by `entourage join`; delete it, or choose another name"
        );
    }
    if let Some(other) = belongs_to_other(&secret, name) {
        bail!("the secret {namespace}/{name} on the hub is for cluster {other}; choose another name");
    }
    let value = secret.data["data"].get("token").cloned().and_then(token::decode);
    let mut annotations = secret.metadata.annotations.unwrap_or_default();
    let expires = annotations.remove(annotation::TOKEN_EXPIRES);
    let is_recorded = annotations.contains_key(annotation::CREDENTIALS_ENDPOINT);
    let is_chosen = annotations.contains_key(annotation::IMPERSONATE);
    let proxy = annotations
        .remove(annotation::CREDENTIALS_PROXY)
        .unwrap_or_default();
    Ok(Held {
        token: value.map(|value| token::Token { value, expires }),
        proxy: is_recorded.then_some(proxy),
        is_chosen,
    })
}

/// The Cluster that the credentials of a Secret are for, if that is another one.
pub(super) fn belongs_to_other(secret: &DynamicObject, cluster: &str) -> Option<String> {
    let annotations = secret.metadata.annotations.as_ref()?;
    let named = annotations.get(annotation::CREDENTIALS_CLUSTER)?;
    (named != cluster).then(|| named.clone())
}

/// The proxy of the member: that of the flag, else that of its Cluster.
///
/// # Errors
/// The Cluster's proxy was changed since the Secret was written: then the flag must confirm it.
pub fn proxy(args: &JoinArgs, clusters: &[DynamicObject], recorded: Option<&str>) -> Result<String> {
    if let Some(given) = &args.proxy_url {
        return Ok(given.clone());
    }
    let named = |cluster: &&DynamicObject| cluster.metadata.name.as_deref() == Some(&args.name);
    let Some(cluster) = clusters.iter().find(named) else {
        return Ok(String::new());
    };
    let proxy = text(&cluster.data, "/spec/proxyURL");
    if recorded.is_some_and(|recorded| plain(recorded) != plain(proxy)) {
        bail!(
            "spec.proxyURL of the cluster {} was changed since it was joined; pass --proxy-url URL to say through which proxy \
             its token may be sent, or --proxy-url '' for none",
            args.name
        );
    }
    Ok(proxy.to_owned())
}

/// Writes the Secret with the credentials of the controllers, and the choice of the flag `--impersonate` as a record: it gives no
/// rights, and a later `--admin` alone does not give more than it says.
///
/// # Errors
/// As [`Target::ensure`].
pub async fn ensure_secret(
    hub: &mut Target<'_>,
    args: &JoinArgs,
    reach: &Reach,
    proxy: &str,
    token: &token::Token,
) -> Result<()> {
    let mut object = secret(&args.name, args, reach, proxy, token)?;
    // That of another cluster is no choice for this one.
    if args.impersonate.is_some() || args.replace {
        let choice = args.impersonate.as_ref().map(ToString::to_string);
        object["metadata"]["annotations"][annotation::IMPERSONATE] = json!(choice);
    }
    hub.ensure(SECRET, object).await.map(drop)
}

/// A Secret with a token for the member: it names the Cluster and the address that the token is for.
pub(super) fn secret(
    name: &str,
    args: &JoinArgs,
    reach: &Reach,
    proxy: &str,
    token: &token::Token,
) -> Result<Value> {
    let base64 = |text: &str| serde_json::to_value(k8s_openapi::ByteString(text.as_bytes().to_vec()));
    let ca_bundle = reach.ca_bundle.as_deref().map(base64).transpose()?;
    let mut labels = made_by_us();
    labels.insert(label::SYSTEM, TRUE);
    let address = Address {
        endpoint: &reach.endpoint,
        proxy,
        insecure: args.insecure_skip_tls_verification,
    };
    // null removes annotations of an earlier join.
    let mut annotations = json!({
        annotation::CREDENTIALS_PROXY: null, annotation::CREDENTIALS_INSECURE: null, annotation::TOKEN_EXPIRES: token.expires,
    });
    for (key, value) in record(&args.name, &address) {
        annotations[key] = json!(value);
    }
    Ok(json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": name, "namespace": args.cluster_namespace, "labels": labels,
            "annotations": annotations,
        },
        "data": {"token": base64(&token.value)?, "caBundle": ca_bundle},
    }))
}

/// Writes the Cluster with the id of the member. Fields of flags that are not given are not changed, nor is
/// `spec.impersonatorSecretRef` for `None`.
///
/// # Errors
/// As [`Target::ensure`].
pub async fn ensure_cluster(
    hub: &mut Target<'_>,
    args: &JoinArgs,
    reach: &Reach,
    (member_id, impersonator): (&str, Option<Value>),
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
            spec[field] = json!(Some(value).filter(|value| !value.is_empty()));
        }
    }
    if let Some(secret) = impersonator {
        spec["impersonatorSecretRef"] = secret;
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

/// Waits until the controllers report the member as ready, and prints the next steps.
///
/// # Errors
/// It is not ready in time: with the controllers' reason, or that no controller has reported on it.
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

/// Status of a Cluster's condition Ready, and its reason and message; `None` if no controller has reported on it.
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
