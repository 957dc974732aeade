//! `entourage join`: makes a cluster a member of a hub.
//!
//! 1. Read (both servers): the ids of the two clusters, the use of the name, an earlier join of the member ([`hub::standing`]).
//! 2. Member: namespace, ServiceAccount, rights ([`rights`]), token ([`token`]).
//! 3. Hub: namespace, Secret with the token, Cluster.
//! 4. Wait until the controllers report the member as ready.
//!
//! Every step reads before it writes: a second run with the same flags changes nothing, and one after an interruption continues
//! where the first one stopped.

use std::{collections::BTreeMap, io::Write, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};
use kube::{Client, Config, api::DynamicObject};

use crate::{
    apply::{Target, ensure_namespace},
    args::{self, CLUSTER_NAMESPACE, HubArgs},
    connect,
};

mod accounts;
pub mod grants;
pub mod hub;
pub mod impersonator;
pub mod rights;
pub mod token;

/// Flags of `entourage join`.
#[derive(Args, Clone, Debug)]
pub struct JoinArgs {
    /// Name of the member on the hub
    #[arg(value_parser = args::cluster_name)]
    pub name: String,

    /// Kubeconfig of the member, with the rights of an administrator; it is used for this command only
    #[arg(long, value_name = "FILE")]
    pub cluster_kubeconfig: PathBuf,

    /// Context in that kubeconfig (default: current context)
    #[arg(long, value_name = "NAME")]
    pub cluster_context: Option<String>,

    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Labels of the Cluster, for policies to select it by, e.g. env=prod,tier=a
    #[arg(long, value_name = "KEY=VALUE,…", value_parser = args::labels, default_value = "", hide_default_value = true)]
    pub labels: std::collections::BTreeMap<String, String>,

    /// Provider that runs the member, for policies to spread by
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,

    /// Region of the member
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,

    /// Zone of the member; may be given several times
    #[arg(long, value_name = "NAME")]
    pub zone: Vec<String>,

    /// Namespace for the account and the credentials, on the hub and on the member
    #[arg(long, value_name = "NAMESPACE", default_value = CLUSTER_NAMESPACE)]
    pub cluster_namespace: String,

    /// Address at which the controllers reach the member (default: that of the kubeconfig)
    #[arg(long, value_name = "URL")]
    pub api_endpoint: Option<String>,

    /// Have the controllers accept any certificate of the member; not for production
    #[arg(long)]
    pub insecure_skip_tls_verification: bool,

    /// Proxy through which the controllers reach the member
    #[arg(long, value_name = "URL")]
    pub proxy_url: Option<String>,

    /// Give the controllers every right on the member, so that every kind can be propagated to it
    #[arg(long, conflicts_with = "allow")]
    pub admin: bool,

    /// Further kind that the controllers may manage there, as in RBAC: services, or networking.k8s.io/ingresses
    #[arg(long, value_name = "[GROUP/]RESOURCE", value_delimiter = ',', value_parser = rights::extra)]
    pub allow: Vec<rights::Extra>,

    /// Users and groups of the hub that may reach the member through it, under the member's own RBAC: everyone, nobody, or
    /// user:NAME and group:NAME, each of which the member lets the hub impersonate (default: as this flag said in an earlier join;
    /// if it said nothing, everyone with --admin, else nobody)
    #[arg(long, value_name = "WHO", value_parser = impersonator::whom)]
    pub impersonate: Option<impersonator::Whom>,

    /// Replace another cluster that was joined under this name
    #[arg(long)]
    pub replace: bool,

    /// Treatment of rights that an earlier join granted and these flags do not name
    #[arg(long, value_enum, default_value_t, value_name = "WHICH")]
    pub rights: Rights,

    /// Time to wait for the member to be ready; 0s does not wait
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "30s")]
    pub wait: Duration,

    /// Write nothing; print what would be done
    #[arg(long)]
    pub dry_run: bool,
}

/// The treatment of rights on the member that the flags do not name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Rights {
    /// They are kept.
    #[default]
    Keep,
    /// They are revoked: the controllers have the usual rights and those that --allow names.
    Minimal,
}

