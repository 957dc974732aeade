//! Validates the response of a hook: it comes from an untrusted server.
//!
//! Source: Karmada reference 3.4 (uid, successful, required fields, dependencies verified) and the proposal's ExploreResponse.
//! Errors quote nothing but the hook's own message, and nothing at all about a Secret.

use std::{borrow::Cow, io};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use entourage_api::work::{Component, DependentObjectReference, ReplicaRequirements};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Contract, Hook, VERSIONS, patch};
use crate::{
    quantity,
    question::{Answer, Question, check_dependency},
};

/// The maximum size of a response, and of an object that results from a patch, in bytes.
pub const LARGEST: usize = 3 << 20;

/// The maximum number of dependencies and components of one object.
const MOST: usize = 1000;

/// The maximum length of a hook's message that is passed on, in characters.
const LONGEST: usize = 256;

type Checked<T> = Result<T, Cow<'static, str>>;

impl Hook {
    /// Parses a response. `uid` is that of the [request](Self::request), `largest` the maximum size of the response and the
    /// object in bytes, such as [`LARGEST`].
    ///
    /// # Errors
    /// The error in the response, and what to do; without content of the object.
    pub fn answer(&self, uid: &str, question: Question<'_>, bytes: &[u8], largest: usize) -> Checked<Answer> {
        if bytes.len() > largest {
            return Err(format!("the response is larger than {largest} bytes").into());
        }
        // The parser's own message may quote its input.
        let message: Value = serde_json::from_slice(bytes).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            let class = error.classify();
            format!("the response is not JSON: {class:?} error at line {line} column {column}")
        })?;
        let response = self.response(&message, uid)?;
        self.check_success(response, question.object())?;
        match question {
            Question::Replicas(object) => {
                let replicas = field(response, "replicas", "a number of replicas, 0 or more")?;
                let Some(replicas) = replicas else {
                    return Err("the response has no replicas".into());
                };
                let replicas: u32 = replicas;
                if i32::try_from(replicas).is_err() {
                    return Err("the response's replicas are more than a cluster holds".into());
                }
                Ok(Answer::Replicas {
                    replicas: replicas.into(),
                    requirements: requirements(response, object)?,
                })
            }
            Question::Components(_) => components(response),
            Question::Prune(object)
            | Question::Revise(object, _)
            | Question::Retain { desired: object, .. }
            | Question::Aggregate { template: object, .. } => patched(response, object, largest),
            Question::Reflect(_) => {
                let name = match self.contract {
                    Contract::Interpreter => "rawStatus",
                    Contract::Explorer => "status",
                };
                match &response[name] {
                    Value::Null => Ok(Answer::Status(None)),
                    status @ Value::Object(_) => Ok(Answer::Status(Some(status.clone()))),
                    _ => Err(format!("the response's {name} is not an object").into()),
                }
            }
            Question::Health(_) => match field(response, "healthy", "true or false")? {
                Some(is_healthy) => Ok(Answer::Healthy(is_healthy)),
                None => Err("the response has no healthy: true or false".into()),
            },
            Question::Dependencies(_) => dependencies(response),
        }
    }

    /// The response in a message that belongs to the request. Karmada's own framework omits apiVersion and kind, so they may be
    /// missing, but not wrong.
    fn response<'a>(&self, message: &'a Value, uid: &str) -> Checked<&'a Value> {
        let version = self.call.as_ref().map_or(VERSIONS[0], |call| call.version);
        let version = format!("config.karmada.io/{version}");
        for (field, wanted) in [
            ("apiVersion", version.as_str()),
            ("kind", self.contract.message()),
        ] {
            let is_unset = message[field].is_null() || message[field] == "";
            if !is_unset && message[field] != wanted {
                return Err(format!("the response's {field} is not {wanted}").into());
            }
        }
        let response = &message["response"];
        if !response.is_object() {
            return Err("the response has no field response".into());
        }
        if response["uid"] != uid {
            return Err("the response's uid is not that of the request; the hook has to copy it".into());
        }
        Ok(response)
    }

    /// Karmada's contract has a success field; the other one reports a failure by an extension of ours.
    fn check_success(&self, response: &Value, object: &Value) -> Checked<()> {
        match (&response["successful"], self.contract) {
            (Value::Bool(true), _) | (Value::Null, Contract::Explorer) => return Ok(()),
            _ => {}
        }
        let is_secret = object["kind"] == "Secret" && object["apiVersion"] == "v1";
        let hook_message = response["status"]["message"].as_str().unwrap_or_default();
        let hook_message = clean(hook_message);
        if is_secret || hook_message.is_empty() {
            return Err("the hook was not successful; its own log may show the cause".into());
        }
        Err(format!("the hook was not successful: {hook_message}").into())
    }
}

