//! Admission webhooks: those that match a write are called, and their responses applied.
//!
//! Mutating webhooks are called one after the other, in the order of the names of their configurations, each with the result of
//! the one before it; those with `reinvocationPolicy: IfNeeded` once more when a later one changed the object. Validating ones
//! are called all at once, with the object as it would be stored. No lock is held while they are called: if another write was
//! faster, the write fails and is repeated.
//!
//! The cluster's own controllers (namespaces, garbage collection) write without admission; so do evictions and bindings of pods.
//!
//! Costs: one read of each of the two collections for each write; a connection for each call.

use futures::future::join_all;
use serde_json::Value;

use super::{
    policies::{self, States},
    request::{Request, all},
};
use crate::{
    object::{
        Object, field, metadata, metadata_mut,
        tree::{list, text},
    },
    patch::{self, PatchKind},
    resource::about,
    status::{Result, Status},
};

mod client;
mod form;
mod review;
mod trust;

use form::Form;
use review::AdmissionResponse;

const MUTATING: &str = "mutatingwebhookconfigurations";

const VALIDATING: &str = "validatingwebhookconfigurations";

/// The fields that the server sets on a new object after the mutating webhooks.
const SET_LATER: [&str; 3] = ["uid", "creationTimestamp", "generation"];

/// A webhook whose rules name the write, and the form in which it wants to see it.
struct Hook {
    webhook: Object,
    form: Form,
}

impl Hook {
    fn name(&self) -> &str {
        text(&self.webhook, "name")
    }

    fn is_ignored_when_it_fails(&self) -> bool {
        text(&self.webhook, "failurePolicy") == "Ignore"
    }
}

/// The reason why the call of a webhook refuses a write.
enum Failure {
    /// It could not be called, or its response is invalid: its failure policy decides.
    Call(String),
    /// It denied the write, or its patch cannot be applied.
    Refused(Box<Status>),
}

/// Calls the mutating webhooks that match the write of `object`, and applies their patches. Returns warnings.
pub(crate) async fn mutate(
    request: &Request<'_>,
    object: &mut Object,
    old: Option<&Object>,
) -> Result<Vec<String>> {
    let hooks = registered(request, MUTATING);
    if hooks.is_empty() {
        return Ok(Vec::new());
    }
    let mut current = object.clone();
    let is_new = request.operation == "CREATE";
    if is_new {
        metadata_mut(&mut current).retain(|name, _| !SET_LATER.contains(&name.as_str()));
    }
    let mut current = Some(current);
    let warnings = rounds(request, &hooks, &mut current, old).await?;
    if let Some(mut changed) = current {
        if is_new {
            for name in SET_LATER {
                if let Some(value) = metadata(object).get(name).cloned() {
                    metadata_mut(&mut changed).insert(name.to_owned(), value);
                }
            }
        }
        *object = changed;
    }
    Ok(warnings)
}

/// Asks the validating webhooks that a write falls under. Returns warnings.
pub(crate) async fn validate(request: &Request<'_>, states: States<'_>) -> Result<Vec<String>> {
    let mut calls = Vec::new();
    for hook in registered(request, VALIDATING) {
        if let Some((new, old)) = meant(request, &hook, states)? {
            calls.push((hook, new, old));
        }
    }
    let answers: Vec<_> = calls
        .iter()
        .map(|(hook, new, old)| {
            let states = States {
                new: new.as_ref(),
                old: old.as_ref(),
            };
            call(request, hook, states, false)
        })
        .collect();
    let mut warnings = Vec::new();
    let mut refused = None;
    for ((hook, ..), answer) in calls.iter().zip(join_all(answers).await) {
        match answer.and_then(|response| outcome_of(hook, response, &mut warnings).map(drop)) {
            Ok(()) => {}
            Err(failure) => {
                if let Err(status) = reported(hook, failure) {
                    refused.get_or_insert(status);
                }
            }
        }
    }
    match refused {
        Some(status) => Err(status.with_warnings(warnings)),
        None => Ok(warnings),
    }
}

