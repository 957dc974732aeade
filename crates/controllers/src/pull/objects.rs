//! The verbs on one object of a member in Pull mode.

use std::sync::PoisonError;

use entourage_core::{
    object::{Gvk, ResourceId},
    pulled,
    rendered::wipe,
};
use http::Method;
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};
use tower::BoxError;

use super::{
    Pull, Reply, reply,
    route::Target,
    status,
    works::{Answer, failed},
};
use crate::client::path::Path;

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

/// The namespaces that every cluster has.
const ALWAYS: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

impl Pull {
    /// Answers a request about objects. An error means that the hub gave no response that can be read.
    pub(super) async fn objects(
        &self,
        method: &Method,
        target: &Target,
        whole: bool,
        body: Body,
    ) -> Result<Reply, BoxError> {
        let is_one = !target.id.name.is_empty();
        let watches = target.query.get("watch").is_some_and(|value| value == "true");
        match *method {
            Method::GET if is_one => self.get(target, whole).await,
            Method::GET if watches => self.watch(target.clone(), whole).await,
            Method::GET => self.list(target, whole).await,
            Method::POST if !is_one => self.create(target, whole, read(body).await?).await,
            Method::PUT if is_one => self.replace(target, whole, read(body).await?).await,
            Method::PATCH if is_one => self.merge(target, whole, read(body).await?).await,
            Method::DELETE if is_one => self.delete(target, whole, read(body).await?).await,
            _ => Ok(status(
                405,
                "MethodNotAllowed",
                "the server does not allow this method on the requested resource",
                None,
            )),
        }
    }

    async fn get(&self, target: &Target, whole: bool) -> Result<Reply, BoxError> {
        match self.ask(Method::GET, &self.work(&target.id), None).await? {
            Answer::Object(work) => Ok(shown(target, work, whole).unwrap_or_else(|| absent(target))),
            answer => failed(answer, target),
        }
    }

    /// An object is created in its Work; its namespace must have one.
    async fn create(&self, target: &Target, whole: bool, mut object: Value) -> Result<Reply, BoxError> {
        if !target.is_served {
            let words = "the agent does not report that the cluster serves this kind";
            return Ok(status(404, "NotFound", words, None));
        }
        let id = ResourceId {
            name: object["metadata"]["name"].as_str().unwrap_or_default().into(),
            ..target.id.clone()
        };
        let target = Target { id, ..target.clone() };
        if !self.has_namespace(&target.id.namespace).await? {
            let namespace = &*target.id.namespace;
            let words = format!("namespaces {namespace:?} not found");
            return Ok(status(404, "NotFound", &words, Some(("namespaces", namespace))));
        }
        let work = pulled::work(&target.id, &self.cluster, &object);
        wipe(&mut object);
        let namespace = pulled::name_of(&target.id, &self.cluster).namespace;
        let answer = self
            .ask(Method::POST, &Path::works(&namespace), Some((JSON, work)))
            .await?;
        match answer {
            Answer::Object(work) => Ok(shown(&target, work, whole).unwrap_or_else(|| absent(&target))),
            Answer::Failed(409, ..) => self.taken(&target).await,
            answer => failed(answer, &target),
        }
    }

    /// A Work of this name exists: with this object, or with another one, as names of Works do not have the group of the kind.
    async fn taken(&self, target: &Target) -> Result<Reply, BoxError> {
        let about = Some((&*target.plural, &*target.id.name));
        if let Answer::Object(work) = self.ask(Method::GET, &self.work(&target.id), None).await?
            && shown(target, work, false).is_none()
        {
            let name = pulled::name_of(&target.id, &self.cluster).name;
            let words = format!("the Work {name} carries another object: it must be deleted first");
            return Ok(status(422, "Invalid", &words, about));
        }
        let words = format!("{} {:?} already exists", target.plural, &*target.id.name);
        Ok(status(409, "AlreadyExists", &words, about))
    }

    async fn replace(&self, target: &Target, whole: bool, mut object: Value) -> Result<Reply, BoxError> {
        let is_released = !pulled::is_owned(&object);
        let patch = pulled::patch(&target.id, &self.cluster, &object);
        wipe(&mut object);
        let path = self.work(&target.id);
        match self.ask(Method::PATCH, &path, Some((MERGE, patch))).await? {
            Answer::Object(work) if is_released => self.end(target, whole, work).await,
            Answer::Object(work) => Ok(shown(target, work, whole).unwrap_or_else(|| absent(target))),
            answer => failed(answer, target),
        }
    }

