//! A front of an API server: the same API at another port, under another serving certificate.

use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use entourage_webhook::interpret;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use tokio_util::task::AbortOnDropHandle;

use crate::servers::{Certificate, TestCluster};

/// Listens on 127.0.0.1 until it is dropped, and hands on every byte.
pub struct Front {
    port: u16,
    _task: AbortOnDropHandle<()>,
}

impl Front {
    /// In front of this cluster's API server.
    ///
    /// # Errors
    /// When no port is left, or a certificate cannot be read.
    pub async fn start(cluster: &TestCluster, certificate: &Certificate) -> Result<Self> {
        let tls = interpret::tls(certificate.chain.as_bytes(), certificate.key.as_bytes());
        let mut tls = tls.map_err(|why| anyhow!(why))?;
        tls.alpn_protocols = Vec::new();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(cluster.ca_pem().as_bytes())?)?;
        let trust = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = TlsConnector::from(Arc::new(trust));
        let behind = cluster.endpoint();
        let behind = behind.strip_prefix("https://").context("an endpoint")?.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, connector, behind) = (acceptor.clone(), connector.clone(), behind.clone());
                // Either side may end a connection at any time.
                connections.spawn(async move { drop(hand_on(&acceptor, &connector, &behind, stream).await) });
            }
        });
        Ok(Self {
            port,
            _task: AbortOnDropHandle::new(task),
        })
    }

    /// The URL of its listener.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }
}

async fn hand_on(
    acceptor: &TlsAcceptor,
    connector: &TlsConnector,
    behind: &str,
    stream: TcpStream,
) -> Result<()> {
    let mut client = acceptor.accept(stream).await?;
    let server = TcpStream::connect(behind).await?;
    let mut server = connector
        .connect(ServerName::try_from("127.0.0.1")?, server)
        .await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}