/// The address and the trust of a member for the controllers.
#[derive(Clone, Debug)]
pub struct Reach {
    /// URL of its API server.
    pub endpoint: String,
    /// Certificates to trust, as PEM; `None` for those of the system.
    pub ca_bundle: Option<String>,
}

/// Runs the command; lines go to `out`.
///
/// # Errors
/// The cause and the remedy. Objects written before stay and are found by the next run.
pub async fn run(args: JoinArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    let member = connect::member_config(&args.cluster_kubeconfig, args.cluster_context.as_deref()).await?;
    let hub = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
    let reach = reach(&args, &member)?;
    join(
        &args,
        connect::client(hub)?,
        connect::client(member)?,
        &reach,
        out,
    )
    .await
}

/// Joins with the given clients.
///
/// # Errors
/// As [`run`].
pub async fn join(
    args: &JoinArgs,
    hub: Client,
    member: Client,
    reach: &Reach,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let target = Target {
        client: hub.clone(),
        place: "hub",
        dry_run: args.dry_run,
        out: &mut std::io::sink(),
    };
    let clusters = hub::list_clusters(&target).await?;
    join_beside(&clusters, args, hub, member, reach, out).await
}

/// Joins with the given clients and the hub's Clusters.
///
/// # Errors
/// As [`run`].
pub async fn join_beside(
    clusters: &[DynamicObject],
    args: &JoinArgs,
    hub: Client,
    member: Client,
    reach: &Reach,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let hub_id = connect::cluster_id(&hub, "the hub").await?;
    let member_id = connect::cluster_id(&member, "the member").await?;
    if hub_id == member_id {
        bail!("the two kubeconfigs lead to the same cluster; a hub cannot be its own member");
    }
    let joined = hub::standing(clusters, &args.name, &member_id, args.replace)?;
    let leaves = joined == hub::Standing::Leaving;
    if leaves && !args.admin && args.allow.is_empty() {
        let name = &args.name;
        bail!(
            "the member {name} is being removed; wait until it is gone: kubectl wait --for=delete cluster/{name}. With \
             --allow or --admin only the rights there are given, if that waits for them"
        );
    }
    let held = {
        let hub = Target {
            client: hub.clone(),
            place: "hub",
            dry_run: true,
            out: &mut std::io::sink(),
        };
        hub::held(&hub, &args.cluster_namespace, &args.name).await?
    };
    let proxy = hub::proxy(args, clusters, held.proxy.as_deref())?;
    let impersonator = {
        let hub = Target {
            client: hub.clone(),
            place: "hub",
            dry_run: true,
            out: &mut std::io::sink(),
        };
        // A record can only narrow: it counts also after the Cluster was deleted.
        let is_chosen = held.is_chosen && !args.replace;
        impersonator::intent(&hub, args, is_chosen).await?
    };
    // Without a Cluster there is no proof that the Secret is for this member; a token of another one is not sent to it.
    let held = held
        .token
        .filter(|_| joined == hub::Standing::Joined && !args.replace);

    let account = rights::account_name(&hub_id);
    let (minted, impersonated) = {
        let mut target = Target {
            client: member,
            place: "member",
            dry_run: args.dry_run,
            out: &mut *out,
        };
        ensure_namespace(&mut target, &args.cluster_namespace).await?;
        let rules = if args.admin {
            rights::everything()
        } else {
            rights::rules(&args.allow)
        };
        let kept = args.rights == Rights::Keep;
        rights::ensure(&mut target, &args.cluster_namespace, &account, rules, kept).await?;
        if leaves {
            writeln!(
                target.out,
                "note: {} is being removed; its account has the rights for that now, and nothing else was changed",
                args.name
            )?;
            return Ok(());
        }
        let minted = token::obtain(&mut target, &args.cluster_namespace, &account, held).await?;
        let usable = joined == hub::Standing::Joined && !args.replace;
        let impersonated = impersonator::on_member(
            &mut target,
            &args.cluster_namespace,
            &account,
            impersonator,
            usable,
        )
        .await?;
        (minted, impersonated)
    };

    let mut target = Target {
        client: hub,
        place: "hub",
        dry_run: args.dry_run,
        out: &mut *out,
    };
    ensure_namespace(&mut target, &args.cluster_namespace).await?;
    hub::ensure_secret(&mut target, args, reach, &proxy, &minted).await?;
    let secret = impersonator::on_hub(&mut target, args, reach, &proxy, &impersonated).await?;
    hub::ensure_cluster(&mut target, args, reach, (&member_id, secret)).await?;
    if impersonated == impersonator::Outcome::Removed {
        impersonator::remove_secret(&mut target, &args.cluster_namespace, &args.name).await?;
    }
    if let Some(expires) = &minted.expires {
        writeln!(
            target.out,
            "note: the member's token is valid until {expires}; run the same command again before"
        )?;
    }
    if is_loopback(&reach.endpoint) && args.api_endpoint.is_none() {
        writeln!(
            target.out,
            "note: {} is a loopback address; controllers that run elsewhere need --api-endpoint",
            reach.endpoint
        )?;
    }
    if args.dry_run || args.wait.is_zero() {
        return Ok(());
    }
    hub::wait_ready(&mut target, args, joined).await
}

