//! `string.find`, `match`, `gmatch` and `gsub` as Lua 5.1 has them, over [`crate::pattern`].

use mlua::{IntoLuaMulti as _, Lua, LuaString, MultiValue, Value};

use crate::{
    budget::{Budget, Reached},
    error::say,
    pattern::{Capture, Matcher, is_pattern, plain},
};

/// `find(s, pattern [, init [, plain]])`.
pub(crate) fn find(
    lua: &Lua,
    budget: &Budget,
    (subject, pattern, init, is_plain): (LuaString, LuaString, Option<f64>, Option<bool>),
) -> mlua::Result<MultiValue> {
    let (text, pattern) = (&*subject.as_bytes(), &*pattern.as_bytes());
    budget.check()?;
    let start = position(init, text.len());
    if is_plain == Some(true) || !is_pattern(pattern) {
        return match plain(text, pattern, start, budget)? {
            Some(at) => (at + 1, at + pattern.len()).into_lua_multi(lua),
            None => Value::Nil.into_lua_multi(lua),
        };
    }
    let (pattern, is_anchored) = anchored(pattern);
    let mut matcher = Matcher::new(text, pattern, budget);
    let Some(whole) = matcher.from(start, is_anchored)? else {
        return Value::Nil.into_lua_multi(lua);
    };
    let mut values = MultiValue::from_vec(vec![number(whole.0 + 1), number(whole.1)]);
    if matcher.has_captures() {
        values.extend(captures(lua, text, &matcher, whole)?);
    }
    Ok(values)
}

/// `match(s, pattern [, init])`.
pub(crate) fn match_(
    lua: &Lua,
    budget: &Budget,
    (subject, pattern, init): (LuaString, LuaString, Option<f64>),
) -> mlua::Result<MultiValue> {
    let (text, pattern) = (&*subject.as_bytes(), &*pattern.as_bytes());
    budget.check()?;
    let (pattern, is_anchored) = anchored(pattern);
    let mut matcher = Matcher::new(text, pattern, budget);
    match matcher.from(position(init, text.len()), is_anchored)? {
        Some(whole) => captures(lua, text, &matcher, whole),
        None => Value::Nil.into_lua_multi(lua),
    }
}

/// One step of `gmatch(s, pattern)`: the offset at which the next one begins and the values of the match at or after `start`;
/// empty if there is none. A `^` is literal, as in Lua 5.1. The iterator itself is a function in Lua: one in Rust would keep the
/// subject until it is collected twice.
pub(crate) fn gmatch(
    lua: &Lua,
    budget: &Budget,
    (subject, pattern, start): (LuaString, LuaString, usize),
) -> mlua::Result<MultiValue> {
    let (text, pattern) = (&*subject.as_bytes(), &*pattern.as_bytes());
    budget.check()?;
    let mut matcher = Matcher::new(text, pattern, budget);
    let found = if start <= text.len() {
        matcher.from(start, false)?
    } else {
        None
    };
    let Some(whole) = found else {
        return Ok(MultiValue::new());
    };
    let mut values = captures(lua, text, &matcher, whole)?;
    values.push_front(number(whole.1 + usize::from(whole.0 == whole.1)));
    Ok(values)
}

/// `gsub(s, pattern, replacement [, n])`.
pub(crate) fn gsub(
    lua: &Lua,
    budget: &Budget,
    (subject, pattern, replacement, most): (LuaString, LuaString, Value, Option<f64>),
) -> mlua::Result<(LuaString, usize)> {
    let (text, pattern) = (&*subject.as_bytes(), &*pattern.as_bytes());
    budget.check()?;
    let replacement = match replacement {
        Value::Integer(_) | Value::Number(_) => Value::String(
            lua.coerce_string(replacement)?
                .ok_or_else(|| say("bad argument #3 to gsub"))?,
        ),
        Value::String(_) | Value::Table(_) | Value::Function(_) => replacement,
        _ => {
            return Err(say(
                "bad argument #3 to gsub (string, function or table expected)",
            ));
        }
    };
    let most = most.map_or(usize::MAX, |most| most as usize);
    let (pattern, is_anchored) = anchored(pattern);
    let mut matcher = Matcher::new(text, pattern, budget);
    let (mut out, mut count, mut at) = (Vec::new(), 0, 0);
    while count < most {
        let end = matcher.at(at)?;
        if let Some(end) = end {
            count += 1;
            replace(lua, budget, text, &matcher, (at, end), &replacement, &mut out)?;
        }
        match end {
            Some(end) if end > at => at = end,
            _ if at < text.len() => {
                out.push(text[at]);
                at += 1;
            }
            _ => break,
        }
        if out.len() > budget.limits().string {
            return Err(budget.reach(Reached::Memory));
        }
        if is_anchored {
            break;
        }
    }
    out.extend_from_slice(text.get(at..).unwrap_or_default());
    if out.len() > budget.limits().string {
        return Err(budget.reach(Reached::Memory));
    }
    Ok((lua.create_string(out)?, count))
}

