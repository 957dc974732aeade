//! A webhook as a separate process. After a restart its address and certificate are the same.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use tokio::{
    net::TcpStream,
    time::{Instant, sleep},
};

use super::{
    ports::{self, Port},
    process::Server,
};

/// The timeout of its start.
const BEGIN: Duration = Duration::from_secs(20);

/// A certificate that is its own authority, and its key.
#[derive(Clone)]
pub struct Certificate {
    /// PEM.
    pub chain: String,
    /// PEM.
    pub key: String,
}

impl Certificate {
    /// For 127.0.0.1 and these names.
    ///
    /// # Errors
    /// When a name cannot stand in a certificate.
    pub fn of(names: &[&str]) -> Result<Self> {
        let names = ["127.0.0.1"].iter().chain(names).map(|&name| name.to_owned());
        let made = rcgen::generate_simple_self_signed(names.collect::<Vec<_>>())?;
        Ok(Self {
            chain: made.cert.pem(),
            key: made.signing_key.serialize_pem(),
        })
    }

    /// The same with `CA:TRUE`, as `openssl req -x509` makes it.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn of_authority(names: &[&str]) -> Result<Self> {
        let names = ["127.0.0.1"].iter().chain(names).map(|&name| name.to_owned());
        let mut params = rcgen::CertificateParams::new(names.collect::<Vec<_>>())?;
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate()?;
        Ok(Self {
            chain: params.self_signed(&key)?.pem(),
            key: key.serialize_pem(),
        })
    }

    /// The authority of its certificate, for `caBundle`.
    #[must_use]
    pub fn bundle(&self) -> Value {
        json!(ByteString(self.chain.clone().into_bytes()))
    }
}

/// A program with the flags of the example `interpreter`, at a port and with a certificate that stay its own. Dropping it
/// kills it.
pub struct Hook {
    program: PathBuf,
    dir: PathBuf,
    port: Port,
    certificate: Certificate,
    process: Option<Server>,
}

impl Hook {
    /// Not running yet. Its files will be in a directory of its own in `dir`; `names` are what its certificate is for,
    /// besides 127.0.0.1.
    ///
    /// # Errors
    /// When no port is left, or its files cannot be written.
    pub fn new(program: &Path, dir: &Path, names: &[&str]) -> Result<Self> {
        let port = ports::take()?;
        let dir = dir.join(format!("hook-{}", port.number));
        std::fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
        let certificate = Certificate::of(names)?;
        std::fs::write(dir.join("tls.crt"), &certificate.chain)?;
        std::fs::write(dir.join("tls.key"), &certificate.key)?;
        Ok(Self {
            program: program.to_owned(),
            dir,
            port,
            certificate,
            process: None,
        })
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number
    }

    /// The authority of its certificate, for `caBundle`.
    #[must_use]
    pub fn bundle(&self) -> Value {
        self.certificate.bundle()
    }

    /// Its URL, for `clientConfig`.
    #[must_use]
    pub fn client_config(&self) -> Value {
        json!({"url": format!("https://127.0.0.1:{}/interpret", self.port.number), "caBundle": self.bundle()})
    }

    /// Starts it and waits until it listens.
    ///
    /// # Errors
    /// With the end of its log, when it ends or does not listen.
    pub async fn start(&mut self) -> Result<()> {
        let path = |name: &str| self.dir.join(name).display().to_string();
        let address = format!("127.0.0.1:{}", self.port.number);
        let arguments = [
            "--bind",
            &address,
            "--certificate",
            &path("tls.crt"),
            "--key",
            &path("tls.key"),
        ];
        let arguments = arguments.map(str::to_owned);
        let mut process = Server::spawn("a hook", &self.program, &arguments, self.dir.join("log"))?;
        let until = Instant::now() + BEGIN;
        while TcpStream::connect(&address).await.is_err() {
            process.check()?;
            if Instant::now() > until {
                bail!("the hook does not listen on {address}; {}", process.log_tail());
            }
            sleep(Duration::from_millis(20)).await;
        }
        self.process = Some(process);
        Ok(())
    }

    /// Ends it as `SIGKILL` does, and waits until it is gone.
    ///
    /// # Errors
    /// When it does not run, or ended before: then with the end of its log.
    pub fn kill(&mut self) -> Result<()> {
        let mut process = self.process.take().context("the hook does not run")?;
        process.check()
    }
}
