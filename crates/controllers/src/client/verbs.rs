//! The verbs of the API on one object.

use serde_json::Value;

use super::{Api, Call, Form, path::Path, read};
use crate::{error::Failure, metrics::Verb};

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

impl Api {
    /// GET.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn get(&self, path: &Path, form: Form) -> Result<Value, Failure> {
        self.object(Call {
            verb: Verb::Get,
            path,
            accept: form.accept(),
            body: None,
            deadline: None,
        })
        .await
    }

    /// POST of an object to its collection.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn create(&self, path: &Path, object: &Value, form: Form) -> Result<Value, Failure> {
        let body = Some((JSON, bytes_of(object)));
        self.object(Call {
            verb: Verb::Create,
            path,
            accept: form.accept(),
            body,
            deadline: None,
        })
        .await
    }

    /// PUT.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn replace(&self, path: &Path, object: &Value, form: Form) -> Result<Value, Failure> {
        let body = Some((JSON, bytes_of(object)));
        self.object(Call {
            verb: Verb::Update,
            path,
            accept: form.accept(),
            body,
            deadline: None,
        })
        .await
    }

    /// PATCH with a JSON merge patch.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn merge(&self, path: &Path, patch: &Value, form: Form) -> Result<Value, Failure> {
        let body = Some((MERGE, bytes_of(patch)));
        self.object(Call {
            verb: Verb::Patch,
            path,
            accept: form.accept(),
            body,
            deadline: None,
        })
        .await
    }

    /// DELETE of exactly one object: other uid or resourceVersion is a conflict. Background propagation. Returns a `Status`, or
    /// the object in this form if it still exists.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn delete(
        &self,
        path: &Path,
        uid: &str,
        resource_version: &str,
        form: Form,
    ) -> Result<Value, Failure> {
        let options = serde_json::json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid, "resourceVersion": resource_version},
            "propagationPolicy": "Background",
        });
        let body = Some((JSON, bytes_of(&options)));
        self.object(Call {
            verb: Verb::Delete,
            path,
            accept: form.accept(),
            body,
            deadline: None,
        })
        .await
    }

    /// Sends one request and reads the response as one object. An empty one, as of a proxy, is an error.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn object(&self, call: Call<'_>) -> Result<Value, Failure> {
        let body = self.bytes(call).await?;
        read::object(&body).map_err(|error| Failure::garbled(&error))
    }
}

/// JSON values always serialise.
fn bytes_of(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
