//! `entourage ui`: a page about the fleet, served on loopback by this process.
//!
//! ```text
//! hub ──watches, as the user──► model (rows) ──► board (revisions) ──► server ──Server-Sent Events──► page
//! ```
//!
//! It only reads. The page's data needs the token of its address, which is made at each start.

use std::{
    io::{IsTerminal as _, Write},
    net::{Ipv4Addr, SocketAddr},
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context as _, Result};
use clap::Args;
use entourage_controllers::serve;
use futures::future::join_all;
use kube::Client;
use tempfile::{Builder, NamedTempFile};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::watch as channel,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    controllers::{
        features::{self, FeatureGates},
        stop_on,
    },
    explained::Assumptions,
};
use crate::{args::HubArgs, connect};

mod assets;
mod board;
mod explain;
mod guard;
mod journal;
mod model;
mod server;
mod source;
mod watch;

use board::{Board, Delta};
use explain::Explainer;
use guard::Token;
use server::Site;

/// Flags of `entourage ui`.
#[derive(Args, Clone, Debug)]
pub struct UiArgs {
    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Only objects of this namespace, and cluster-scoped ones (default: all namespaces)
    #[arg(short = 'n', long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// Port on the loopback address; 0 takes any
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,

    /// Print the address, and open no browser
    #[arg(long)]
    pub no_open: bool,

    /// The features that the hub's controllers run with: NAME=true,NAME=false
    #[arg(long, value_name = "NAME=BOOL,…", value_parser = features::parse, default_value = "",
        hide_default_value = true, long_help = features::help())]
    pub feature_gates: FeatureGates,

    /// Namespaces that the hub's controllers leave alone besides kube-*, karmada-* and karmada-cluster: that of their Lease
    #[arg(long, value_name = "NAMESPACE,…", value_delimiter = ',')]
    pub reserved_namespaces: Vec<String>,
}

/// Serves the page until SIGINT or SIGTERM.
///
/// # Errors
/// The hub's configuration is not usable, the hub does not respond, or the port cannot be had.
pub async fn run(args: UiArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    let config = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
    let options = UiOptions {
        port: args.port,
        namespace: args.namespace.clone().unwrap_or_default(),
        default_namespace: config.default_namespace.clone(),
        assumptions: Assumptions {
            feature_gates: args.feature_gates.clone(),
            reserved_namespaces: args.reserved_namespaces.clone(),
        },
    };
    let url = config.cluster_url.to_string();
    let hub = connect::client(config)?;
    // A hub that cannot be reached at all is an error of the command, not of the page.
    connect::within(hub.apiserver_version())
        .await
        .map_err(connect::explain)
        .context("cannot ask the hub for its version")?;
    let stop = CancellationToken::new();
    let signals = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let _signals = AbortOnDropHandle::new(tokio::spawn(stop_on(signals, stop.clone())));
    let page = Page::start(hub, options, stop.clone()).await?;
    writeln!(
        out,
        "The page of the hub at {}:\n\n  {}\n\nWhoever has this address reads what you may read on the hub. Ctrl-C ends it.",
        url.trim_end_matches('/'),
        page.address
    )?;
    out.flush()?;
    let is_seen = std::io::stdout().is_terminal();
    let _opened = if is_seen && !args.no_open {
        open(&page.address)
    } else {
        None
    };
    page.ended().await;
    Ok(())
}

/// The settings of a page.
#[derive(Clone, Debug, Default)]
pub struct UiOptions {
    /// The port on loopback; 0 for any.
    pub port: u16,
    /// The only namespace; empty for all.
    pub namespace: String,
    /// The namespace of questions about an object that name none.
    pub default_namespace: String,
    /// The assumptions about the hub's controllers.
    pub assumptions: Assumptions,
}

/// A page that is served; it ends on drop.
pub struct Page {
    /// The address, with the token.
    pub address: String,
    server: AbortOnDropHandle<()>,
    _watches: Vec<AbortOnDropHandle<()>>,
}

impl Page {
    /// Starts to watch the hub and to serve the page on loopback.
    ///
    /// # Errors
    /// The port cannot be had.
    pub async fn start(hub: Client, options: UiOptions, stop: CancellationToken) -> Result<Self> {
        let bind = SocketAddr::from((Ipv4Addr::LOCALHOST, options.port));
        let listener = TcpListener::bind(bind)
            .await
            .with_context(|| format!("cannot listen on {bind}; --port names another port, 0 takes any"))?;
        let port = listener.local_addr()?.port();
        let token = Token::random()?;
        let address = format!("http://127.0.0.1:{port}/#token={}", token.text());
        let shared = Shared::default();
        let namespace = [&options.namespace, &options.default_namespace]
            .into_iter()
            .find(|name| !name.is_empty());
        let default_namespace = namespace.map_or("default", String::as_str).to_owned();
        let site = Arc::new(Site {
            port,
            token,
            run: Token::random()?.text()[..8].to_owned(),
            shared: shared.clone(),
            explainer: Explainer::new(hub.clone(), default_namespace, options.assumptions),
            streams: server::streams(),
            stop: stop.clone(),
        });
        let watches = source::SOURCES.iter().map(|source| {
            shared.update(|board| board.expect_source(source.name));
            let followed = watch::follow(hub.clone(), *source, options.namespace.clone(), shared.clone());
            AbortOnDropHandle::new(tokio::spawn(followed))
        });
        let watches = watches.collect();
        let answer = move |request| {
            let site = site.clone();
            async move { site.answer(request).await }
        };
        Ok(Self {
            address,
            server: AbortOnDropHandle::new(tokio::spawn(serve::listen(listener, stop, answer))),
            _watches: watches,
        })
    }

    /// Waits until the server has ended.
    pub async fn ended(self) {
        join_all([self.server]).await;
    }
}

/// The board, and the channel on which its followers learn of changes.
#[derive(Clone, Debug)]
struct Shared {
    board: Arc<Mutex<Board>>,
    changed: channel::Sender<u64>,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            board: Arc::default(),
            changed: channel::Sender::new(0),
        }
    }
}

impl Shared {
    fn update(&self, change: impl FnOnce(&mut Board)) {
        // A panic elsewhere leaves whole rows.
        let mut board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut board);
        let revision = board.revision();
        self.changed
            .send_if_modified(|known| std::mem::replace(known, revision) != revision);
    }

    fn delta(&self, since: u64) -> Delta {
        let board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        board.delta(since)
    }

    fn changes(&self) -> channel::Receiver<u64> {
        self.changed.subscribe()
    }
}

/// Opens the page in the user's browser, if there is a screen. The address is passed in a file that only the user can read: the command
/// lines of processes are visible to everyone on the machine. The file is deleted with the result.
fn open(address: &str) -> Option<NamedTempFile> {
    let opener = if cfg!(target_os = "macos") {
        "open"
    } else if ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some())
    {
        "xdg-open"
    } else {
        return None;
    };
    let mut file = Builder::new()
        .prefix("entourage-ui-")
        .suffix(".html")
        .tempfile()
        .ok()?;
    write!(
        file,
        "<!doctype html><meta charset=\"utf-8\"><title>Entourage</title><meta http-equiv=\"refresh\" content=\"0; url={address}\">"
    )
    .ok()?;
    // Without a browser the address that is printed remains.
    let mut opened = Command::new(opener)
        .arg(file.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    std::thread::spawn(move || opened.wait());
    Some(file)
}
