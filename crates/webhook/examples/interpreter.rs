//! A hook that interprets Workloads, to be read, tried and built upon. Its manifests are in
//! `config/samples/interpreter-webhook`.
//!
//! ```text
//! interpreter --bind 127.0.0.1:9443 --name 127.0.0.1 --bundle ca-bundle.txt      a certificate made for these names
//! interpreter --bind 0.0.0.0:8443 --certificate tls.crt --key tls.key            a certificate of one's own
//! ```

use std::{env, error::Error, fs};

use entourage_webhook::interpret::{self, Interpreter};
use jiff::Timestamp;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

#[path = "interpreter/workload.rs"]
mod workload;

/// The options of the command line.
#[derive(Default)]
struct Options {
    bind: String,
    names: Vec<String>,
    bundle: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = options(env::args().skip(1))?;
    let tls = match (&options.certificate, &options.key) {
        (Some(certificate), Some(key)) => interpret::tls(&fs::read(certificate)?, &fs::read(key)?)?,
        (None, None) => {
            let (tls, bundle) = interpret::self_signed(&options.names, Timestamp::now())?;
            match &options.bundle {
                Some(path) => fs::write(path, bundle)?,
                None => println!("caBundle: {bundle}"),
            }
            tls
        }
        _ => return Err("give --certificate and --key, or neither".into()),
    };
    let listener = TcpListener::bind(&options.bind).await?;
    println!("listening on https://{}", listener.local_addr()?);
    let (stop, mut ended) = (CancellationToken::new(), signal(SignalKind::terminate())?);
    let on_end = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = ended.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        on_end.cancel();
    });
    interpret::serve(listener, tls, Interpreter::new(workload::Workloads), stop).await;
    Ok(())
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        bind: "127.0.0.1:9443".to_owned(),
        ..Options::default()
    };
    while let Some(flag) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--bind" => options.bind = value,
            "--name" => options.names.push(value),
            "--bundle" => options.bundle = Some(value),
            "--certificate" => options.certificate = Some(value),
            "--key" => options.key = Some(value),
            _ => {
                return Err(format!(
                    "{flag} is not known; use --bind, --name, --bundle, --certificate and --key"
                ));
            }
        }
    }
    if options.names.is_empty() {
        options.names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    }
    Ok(options)
}