/// Appends the replacement of one match.
fn replace(
    lua: &Lua,
    budget: &Budget,
    text: &[u8],
    matcher: &Matcher<'_>,
    whole: (usize, usize),
    replacement: &Value,
    out: &mut Vec<u8>,
) -> mlua::Result<()> {
    let value = match replacement {
        Value::String(template) => return fill(text, matcher, whole, &template.as_bytes(), out),
        Value::Table(table) => table.raw_get(to_lua(lua, text, matcher.value(0, whole)?)?)?,
        Value::Function(function) => {
            let given = captures(lua, text, matcher, whole)?;
            budget.nested(|| function.call::<Value>(given))?
        }
        _ => Value::Nil,
    };
    match value {
        Value::Nil | Value::Boolean(false) => out.extend_from_slice(&text[whole.0..whole.1]),
        Value::String(value) => out.extend_from_slice(&value.as_bytes()),
        Value::Integer(_) | Value::Number(_) => {
            if let Some(value) = lua.coerce_string(value)? {
                out.extend_from_slice(&value.as_bytes());
            }
        }
        _ => {
            return Err(say(
                "invalid replacement value for gsub: a string, a number, nil or false expected",
            ));
        }
    }
    Ok(())
}

/// A replacement text with `%0` to `%9` filled in.
fn fill(
    text: &[u8],
    matcher: &Matcher<'_>,
    whole: (usize, usize),
    template: &[u8],
    out: &mut Vec<u8>,
) -> mlua::Result<()> {
    let mut bytes = template.iter();
    while let Some(byte) = bytes.next() {
        if *byte != b'%' {
            out.push(*byte);
            continue;
        }
        match bytes.next() {
            Some(b'0') => out.extend_from_slice(&text[whole.0..whole.1]),
            Some(digit) if digit.is_ascii_digit() => match matcher.value(usize::from(digit - b'1'), whole)? {
                Capture::Text(start, end) => out.extend_from_slice(&text[start..end]),
                Capture::Position(at) | Capture::Open(at) => {
                    out.extend_from_slice((at + 1).to_string().as_bytes())
                }
            },
            Some(other) => out.push(*other),
            None => return Err(say("invalid use of '%' in a replacement string")),
        }
    }
    Ok(())
}

/// The captures of a match, or the match itself.
fn captures(
    lua: &Lua,
    text: &[u8],
    matcher: &Matcher<'_>,
    whole: (usize, usize),
) -> mlua::Result<MultiValue> {
    (0..matcher.values())
        .map(|index| to_lua(lua, text, matcher.value(index, whole)?))
        .collect()
}

fn to_lua(lua: &Lua, text: &[u8], capture: Capture) -> mlua::Result<Value> {
    Ok(match capture {
        Capture::Text(start, end) => Value::String(lua.create_string(&text[start..end])?),
        Capture::Position(at) | Capture::Open(at) => number(at + 1),
    })
}

/// Positions are far below 2^53.
fn number(position: usize) -> Value {
    Value::Integer(position as mlua::Integer)
}

/// A position from 1, or from the end if negative, as an offset into the text.
fn position(init: Option<f64>, length: usize) -> usize {
    let init = init.unwrap_or(1.0) as i64;
    let length = length as i64;
    let from_start = if init < 0 {
        (length + init).max(0)
    } else {
        (init - 1).max(0)
    };
    from_start.min(length) as usize
}

fn anchored(pattern: &[u8]) -> (&[u8], bool) {
    match pattern.strip_prefix(b"^") {
        Some(rest) => (rest, true),
        None => (pattern, false),
    }
}
