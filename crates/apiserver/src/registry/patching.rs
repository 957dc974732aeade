//! PATCH: the kind of the patch, and the new state.

use serde_json::Value;

use super::{Attempt, Context, Source, Terms, change, create_object, create_or_change, system};
use crate::{
    apply,
    call::{Call, Reply},
    decode::{self, Decoded},
    object::{Object, field, metadata_mut, without_books},
    patch::{self, PatchKind},
    resource::about,
    status::{Result, Status},
};

/// The media type of server-side apply.
pub(super) const APPLY: &str = "application/apply-patch+yaml";

const UNSUPPORTED: &str = "UnsupportedMediaType";

/// PATCH in all its forms.
pub(crate) async fn patch(cluster: &dyn Context, call: &Call) -> Result<Reply> {
    let kind = kind_of(call)?;
    let terms = Terms::of(cluster, call)?;
    match kind {
        None => server_side_apply(cluster, call, &terms).await,
        Some(kind) => patch_with(cluster, call, &terms, kind).await,
    }
}

/// The kind of patch that the Content-Type names; `None`: an apply. Types are matched as they are written, their parameters
/// do not count.
pub(super) fn kind_of(call: &Call) -> Result<Option<PatchKind>> {
    let custom = call.resource.custom.is_some();
    match call.media_type() {
        APPLY => Ok(None),
        "application/json-patch+json" => Ok(Some(PatchKind::Json)),
        "application/merge-patch+json" => Ok(Some(PatchKind::Merge)),
        "application/strategic-merge-patch+json" if !custom => Ok(Some(PatchKind::Strategic)),
        _ if custom => Err(Status::new(
            415,
            UNSUPPORTED,
            "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        )),
        _ => Err(Status::new(415, UNSUPPORTED, "415: Unsupported Media Type").with_details(Object::new())),
    }
}

async fn patch_with(cluster: &dyn Context, call: &Call, terms: &Terms, kind: PatchKind) -> Result<Reply> {
    let resource = &*call.resource;
    change(cluster, call, terms, Source::Patch, &mut |old| {
        let patched =
            |target: Object| patch::patched(kind, resource.schema.get(), Value::Object(target), &call.body);
        // Without managedFields of its own the result keeps the earlier ones: they need be neither copied nor read again.
        let target = if may_name_books(kind, &call.body) {
            old.clone()
        } else {
            without_books(old)
        };
        let whole = || patched(old.clone()).unwrap_or_default();
        let patch = (kind, &*call.body);
        let decoded = decode::patched(resource, patched(target)?, patch, terms.validation, &whole)?;
        system::same_name(call, &decoded.object)?;
        Ok(decoded)
    })
    .await
}

/// True if a patch may see or change managedFields: other kinds than merges refer to parts of the object by path.
fn may_name_books(kind: PatchKind, body: &[u8]) -> bool {
    let has = |word: &[u8]| body.windows(word.len()).any(|part| part == word);
    // With an escape the name may be written in other letters.
    kind == PatchKind::Json || has(b"managedFields") || has(b"\\")
}

async fn server_side_apply(cluster: &dyn Context, call: &Call, terms: &Terms) -> Result<Reply> {
    let resource = &*call.resource;
    let mut applied = decode::applied(resource, &call.body, terms.validation)?;
    if field(&applied.object, "name").is_empty() {
        metadata_mut(&mut applied.object).insert("name".to_owned(), call.name.clone().into());
    }
    system::same_name(call, &applied.object)?;
    let force = call.query.flag("force");
    let change = || -> Attempt<'_> {
        Box::pin(async {
            let mut next = |old: &Object| {
                Ok(Decoded {
                    object: apply::apply(resource, Some(old), &applied.object, terms.manager(call), force)?,
                    warnings: applied.warnings.clone(),
                })
            };
            change(cluster, call, terms, Source::Apply, &mut next).await
        })
    };
    if !call.subresource.is_empty() {
        return change().await;
    }
    let create = || -> Attempt<'_> {
        Box::pin(async {
            let uid = field(&applied.object, "uid");
            if !uid.is_empty() {
                let why = format!(
                    "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                );
                return Err(Status::conflict(about(resource, &call.name), &why));
            }
            let mut fresh = applied.object.clone();
            metadata_mut(&mut fresh).remove("resourceVersion");
            let decoded = Decoded {
                object: apply::apply(resource, None, &fresh, terms.manager(call), force)?,
                warnings: applied.warnings.clone(),
            };
            create_object(cluster, call, terms, decoded, Some(())).await
        })
    };
    create_or_change(cluster.store(), call, &create, &change).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_merges_that_cannot_name_the_books_are_made_without_them() {
        for (kind, body, may) in [
            (PatchKind::Merge, r#"{"data":{"a":"1"}}"#, false),
            (PatchKind::Strategic, r#"{"metadata":{"labels":null}}"#, false),
            (PatchKind::Merge, r#"{"metadata":{"managedFields":[]}}"#, true),
            (
                PatchKind::Merge,
                r#"{"metadata":{"managed\u0046ields":[]}}"#,
                true,
            ),
            (
                PatchKind::Json,
                r#"[{"op":"remove","path":"/metadata/labels"}]"#,
                true,
            ),
        ] {
            assert_eq!(may_name_books(kind, body.as_bytes()), may, "{body}");
        }
    }
}
