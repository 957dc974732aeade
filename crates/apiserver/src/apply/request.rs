//! An apply: what the manager wants is merged into what is there, and what it no longer wants is taken out.

use serde_json::{Map, Value, json};

use super::{
    Manager, compare,
    entries::{self, Managed, Operation, Owned, Owner},
    merge::{merge, without},
    note_update, only_writable,
    set::FieldSet,
    shape::Shape,
    strip, typed, write,
};
use crate::{
    decode::{self, FieldValidation},
    object::{Object, field, metadata, metadata_mut},
    resource::Resource,
    status::{Result, Status},
};

/// The owner of fields that were there before the first apply, if they have no managedFields.
const BEFORE: &str = "before-first-apply";

/// The manager whose applies go along with the annotation of client-side apply.
const KUBECTL: &str = "kubectl";

/// The annotation of client-side apply.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The object after `applied` was applied to `live` (`None`: created), with its managedFields; conflicts unless `force`.
///
/// `applied` is the body as it was sent. Fields that the manager applied last time, does not apply now, and nobody else
/// owns, are removed. Cost: O(size of the objects and of managedFields, by its logarithm).
///
/// # Errors
///
/// 400 for another kind than the resource's and for managedFields in the body, 500 for what does not fit the schema, 409
/// for fields with other values that others own.
pub fn apply(
    resource: &Resource,
    live: Option<&Object>,
    applied: &Object,
    manager: Manager<'_>,
    force: bool,
) -> Result<Object> {
    let text = |name: &str| applied.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if api_version != resource.api_version() || kind != resource.kind {
        return Err(Status::bad_request(format!(
            "invalid object type: {}",
            type_of(api_version, kind)
        )));
    }
    if metadata(applied)
        .get("managedFields")
        .is_some_and(|value| !value.is_null())
    {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    let mut live = live.cloned();
    let before = live
        .as_mut()
        .and_then(|live| metadata_mut(live).remove("managedFields"));
    let Some(mut managed) = entries::parse(before.as_ref()) else {
        return Err(Status::unforeseen("failed to decode managed fields"));
    };
    let shape = Shape::object(resource.schema.get());
    if let Some(problems) = typed::problems(&shape, &Value::Object(applied.clone())) {
        return Err(Status::unforeseen(format!(
            "failed to create typed patch object ({}/{}; {}): {problems}",
            field(applied, "namespace"),
            field(applied, "name"),
            type_of(api_version, kind),
        )));
    }
    if managed.is_empty()
        && let Some(live) = &live
    {
        let unknown = Manager {
            name: BEFORE,
            ..manager
        };
        note_update(resource, None, live, &mut managed, unknown);
    }
    let state = State {
        resource,
        shape,
        live: live.unwrap_or_else(|| empty(resource)),
        applied: writable(resource, manager.subresource, applied),
        manager,
    };
    let books = managed.clone();
    let (merged, mut managed) = match state.merged(managed, force) {
        Err(conflicts) if manager.name == KUBECTL && state.foreseen(&conflicts) => state
            .merged(books, true)
            .map_err(|conflicts| conflict(&conflicts))?,
        outcome => outcome.map_err(|conflicts| conflict(&conflicts))?,
    };
    let Some(merged) = merged else {
        let mut same = state.live;
        write(&mut same, &managed);
        return Ok(same);
    };
    if let Some(owned) = managed.get_mut(&owner(manager)) {
        owned.time = Some(manager.now.to_owned());
    }
    let Value::Object(mut object) = merged else {
        return Err(Status::unforeseen("the merged object is no object"));
    };
    object = match resource.custom {
        // Emptied fields are null now, which only nullable fields may be.
        Some(_) => decode::value(resource, Value::Object(object), FieldValidation::Ignore)?.object,
        None => decode::settled(resource, object).map_err(|error| {
            let kind = type_of(api_version, kind);
            Status::unforeseen(format!(
                "failed to convert new object ({}/{}; {kind}) to proper version: unable to convert unstructured object to {kind}: {error}",
                field(applied, "namespace"),
                field(applied, "name"),
            ))
        })?,
    };
    decode::stored(resource, &mut object);
    // Only here: an apply that changes nothing but ownership fills in no default either.
    resource.rules.defaults(&mut object);
    if manager.name == KUBECTL {
        renew_last_applied(&mut object, applied);
    }
    write(&mut object, &managed);
    Ok(object)
}

/// The input of an apply.
struct State<'a> {
    resource: &'a Resource,
    shape: Shape,
    /// The object, without managedFields.
    live: Object,
    /// The part of the body that can be written through the subresource.
    applied: Object,
    manager: Manager<'a>,
}

