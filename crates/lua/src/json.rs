//! Conversion of objects to Lua tables and back.
//!
//! As in Karmada: null is nil and so is lost; an empty object and an empty array are the same empty table, and [`crate::repair`]
//! distinguishes them afterwards. A Lua number has 53 bits: larger integers lose their last digits in Lua, and get them back if
//! the script does not move them.

use mlua::{Lua, LuaString, Table, Value};
use serde_json::{Map, Number, Value as Json};

use crate::{
    budget::{Budget, Reached},
    error::say,
};

/// Deeper than any object of an API server; a table that contains itself is deeper.
const MAX_DEPTH: usize = 128;

/// The integers that a Lua number holds exactly.
pub(crate) const EXACT: f64 = 9_007_199_254_740_992.0;

/// A JSON value as a Lua value.
pub(crate) fn to_lua(lua: &Lua, value: &Json) -> mlua::Result<Value> {
    to_lua_at(lua, value, 0)
}

fn to_lua_at(lua: &Lua, value: &Json, depth: usize) -> mlua::Result<Value> {
    if depth > MAX_DEPTH {
        return Err(say("the object is nested too deeply"));
    }
    Ok(match value {
        Json::Null => Value::Nil,
        Json::Bool(value) => Value::Boolean(*value),
        Json::Number(number) => Value::Number(number.as_f64().unwrap_or_default()),
        Json::String(text) => Value::String(lua.create_string(text)?),
        Json::Array(list) => {
            let table = lua.create_table_with_capacity(list.len(), 0)?;
            for (index, each) in list.iter().enumerate().filter(|(_, each)| !each.is_null()) {
                table.raw_set(index + 1, to_lua_at(lua, each, depth + 1)?)?;
            }
            Value::Table(table)
        }
        Json::Object(map) => {
            let table = lua.create_table_with_capacity(0, map.len())?;
            for (key, each) in map.iter().filter(|(_, each)| !each.is_null()) {
                table.raw_set(key.as_str(), to_lua_at(lua, each, depth + 1)?)?;
            }
            Value::Table(table)
        }
    })
}

/// A Lua value as JSON, with its ambiguities.
pub(crate) struct Read {
    /// The value; an empty table is `[]`.
    pub(crate) value: Json,
    /// True if it has an empty table.
    pub(crate) has_empty: bool,
    /// True if it has an integer that may have lost digits.
    pub(crate) has_large: bool,
}

/// Reads a Lua value.
///
/// # Errors
/// It is too large, nested too deeply, or has values that JSON cannot represent: functions, keys that are neither all names nor
/// 1 to n, numbers that are not finite.
pub(crate) fn from_lua(value: &Value, budget: &Budget) -> mlua::Result<Read> {
    let mut reader = Reader {
        budget,
        bytes: 0,
        has_empty: false,
        has_large: false,
    };
    Ok(Read {
        value: reader.read(value, 0)?,
        has_empty: reader.has_empty,
        has_large: reader.has_large,
    })
}

struct Reader<'a> {
    budget: &'a Budget,
    bytes: usize,
    has_empty: bool,
    has_large: bool,
}

impl Reader<'_> {
    fn read(&mut self, value: &Value, depth: usize) -> mlua::Result<Json> {
        self.spend(0)?;
        match value {
            Value::Nil => Ok(Json::Null),
            Value::Boolean(value) => Ok(Json::Bool(*value)),
            Value::Integer(number) => {
                self.has_large |= (*number as f64).abs() >= EXACT;
                Ok(Json::from(*number))
            }
            Value::Number(number) => {
                self.has_large |= number.abs() >= EXACT;
                Number::from_f64(*number)
                    .map(Json::Number)
                    .ok_or_else(|| say("a number is infinite or none at all"))
            }
            Value::String(text) => Ok(Json::String(self.text(text)?)),
            Value::Table(_) if depth > MAX_DEPTH => {
                Err(say("a table is nested too deeply, or contains itself"))
            }
            Value::Table(table) => self.read_table(table, depth),
            other => Err(say(format!(
                "a {} cannot be part of an object",
                other.type_name()
            ))),
        }
    }

    fn read_table(&mut self, table: &Table, depth: usize) -> mlua::Result<Json> {
        let mut list: Vec<(i64, Json)> = Vec::new();
        let mut map = Map::new();
        table.for_each(|key: Value, value: Value| {
            match key {
                Value::String(key) => {
                    let key = self.text(&key)?;
                    map.insert(key, self.read(&value, depth + 1)?);
                }
                Value::Integer(index) => list.push((index, self.read(&value, depth + 1)?)),
                _ => return Err(say("a key of a table is neither a name nor a whole number")),
            }
            Ok(())
        })?;
        if list.is_empty() && map.is_empty() {
            self.has_empty = true;
            return Ok(Json::Array(Vec::new()));
        }
        if list.is_empty() {
            return Ok(Json::Object(map));
        }
        if !map.is_empty() {
            return Err(say("a table has names and numbers as keys"));
        }
        list.sort_by_key(|(index, _)| *index);
        if list.iter().zip(1..).any(|((index, _), wanted)| *index != wanted) {
            return Err(say("a list has gaps"));
        }
        Ok(list.into_iter().map(|(_, value)| value).collect())
    }

    /// Invalid UTF-8 becomes replacement characters, as in Karmada.
    fn text(&mut self, text: &LuaString) -> mlua::Result<String> {
        let bytes = text.as_bytes();
        self.spend(bytes.len())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn spend(&mut self, bytes: usize) -> mlua::Result<()> {
        self.bytes += 16 + bytes;
        self.budget.step(1 + bytes / 16)?;
        if self.bytes > self.budget.limits().answer {
            return Err(self.budget.reach(Reached::Memory));
        }
        Ok(())
    }
}
