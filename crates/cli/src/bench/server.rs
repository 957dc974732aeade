//! One API server, and the count of the bench's own requests to it.

use std::{
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow};
use futures::AsyncBufRead;
use http::{Method, Request as HttpRequest, header};
use kube::Client;
use serde::Deserialize;
use serde_json::Value;

use super::{
    counts::{self, Counts, Request},
    kind::{Kind, ObjectId},
};
use crate::connect;

/// The deadline of one request.
const DEADLINE: Duration = Duration::from_secs(60);

/// The number of retries of a request that the server was too busy to accept, and the pause before each.
const BUSY: (usize, Duration) = (20, Duration::from_millis(100));

const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// One API server.
pub struct Server {
    /// `hub`, or the member's name on the hub.
    pub name: String,
    /// For example `v1.33.1`.
    pub version: String,
    /// The client for requests that are not counted.
    pub client: Client,
    own: Mutex<Counts>,
}

/// The part of an object that a bench reads.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// Its name.
    pub name: String,
    /// Its namespace, if any.
    pub namespace: String,
    /// Its version.
    pub resource_version: String,
    /// Its annotations, only the bench's own.
    pub annotations: Annotations,
}

/// The bench's own annotations.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Annotations {
    /// [`super::objects::STEP`].
    #[serde(rename = "bench.entourage.dev/step", default)]
    pub step: Option<String>,
}

/// A list of metadata.
#[derive(Debug, Deserialize)]
pub struct List {
    /// The metadata of the list.
    pub metadata: Metadata,
    /// An empty list may be null.
    #[serde(default)]
    items: Option<Vec<Item>>,
}

#[derive(Debug, Deserialize)]
struct Item {
    metadata: Metadata,
}

impl List {
    /// The objects' metadata.
    pub fn items(self) -> impl Iterator<Item = Metadata> {
        self.items
            .unwrap_or_default()
            .into_iter()
            .map(|item| item.metadata)
    }
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// Success.
    Done,
    /// The object was not found.
    Missing,
    /// The object already exists.
    Exists,
}

impl Server {
    /// Connects to a server.
    ///
    /// # Errors
    /// The kubeconfig is not usable, or the server does not respond.
    pub async fn connect(name: &str, kubeconfig: Option<&Path>) -> Result<Self> {
        let client = connect::client(connect::config(kubeconfig, None).await?)?;
        let version = client.apiserver_version().await.map_err(connect::explain);
        let version = version
            .with_context(|| format!("{name} does not respond"))?
            .git_version;
        Ok(Self {
            name: name.to_owned(),
            version,
            client,
            own: Mutex::default(),
        })
    }

    /// POST. An object that already exists is not an error.
    ///
    /// # Errors
    /// The server's, with the object's name.
    pub async fn create(&self, id: &ObjectId, object: &Value) -> Result<(Written, String)> {
        let path = id.kind.path(&id.namespace);
        self.write(Method::POST, id, "", path, Some(("application/json", object)))
            .await
    }

    /// PUT of the status.
    ///
    /// # Errors
    /// The server's, with the object's name.
    pub async fn replace_status(&self, id: &ObjectId, object: &Value) -> Result<Written> {
        let path = format!("{}/{}/status", id.kind.path(&id.namespace), id.name);
        let done = self
            .write(
                Method::PUT,
                id,
                "status",
                path,
                Some(("application/json", object)),
            )
            .await;
        done.map(|(written, _)| written)
    }

    /// PATCH with a merge patch.
    ///
    /// # Errors
    /// The server's, with the object's name.
    pub async fn patch(&self, id: &ObjectId, patch: &Value) -> Result<Written> {
        let path = format!("{}/{}", id.kind.path(&id.namespace), id.name);
        let body = Some(("application/merge-patch+json", patch));
        self.write(Method::PATCH, id, "", path, body)
            .await
            .map(|(written, _)| written)
    }

    /// DELETE.
    ///
    /// # Errors
    /// The server's, with the object's name; an object that is not found is not an error.
    pub async fn delete(&self, id: &ObjectId) -> Result<Written> {
        let path = format!("{}/{}", id.kind.path(&id.namespace), id.name);
        self.write(Method::DELETE, id, "", path, None)
            .await
            .map(|(written, _)| written)
    }