/// The fields that each of the others holds.
type Conflicts = Vec<(Owner, FieldSet)>;

impl State<'_> {
    /// The new state, `None` when it is that of before, and who owns what then.
    fn merged(
        &self,
        mut managed: Managed,
        force: bool,
    ) -> std::result::Result<(Option<Value>, Managed), Conflicts> {
        let live = Value::Object(self.live.clone());
        let applied = Value::Object(self.applied.clone());
        let mut merged = merge(&self.shape, &live, &applied);
        let mut fields = compare::fields(&self.shape, &applied);
        only_writable(self.resource, self.manager.subresource, &mut fields);
        let me = owner(self.manager);
        let last = managed.remove(&me);
        let mine = Owned {
            version: self.resource.api_version(),
            time: last.as_ref().and_then(|last| last.time.clone()),
            fields: fields.clone(),
        };
        if let Some(last) = last.filter(|last| !last.fields.is_empty()) {
            let others = managed.values().map(|owned| owned.fields.clone());
            let mut kept = fields;
            others.for_each(|fields| kept.union(fields));
            merged = match self.pruned_elsewhere(&merged, &last) {
                Some(pruned) => self.with_kept(&merged, &pruned, &kept),
                None => self.prune(&merged, &last.fields, &kept),
            };
        }
        let Value::Object(after) = &merged else {
            return Ok((None, managed));
        };
        let mut comparison = compare::compare(&self.shape, &self.live, after);
        for set in [
            &mut comparison.added,
            &mut comparison.modified,
            &mut comparison.removed,
        ] {
            only_writable(self.resource, self.manager.subresource, set);
        }
        let changed = comparison.changed();
        let conflicts: Conflicts = managed
            .iter()
            .map(|(owner, owned)| (owner.clone(), owned.fields.intersection(&changed)))
            .filter(|(_, fields)| !fields.is_empty())
            .collect();
        if !force && !conflicts.is_empty() {
            return Err(conflicts);
        }
        for owned in managed.values_mut() {
            owned.fields = owned.fields.difference(&changed).difference(&comparison.removed);
        }
        managed.retain(|_, owned| !owned.fields.is_empty());
        let mut mine = mine;
        strip(&mut mine.fields);
        if !mine.fields.is_empty() {
            managed.insert(me, mine);
        }
        Ok(((merged != live).then_some(merged), managed))
    }

    /// Takes out what was applied `last` time, but for what is `kept` by the body or by others.
    fn prune(&self, merged: &Value, last: &FieldSet, kept: &FieldSet) -> Value {
        let last = named(&self.shape, last);
        // Fields with another owner come back …
        let pruned = self.with_kept(merged, &without(&self.shape, merged, &last), kept);
        // … and so do those that this manager never had.
        let gone = self.fields(merged).difference(&self.fields(&pruned));
        without(&self.shape, merged, &gone.intersection(&last))
    }

    /// The part of `merged` that `pruned` and `kept` have, with all fields on the path to these.
    fn with_kept(&self, merged: &Value, pruned: &Value, kept: &FieldSet) -> Value {
        let mut stays = self.fields(pruned);
        stays.union(named(&self.shape, kept));
        without(&self.shape, merged, &self.fields(merged).difference(&stays))
    }

    fn fields(&self, value: &Value) -> FieldSet {
        named(&self.shape, &compare::fields(&self.shape, value))
    }

    /// The rest without the `last` applied fields, where another version of a built-in kind names them; fields that
    /// this version requires come back empty, and so count as kept.
    fn pruned_elsewhere(&self, merged: &Value, last: &Owned) -> Option<Value> {
        if last.version == self.resource.api_version() || self.resource.custom.is_some() {
            return None;
        }
        let other = decode::in_version(self.resource, &last.version)?;
        let mut object = merged.as_object()?.clone();
        self.resource.rules.to_stored(&mut object);
        other.rules.show_stored(&mut object);
        let shape = Shape::object(other.schema.get());
        let pruned = without(&shape, &Value::Object(object), &named(&shape, &last.fields));
        let mut object = pruned.as_object()?.clone();
        other.rules.to_stored(&mut object);
        self.resource.rules.show_stored(&mut object);
        decode::settled(self.resource, object).ok().map(Value::Object)
    }

    /// True if all conflicts are about fields that client-side apply set, by its annotation.
    fn foreseen(&self, conflicts: &Conflicts) -> bool {
        let annotation = metadata(&self.live)
            .get("annotations")
            .and_then(|annotations| annotations.get(LAST_APPLIED))
            .and_then(Value::as_str);
        let Some(Ok(Value::Object(last))) = annotation.map(serde_json::from_str) else {
            return false;
        };
        if last.get("apiVersion").and_then(Value::as_str) != Some(&self.resource.api_version()) {
            return false;
        }
        let differing = compare::compare(&self.shape, &last, &self.live);
        let allowed = compare::fields(&self.shape, &Value::Object(last))
            .difference(&differing.changed())
            .difference(&differing.removed);
        conflicts
            .iter()
            .all(|(_, fields)| fields.difference(&allowed).is_empty())
    }
}

