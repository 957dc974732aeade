//! The files' objects as the hub would store them, from its dry run.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use entourage_core::{
    distribution,
    object::{Gvk, LAST_APPLIED},
};
use entourage_simulation::{Simulation, overlay::overlay};
use futures::{StreamExt as _, stream};
use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams, PostParams, ValidationDirective},
    core::Request,
};
use serde_json::Value;

use super::{AT_ONCE, Live};
use crate::{
    apply::without_values,
    connect::{explain, is_not_found, within},
    kinds::{self, Served},
    lists::api,
    simulate::{
        placed,
        strict::{Decoder, Known},
        title,
    },
};

/// The result of the dry run of one object.
enum Made {
    /// The object before and after.
    Object(Option<Value>, Value),
    /// The same without the hub's help, and why.
    Alone(Option<Value>, Value, String),
    /// The hub would refuse it.
    Refused(String),
}

impl Live<'_> {
    pub(super) async fn apply(&mut self, objects: Vec<Value>, simulation: &mut Simulation) -> Result<()> {
        let defined = kinds::defined(&objects);
        let wanted: Vec<Gvk> = objects.iter().map(gvk_of).collect();
        self.kinds
            .learn(self.hub, wanted)
            .await
            .context("cannot ask the hub which kinds it serves")?;
        let namespaces: BTreeSet<String> = objects
            .iter()
            .filter(|object| object["kind"] == "Namespace")
            .filter_map(|object| object["metadata"]["name"].as_str().map(str::to_owned))
            .collect();
        let known = if self.validates_fields().await {
            Known::Custom
        } else {
            Known::All
        };
        let decoder = Decoder::new(&objects, known);
        let this = &*self;
        let made: Vec<(Value, Made)> = stream::iter(objects)
            .map(|object| {
                let (defined, namespaces, decoder) = (&defined, &namespaces, &decoder);
                async move {
                    let gvk = gvk_of(&object);
                    let served = this.kinds.get(&gvk);
                    let namespaced =
                        served.map_or_else(|| kinds::is_namespaced(&gvk, defined), |served| served.namespaced);
                    let object = placed(object, namespaced, &this.options.namespace);
                    let decoded = decoder.decode(&object);
                    let made = match (served, decoded) {
                        (_, Err(why)) => Made::Refused(why),
                        (Some(served), _) => this.made(served, &object, namespaces).await,
                        (None, Ok(decoded)) if defined.contains_key(&(gvk.group.to_string(), gvk.kind.to_string())) => {
                            Made::Object(None, overlay(None, &decoded))
                        }
                        (None, _) => Made::Refused(format!(
                            "the hub does not serve {} {}: apply its CustomResourceDefinition first, or correct apiVersion and kind",
                            gvk.api_version(),
                            gvk.kind
                        )),
                    };
                    (object, made)
                }
            })
            .buffered(AT_ONCE)
            .collect()
            .await;
        for (object, made) in made {
            match made {
                Made::Object(before, after) => simulation.apply(before, after),
                Made::Alone(before, after, why) => {
                    self.remarks
                        .insert(format!("{}: {why}; defaults are not filled in", title(&object)));
                    simulation.apply(before, after);
                }
                Made::Refused(why) => simulation.refuse(&object, why),
            }
        }
        Ok(())
    }

    /// An apply as the hub's dry run answers it.
    async fn made(&self, served: &Served, object: &Value, namespaces: &BTreeSet<String>) -> Made {
        let meta = &object["metadata"];
        let (namespace, name) = (
            meta["namespace"].as_str().unwrap_or_default(),
            meta["name"].as_str().unwrap_or_default(),
        );
        let api = api(self.hub, served, namespace);
        let before = match within(api.get_opt(name)).await {
            Ok(before) => before.and_then(|before| serde_json::to_value(before).ok()),
            Err(error) => return Made::Refused(format!("it cannot be read on the hub: {}", explain(error))),
        };
        if let Some(before) = before.as_ref()
            && let Some(manager) = server_side(before)
        {
            return self.made_server_side(&api, object, before, manager).await;
        }
        let after = overlay(before.as_ref(), object);
        let Ok(body) = serde_json::from_value::<DynamicObject>(after.clone()) else {
            return Made::Refused("its metadata cannot be read".into());
        };
        let params = PostParams {
            dry_run: true,
            field_manager: Some("entourage-plan".to_owned()),
        };
        let answer = if before.is_some() {
            within(self.strictly(&api, Some(name), &params, &body)).await
        } else {
            within(self.strictly(&api, None, &params, &body)).await
        };
        match answer {
            Ok(answer) => match serde_json::to_value(answer) {
                Ok(answer) => Made::Object(before, answer),
                Err(_) => Made::Object(before, after),
            },
            Err(kube::Error::Api(status)) if status.code == 403 && status.reason == "Forbidden" => {
                Made::Alone(before, after, "the hub refuses a dry run to this account".into())
            }
            Err(error) if is_not_found(&error) && namespaces.contains(namespace) => Made::Alone(
                before,
                after,
                format!("the namespace {namespace} is made by the files and not there yet"),
            ),
            Err(error) if is_not_found(&error) && before.is_none() => Made::Refused(format!(
                "the hub has no namespace {namespace}: kubectl create namespace {namespace}"
            )),
            Err(error) => refused(object, error),
        }
    }

    /// A POST, or a PUT of that name, which is refused where a field is unknown.
    async fn strictly(
        &self,
        api: &Api<DynamicObject>,
        name: Option<&str>,
        params: &PostParams,
        body: &DynamicObject,
    ) -> kube::Result<DynamicObject> {
        let bytes = serde_json::to_vec(body).map_err(kube::Error::SerdeError)?;
        let request = Request::new(api.resource_url());
        let request = match name {
            Some(name) => request.replace(name, params, bytes),
            None => request.create(params, bytes),
        };
        let mut request = request.map_err(kube::Error::BuildRequest)?;
        let uri = format!("{}&fieldValidation=Strict", request.uri());
        if let Ok(uri) = uri.parse() {
            *request.uri_mut() = uri;
        }
        self.hub.request(request).await
    }

    /// True if the hub itself refuses unknown fields when it is asked to: from Kubernetes 1.25 on.
    async fn validates_fields(&self) -> bool {
        let Ok(version) = within(self.hub.apiserver_version()).await else {
            return true;
        };
        let number = |text: &str| {
            let digits = text.trim_end_matches(|each: char| !each.is_ascii_digit());
            digits.parse().unwrap_or(0_u32)
        };
        (number(&version.major), number(&version.minor)) >= (1, 25)
    }

    /// The same for an object that was applied server-side before: by the same manager, which takes over what others hold.
    async fn made_server_side(
        &self,
        api: &Api<DynamicObject>,
        object: &Value,
        before: &Value,
        manager: &str,
    ) -> Made {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let mut params = PatchParams::apply(manager).force();
        params.dry_run = true;
        params.field_validation = Some(ValidationDirective::Strict);
        match within(api.patch(name, &params, &Patch::Apply(object))).await {
            Ok(answer) => match serde_json::to_value(answer) {
                Ok(answer) => Made::Object(Some(before.clone()), answer),
                Err(_) => Made::Refused("the hub's answer cannot be read".into()),
            },
            Err(kube::Error::Api(status)) if status.code == 403 && status.reason == "Forbidden" => {
                Made::Alone(
                    Some(before.clone()),
                    overlay(Some(before), object),
                    "the hub refuses a dry run to this account".into(),
                )
            }
            Err(error) => refused(object, error),
        }
    }
}

/// The refusal of an object by the hub; for a Secret, and a ResourceDistribution that may contain one, without the server's
/// free text, which may quote values.
fn refused(object: &Value, error: kube::Error) -> Made {
    let distributed = &object["spec"]["resource"]["kind"];
    let is_inside = object["kind"] == distribution::KIND && distributed == "Secret";
    let error = if object["kind"] == "Secret" || is_inside {
        without_values(error)
    } else {
        explain(error)
    };
    Made::Refused(error.to_string())
}

/// The field manager that applied the object server-side: kubectl if it did, otherwise the first. `None` if kubectl applied
/// it client-side, which leaves an annotation, or if it was not applied.
fn server_side(live: &Value) -> Option<&str> {
    if live["metadata"]["annotations"].get(LAST_APPLIED).is_some() {
        return None;
    }
    let entries = live["metadata"]["managedFields"].as_array()?;
    let appliers = entries
        .iter()
        .filter(|entry| entry["operation"] == "Apply" && entry["subresource"].is_null())
        .filter_map(|entry| entry["manager"].as_str());
    appliers.min_by_key(|manager| *manager != "kubectl")
}

fn gvk_of(object: &Value) -> Gvk {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    Gvk::new(text("apiVersion"), text("kind"))
}