/// The address and the trust of the member for the controllers, from its kubeconfig and the flags.
fn reach(args: &JoinArgs, config: &Config) -> Result<Reach> {
    if config.accept_invalid_certs && !args.insecure_skip_tls_verification {
        bail!(
            "the kubeconfig {} skips the verification of certificates; give one with certificate-authority-data, or \
             pass --insecure-skip-tls-verification to have the controllers skip it as well",
            args.cluster_kubeconfig.display()
        );
    }
    let endpoint = args
        .api_endpoint
        .clone()
        .unwrap_or_else(|| config.cluster_url.to_string());
    let endpoint = endpoint.trim_end_matches('/').to_owned();
    if !endpoint.starts_with("https://") && !endpoint.starts_with("http://") {
        bail!("the member's address {endpoint:?} is not a URL; pass --api-endpoint https://HOST:PORT");
    }
    if endpoint.starts_with("http://") && !args.insecure_skip_tls_verification {
        bail!(
            "the member's address {endpoint} is not encrypted: the token would be readable on the way; pass \
             --api-endpoint https://HOST:PORT, or --insecure-skip-tls-verification"
        );
    }
    let certificates = config
        .root_cert
        .as_deref()
        .filter(|_| !args.insecure_skip_tls_verification);
    let ca_bundle = certificates
        .map(|all| all.iter().map(|der| pem(der)).collect::<Result<String>>())
        .transpose()?;
    Ok(Reach { endpoint, ca_bundle })
}

/// A certificate as PEM.
pub(crate) fn pem(der: &[u8]) -> Result<String> {
    // ByteString is the base64 codec of the Kubernetes types.
    let encoded = serde_json::to_value(k8s_openapi::ByteString(der.to_vec()))?;
    let encoded = encoded.as_str().context("a certificate cannot be encoded")?;
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in encoded.as_bytes().chunks(64) {
        pem.extend(line.iter().map(|byte| char::from(*byte)));
        pem.push('\n');
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    Ok(pem)
}

/// True if an address leads to the machine itself.
pub(crate) fn is_loopback(endpoint: &str) -> bool {
    let host = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    ["127.", "localhost", "[::1]"]
        .iter()
        .any(|start| host.starts_with(start))
}

/// The labels of an object that this command created on either side.
#[must_use]
pub fn made_by_us() -> BTreeMap<&'static str, &'static str> {
    BTreeMap::from([("app.kubernetes.io/managed-by", "entourage")])
}

/// True if an object carries the labels of [`made_by_us`].
#[must_use]
pub fn is_ours(object: &DynamicObject) -> bool {
    let labels = object.metadata.labels.as_ref();
    made_by_us().iter().all(|(key, value)| {
        labels
            .and_then(|labels| labels.get(*key))
            .is_some_and(|held| held == value)
    })
}

#[cfg(feature = "commands")]
#[cfg(test)]
mod tests;