fn requirements(response: &Value, object: &Value) -> Checked<Option<ReplicaRequirements>> {
    let mut given = response["replicaRequirements"].clone();
    amounts(&mut given)?;
    let holder = json!({ "replicaRequirements": given });
    let read: Option<ReplicaRequirements> = field(&holder, "replicaRequirements", "replica requirements")?;
    Ok(read.map(|mut read| {
        // Its quota is used, and the hook may omit it.
        if read.namespace.is_empty() {
            let namespace = object["metadata"]["namespace"].as_str();
            read.namespace = namespace.unwrap_or_default().to_owned();
        }
        read
    }))
}

fn components(response: &Value) -> Checked<Answer> {
    let mut given = response["components"].clone();
    let parts = given.as_array_mut().map(Vec::as_mut_slice).unwrap_or_default();
    for each in parts {
        if let Some(needed) = each.get_mut("replicaRequirements") {
            amounts(needed)?;
        }
    }
    let holder = json!({ "components": given });
    let wanted = "a list of {name, replicas, replicaRequirements}";
    let read: Vec<Component> = field(&holder, "components", wanted)?.unwrap_or_default();
    if read.len() > MOST {
        return Err(format!("the response has more than {MOST} components").into());
    }
    if read.iter().any(|each| each.name.is_empty() || each.replicas < 0) {
        return Err("a component of the response has no name, or fewer replicas than none".into());
    }
    Ok(Answer::Components(read))
}

/// Parses amounts as Kubernetes does: numbers are quantities too, as in a manifest.
fn amounts(requirements: &mut Value) -> Checked<()> {
    let Some(amounts) = requirements
        .get_mut("resourceRequest")
        .and_then(Value::as_object_mut)
    else {
        return Ok(());
    };
    for amount in amounts.values_mut() {
        if quantity::approximate(amount).is_none() {
            return Err("a resourceRequest of the response is not a quantity".into());
        }
        if amount.is_number() {
            *amount = Value::String(amount.to_string());
        }
    }
    Ok(())
}

/// The dependencies, sorted, each once.
fn dependencies(response: &Value) -> Checked<Answer> {
    let wanted = "a list of {apiVersion, kind, namespace, name}";
    let read: Option<Vec<DependentObjectReference>> = field(response, "dependencies", wanted)?;
    let mut found = read.unwrap_or_default();
    if found.len() > MOST {
        return Err(format!("the response has more than {MOST} dependencies").into());
    }
    for (position, each) in found.iter().enumerate() {
        // The validation message may quote labels of an object.
        check_dependency(each).map_err(|_| {
            format!(
                "dependency {position} of the response needs an apiVersion, a kind, and a name or a labelSelector"
            )
        })?;
    }
    found.sort_by_cached_key(|each| serde_json::to_string(each).unwrap_or_default());
    found.dedup();
    Ok(Answer::Dependencies(found))
}

/// The object with the response's patch applied; unchanged without one.
fn patched(response: &Value, object: &Value, largest: usize) -> Checked<Answer> {
    let text: Option<String> = field(response, "patch", "base64 of a JSON patch")?;
    let kind: Option<String> = field(response, "patchType", "a text")?;
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(Answer::Object(object.clone()));
    };
    if kind.as_deref() != Some("JSONPatch") {
        return Err("the response's patchType is not JSONPatch".into());
    }
    let bytes = STANDARD
        .decode(text)
        .map_err(|_| "the response's patch is not base64")?;
    let after = patch::apply(object, &bytes)?;
    for (pointer, name) in [
        ("/apiVersion", "apiVersion"),
        ("/kind", "kind"),
        ("/metadata/name", "metadata.name"),
        ("/metadata/namespace", "metadata.namespace"),
        ("/metadata/uid", "metadata.uid"),
    ] {
        if after.pointer(pointer) != object.pointer(pointer) {
            return Err(format!("the patch changes {name}: it has to stay the same object").into());
        }
    }
    if !is_within(&after, largest) {
        return Err(format!("the patch makes an object that is larger than {largest} bytes").into());
    }
    Ok(Answer::Object(after))
}

/// A field, `None` if it is absent or null.
fn field<T: DeserializeOwned>(holder: &Value, name: &str, wanted: &str) -> Checked<Option<T>> {
    serde_json::from_value(holder[name].clone())
        .map_err(|_| format!("the response's {name} is not {wanted}").into())
}

/// A message on one line, truncated.
fn clean(text: &str) -> String {
    let is_shown = |c: &char| !c.is_control();
    text.chars().filter(is_shown).take(LONGEST).collect()
}

/// True if a value is no longer than this as JSON. Cost: O(bytes), at most that many.
fn is_within(value: &Value, bytes: usize) -> bool {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
            let left = self.0.checked_sub(buffer.len());
            self.0 = left.ok_or(io::ErrorKind::StorageFull)?;
            Ok(buffer.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    serde_json::to_writer(Count(bytes), value).is_ok()
}
