//! `entourage register`: makes a cluster a member in Pull mode, from where that cluster is reachable.
//!
//! 0. Hub, if it is named by its address: is it the one that the token and the hash of its certificate are of?
//! 1. Hub, by the bootstrap token: a client certificate of the agent.
//! 2. Hub, by that certificate: is the Cluster this cluster?
//! 3. Cluster: the Secret with the certificate, the account of the agent, its rights, and the agent. Or, with `--hub-kubeconfig`, a file.
//! 4. Wait until the agent reports the cluster as ready.

use std::{
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use clap::{
    Args,
    builder::{StringValueParser, TypedValueParser as _},
};
use kube::{
    Client,
    api::DynamicObject,
    config::{KubeConfigOptions, Kubeconfig},
};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use crate::{
    apply::{CLUSTER, Target},
    args,
    connect::{self, Connection},
    join::hub::ready,
    registration::{
        certificate::{self, Answer},
        discovery::{self, Pin},
        kubeconfig::{Hub, with_certificate, with_token, write_file},
        member::{self, Agent},
    },
    wait::{Waited, until},
};

/// A year: how long the certificate of an agent is valid in Karmada.
const YEAR: i32 = 365 * 24 * 60 * 60;

/// Flags of `entourage register`.
#[derive(Args, Clone, Debug)]
pub struct RegisterArgs {
    /// Address of the hub, HOST:PORT, which is verified by --token and --discovery-token-ca-cert-hash
    #[arg(
        required_unless_present = "bootstrap_kubeconfig",
        conflicts_with = "bootstrap_kubeconfig",
        requires = "token",
        requires = "discovery_token_ca_cert_hash",
        requires = "cluster_name"
    )]
    pub hub: Option<String>,

    /// Kubeconfig that `entourage token create` printed on the hub, in place of its address
    #[arg(long, value_name = "FILE")]
    pub bootstrap_kubeconfig: Option<PathBuf>,

    /// Bootstrap token, as `entourage token create --print-register-command` printed it on the hub
    #[arg(long, value_name = "TOKEN", requires = "hub", conflicts_with = "bootstrap_kubeconfig",
        value_parser = StringValueParser::new().map(SecretString::from))]
    pub token: Option<SecretString>,

    /// Hash of the public key of the hub's authority, as that command printed it; may be given several times
    #[arg(long, value_name = "sha256:HASH,…", requires = "hub", conflicts_with = "bootstrap_kubeconfig",
        value_delimiter = ',', value_parser = discovery::pin)]
    pub discovery_token_ca_cert_hash: Vec<Pin>,

    /// Name of the cluster on the hub (default: the name of the context in the kubeconfig)
    #[arg(long, value_name = "NAME", value_parser = args::cluster_name)]
    pub cluster_name: Option<String>,

    /// Kubeconfig of the cluster, with the rights of an administrator; it is used for this command only (default: $KUBECONFIG or
    /// ~/.kube/config)
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context in that kubeconfig (default: current context)
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// Namespace of the agent on the cluster
    #[arg(short, long, value_name = "NAMESPACE", default_value = "karmada-system")]
    pub namespace: String,

    /// Image of the agent, with `entourage` as its entry point
    #[arg(long, value_name = "IMAGE", required_unless_present = "hub_kubeconfig")]
    pub image: Option<String>,

    /// Write the agent's kubeconfig of the hub to this file and start no agent, for one that runs outside of the cluster
    #[arg(long, value_name = "FILE", conflicts_with_all = ["image", "namespace"])]
    pub hub_kubeconfig: Option<PathBuf>,

    /// Seconds for which the certificate of the agent is valid; the hub may sign one that ends earlier
    #[arg(long, value_name = "SECONDS", default_value_t = YEAR, value_parser = clap::value_parser!(i32).range(600..))]
    pub cert_expiration_seconds: i32,

    /// Time to wait until the certificate is approved and signed, and then for the cluster to be ready
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "60s")]
    pub wait: Duration,
}

