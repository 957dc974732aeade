//! `entourage token`: bootstrap tokens by which clusters in Pull mode are registered.

use std::{collections::BTreeMap, io::Write, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use secrecy::{ExposeSecret as _, SecretString};

use super::get::{
    select,
    table::{Row, Shown, View},
};
use crate::{
    apply::Target,
    args::{self, HubArgs, RowArgs},
    connect::{self, Connection},
    output::{Output, OutputArgs},
    registration::{
        bootstrap::{self, Known, Token, Wanted},
        cluster_info,
        discovery::Pin,
        hub::{self, Described},
        kubeconfig::{Hub, with_token, write_file},
    },
    style::Style,
};

/// Flags of `entourage token`.
#[derive(Args, Clone, Debug)]
pub struct TokenArgs {
    /// The action.
    #[command(subcommand)]
    pub action: Action,
}

/// The actions on tokens.
#[derive(Clone, Debug, Subcommand)]
pub enum Action {
    /// Prepare the hub for a cluster in Pull mode, and print a kubeconfig with a bootstrap token
    ///
    /// `entourage register` takes that kubeconfig. On the hub the Cluster, its namespaces and the rights of its agent are created. The
    /// token is valid for this cluster alone, or without one for all of them: keep it as a password.
    Create(Box<CreateArgs>),
    /// Show the bootstrap tokens of the hub, without their secret part
    List(ListArgs),
    /// Delete bootstrap tokens; certificates that were issued by them remain valid
    Delete(DeleteArgs),
}

/// Flags of `entourage token create`.
#[derive(Args, Clone, Debug)]
pub struct CreateArgs {
    /// Name of the cluster on the hub; with --print-register-command it may be left out, for a token by which karmadactl registers any
    /// cluster
    #[arg(value_parser = args::cluster_name, required_unless_present = "print_register_command")]
    pub cluster: Option<String>,

    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Address of the hub as the cluster reaches it (default: that of the kubeconfig)
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,

    /// Time for which the token is valid; 0s for ever
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "24h")]
    pub ttl: Duration,

    /// Words that `entourage token list` shows
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub description: String,

    /// Labels of the Cluster, for policies to select it by, e.g. env=prod,tier=a
    #[arg(long, value_name = "KEY=VALUE,…", value_parser = args::labels, default_value = "", hide_default_value = true,
        requires = "cluster")]
    pub labels: BTreeMap<String, String>,

    /// Provider that runs the cluster, for policies to spread by
    #[arg(long, value_name = "NAME", requires = "cluster")]
    pub provider: Option<String>,

    /// Region of the cluster
    #[arg(long, value_name = "NAME", requires = "cluster")]
    pub region: Option<String>,

    /// Zone of the cluster; may be given several times
    #[arg(long, value_name = "NAME", requires = "cluster")]
    pub zone: Vec<String>,

    /// Write the kubeconfig to this file, which only its owner may read (default: print it)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Print the command that registers the cluster, in place of a kubeconfig: the hub says who it is in kube-public/cluster-info, and is
    /// verified there by the token and the hash of its certificate
    #[arg(long, conflicts_with = "output")]
    pub print_register_command: bool,

    /// Write nothing; print what would be done
    #[arg(long)]
    pub dry_run: bool,
}

/// Flags of `entourage token list`.
#[derive(Args, Clone, Debug)]
pub struct ListArgs {
    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,

    /// The tokens to show; labels are those of their Secrets.
    #[command(flatten)]
    pub rows: RowArgs,