    /// The metadata of the objects of a kind in a namespace (all namespaces if it is empty).
    ///
    /// # Errors
    /// The server's.
    pub async fn list(&self, kind: Kind, namespace: &str, label: Option<&str>) -> Result<List> {
        let query = label
            .map(|label| format!("?labelSelector={label}"))
            .unwrap_or_default();
        let uri = format!("{}{query}", kind.path(namespace));
        let text = self.read("LIST", kind, &uri, METADATA_LIST).await?;
        serde_json::from_str(&text).with_context(|| format!("the list {uri} of {} is malformed", self.name))
    }

    /// The objects of a kind in a namespace, whole.
    ///
    /// # Errors
    /// The server's.
    pub async fn whole(&self, kind: Kind, namespace: &str) -> Result<Vec<Value>> {
        let uri = kind.path(namespace);
        let text = self.read("LIST", kind, &uri, "application/json").await?;
        let list: Result<Value, _> = serde_json::from_str(&text);
        let mut list = list.with_context(|| format!("the list {uri} of {} is malformed", self.name))?;
        Ok(list["items"]
            .as_array_mut()
            .map(std::mem::take)
            .unwrap_or_default())
    }

    /// Opens a watch of metadata. Returns its lines.
    ///
    /// # Errors
    /// The server's.
    pub async fn watch(
        &self,
        kind: Kind,
        label: Option<&str>,
        from: &str,
    ) -> Result<impl AsyncBufRead + use<>> {
        let label = label
            .map(|label| format!("&labelSelector={label}"))
            .unwrap_or_default();
        let query = format!("watch=true&allowWatchBookmarks=true&timeoutSeconds=3600&resourceVersion={from}");
        let uri = format!("{}?{query}{label}", kind.path(""));
        let request = HttpRequest::get(&uri)
            .header(header::ACCEPT, METADATA)
            .body(Vec::new())?;
        self.client
            .request_stream(request)
            .await
            .map_err(connect::explain)
    }

    /// The requests to the server so far, and the bench's own so far.
    ///
    /// # Errors
    /// The server's, also if it does not serve its metrics.
    pub async fn counts(&self) -> Result<(Counts, Counts)> {
        let own = self.own().clone();
        let request = HttpRequest::get("/metrics").body(Vec::new())?;
        let text = self.client.request_text(request).await.map_err(connect::explain);
        let text = text.with_context(|| format!("cannot read /metrics of {}", self.name))?;
        Ok((counts::parse(&text), own))
    }

    fn own(&self) -> MutexGuard<'_, Counts> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read(&self, verb: &str, kind: Kind, uri: &str, accept: &str) -> Result<String> {
        let request = HttpRequest::get(uri)
            .header(header::ACCEPT, accept)
            .body(Vec::new())?;
        *self.own().entry(Request::of(verb, kind, "")).or_default() += 1;
        let answer = tokio::time::timeout(DEADLINE, self.client.request_text(request)).await;
        let answer = answer
            .map_err(|_| anyhow!("no answer"))
            .and_then(|text| text.map_err(connect::explain));
        answer.with_context(|| format!("cannot read {uri} on {}", self.name))
    }

    async fn write(
        &self,
        method: Method,
        id: &ObjectId,
        subresource: &str,
        uri: String,
        body: Option<(&str, &Value)>,
    ) -> Result<(Written, String)> {
        let what = || format!("cannot {method} {id} on {}", self.name);
        let (media, bytes) = match body {
            Some((media, value)) => (media, serde_json::to_vec(value)?),
            None => ("application/json", Vec::new()),
        };
        let mut busy = 0;
        loop {
            let request = HttpRequest::builder()
                .method(&method)
                .uri(&uri)
                .header(header::CONTENT_TYPE, media);
            let request = request
                .header(header::ACCEPT, "application/json")
                .body(bytes.clone())?;
            *self
                .own()
                .entry(Request::of(method.as_str(), id.kind, subresource))
                .or_default() += 1;
            let answer = tokio::time::timeout(DEADLINE, self.client.request_text(request)).await;
            match answer.map_err(|_| anyhow!("no answer")).with_context(what)? {
                Ok(text) => return Ok((Written::Done, text)),
                Err(kube::Error::Api(status)) if status.code == 404 && method != Method::POST => {
                    return Ok((Written::Missing, String::new()));
                }
                Err(kube::Error::Api(status)) if status.code == 409 && method == Method::POST => {
                    return Ok((Written::Exists, String::new()));
                }
                Err(kube::Error::Api(status)) if matches!(status.code, 429 | 503) && busy < BUSY.0 => {
                    busy += 1;
                    tokio::time::sleep(BUSY.1).await;
                }
                // The contents are the bench's own: no message contains a secret.
                Err(error) => return Err(connect::explain(error)).with_context(what),
            }
        }
    }
}