/// Runs the command; lines go to `out`.
///
/// # Errors
/// The cause and the remedy. The next run asks for another certificate and continues.
pub async fn run(args: RegisterArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    let (hub, cluster, bootstrap) = match (&args.hub, &args.bootstrap_kubeconfig) {
        (_, Some(file)) => given(&args, file).await?,
        (Some(endpoint), None) => discovered(&args, endpoint, out).await?,
        // The command line is not accepted without one of them.
        (None, None) => bail!("give the address of the hub, or --bootstrap-kubeconfig"),
    };
    let member = connect::config(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
    let member = connect::client(member)?;
    let member_id = connect::cluster_id(&member, "the cluster").await?;

    let pending = certificate::request(&bootstrap, &cluster, args.cert_expiration_seconds).await?;
    writeln!(
        out,
        "hub: certificatesigningrequest.certificates.k8s.io/{} created; waiting until it is approved and signed",
        pending.name
    )?;
    let issued = match certificate::wait(&bootstrap, &pending, args.wait).await? {
        Answer::Issued(issued) => issued,
        Answer::Late(why) => {
            bail!("{why}, and then run this again with a longer --wait: the next run asks for another one")
        }
        Answer::Refused(why) => bail!("{why}"),
    };
    writeln!(out, "hub: certificate of the agent of {cluster} issued")?;
    let kubeconfig = with_certificate(&hub, &cluster, &issued)?;
    let agent = client(&kubeconfig).await?;
    check(&agent, &cluster, &member_id).await?;

    match &args.hub_kubeconfig {
        Some(file) => {
            write_file(file, &kubeconfig)?;
            writeln!(
                out,
                "wrote {0}; next: entourage agent --cluster-name {cluster} --hub-kubeconfig {0}",
                file.display()
            )?;
            return Ok(());
        }
        None => {
            let mut target = Target {
                client: member,
                place: "member",
                dry_run: false,
                out: &mut *out,
            };
            let agent = Agent {
                cluster: cluster.clone(),
                namespace: args.namespace.clone(),
                image: args.image.clone().unwrap_or_default(),
            };
            if member::ensure(&mut target, &agent, &kubeconfig).await? {
                writeln!(
                    out,
                    "note: the agent was there before; it uses the new certificate within some minutes"
                )?;
            }
        }
    }
    if args.wait.is_zero() {
        return Ok(());
    }
    let target = Target {
        client: agent,
        place: "hub",
        dry_run: false,
        out,
    };
    wait_ready(target, &args, &cluster).await
}

/// The hub of a kubeconfig with a token, the name of the cluster, and a client.
async fn given(args: &RegisterArgs, file: &Path) -> Result<(Hub, String, Client)> {
    let bootstrap = connect::bootstrap_config(file).await?;
    let cluster = match &args.cluster_name {
        Some(name) => name.clone(),
        None => args::cluster_name(bootstrap.context().unwrap_or_default()).map_err(|error| {
            anyhow::anyhow!(
                "the context of {} is not the name of a cluster ({error}); give --cluster-name",
                file.display()
            )
        })?,
    };
    let hub = Hub::of(&bootstrap.config, None)?;
    Ok((hub, cluster, connect::client(bootstrap)?))
}

/// The same of a hub that is verified by a token.
async fn discovered(
    args: &RegisterArgs,
    endpoint: &str,
    out: &mut (dyn Write + Send),
) -> Result<(Hub, String, Client)> {
    let (Some(token), Some(cluster)) = (&args.token, &args.cluster_name) else {
        bail!("give --token and --cluster-name");
    };
    let pins = &args.discovery_token_ca_cert_hash;
    let hub = discovery::hub(endpoint, token, pins, args.wait).await?;
    writeln!(out, "hub: {} verified", hub.server)?;
    let bootstrap = client(&with_token(&hub, cluster, token)?).await?;
    Ok((hub, cluster.clone(), bootstrap))
}

/// A client with a kubeconfig that is in no file.
async fn client(kubeconfig: &SecretString) -> Result<Client> {
    // The parser's message could quote the key or the token.
    let read = Kubeconfig::from_yaml(kubeconfig.expose_secret())
        .map_err(|_| anyhow::anyhow!("the kubeconfig for the hub cannot be read"))?;
    let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    let config = config.map_err(|_| anyhow::anyhow!("the credentials for the hub cannot be used"))?;
    connect::client(Connection::from(config))
}

/// Checks that the Cluster on the hub is for this cluster.
async fn check(hub: &Client, cluster: &str, member_id: &str) -> Result<()> {
    let target = Target {
        client: hub.clone(),
        place: "hub",
        dry_run: true,
        out: &mut std::io::sink(),
    };
    let Some(found) = target.get(CLUSTER, "", cluster).await? else {
        bail!("the hub has no cluster {cluster}; create it there: entourage token create {cluster}");
    };
    let text = |pointer: &str| {
        let value = found.data.pointer(pointer).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    if text("/spec/syncMode") != "Pull" {
        bail!("the cluster {cluster} of the hub is not in Pull mode");
    }
    let id = text("/spec/id");
    if !id.is_empty() && id != member_id {
        bail!(
            "the cluster {cluster} of the hub is another one (id {id}) than that of the kubeconfig (id {member_id}); register this \
             one under another name"
        );
    }
    Ok(())
}

async fn wait_ready(mut hub: Target<'_>, args: &RegisterArgs, cluster: &str) -> Result<()> {
    let api = hub.api(CLUSTER, "");
    let is_ready = |cluster: Option<&DynamicObject>| {
        let status = cluster.and_then(|cluster| ready(&cluster.data));
        status.is_some_and(|(status, _)| status == "True")
    };
    let waited = until(&api, cluster, args.wait, is_ready).await;
    match waited
        .map_err(connect::explain)
        .with_context(|| format!("cannot read the cluster {cluster} on the hub"))?
    {
        Waited::Met(_) => hub.say(CLUSTER, cluster, "is ready"),
        Waited::TimedOut(found) => {
            let seconds = args.wait.as_secs();
            match found.as_ref().and_then(|found| ready(&found.data)) {
                Some((_, why)) => bail!("{cluster} is registered, but not ready after {seconds} s: {why}"),
                None => bail!(
                    "{cluster} is registered, but its agent has not reported within {seconds} s; look at it: kubectl -n {} logs \
                     deployment/{}",
                    args.namespace,
                    member::NAME
                ),
            }
        }
    }
}

#[cfg(test)]
mod tests;