    /// The output.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags of `entourage token delete`.
#[derive(Args, Clone, Debug)]
pub struct DeleteArgs {
    /// Tokens, or their ids, which are their first six characters
    #[arg(required = true, value_name = "ID")]
    pub tokens: Vec<String>,

    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Runs the command. The result goes to `out`, the steps of `create` to `steps`, so that the kubeconfig can be redirected to a file.
///
/// # Errors
/// The cause and the remedy.
pub async fn run(
    args: TokenArgs,
    out: &mut (dyn Write + Send),
    steps: &mut (dyn Write + Send),
) -> Result<()> {
    match args.action {
        Action::Create(args) => {
            let hub = connection(&args.hub).await?;
            let address = Hub::of(&hub.config, args.server.as_deref())?;
            create(&args, target(hub, args.dry_run, steps)?, &address, out).await
        }
        Action::List(args) => {
            let hub = target(connection(&args.hub).await?, false, steps)?;
            let known = bootstrap::list(&hub, args.rows.selector.as_deref()).await?;
            let text = shown(&args, &known, Style::of_stdout())?;
            out.write_all(text.as_bytes())
                .context("cannot write to the terminal")
        }
        Action::Delete(args) => {
            let mut hub = target(connection(&args.hub).await?, false, out)?;
            for token in &args.tokens {
                bootstrap::delete(&mut hub, token).await?;
            }
            Ok(())
        }
    }
}

async fn connection(hub: &HubArgs) -> Result<Connection> {
    connect::config(hub.kubeconfig.as_deref(), hub.context.as_deref()).await
}

fn target(hub: Connection, dry_run: bool, out: &mut (dyn Write + Send)) -> Result<Target<'_>> {
    Ok(Target {
        client: connect::client(hub)?,
        place: "hub",
        dry_run,
        out,
    })
}

async fn create(
    args: &CreateArgs,
    mut target: Target<'_>,
    address: &Hub,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let pins = match args.print_register_command {
        true => cluster_info::ensure(&mut target, address).await?,
        false => Vec::new(),
    };
    if let Some(cluster) = &args.cluster {
        let described = Described {
            name: cluster.clone(),
            labels: args.labels.clone(),
            provider: args.provider.clone(),
            region: args.region.clone(),
            zones: args.zone.clone(),
        };
        hub::ensure(&mut target, &described).await?;
    }
    let group = args.cluster.as_deref().map(bootstrap::group);
    let wanted = Wanted {
        group: group.as_deref().unwrap_or(bootstrap::KARMADAS),
        ttl: args.ttl,
        description: &args.description,
        signs: args.print_register_command,
    };
    let token = bootstrap::create(&mut target, &wanted).await?;
    if args.dry_run {
        return Ok(());
    }
    if crate::join::is_loopback(&address.server) && args.server.is_none() {
        writeln!(
            target.out,
            "note: {} is a loopback address; a cluster elsewhere needs --server",
            address.server
        )?;
    }
    if args.print_register_command {
        let printed = register_command(args.cluster.as_deref(), address, &token, &pins);
        out.write_all(printed.expose_secret().as_bytes())
            .context("cannot write to the terminal")?;
        if args.cluster.is_none() {
            writeln!(
                target.out,
                "note: by this token karmadactl registers any cluster, if the hub permits it as Karmada's do: kubectl apply -k \
                 config/karmadactl"
            )?;
        }
        writeln!(
            target.out,
            "next, where the cluster is reachable: the printed command; then, here: entourage token delete {}",
            token.id
        )?;
        return Ok(());
    }
    let cluster = args.cluster.as_deref().unwrap_or_default();
    let kubeconfig = with_token(address, cluster, &token.value)?;
    let file = args.output.as_deref();
    match file {
        Some(file) => write_file(file, &kubeconfig)?,
        None => out
            .write_all(kubeconfig.expose_secret().as_bytes())
            .context("cannot write to the terminal")?,
    }
    let file = file.map_or_else(|| "FILE".into(), |file| file.display().to_string());
    writeln!(
        target.out,
        "next, where the cluster is reachable: entourage register --bootstrap-kubeconfig {file} --image IMAGE; then, here: entourage token \
         delete {}",
        token.id
    )?;
    Ok(())
}

/// The command that registers a cluster; without a cluster that of karmadactl, as `karmadactl token create` prints it.
fn register_command(cluster: Option<&str>, hub: &Hub, token: &Token, pins: &[Pin]) -> SecretString {
    let endpoint = hub.server.trim_start_matches("https://");
    let pins: Vec<String> = pins.iter().map(ToString::to_string).collect();
    let flags = format!(
        "--token {} --discovery-token-ca-cert-hash {}",
        token.value.expose_secret(),
        pins.join(",")
    );
    SecretString::from(match cluster {
        Some(cluster) => {
            format!("entourage register {endpoint} --cluster-name {cluster} {flags} --image IMAGE\n")
        }
        None => format!("karmadactl register {endpoint} {flags}\n"),
    })
}

/// The list of tokens.
///
/// # Errors
/// No token has a field that is asked for, or a template cannot be evaluated.
fn shown(args: &ListArgs, known: &[Known], style: Style) -> Result<String> {
    let mut view = view(known);
    if let Some(fields) = &args.rows.field_selector {
        select::by_fields(&mut view.rows, |row| &row.item, fields)?;
    }
    let is_table = matches!(args.output.output, None | Some(Output::Wide));
    if view.rows.is_empty() && is_table {
        return Ok("No bootstrap tokens found.\n".to_owned());
    }
    view.printed(&args.output, false, style)
}

fn view(known: &[Known]) -> View {
    let row = |token: &Known| Row {
        name: format!("secret/{}", bootstrap::secret_name(&token.id)),
        cells: vec![
            token.id.clone(),
            token.cluster.clone(),
            Some(token.expires.as_str())
                .filter(|end| !end.is_empty())
                .unwrap_or("never")
                .to_owned(),
            token.description.clone(),
        ],
        item: bootstrap::shown(token),
    };
    View {
        columns: ["ID", "CLUSTER", "EXPIRES", "DESCRIPTION"]
            .map(|title| (title, Shown::Always))
            .to_vec(),
        rows: known.iter().map(row).collect(),
        more: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
