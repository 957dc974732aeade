//! The content of a bundle from the host: the pods of the control plane, their logs and metrics.

use std::time::Duration;

use kube::Client;

use super::{bundle::Bundle, collect::words};
use crate::{lists::PAGE, raw};

/// The pods of the control plane.
const SELECTOR: &str = "labelSelector=app.kubernetes.io%2Fpart-of%3Dentourage";

/// The label that names the component of a pod.
const NAME: &str = "app.kubernetes.io/name";

/// The maximum size of a log, in bytes.
const LONGEST_LOG: usize = 20 * 1024 * 1024;

/// The selection of logs.
#[derive(Clone, Copy, Debug)]
pub struct Logs<'a> {
    /// The namespace of the pods.
    pub namespace: &'a str,
    /// The age of the oldest line.
    pub since: Duration,
    /// The maximum number of lines.
    pub tail: u32,
}

/// Reads the pods of the control plane, their logs and metrics. A host that has none is no error: they may run elsewhere.
pub async fn pods(bundle: &mut Bundle, host: &Client, logs: &Logs<'_>) {
    let base = format!("/api/v1/namespaces/{}/pods", logs.namespace);
    let list = match raw::get(host, &format!("{base}?{SELECTOR}&limit={PAGE}")).await {
        Ok(list) => list,
        Err(error) => return bundle.unread("pods of the host", &words(error)),
    };
    let items = list["items"].as_array().cloned().unwrap_or_default();
    if items.is_empty() {
        bundle.unread(
            "logs",
            &format!(
                "no pods with the label app.kubernetes.io/part-of=entourage in {}; --host-kubeconfig names another cluster",
                logs.namespace
            ),
        );
    }
    bundle.json("host/pods.json", &items);
    for pod in &items {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        for container in pod["status"]["containerStatuses"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let restarted = container["restartCount"].as_i64().unwrap_or_default() > 0;
            let container = container["name"].as_str().unwrap_or_default();
            let query = format!(
                "container={container}&tailLines={}&limitBytes={LONGEST_LOG}",
                logs.tail
            );
            log(
                bundle,
                host,
                &format!(
                    "{base}/{name}/log?{query}&timestamps=true&sinceSeconds={}",
                    logs.since.as_secs().max(1)
                ),
                &format!("host/{name}.{container}.log"),
            )
            .await;
            if restarted {
                let path = format!("{base}/{name}/log?{query}&previous=true");
                log(
                    bundle,
                    host,
                    &path,
                    &format!("host/{name}.{container}.previous.log"),
                )
                .await;
            }
        }
        // The webhook has one port, which serves HTTPS; the others have one for metrics alone.
        let path = if pod["metadata"]["labels"][NAME] == "entourage-webhook" {
            format!("{base}/https:{name}:8443/proxy/metrics")
        } else {
            format!("{base}/{name}:8080/proxy/metrics")
        };
        match raw::text(host, &path).await {
            Ok(text) => bundle.text(&format!("host/{name}.metrics.txt"), &text),
            Err(error) => bundle.unread(&format!("metrics of {name}"), &words(error)),
        }
    }
}

async fn log(bundle: &mut Bundle, host: &Client, path: &str, file: &str) {
    match raw::text(host, path).await {
        Ok(text) => bundle.text(file, &text),
        Err(error) => bundle.unread(file, &words(error)),
    }
}