    /// The merge patch of an object: it is read, patched and replaced.
    async fn merge(&self, target: &Target, whole: bool, patch: Value) -> Result<Reply, BoxError> {
        let work = match self.ask(Method::GET, &self.work(&target.id), None).await? {
            Answer::Object(work) => work,
            answer => return failed(answer, target),
        };
        let Some(mut object) = pulled::object(&target.id.gvk, work, true) else {
            return Ok(absent(target));
        };
        let about = Some((&*target.plural, &*target.id.name));
        for field in ["uid", "resourceVersion"] {
            let meant = &patch["metadata"][field];
            if meant.is_string() && *meant != object["metadata"][field] {
                wipe(&mut object);
                return Ok(status(409, "Conflict", "the object has been modified", about));
            }
        }
        merged(&mut object, patch);
        self.replace(target, whole, object).await
    }

    async fn delete(&self, target: &Target, whole: bool, options: Value) -> Result<Reply, BoxError> {
        let path = self.work(&target.id);
        if !target.id.gvk.is_namespace() {
            return self.deleted(target, whole, &path, options).await;
        }
        let patch = json!({
            "metadata": options["preconditions"], "spec": {"preserveResourcesOnDeletion": true},
        });
        match self.ask(Method::PATCH, &path, Some((MERGE, patch))).await? {
            Answer::Object(work) => self.end(target, whole, work).await,
            answer => failed(answer, target),
        }
    }

    /// Deletes exactly this Work, which preserves its object.
    async fn end(&self, target: &Target, whole: bool, mut work: Value) -> Result<Reply, BoxError> {
        if target.id.gvk.is_namespace() {
            let mut known = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
            known.remove(&target.id.name);
        }
        let meta = &work["metadata"];
        let preconditions = json!({"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]});
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions});
        let path = self.work(&target.id);
        match self.ask(Method::DELETE, &path, Some((JSON, options))).await? {
            Answer::Object(mut status) if status["kind"] == "Status" => {
                wipe(&mut status);
                // It had no finalizer: it is gone, and this is its last state.
                Ok(shown(target, work, whole).unwrap_or_else(|| absent(target)))
            }
            Answer::Object(ending) => {
                wipe(&mut work);
                Ok(shown(target, ending, whole).unwrap_or_else(|| absent(target)))
            }
            answer => {
                wipe(&mut work);
                failed(answer, target)
            }
        }
    }

    async fn deleted(
        &self,
        target: &Target,
        whole: bool,
        path: &Path,
        options: Value,
    ) -> Result<Reply, BoxError> {
        match self.ask(Method::DELETE, path, Some((JSON, options))).await? {
            Answer::Object(status) if status["kind"] == "Status" => Ok(reply(200, &status)),
            Answer::Object(work) => Ok(shown(target, work, whole).unwrap_or_else(|| absent(target))),
            answer => failed(answer, target),
        }
    }

    /// True if a namespace has a Work, or every cluster has it.
    async fn has_namespace(&self, namespace: &str) -> Result<bool, BoxError> {
        if namespace.is_empty() || ALWAYS.contains(&namespace) || self.is_known(namespace) {
            return Ok(true);
        }
        let id = ResourceId::new(Gvk::new("v1", "Namespace"), "", namespace);
        let work = match self.ask(Method::GET, &self.work(&id), None).await? {
            Answer::Object(work) => work,
            Answer::Failed(404, ..) => return Ok(false),
            Answer::Failed(code, ..) => {
                return Err(
                    format!("the hub responds with {code} to a GET of the Work of a namespace").into(),
                );
            }
        };
        let object = pulled::object(&id.gvk, work, false);
        let stays = object.is_some_and(|object| object["metadata"].get("deletionTimestamp").is_none());
        if stays {
            let mut known = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(namespace.into());
        }
        Ok(stays)
    }

    fn is_known(&self, namespace: &str) -> bool {
        let known = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        known.contains(namespace)
    }

    fn work(&self, id: &ResourceId) -> Path {
        Path::work(&pulled::name_of(id, &self.cluster))
    }
}

/// The object of a Work as the response; `None` if the Work carries another one.
fn shown(target: &Target, work: Value, whole: bool) -> Option<Reply> {
    let mut object = pulled::object(&target.id.gvk, work, whole)?;
    let reply = reply(200, &object);
    wipe(&mut object);
    Some(reply)
}

fn absent(target: &Target) -> Reply {
    let words = format!("{} {:?} not found", target.plural, &*target.id.name);
    status(404, "NotFound", &words, Some((&target.plural, &target.id.name)))
}

/// Reads the body of a request.
async fn read(body: Body) -> Result<Value, BoxError> {
    let bytes = body.collect().await?.to_bytes();
    if bytes.is_empty() {
        return Ok(json!({}));
    }
    // serde's words may quote the body.
    Ok(serde_json::from_slice(&bytes).map_err(|_| "the request is not JSON")?)
}

/// Applies a merge patch (RFC 7386).
fn merged(object: &mut Value, patch: Value) {
    let Value::Object(changes) = patch else {
        *object = patch;
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (key, change) in changes {
        if change.is_null() {
            if let Some(all) = object.as_object_mut() {
                all.remove(&key);
            }
        } else {
            merged(&mut object[key.as_str()], change);
        }
    }
}
