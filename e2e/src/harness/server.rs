//! One API server as a person with kubectl sees it.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use http::Request;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::kinds::kind;

/// The deadline of a request: some tests make members hang.
const DEADLINE: Duration = Duration::from_secs(10);

/// The number of retries of a write on a conflict.
const ATTEMPTS: usize = 20;

/// A cluster's API, in plain JSON. Objects name their kind; kinds are those of the table `KINDS`.
#[derive(Clone)]
pub struct Server {
    /// `hub` or the name of a member.
    pub name: String,
    /// As admin.
    pub client: Client,
}

/// The status of a server's refusal; 0 for other errors.
#[must_use]
pub fn status_code(error: &anyhow::Error) -> u16 {
    match error.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) => status.code,
        _ => 0,
    }
}

impl Server {
    /// An object, if it is there.
    ///
    /// # Errors
    /// Any answer but 200 and 404.
    pub async fn get(&self, kind_name: &str, namespace: &str, name: &str) -> Result<Option<Value>> {
        let path = kind(kind_name).path(namespace, Some(name));
        match self.call("GET", &path, None).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if status_code(&error) == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The objects of a kind in a namespace (empty: everywhere) that a label selector (empty: any) selects.
    ///
    /// # Errors
    /// Any answer but 200.
    pub async fn list(&self, kind_name: &str, namespace: &str, selector: &str) -> Result<Vec<Value>> {
        let selector = selector
            .replace('=', "%3D")
            .replace(',', "%2C")
            .replace('/', "%2F");
        let path = format!(
            "{}?labelSelector={selector}",
            kind(kind_name).path(namespace, None)
        );
        let mut list = self.call("GET", &path, None).await?;
        let Value::Array(items) = list["items"].take() else {
            bail!("{path}: no items")
        };
        Ok(items
            .into_iter()
            .map(|mut item| {
                item["kind"] = json!(kind_name);
                item["apiVersion"] = json!(kind(kind_name).api_version);
                item
            })
            .collect())
    }

    /// Creates an object.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn create(&self, object: &Value) -> Result<Value> {
        let (kind_name, namespace, _) = identity(object)?;
        let path = kind(kind_name).path(namespace, None);
        self.call("POST", &path, Some(object)).await
    }

    /// Creates an object, or replaces what it says of it: labels and annotations are added, everything else that it
    /// has is replaced as a whole.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn apply(&self, object: &Value) -> Result<Value> {
        let (kind_name, namespace, name) = identity(object)?;
        match self.create(object).await {
            Err(error) if status_code(&error) == 409 => {}
            result => return result,
        }
        self.edit(kind_name, namespace, name, |live| {
            for (field, value) in object.as_object().into_iter().flatten() {
                if field != "metadata" {
                    live[field] = value.clone();
                }
            }
            for field in ["labels", "annotations"] {
                for (key, value) in object["metadata"][field].as_object().into_iter().flatten() {
                    live["metadata"][field][key] = value.clone();
                }
            }
        })
        .await
    }

    /// Reads, changes and writes back an object, again when somebody else was faster.
    ///
    /// # Errors
    /// When it is not there, or the server refuses.
    pub async fn edit(
        &self,
        kind_name: &str,
        namespace: &str,
        name: &str,
        change: impl Fn(&mut Value),
    ) -> Result<Value> {
        let path = kind(kind_name).path(namespace, Some(name));
        self.edit_at(&path, change).await
    }

    /// As [`edit`](Self::edit), of the status.
    ///
    /// # Errors
    /// As [`edit`](Self::edit).
    pub async fn edit_status(
        &self,
        kind_name: &str,
        namespace: &str,
        name: &str,
        change: impl Fn(&mut Value),
    ) -> Result<Value> {
        let path = format!("{}/status", kind(kind_name).path(namespace, Some(name)));
        self.edit_at(&path, change).await
    }

    async fn edit_at(&self, path: &str, change: impl Fn(&mut Value)) -> Result<Value> {
        for _ in 0..ATTEMPTS {
            let mut object = self.call("GET", path, None).await?;
            change(&mut object);
            match self.call("PUT", path, Some(&object)).await {
                Err(error) if status_code(&error) == 409 => {}
                result => return result,
            }
        }
        bail!("{}: {path} keeps changing", self.name)
    }

    /// Deletes an object in the background, as kubectl does.
    ///
    /// # Errors
    /// When it is not there, or the server refuses.
    pub async fn delete(&self, kind_name: &str, namespace: &str, name: &str) -> Result<()> {
        let path = kind(kind_name).path(namespace, Some(name));
        self.call("DELETE", &path, Some(&json!({"propagationPolicy": "Background"})))
            .await?;
        Ok(())
    }

    /// Deletes all objects of a kind in a namespace, one by one, save those that every namespace has.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn delete_all(&self, kind_name: &str, namespace: &str) -> Result<()> {
        for object in self.list(kind_name, namespace, "").await? {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let given = kind_name == "ServiceAccount" && name == "default"
                || kind_name == "ConfigMap" && name == "kube-root-ca.crt"
                || object["type"] == "kubernetes.io/service-account-token"
                    && object["metadata"]["annotations"]["kubernetes.io/service-account.name"] == "default";
            if given || object["metadata"]["deletionTimestamp"].is_string() {
                continue;
            }
            match self.delete(kind_name, namespace, name).await {
                Err(error) if status_code(&error) == 404 => {}
                result => result?,
            }
        }
        Ok(())
    }

    /// One request; `path` may have a query.
    ///
    /// # Errors
    /// A `kube::Error` with server and path around it. Never with the body that was sent.
    pub async fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(bytes)?;
        let answer = timeout(DEADLINE, self.client.request::<Value>(request)).await;
        let answer = answer.with_context(|| format!("{}: {method} {path}: no answer", self.name))?;
        answer.with_context(|| format!("{}: {method} {path}", self.name))
    }
}

/// Kind, namespace and name of an object.
fn identity(object: &Value) -> Result<(&str, &str, &str)> {
    let kind = object["kind"].as_str().context("an object names its kind")?;
    let name = object["metadata"]["name"]
        .as_str()
        .context("an object has a name")?;
    Ok((
        kind,
        object["metadata"]["namespace"].as_str().unwrap_or_default(),
        name,
    ))
}