/// The set with the maps and items on the way to its fields.
fn named(shape: &Shape, set: &FieldSet) -> FieldSet {
    set.with_members(shape, &|shape: &Shape, step| shape.step(step))
}

/// The object before a create: nothing, or the parts of a Go struct that are always there.
fn empty(resource: &Resource) -> Object {
    let mut object = match resource.custom {
        None => Shape::object(resource.schema.get()).zero(),
        Some(_) => Map::new(),
    };
    object.insert("apiVersion".to_owned(), resource.api_version().into());
    object.insert("kind".to_owned(), resource.kind.clone().into());
    object
}

/// The body without what cannot be written through the subresource.
fn writable(resource: &Resource, subresource: &str, applied: &Object) -> Object {
    let mut applied = applied.clone();
    match subresource {
        "" if super::writes_no_status(resource) => {
            applied.remove("status");
        }
        "status" => {
            applied.retain(|name, _| matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
            // Conditions are kept, and metadata that a status may change.
            let kept = resource.rules.kept_by_status();
            metadata_mut(&mut applied).retain(|name, _| match name.as_str() {
                "name" | "namespace" | "uid" | "resourceVersion" => true,
                name => resource.custom.is_none() && !kept.contains(&name),
            });
        }
        _ => {}
    }
    applied
}

fn owner(manager: Manager<'_>) -> Owner {
    Owner {
        manager: manager.name.to_owned(),
        operation: Operation::Apply,
        version: String::new(),
        subresource: manager.subresource.to_owned(),
    }
}

/// The annotation of client-side apply, where it is there, follows what kubectl applied.
fn renew_last_applied(object: &mut Object, applied: &Object) {
    /// The maximum size of all annotations together.
    const LARGEST: usize = 256 << 10;
    let slot = metadata_mut(object)
        .get_mut("annotations")
        .and_then(|annotations| annotations.get_mut(LAST_APPLIED));
    let Some(slot) = slot else { return };
    let mut last = applied.clone();
    let annotations = metadata_mut(&mut last).get_mut("annotations");
    if let Some(Value::Object(annotations)) = annotations {
        annotations.remove(LAST_APPLIED);
    }
    let text = format!("{}\n", Value::Object(last));
    if text.len() <= LARGEST {
        *slot = text.into();
    }
}

/// `apps/v1, Kind=Deployment`; the core group is empty.
fn type_of(api_version: &str, kind: &str) -> String {
    let separator = if api_version.contains('/') { "" } else { "/" };
    format!("{separator}{api_version}, Kind={kind}")
}

/// 409 with a cause for each field of each other manager.
fn conflict(conflicts: &Conflicts) -> Box<Status> {
    let reported: Vec<(String, Vec<String>)> = conflicts
        .iter()
        .map(|(owner, fields)| (shown(owner), fields.paths()))
        .collect();
    let causes: Vec<Value> = reported
        .iter()
        .flat_map(|(owner, paths)| paths.iter().map(move |path| (owner, path)))
        .map(|(owner, path)| {
            json!({"reason": "FieldManagerConflict", "message": format!("conflict with {owner}"), "field": path})
        })
        .collect();
    let message = match (causes.len(), reported.as_slice()) {
        (1, [(owner, paths)]) => {
            format!(
                "Apply failed with 1 conflict: conflict with {owner}: {}",
                paths.concat()
            )
        }
        (count, reported) => {
            let lines: Vec<String> = reported
                .iter()
                .flat_map(|(owner, paths)| {
                    let head = format!("conflicts with {owner}:");
                    std::iter::once(head).chain(paths.iter().map(|path| format!("- {path}")))
                })
                .collect();
            format!("Apply failed with {count} conflicts: {}", lines.join("\n"))
        }
    };
    let mut details = Map::new();
    details.insert("causes".to_owned(), Value::Array(causes));
    Status::new(409, "Conflict", message).with_details(details)
}

/// A manager as conflicts name it.
fn shown(owner: &Owner) -> String {
    let mut text = format!("{:?}", owner.manager);
    if !owner.subresource.is_empty() {
        text.push_str(&format!(" with subresource {:?}", owner.subresource));
    }
    if owner.operation == Operation::Update {
        text.push_str(" using ");
        text.push_str(&owner.version);
    }
    text
}
