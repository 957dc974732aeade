//! JSON patch with the deviations of the real server: `replace` adds what is missing, negative indices count from the
//! end, a path's first segment is dropped whether it is empty or not.

use serde_json::{Map, Value};

use crate::{
    read::json::MAX_DEPTH,
    status::{Result, Status},
};

/// Operations of one patch.
const MOST_OPERATIONS: usize = 10_000;

/// Bytes of JSON that all copies of one patch may add.
const MOST_COPIED: usize = 3 << 20;

/// Items shifted and values looked at by all operations of one patch: far more than honest ones need.
const MOST_WORK: usize = 50_000_000;

/// An operation failed; the reason is not reported.
struct Failed;

type Outcome<T> = std::result::Result<T, Failed>;

/// Carries out all operations, or none.
pub(super) fn apply(target: Value, operations: &[Value]) -> Result<Value> {
    if let Some(other) = operations.iter().find(|one| !one.is_object() && !one.is_null()) {
        let name = type_name(other);
        return Err(Status::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {name} into Go value of type handlers.jsonPatchOp"
        )));
    }
    if let Some((name, other)) = operations.iter().find_map(mistyped) {
        return Err(Status::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {other} into Go struct field jsonPatchOp.{name} of type string"
        )));
    }
    if operations.len() > MOST_OPERATIONS {
        return Err(Status::new(
            413,
            "RequestEntityTooLarge",
            format!(
                "Request entity too large: The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {}",
                operations.len()
            ),
        ));
    }
    let mut document = Document {
        root: target,
        copied: 0,
        work: 0,
    };
    for operation in operations {
        document.operate(operation).map_err(|Failed| {
            Status::new(
                422,
                "Invalid",
                "the server rejected our request due to an error in our request",
            )
            .with_details(Map::new())
        })?;
    }
    Ok(document.root)
}

/// The member of an operation that must be a text and is none, with the type that it has.
fn mistyped(operation: &Value) -> Option<(&'static str, &'static str)> {
    ["op", "path", "from"].into_iter().find_map(|name| {
        let found = operation.get(name)?;
        (!found.is_string() && !found.is_null()).then(|| (name, type_name(found)))
    })
}

const fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

struct Document {
    root: Value,
    copied: usize,
    work: usize,
}

impl Document {
    fn operate(&mut self, operation: &Value) -> Outcome<()> {
        let text = |name: &str| operation.get(name).and_then(Value::as_str);
        let path = text("path");
        let value = operation.get("value").unwrap_or(&Value::Null);
        match text("op").unwrap_or_default() {
            "add" => self.add(path.ok_or(Failed)?, value.clone()),
            "remove" => self.take(path.ok_or(Failed)?).map(drop),
            "replace" => self.replace(path.ok_or(Failed)?, value),
            "move" => {
                let (from, path) = (text("from").ok_or(Failed)?, path.ok_or(Failed)?);
                let value = self.take(from)?;
                self.add(path, value)
            }
            "copy" => {
                let (from, path) = (text("from").ok_or(Failed)?, path.ok_or(Failed)?);
                let (holder, key) = self.find(from)?;
                let value = entry(holder, &key)?.cloned().unwrap_or(Value::Null);
                self.copied += serde_json::to_vec(&value).map_or(usize::MAX / 2, |bytes| bytes.len());
                if self.copied > MOST_COPIED {
                    return Err(Failed);
                }
                self.add(path, value)
            }
            "test" => self.test(path.ok_or(Failed)?, value),
            _ => Err(Failed),
        }
    }

    /// The parent of the last step of a path, and that step.
    fn find(&mut self, path: &str) -> Outcome<(&mut Value, String)> {
        let mut steps = path.split('/').skip(1).map(unescaped);
        let mut key = steps.next().ok_or(Failed)?;
        let mut holder = &mut self.root;
        for next in steps {
            holder = match holder {
                Value::Object(map) => map.get_mut(&key).ok_or(Failed)?,
                Value::Array(items) => {
                    let at = place(&key, items.len(), 0)?;
                    items.get_mut(at).ok_or(Failed)?
                }
                _ => return Err(Failed),
            };
            key = next;
        }
        match holder {
            Value::Object(_) | Value::Array(_) => Ok((holder, key)),
            _ => Err(Failed),
        }
    }