/// Asks mutating webhooks (they may refuse), policies and validating webhooks about the deletion of `old`. Returns warnings.
pub(crate) async fn delete(request: &Request<'_>, old: &Object) -> Result<Vec<String>> {
    let hooks = registered(request, MUTATING);
    let mut warnings = rounds(request, &hooks, &mut None, Some(old)).await?;
    let states = States {
        new: None,
        old: Some(old),
    };
    warnings.extend(policies::validate(request, states)?);
    warnings.extend(validate(request, states).await?);
    Ok(warnings)
}

/// The webhooks of a collection whose rules name the write, in their order.
fn registered(request: &Request<'_>, collection: &str) -> Vec<Hook> {
    if !request.is_open() {
        return Vec::new();
    }
    let mut hooks = Vec::new();
    for configuration in all(request.cluster, collection) {
        for webhook in list(&configuration, "webhooks")
            .iter()
            .filter_map(Value::as_object)
        {
            if let Some(form) = Form::of(request, webhook) {
                let webhook = webhook.clone();
                hooks.push(Hook { webhook, form });
            }
        }
    }
    hooks
}

/// Both rounds of the mutating webhooks.
async fn rounds(
    request: &Request<'_>,
    hooks: &[Hook],
    current: &mut Option<Object>,
    old: Option<&Object>,
) -> Result<Vec<String>> {
    let mut warnings = Vec::new();
    // The hooks that were called and want to be called again if the object has changed since.
    let (mut called, mut again) = (Vec::new(), Vec::new());
    for (at, hook) in hooks.iter().enumerate() {
        let changed = round(request, hook, current, old, &mut warnings).await?;
        if changed == Some(true) {
            again.append(&mut called);
        }
        if changed.is_some() && text(&hook.webhook, "reinvocationPolicy") == "IfNeeded" {
            called.push(at);
        }
    }
    again.sort_unstable();
    for at in again {
        round(request, &hooks[at], current, old, &mut warnings).await?;
    }
    Ok(warnings)
}

/// One mutating webhook. Returns true if it changed the object; `None` when it was not called.
async fn round(
    request: &Request<'_>,
    hook: &Hook,
    current: &mut Option<Object>,
    old: Option<&Object>,
    warnings: &mut Vec<String>,
) -> Result<Option<bool>> {
    let states = States {
        new: current.as_ref(),
        old,
    };
    let Some((new, old)) = meant(request, hook, states)? else {
        return Ok(None);
    };
    let states = States {
        new: new.as_ref(),
        old: old.as_ref(),
    };
    let answer = call(request, hook, states, true).await;
    let patch = answer.and_then(|response| outcome_of(hook, response, warnings));
    let patched = patch.and_then(|patch| match patch {
        None => Ok(None),
        Some(patch) => patched(request, hook, new.as_ref(), &patch).map_err(Failure::Refused),
    });
    match patched {
        Ok(None) => Ok(Some(false)),
        Ok(Some(shown)) => {
            let Some(slot) = current.as_mut() else {
                return Ok(Some(false));
            };
            let before = slot.clone();
            hook.form.take(request, shown, slot)?;
            Ok(Some(before != *slot))
        }
        Err(failure) => {
            reported(hook, failure).map_err(|status| status.with_warnings(std::mem::take(warnings)))?;
            Ok(Some(false))
        }
    }
}

/// The states as the webhook sees them, if its selectors and conditions include the write.
#[allow(clippy::type_complexity, reason = "two states, as everywhere here")]
fn meant(
    request: &Request<'_>,
    hook: &Hook,
    states: States<'_>,
) -> Result<Option<(Option<Object>, Option<Object>)>> {
    let show = |object: Option<&Object>| object.map(|object| hook.form.show(request, object)).transpose();
    let (new, old) = (show(states.new)?, show(states.old)?);
    if !request.is_selected(&hook.webhook, new.as_ref(), old.as_ref()) {
        return Ok(None);
    }
    if !list(&hook.webhook, "matchConditions").is_empty() {
        let states = States {
            new: new.as_ref(),
            old: old.as_ref(),
        };
        let met = policies::conditions(&hook.webhook, &policies::of_webhooks(request, states));
        match met {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(_) if hook.is_ignored_when_it_fails() => return Ok(None),
            Err(error) => return Err(Status::forbidden(about(request.resource, request.name), &error)),
        }
    }
    Ok(Some((new, old)))
}

