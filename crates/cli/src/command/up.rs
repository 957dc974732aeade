//! `entourage up`: a hub, members and the controllers in this process, until Ctrl-C.

use std::{
    io::Write,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::Result;
use clap::Args;
use entourage_controllers::Options;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::controllers::{
    WorkObjects,
    features::{self, FeatureGates},
    optional::{self, Controllers},
    stop_on,
};
use super::{
    explained::Assumptions,
    ui::{Page, UiOptions},
};
use crate::{
    fleet::{Fleet, Place},
    logging::{self, LogArgs},
    manifests::{self, Manifest},
};

/// The number of kubeconfig paths that are listed; the others are counted.
const LISTED: usize = 5;

/// Flags of `entourage up`.
#[derive(Args, Clone, Debug)]
pub struct UpArgs {
    /// Number of members
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u16).range(..=1000))]
    pub members: u16,

    /// Keep all data in this directory and continue with it the next time (default: nothing is kept)
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// The features of the controllers, as of `entourage controllers`, but ResourceDistributionGate is on: NAME=true,NAME=false
    #[arg(long, value_name = "NAME=BOOL,…", value_parser = features::parse, default_value = "",
        hide_default_value = true, long_help = features::help() + "\n\nHere ResourceDistributionGate is on by default.")]
    pub feature_gates: FeatureGates,

    /// The controllers to turn on besides those that are always on (*), as of `entourage controllers`: *,NAME,NAME
    #[arg(long, value_name = "*,NAME,…", value_parser = optional::parse, default_value = "*",
        allow_hyphen_values = true, long_help = optional::help())]
    pub controllers: Controllers,

    /// Keep a Work for each copy as a view: mirror, or off
    #[arg(long, value_name = "WHICH", value_enum, default_value = "off")]
    pub work_objects: WorkObjects,

    /// Apply a file, the files of a directory, or standard input (-) to the hub once it is ready; may be given several times
    #[arg(long, value_name = "FILE|DIR|-")]
    pub apply: Vec<PathBuf>,

    /// Serve the page of `entourage ui` about the hub
    #[arg(long)]
    pub ui: bool,

    /// Log level of the controllers on the terminal: error, warn, info, debug, trace, or directives
    #[arg(long, default_value = "warn", value_name = "LEVEL")]
    pub log_level: String,
}

/// Runs until SIGINT or SIGTERM.
///
/// # Errors
/// An error in starting or applying; all that was started is ended.
pub async fn run(args: UpArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    logging::init(&LogArgs {
        log_format: logging::LogFormat::default(),
        log_level: args.log_level.clone(),
    })?;
    let begin = Instant::now();
    let stop = CancellationToken::new();
    let signals = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let _signals = AbortOnDropHandle::new(tokio::spawn(stop_on(signals, stop.clone())));
    let objects = manifests::read(&args.apply)?;
    let place = args
        .data_dir
        .clone()
        .map_or(Place::Temporary("entourage-up-"), Place::Kept);
    let options = options(&args);
    let mut fleet = tokio::select! {
        () = stop.cancelled() => return Ok(()),
        fleet = Fleet::start(args.members.into(), &place, options) => fleet?,
    };
    let served = tokio::select! {
        () = stop.cancelled() => Ok(()),
        served = serve(&mut fleet, &objects, begin, &args, &stop, out) => served,
    };
    let ended = fleet.end().await;
    served.and(ended)
}

/// The flags as options of the controllers.
fn options(args: &UpArgs) -> Options {
    let usual = crate::fleet::options();
    let is_on = |feature, usual| args.feature_gates.given(feature).unwrap_or(usual);
    Options {
        propagate_deps: is_on(features::PROPAGATE_DEPS, usual.propagate_deps),
        distribute: is_on(features::RESOURCE_DISTRIBUTION, usual.distribute),
        failover: is_on(features::FAILOVER, usual.failover),
        enforce_quotas: is_on(features::FEDERATED_QUOTA_ENFORCEMENT, usual.enforce_quotas),
        multiple_pod_templates: is_on(
            features::MULTIPLE_POD_TEMPLATES_SCHEDULING,
            usual.multiple_pod_templates,
        ),
        mirror_works: args.work_objects == WorkObjects::Mirror,
        // As Karmada's controllers do by default.
        approve_agents: true,
        // The embedded hub has no kube-controller-manager.
        sign_cluster_info: true,
        mark_scale_targets: args.controllers.is_on(optional::SCALE_TARGET_MARKER),
        sync_replicas: args.controllers.is_on(optional::REPLICAS_SYNCER),
        share_services: args.controllers.share_services(),
        ..usual
    }
}

/// Prints the addresses, applies the objects, and waits until the controllers end, which they do only with an error.
async fn serve(
    fleet: &mut Fleet,
    objects: &[Manifest],
    begin: Instant,
    args: &UpArgs,
    stop: &CancellationToken,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let client = fleet.hub.client();
    let page = match args.ui {
        true => Some(Page::start(client.clone(), page_options(args), stop.clone()).await?),
        false => None,
    };
    let address = page.as_ref().map(|page| page.address.as_str());
    print_summary(fleet, begin, args.data_dir.is_some(), address, out)?;
    for object in objects {
        let line = manifests::apply(&client, object).await?;
        writeln!(out, "hub: {line}")?;
    }
    out.flush()?;
    fleet.controllers_ended().await
}

/// The page knows the flags of the controllers.
fn page_options(args: &UpArgs) -> UiOptions {
    UiOptions {
        assumptions: Assumptions {
            feature_gates: args.feature_gates.clone(),
            reserved_namespaces: Vec::new(),
        },
        ..UiOptions::default()
    }
}

fn print_summary(
    fleet: &Fleet,
    begin: Instant,
    kept: bool,
    page: Option<&str>,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let count = fleet.members.len();
    let members = if count == 1 {
        "1 member"
    } else {
        &format!("{count} members")
    };
    writeln!(
        out,
        "A hub and {members} are up after {} ms{}.\n",
        begin.elapsed().as_millis(),
        if kept {
            "; everything is kept"
        } else {
            "; nothing is kept when they go down"
        }
    )?;
    for machine in fleet.machines().take(LISTED + 1) {
        if let Some(path) = fleet.kubeconfig_of(&machine.name) {
            writeln!(out, "  {:<10} {}", machine.name, quoted(&path))?;
        }
    }
    if count > LISTED {
        writeln!(out, "  … and {} more beside them", count - LISTED)?;
    }
    if let Some(path) = fleet.kubeconfig() {
        writeln!(
            out,
            "\nAll of them as contexts, the hub first:\n\n  export KUBECONFIG={}\n\nTry next:\n\n  kubectl get clusters\n",
            quoted(&path)
        )?;
    }
    if let Some(address) = page {
        writeln!(out, "The page of the hub, for you alone:\n\n  {address}\n")?;
    }
    writeln!(out, "Ctrl-C ends them.")?;
    out.flush()?;
    Ok(())
}

/// A path quoted as one word for a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |letter: char| letter.is_alphanumeric() || "/._-+:@%,=".contains(letter);
    if text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        let table = [
            ("/tmp/entourage-up-1/kubeconfig", "/tmp/entourage-up-1/kubeconfig"),
            ("/my dir/kubeconfig", "'/my dir/kubeconfig'"),
            ("/o'neill/$HOME", r"'/o'\''neill/$HOME'"),
        ];
        for (path, wanted) in table {
            assert_eq!(quoted(path.as_ref()), wanted);
        }
    }
}
