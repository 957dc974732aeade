//! `metadata.managedFields`: read, kept in bounds, written in the server's order.

use std::{cmp::Ordering, collections::BTreeMap};

use serde_json::{Map, Value, json};

use super::set::FieldSet;

/// Entries of updates that are kept apart; older ones are merged.
const MOST_UPDATERS: usize = 10;

/// The manager that takes over the fields of older updaters.
const ANCIENT: &str = "ancient-changes";

/// The operation of a manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Everything else.
    Update,
}

/// The identity of an entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// Name of the field manager.
    pub manager: String,
    /// Its operation.
    pub operation: Operation,
    /// The version it wrote in; empty for appliers, which have one entry for all versions.
    pub version: String,
    /// The subresource it wrote through, empty for the object.
    pub subresource: String,
}

/// The fields of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// The version in which the fields are named.
    pub version: String,
    /// The time of its last change.
    pub time: Option<String>,
    /// The fields.
    pub fields: FieldSet,
}

/// All entries.
pub type Managed = BTreeMap<Owner, Owned>;

/// True if a request resets ownership: an empty list, or one empty entry.
#[must_use]
pub fn is_reset(value: Option<&Value>) -> bool {
    match value.and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => true,
        Some([Value::Object(entry)]) => entry.values().all(|value| match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            _ => false,
        }),
        _ => false,
    }
}

/// Reads managedFields; `None` when an entry is broken.
#[must_use]
pub fn parse(value: Option<&Value>) -> Option<Managed> {
    let entries = match value {
        None | Some(Value::Null) => return Some(Managed::new()),
        Some(value) => value.as_array()?,
    };
    let mut managed = Managed::new();
    for entry in entries {
        let text = |name: &str| {
            entry
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let version = text("apiVersion");
        let operation = match text("operation").as_str() {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return None,
        };
        if version.is_empty() || text("fieldsType") != "FieldsV1" {
            return None;
        }
        let owner = Owner {
            manager: text("manager"),
            operation,
            version: match operation {
                Operation::Apply => String::new(),
                Operation::Update => version.clone(),
            },
            subresource: text("subresource"),
        };
        let fields = match entry.get("fieldsV1") {
            None | Some(Value::Null) => FieldSet::default(),
            Some(fields) => FieldSet::parse(fields)?,
        };
        let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
        managed.insert(
            owner,
            Owned {
                version,
                time,
                fields,
            },
        );
    }
    Some(managed)
}

/// Writes managedFields: appliers first, then by time, then by name. `None` when there is no entry.
#[must_use]
pub fn to_value(managed: &Managed) -> Option<Value> {
    if managed.is_empty() {
        return None;
    }
    let mut entries: Vec<(&Owner, &Owned)> = managed.iter().collect();
    entries.sort_by(|(a, owned_a), (b, owned_b)| {
        a.operation
            .cmp(&b.operation)
            .then_with(|| by_time(owned_a, owned_b))
            .then_with(|| a.manager.cmp(&b.manager))
            .then_with(|| owned_a.version.cmp(&owned_b.version))
            .then_with(|| a.subresource.cmp(&b.subresource))
    });
    let entries = entries.into_iter().map(|(owner, owned)| {
        let mut entry = Map::new();
        let operation = match owner.operation {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        };
        if !owner.manager.is_empty() {
            entry.insert("manager".to_owned(), owner.manager.clone().into());
        }
        entry.insert("operation".to_owned(), operation.into());
        entry.insert("apiVersion".to_owned(), owned.version.clone().into());
        if let Some(time) = &owned.time {
            entry.insert("time".to_owned(), time.clone().into());
        }
        entry.insert("fieldsType".to_owned(), json!("FieldsV1"));
        entry.insert("fieldsV1".to_owned(), owned.fields.to_value());
        if !owner.subresource.is_empty() {
            entry.insert("subresource".to_owned(), owner.subresource.clone().into());
        }
        Value::Object(entry)
    });
    Some(Value::Array(entries.collect()))
}

/// Merges the oldest updaters of a version into one, until there are no more than the server keeps.
pub fn bound(managed: &mut Managed) {
    let mut updaters: Vec<Owner> = managed
        .keys()
        .filter(|owner| owner.operation == Operation::Update)
        .cloned()
        .collect();
    if updaters.len() <= MOST_UPDATERS {
        return;
    }
    updaters.sort_by(|a, b| by_time(&managed[a], &managed[b]).then_with(|| a.cmp(b)));
    let mut left = updaters.len();
    let mut first_of: BTreeMap<String, Owner> = BTreeMap::new();
    for owner in updaters {
        if left <= MOST_UPDATERS {
            break;
        }
        let bucket = Owner {
            manager: ANCIENT.to_owned(),
            operation: Operation::Update,
            version: owner.version.clone(),
            subresource: String::new(),
        };
        let Some(first) = first_of.get(&owner.version) else {
            first_of.insert(owner.version.clone(), owner);
            continue;
        };
        if !managed.contains_key(&bucket)
            && let Some(owned) = managed.remove(first)
        {
            managed.insert(bucket.clone(), owned);
        }
        if let Some(owned) = managed.remove(&owner)
            && let Some(ancient) = managed.get_mut(&bucket)
        {
            ancient.fields.union(owned.fields);
            ancient.time = owned.time;
        }
        left -= 1;
    }
}

fn by_time(a: &Owned, b: &Owned) -> Ordering {
    seconds(a.time.as_deref()).cmp(&seconds(b.time.as_deref()))
}

fn seconds(time: Option<&str>) -> i64 {
    time.and_then(|time| time.parse::<jiff::Timestamp>().ok())
        .map_or(0, jiff::Timestamp::as_second)
}
