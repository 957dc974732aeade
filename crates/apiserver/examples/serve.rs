//! Serves one embedded cluster on loopback until Ctrl-C:
//! `cargo run -p entourage-apiserver --example serve -- [PORT [FILE [member]]]`; the file gets the authority's certificate, and a
//! member has what a whole cluster has beside an API server.

use std::net::{Ipv4Addr, SocketAddr};

use entourage_apiserver::{Cluster, Options, StandIns, listener, workloads};
use tokio_util::sync::CancellationToken;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let port = std::env::args().nth(1).map_or(Ok(0), |port| port.parse())?;
    let authority = listener::Authority::new()?;
    if let Some(file) = std::env::args().nth(2) {
        std::fs::write(file, &authority.certificate)?;
    }
    let is_member = std::env::args().nth(3).is_some_and(|kind| kind == "member");
    let cluster = Cluster::new(Options {
        admin_token: "admintoken".to_owned(),
        authority: Some(authority.clone()),
        storage_protection: is_member,
        stand_ins: if is_member {
            StandIns::ALL
        } else {
            StandIns::default()
        },
        ..Options::default()
    });
    if is_member {
        workloads::start(&cluster, workloads::Stages::default());
    }
    let stop = CancellationToken::new();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let bound = listener::listen(cluster, &authority, address, stop.clone()).await?;
    println!("https://{bound}");
    tokio::signal::ctrl_c().await?;
    stop.cancel();
    Ok(())
}
