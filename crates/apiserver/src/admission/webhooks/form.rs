//! The form in which a webhook sees a write: the version that its rules name, and a Scale for `/scale`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Request, keep_books};
use crate::{
    decode::{self, FieldValidation},
    object::{Object, tree::text},
    resource::Resource,
    scale::{self, Paths},
    status::{Result, Status},
};

/// The form of one webhook's reviews.
pub(super) struct Form {
    /// Another version of the resource, or the same objects under another group.
    other: Option<Arc<Resource>>,
    /// The paths of the replicas, for `/scale`.
    scale: Option<Paths>,
}

impl Form {
    /// The form in which the webhook's rules name the write; `None`: they do not. With `matchPolicy: Equivalent` a rule
    /// also names what it would name in another version. O(rules), and O(resources) where no rule names it as it is.
    pub(super) fn of(request: &Request<'_>, webhook: &Object) -> Option<Self> {
        let scale = match request.subresource {
            "scale" => match &request.resource.custom {
                Some(custom) => custom.scale.clone(),
                None => Paths::builtin(),
            },
            _ => None,
        };
        if request.is_among(webhook, "rules") {
            return Some(Self { other: None, scale });
        }
        if text(webhook, "matchPolicy") == "Exact" {
            return None;
        }
        let kinds = request.cluster.kinds();
        let other = kinds.all().find(|other| {
            other.collection == request.resource.collection
                && (other.group != request.resource.group || other.version != request.resource.version)
                && request.as_resource(other).is_among(webhook, "rules")
        })?;
        Some(Self {
            other: Some(other.clone()),
            scale,
        })
    }

    fn resource<'a>(&'a self, request: &Request<'a>) -> &'a Resource {
        self.other.as_deref().unwrap_or(request.resource)
    }

    /// Kind and resource as reviews name them.
    pub(super) fn named(&self, request: &Request<'_>) -> (Value, Value) {
        let resource = self.resource(request);
        let kind = match self.scale {
            Some(_) => json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}),
            None => json!({"group": resource.group, "version": resource.version, "kind": resource.kind}),
        };
        let named =
            json!({"group": resource.group, "version": resource.version, "resource": resource.plural});
        (kind, named)
    }

    /// An object of the request's resource in this form. O(object).
    pub(super) fn show(&self, request: &Request<'_>, object: &Object) -> Result<Object> {
        if let Some(paths) = &self.scale {
            return match scale::of(paths, object)? {
                Value::Object(scale) => Ok(scale),
                _ => Ok(Object::new()),
            };
        }
        let mut object = object.clone();
        if let Some(other) = &self.other {
            convert(request.resource, other, &mut object);
        }
        Ok(object)
    }

    /// Takes what a webhook made of the form back into the object. O(object).
    pub(super) fn take(&self, request: &Request<'_>, shown: Value, object: &mut Object) -> Result<()> {
        if let Some(paths) = &self.scale {
            scale::set(paths, object, &shown);
            return Ok(());
        }
        let resource = self.resource(request);
        let mut changed = decode::value(resource, shown, FieldValidation::Ignore)
            .map_err(|status| Status::internal(&status.message))?
            .object;
        resource.rules.defaults(&mut changed);
        if self.other.is_some() {
            convert(resource, request.resource, &mut changed);
        }
        keep_books(object, &mut changed);
        *object = changed;
        Ok(())
    }
}

/// Turns an object of one resource into the form of another that keeps the same objects.
fn convert(from: &Resource, to: &Resource, object: &mut Object) {
    from.rules.to_stored(object);
    to.rules.show_stored(object);
    object.insert("apiVersion".to_owned(), to.api_version().into());
    object.insert("kind".to_owned(), to.kind.clone().into());
}
