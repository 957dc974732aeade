//! `/scale`: an object read and changed as a number of replicas. Every other rule of a change is that of the object.

use std::sync::LazyLock;

use serde_json::Value;

use super::{Context, Source, Terms, change, find, media, system};
use crate::{
    apply,
    call::{Call, Item, Reply},
    crd,
    decode::{self, Decoded},
    kinds,
    object::{self, Object},
    patch,
    resource::{Resource, about, stored},
    scale::{self, Paths},
    status::{About, FieldError, Result, Status},
};

/// The resource of a Scale, for decoding. It is served at no path of its own.
static SCALE: LazyLock<Resource> = LazyLock::new(|| kinds::SCALE.resource());

/// GET, PUT and PATCH of a scale.
pub(crate) async fn answer(cluster: &dyn Context, call: &Call) -> Result<Reply> {
    let resource = &*call.resource;
    let paths = match &resource.custom {
        Some(custom) => custom.scale.clone(),
        None => Paths::builtin(),
    };
    let paths = paths.ok_or_else(Status::no_such_path)?;
    if call.method == http::Method::GET {
        let entry = find(cluster.store(), resource, &call.namespace, &call.name)?;
        let object = stored::shown(resource, &entry.object);
        return Ok(Reply::Other {
            code: 200,
            value: scale::of(&paths, &object)?,
            warnings: Vec::new(),
        });
    }
    let terms = Terms::of(cluster, call)?;
    let reply = if call.method == http::Method::PUT {
        put(cluster, call, &terms, &paths).await?
    } else {
        patched(cluster, call, &terms, &paths).await?
    };
    let Reply::Object { code, item, warnings } = reply else {
        return Ok(reply);
    };
    let object = match item {
        Item::Stored(entry) => stored::shown(resource, &entry.object),
        Item::Made(object) => object,
    };
    Ok(Reply::Other {
        code,
        value: scale::of(&paths, &object)?,
        warnings,
    })
}

async fn put(cluster: &dyn Context, call: &Call, terms: &Terms, paths: &Paths) -> Result<Reply> {
    let Decoded { object, warnings } = decode::body(&SCALE, &call.body, media(call)?, terms.validation)?;
    system::same_name(call, &object)?;
    let scale = Value::Object(object);
    change(cluster, call, terms, Source::Put, &mut |old: &Object| {
        Ok(Decoded {
            object: scaled(call, paths, old, &scale)?,
            warnings: warnings.clone(),
        })
    })
    .await
}

async fn patched(cluster: &dyn Context, call: &Call, terms: &Terms, paths: &Paths) -> Result<Reply> {
    let Some(kind) = super::patching::kind_of(call)? else {
        return applied(cluster, call, terms, paths).await;
    };
    change(cluster, call, terms, Source::Patch, &mut |old: &Object| {
        let target = scale::to_patch(paths, old);
        let patched = patch::patched(kind, SCALE.schema.get(), target, &call.body)?;
        let whole = || patched.clone();
        let patch = (kind, &*call.body);
        let Decoded { object, warnings } =
            decode::patched(&SCALE, patched.clone(), patch, terms.validation, &whole)?;
        system::same_name(call, &object)?;
        Ok(Decoded {
            object: scaled(call, paths, old, &Value::Object(object))?,
            warnings,
        })
    })
    .await
}

/// An apply to the Scale, which owns the replicas of the object. Those of custom resources can only be kept.
async fn applied(cluster: &dyn Context, call: &Call, terms: &Terms, paths: &Paths) -> Result<Reply> {
    let resource = &*call.resource;
    let Decoded { object, warnings } = decode::applied(&SCALE, &call.body, terms.validation)?;
    system::same_name(call, &object)?;
    let scaled_by = apply::Scaled {
        parent: resource,
        replicas: paths.spec_replicas.steps(),
        scale: &SCALE,
    };
    let force = call.query.flag("force");
    change(cluster, call, terms, Source::Apply, &mut |old: &Object| {
        let Value::Object(live) = scale::to_patch(paths, old) else {
            return Err(Status::no_such_path());
        };
        let manager = terms.manager(call);
        let (scale, managed) = scaled_by.apply(old, live.clone(), &object, manager, force)?;
        if resource.custom.is_some() && scale != live {
            return Err(Status::unforeseen(format!(
                "failed to convert new object ({}/{}; autoscaling/v1, Kind=Scale) to proper version: request to convert CR to an invalid group/version: autoscaling/v1",
                object::field(&object, "namespace"),
                call.name,
            )));
        }
        let mut object = scaled(call, paths, old, &Value::Object(scale))?;
        let metadata = object::metadata_mut(&mut object);
        match managed {
            Some(managed) => metadata.insert("managedFields".to_owned(), managed),
            None => metadata.remove("managedFields"),
        };
        Ok(Decoded {
            object,
            warnings: warnings.clone(),
        })
    })
    .await
}

/// The object with the replicas of a Scale, under the conditions that the Scale names.
fn scaled(call: &Call, paths: &Paths, old: &Object, scale: &Value) -> Result<Object> {
    if call.resource.custom.is_none() {
        not_negative(call, scale)?;
    }
    let mut new = old.clone();
    for name in ["resourceVersion", "uid"] {
        let given = scale["metadata"].get(name).and_then(Value::as_str);
        if let Some(given) = given.filter(|given| !given.is_empty()) {
            object::metadata_mut(&mut new).insert(name.to_owned(), given.into());
        }
    }
    if call.resource.custom.is_some() {
        crd::with_scale(&call.resource, &mut new, scale);
    } else {
        scale::set(paths, &mut new, scale);
    }
    Ok(new)
}

fn not_negative(call: &Call, scale: &Value) -> Result<()> {
    let replicas = scale::wanted(scale);
    if replicas >= 0 {
        return Ok(());
    }
    let about = About {
        group: "autoscaling",
        resource: "Scale",
        ..about(&call.resource, &call.name)
    };
    let error = FieldError::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
    Err(Status::invalid(about, &[error]))
}
