//! The verbs on one object of a member in Pull mode.

use std::sync::PoisonError;

use entourage_core::{
    object::{Gvk, ResourceId},
    pulled,
    rendered::wipe,
};
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};
use tower::BoxError;

use super::{
    Pull, Reply, reply,
    route::Target,
    status,
    works::{Answer, failed, other},
};
use crate::{client::path::Path, error::not_reported};

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

/// The number of requests about one Work that its agent keeps changing.
const ROUNDS: usize = 5;

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
            Answer::Object(work) => Ok(shown(target, work, whole).unwrap_or_else(|| self.other(target))),
            answer => failed(answer, target),
        }
    }

    /// An object is created in its Work; its namespace must have one.
    async fn create(&self, target: &Target, whole: bool, mut object: Value) -> Result<Reply, BoxError> {
        if !target.is_served {
            let what = format!("{} {}", target.id.gvk.api_version(), target.id.gvk.kind);
            let words = not_reported(&what, &self.cluster);
            return Ok(status(404, "NotFound", &words, None));
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
            Answer::Object(work) => Ok(shown(&target, work, whole).unwrap_or_else(|| self.other(&target))),
            Answer::Failed(409, ..) => self.taken(&target).await,
            Answer::Failed(404, status, after) => {
                self.forget(&target.id.namespace);
                failed(Answer::Failed(404, status, after), &target)
            }
            answer => failed(answer, &target),
        }
    }

    /// A Work of this name exists: with this object, or with another one, as names of Works do not have the group of the kind.
    async fn taken(&self, target: &Target) -> Result<Reply, BoxError> {
        let about = Some((&*target.plural, &*target.id.name));
        if let Answer::Object(work) = self.ask(Method::GET, &self.work(&target.id), None).await?
            && shown(target, work, false).is_none()
        {
            return Ok(self.other(target));
        }
        let words = format!("{} {:?} already exists", target.plural, &*target.id.name);
        Ok(status(409, "AlreadyExists", &words, about))
    }

    async fn replace(&self, target: &Target, whole: bool, mut object: Value) -> Result<Reply, BoxError> {
        let is_released = !pulled::is_owned(&object);
        let patch = match is_released {
            true => pulled::release(&target.id.gvk, &object),
            false => pulled::patch(&target.id, &self.cluster, &object),
        };
        wipe(&mut object);
        match self.patched(target, patch).await? {
            Ok(work) if is_released => self.end(target, whole, work).await,
            Ok(work) => match self.completed(target, work, pulled::lacking).await? {
                Ok(work) => Ok(shown(target, work, whole).unwrap_or_else(|| self.other(target))),
                Err(reply) => Ok(reply),
            },
            Err(reply) => Ok(reply),
        }
    }

    /// Patches the Work of an object; or the response that says why not.
    async fn patched(&self, target: &Target, patch: Value) -> Result<Result<Value, Reply>, BoxError> {
        let answer = self
            .ask(Method::PATCH, &self.work(&target.id), Some((MERGE, patch)))
            .await?;
        match answer {
            Answer::Object(work) => Ok(Ok(work)),
            answer => failed(answer, target).map(Err),
        }
    }

    /// Reads exactly this Work again, as it was changed meanwhile; or the response that says why not.
    async fn again(&self, target: &Target, mut before: Value) -> Result<Result<Value, Reply>, BoxError> {
        let uid = before["metadata"]["uid"].take();
        wipe(&mut before);
        match self.ask(Method::GET, &self.work(&target.id), None).await? {
            Answer::Object(work) if work["metadata"]["uid"] == uid => Ok(Ok(work)),
            Answer::Object(mut other) => {
                wipe(&mut other);
                Ok(Err(modified(target)))
            }
            answer => failed(answer, target).map(Err),
        }
    }

    /// Patches a Work of ours as long as it lacks something. Its agent may write its status meanwhile.
    async fn completed(
        &self,
        target: &Target,
        mut work: Value,
        lacking: fn(&Value) -> Option<Value>,
    ) -> Result<Result<Value, Reply>, BoxError> {
        for _ in 0..ROUNDS {
            let Some(patch) = lacking(&work) else {
                return Ok(Ok(work));
            };
            let next = match self.patched(target, patch).await? {
                Err(reply) if reply.status() == StatusCode::CONFLICT => self.again(target, work).await?,
                next => {
                    wipe(&mut work);
                    next
                }
            };
            work = match next {
                Ok(next) => next,
                Err(reply) => return Ok(Err(reply)),
            };
        }
        if lacking(&work).is_none() {
            return Ok(Ok(work));
        }
        wipe(&mut work);
        Ok(Err(modified(target)))
    }

    /// The merge patch of an object: it is read, patched and replaced.
    async fn merge(&self, target: &Target, whole: bool, patch: Value) -> Result<Reply, BoxError> {
        let work = match self.ask(Method::GET, &self.work(&target.id), None).await? {
            Answer::Object(work) => work,
            answer => return failed(answer, target),
        };
        let Some(mut object) = pulled::object(&target.id.gvk, work, true) else {
            return Ok(self.other(target));
        };
        if !is_meant(&patch["metadata"], &object["metadata"]) {
            wipe(&mut object);
            return Ok(modified(target));
        }
        merged(&mut object, patch);
        self.replace(target, whole, object).await
    }

    async fn delete(&self, target: &Target, whole: bool, options: Value) -> Result<Reply, BoxError> {
        if target.id.gvk.is_namespace() {
            let meta = json!({"metadata": options["preconditions"]});
            let patch = pulled::release(&target.id.gvk, &meta);
            return match self.patched(target, patch).await? {
                Ok(work) => self.end(target, whole, work).await,
                Err(reply) => Ok(reply),
            };
        }
        let mut work = match self.ask(Method::GET, &self.work(&target.id), None).await? {
            Answer::Object(work) => work,
            answer => return failed(answer, target),
        };
        if !is_meant(&options["preconditions"], &work["metadata"]) {
            wipe(&mut work);
            return Ok(modified(target));
        }
        let work = match self.completed(target, work, pulled::lacking).await? {
            Ok(work) => work,
            Err(reply) => return Ok(reply),
        };
        self.ended(target, whole, work, false).await
    }

    /// Deletes exactly this Work, which preserves its object.
    async fn end(&self, target: &Target, whole: bool, work: Value) -> Result<Reply, BoxError> {
        if target.id.gvk.is_namespace() {
            self.forget(&target.id.name);
        }
        match self.completed(target, work, pulled::unheld).await? {
            Ok(work) if pulled::preserves(&work) => self.ended(target, whole, work, true).await,
            Ok(mut other) => {
                wipe(&mut other);
                Ok(modified(target))
            }
            Err(reply) => Ok(reply),
        }
    }

    /// Deletes exactly this version of a Work; one that `preserves` also a later version that still does, as its agent may write
    /// its status meanwhile.
    async fn ended(
        &self,
        target: &Target,
        whole: bool,
        mut work: Value,
        preserves: bool,
    ) -> Result<Reply, BoxError> {
        let path = self.work(&target.id);
        for round in 1.. {
            let meta = &work["metadata"];
            let preconditions = json!({"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]});
            let options =
                json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions});
            match self.ask(Method::DELETE, &path, Some((JSON, options))).await? {
                Answer::Object(mut status) if status["kind"] == "Status" => {
                    wipe(&mut status);
                    // It had no finalizer: it is gone, and this is its last state.
                    return Ok(shown(target, work, whole).unwrap_or_else(|| self.other(target)));
                }
                Answer::Object(ending) => {
                    wipe(&mut work);
                    return Ok(shown(target, ending, whole).unwrap_or_else(|| self.other(target)));
                }
                Answer::Failed(409, ..) if preserves && round < ROUNDS => {
                    work = match self.again(target, work).await? {
                        Ok(next) if pulled::preserves(&next) => next,
                        Ok(mut other) => {
                            wipe(&mut other);
                            return Ok(modified(target));
                        }
                        Err(reply) => return Ok(reply),
                    };
                }
                answer => {
                    wipe(&mut work);
                    return failed(answer, target);
                }
            }
        }
        Ok(modified(target))
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

    /// The Work of this name cannot be read as this object: that is no proof that the object is gone.
    fn other(&self, target: &Target) -> Reply {
        let work = pulled::name_of(&target.id, &self.cluster);
        other(target, &format!("{}/{}", work.namespace, work.name))
    }

    /// The Work of a namespace is looked for again.
    fn forget(&self, namespace: &str) {
        let mut known = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(namespace);
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
    let meta = &object["metadata"];
    let is_it = meta["name"] == *target.id.name
        && meta["namespace"].as_str().unwrap_or_default() == &*target.id.namespace;
    if !is_it {
        wipe(&mut object);
        return None;
    }
    let reply = reply(200, &object);
    wipe(&mut object);
    Some(reply)
}

/// True if the preconditions, if there are any, are about this version of this object.
fn is_meant(preconditions: &Value, meta: &Value) -> bool {
    let mut fields = ["uid", "resourceVersion"].into_iter();
    fields.all(|field| !preconditions[field].is_string() || preconditions[field] == meta[field])
}

fn modified(target: &Target) -> Reply {
    let about = Some((&*target.plural, &*target.id.name));
    status(409, "Conflict", "the object has been modified", about)
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