/// Asks one webhook.
async fn call(
    request: &Request<'_>,
    hook: &Hook,
    states: States<'_>,
    mutating: bool,
) -> std::result::Result<AdmissionResponse, Failure> {
    if request.dry_run && !matches!(text(&hook.webhook, "sideEffects"), "None" | "NoneOnDryRun") {
        let message = format!("admission webhook {:?} does not support dry run", hook.name());
        return Err(Failure::Refused(Status::bad_request(message)));
    }
    let question = review::question(request, hook, states);
    let answer = client::post(request.cluster, &hook.webhook, &question.body)
        .await
        .map_err(Failure::Call)?;
    review::response(&question, mutating, &answer)
        .map_err(|error| Failure::Call(format!("received invalid webhook response: {error}")))
}

/// The result of a response: its patch, or its refusal. Its warnings are returned either way.
fn outcome_of(
    hook: &Hook,
    response: AdmissionResponse,
    warnings: &mut Vec<String>,
) -> std::result::Result<Option<Vec<u8>>, Failure> {
    warnings.extend(response.warnings);
    if !response.allowed {
        return Err(Failure::Refused(review::denied(
            hook.name(),
            response.result.as_ref(),
        )));
    }
    Ok(response.patch)
}

/// The error of the request for a failed call; `None` if the webhook's failure policy is to ignore it.
fn reported(hook: &Hook, failure: Failure) -> Result<()> {
    match failure {
        Failure::Refused(status) => Err(status),
        Failure::Call(reason) if hook.is_ignored_when_it_fails() => {
            tracing::warn!(
                webhook = hook.name(),
                reason,
                "a webhook could not be asked: the write passes"
            );
            Ok(())
        }
        Failure::Call(reason) => Err(Status::internal(&format!(
            "failed calling webhook {:?}: {reason}",
            hook.name()
        ))),
    }
}

/// The object after a webhook's patch; `None` when it has no operation.
fn patched(request: &Request<'_>, hook: &Hook, new: Option<&Object>, patch: &[u8]) -> Result<Option<Value>> {
    let failed = |why: &str| Status::internal(why);
    match serde_json::from_slice::<Value>(patch) {
        Ok(Value::Array(operations)) if operations.is_empty() => return Ok(None),
        Ok(Value::Array(_)) => {}
        Ok(_) => {
            return Err(failed(
                "json: cannot unmarshal object into Go value of type jsonpatch.Patch",
            ));
        }
        Err(error) => return Err(failed(&error.to_string())),
    }
    let Some(new) = new else {
        return Err(failed(&format!(
            "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
            hook.name()
        )));
    };
    let target = Value::Object(new.clone());
    let schema = request.resource.schema.get();
    let patched = patch::patched(PatchKind::Json, schema, target, patch);
    patched.map(Some).map_err(|status| {
        failed(&format!(
            "the JSON patch of webhook {:?} does not fit the object: {}",
            hook.name(),
            status.message
        ))
    })
}

/// Books of field ownership that a webhook left unreadable are those of before.
fn keep_books(before: &Object, after: &mut Object) {
    let books = metadata(after).get("managedFields");
    if crate::apply::are_books(books) {
        return;
    }
    match metadata(before).get("managedFields").cloned() {
        Some(books) => metadata_mut(after).insert("managedFields".to_owned(), books),
        None => metadata_mut(after).remove("managedFields"),
    };
}

/// The name that the write has in a review: that of the path, or of the body.
fn name_of(request: &Request<'_>, states: States<'_>) -> String {
    if request.name.is_empty() {
        let object = states.new.or(states.old);
        return object.map_or_else(String::new, |object| field(object, "name").to_owned());
    }
    request.name.to_owned()
}