    /// Checks that a value fits below a path: the whole stays as flat as what is read.
    fn fits(&mut self, path: &str, value: &Value) -> Outcome<()> {
        let steps = path.split('/').count();
        let room = MAX_DEPTH.checked_sub(steps).ok_or(Failed)?;
        look(value, room, &mut self.work)
    }

    fn add(&mut self, path: &str, value: Value) -> Outcome<()> {
        self.fits(path, &value)?;
        let (holder, key) = self.find(path)?;
        let mut shifted = 0;
        match holder {
            Value::Object(map) => {
                map.insert(key, value);
            }
            Value::Array(items) if key == "-" => items.push(value),
            Value::Array(items) => {
                let at = place(&key, items.len(), 1)?;
                shifted = items.len() - at;
                items.insert(at, value);
            }
            _ => return Err(Failed),
        }
        self.worked(shifted)
    }

    fn take(&mut self, path: &str) -> Outcome<Value> {
        let (holder, key) = self.find(path)?;
        let (value, shifted) = match holder {
            Value::Object(map) => (map.remove(&key).ok_or(Failed)?, 0),
            Value::Array(items) => {
                let at = place(&key, items.len(), 0)?;
                let shifted = items.len() - at;
                (items.remove(at), shifted)
            }
            _ => return Err(Failed),
        };
        self.worked(shifted)?;
        Ok(value)
    }

    fn replace(&mut self, path: &str, value: &Value) -> Outcome<()> {
        if path.is_empty() {
            if !value.is_object() && !value.is_array() {
                return Err(Failed);
            }
            self.root = value.clone();
            return Ok(());
        }
        self.fits(path, value)?;
        let (holder, key) = self.find(path)?;
        match holder {
            Value::Object(map) => {
                map.insert(key, value.clone());
            }
            Value::Array(items) => {
                let at = place(&key, items.len(), 0)?;
                items[at] = value.clone();
            }
            _ => return Err(Failed),
        }
        Ok(())
    }

    fn test(&mut self, path: &str, value: &Value) -> Outcome<()> {
        let found = match path {
            "" => Some(&self.root),
            path => {
                let (holder, key) = self.find(path)?;
                entry(holder, &key)?
            }
        };
        match found.unwrap_or(&Value::Null) == value {
            true => Ok(()),
            false => Err(Failed),
        }
    }

    fn worked(&mut self, steps: usize) -> Outcome<()> {
        self.work = self.work.saturating_add(steps);
        match self.work <= MOST_WORK {
            true => Ok(()),
            false => Err(Failed),
        }
    }
}

/// The value at a step; `None` for a key that a map does not have.
fn entry<'a>(holder: &'a Value, key: &str) -> Outcome<Option<&'a Value>> {
    match holder {
        Value::Object(map) => Ok(map.get(key)),
        Value::Array(items) => Ok(items.get(place(key, items.len(), 0)?)),
        _ => Err(Failed),
    }
}

/// The index that a step means in a list of this length; `spare`: how many places behind the end are fine.
fn place(key: &str, length: usize, spare: usize) -> Outcome<usize> {
    let index: i64 = key.strip_prefix('+').unwrap_or(key).parse().map_err(|_| Failed)?;
    let all = length + spare;
    let at = match usize::try_from(index) {
        Ok(at) => Some(at),
        Err(_) => usize::try_from(index.unsigned_abs())
            .ok()
            .and_then(|back| all.checked_sub(back)),
    };
    at.filter(|at| *at < all).ok_or(Failed)
}

/// Refuses what is deeper than `room`, and counts what it looks at.
fn look(value: &Value, room: usize, work: &mut usize) -> Outcome<()> {
    *work += 1;
    if room == 0 || *work > MOST_WORK {
        return Err(Failed);
    }
    match value {
        Value::Object(map) => map.values().try_for_each(|value| look(value, room - 1, work)),
        Value::Array(items) => items.iter().try_for_each(|value| look(value, room - 1, work)),
        _ => Ok(()),
    }
}

fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}
