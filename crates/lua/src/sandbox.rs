//! The sandbox of scripts: a state of the virtual machine, and in it an environment for one call.
//!
//! No value that a script sets is visible to another script or to the next call. All mutable parts are created for each call:
//! its globals, the tables of the libraries, their functions that are written in Lua, the table of string methods, and the
//! script's own function from its compiled form. The parts shared between calls, functions written in C and Rust and metatables,
//! cannot be changed by a script, since it has none of `getfenv`, `setfenv`, `getmetatable`, `setmetatable`, `rawset` and
//! `debug`. A state in which anything failed is not reused, and a reused one is cleared of garbage: nothing of an object is kept
//! after the call.
//!
//! A state of its own for each call would be simpler and costs some 80 µs more, half of the total cost of a call.

use std::{
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use mlua::{
    Function, Lua, LuaOptions, LuaString, MultiValue, StdLib, Table, Value, VmState, chunk::ChunkMode,
    debug::HookTriggers,
};

use crate::{
    budget::{Budget, Reached, current_line},
    chunks::PRELUDE,
    error::without_traceback,
    functions, kube,
    limits::Limits,
};

/// The number of instructions between two reads of the clock. One instruction can copy a string as large as the memory limit, so
/// it is small; a read costs about as much as ten of them.
const GRAIN: u32 = 64;

/// The same once a script uses more than [`MUCH`]: then single instructions can take milliseconds.
const FINE_GRAIN: u32 = 4;

/// More than the size of any object that an API server would store.
const MUCH: usize = 24 << 20;

/// A state to run scripts in.
pub(crate) struct Sandbox {
    lua: Lua,
    pub(crate) budget: Arc<Budget>,
    prelude: Function,
    given: MultiValue,
}

/// Idle states. Further threads create states of their own and drop them.
static AT_REST: Mutex<Vec<Sandbox>> = Mutex::new(Vec::new());

const MOST_AT_REST: usize = 16;

/// An idle state takes about 60 KiB; one that takes much more has run a script that made it grow.
const MOST_HELD: usize = 1 << 20;

impl Sandbox {
    /// Returns a state for one call that begins now.
    pub(crate) fn begin(limits: Limits) -> mlua::Result<Self> {
        let at_rest = AT_REST.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let sandbox = match at_rest {
            Some(sandbox) => sandbox,
            None => Self::new()?,
        };
        sandbox.budget.begin(limits);
        watch(&sandbox.lua, &sandbox.budget, GRAIN)?;
        Ok(sandbox)
    }

    /// Keeps the state for another call, after one that succeeded.
    pub(crate) fn end(self) {
        let is_clear = self.budget.reached().is_none() && self.clear().is_ok_and(|held| held < MOST_HELD);
        if is_clear {
            let mut at_rest = AT_REST.lock().unwrap_or_else(PoisonError::into_inner);
            if at_rest.len() < MOST_AT_REST {
                at_rest.push(self);
            }
        }
    }

    /// Drops all values that the call has left in the state; returns the number of bytes still in use.
    fn clear(&self) -> mlua::Result<usize> {
        self.lua.set_memory_limit(0)?;
        if let Some(methods) = self.lua.type_metatable::<LuaString>() {
            methods.raw_remove("__index")?;
        }
        self.lua.gc_collect()?;
        Ok(self.lua.used_memory())
    }

    /// The state, without a memory limit yet.
    pub(crate) const fn lua(&self) -> &Lua {
        &self.lua
    }

    /// The globals of a call.
    pub(crate) fn environment(&self) -> mlua::Result<Table> {
        let environment = self.lua.create_table_with_capacity(0, 64)?;
        environment.raw_set("_G", &environment)?;
        self.prelude.set_environment(environment.clone())?;
        let mut given = self.given.clone();
        given.push_back(Value::Number(self.budget.limits().string as f64));
        self.prelude.call::<()>(given)?;
        self.prelude.set_environment(self.lua.globals())?;
        Ok(environment)
    }

    fn new() -> mlua::Result<Self> {
        let lua = Lua::new_with(
            StdLib::TABLE | StdLib::STRING | StdLib::MATH,
            LuaOptions::new().catch_rust_panics(true),
        )?;
        let budget = Arc::new(Budget::new());
        Ok(Self {
            prelude: binary(&lua, prelude(), PRELUDE)?,
            given: given(&lua, &budget)?,
            lua,
            budget,
        })
    }
}

/// A function from the result of [`compile`]. Nothing else is passed here: a script itself is never read as a binary.
pub(crate) fn binary(lua: &Lua, bytes: &[u8], name: &str) -> mlua::Result<Function> {
    lua.load(bytes)
        .set_name(format!("={name}"))
        .set_mode(ChunkMode::Binary)
        .into_function()
}

/// The compiled form of a script.
pub(crate) fn compile(source: &str, name: &str) -> mlua::Result<Vec<u8>> {
    let lua = Lua::new_with(StdLib::NONE, LuaOptions::new())?;
    lua.set_memory_limit(COMPILER_MEMORY)?;
    let function = lua
        .load(source)
        .set_name(format!("={name}"))
        .set_mode(ChunkMode::Text)
        .into_function()?;
    Ok(function.dump(false))
}

/// Scripts are a few kilobytes; an API server accepts 1.5 MiB.
const COMPILER_MEMORY: usize = 64 << 20;

fn prelude() -> &'static [u8] {
    static COMPILED: OnceLock<Vec<u8>> = OnceLock::new();
    COMPILED.get_or_init(|| compiled(include_str!("prelude.lua")))
}

/// Compiles a part of this crate. A test compiles each.
fn compiled(source: &str) -> Vec<u8> {
    compile(source, PRELUDE).unwrap_or_default()
}

/// The arguments of the prelude, in its order.
fn given(lua: &Lua, budget: &Arc<Budget>) -> mlua::Result<MultiValue> {
    let [b1, b2, b3, b4, b5, b6, b7, b8, b9] = std::array::from_fn(|_| Arc::clone(budget));
    let functions = [
        lua.create_function(move |lua, (): ()| b1.check().inspect_err(|_| b1.at_line(current_line(lua))))?,
        lua.create_function(move |lua, (): ()| {
            b2.at_line(current_line(lua));
            Err::<(), _>(b2.reach(Reached::Memory))
        })?,
        lua.create_function(move |lua, (ok, result): (bool, Value)| {
            let result = if ok { result } else { clean(lua, &b3, result)? };
            b3.check()?;
            Ok((ok, result))
        })?,
        lua.create_function(move |lua, args| functions::find(lua, &b4, args))?,
        lua.create_function(move |lua, args| functions::match_(lua, &b5, args))?,
        lua.create_function(move |lua, args| functions::gmatch(lua, &b6, args))?,
        lua.create_function(move |lua, args| functions::gsub(lua, &b7, args))?,
        lua.create_function(|_, number: f64| Ok(number_text(number)))?,
        lua.create_function(move |lua, (): ()| kube::library(lua, &b8))?,
        lua.create_function(move |lua, (): ()| clock(lua, &b9))?,
    ];
    let globals = [Value::Table(lua.globals())];
    Ok(globals
        .into_iter()
        .chain(functions.into_iter().map(Value::Function))
        .collect())
}

/// The `os` library.
fn clock(lua: &Lua, budget: &Arc<Budget>) -> mlua::Result<Table> {
    static COMPILED: OnceLock<Vec<u8>> = OnceLock::new();
    let compiled = COMPILED.get_or_init(|| compiled(include_str!("clock.lua")));
    let budget = Arc::clone(budget);
    let now = lua.create_function(|_, (): ()| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Ok(since.map_or(0, |since| since.as_secs()))
    })?;
    let elapsed = lua.create_function(move |_, (): ()| Ok(budget.elapsed().as_secs_f64()))?;
    binary(lua, compiled, PRELUDE)?.call((now, elapsed))
}

/// The value of a failure that a script may see when it catches one; fails if it was a limit. Errors of library functions become
/// their text, as in Lua itself.
fn clean(lua: &Lua, budget: &Budget, failure: Value) -> mlua::Result<Value> {
    budget.check()?;
    let text = |reported: &str| lua.create_string(without_traceback(reported)).map(Value::String);
    match failure {
        Value::String(text) if text == "not enough memory" => Err(budget.reach(Reached::Memory)),
        Value::Error(error) => match *error {
            mlua::Error::MemoryError(_) => Err(budget.reach(Reached::Memory)),
            mlua::Error::CallbackError { cause, .. } => text(&cause.to_string()),
            other => text(&other.to_string()),
        },
        other => Ok(other),
    }
}

/// Checks the budget every so many instructions.
fn watch(lua: &Lua, budget: &Arc<Budget>, grain: u32) -> mlua::Result<()> {
    let budget = Arc::clone(budget);
    let is_fine = AtomicBool::new(grain == FINE_GRAIN);
    lua.set_hook(HookTriggers::new().every_nth_instruction(grain), move |lua, _| {
        budget
            .count(u64::from(grain))
            .inspect_err(|_| budget.at_line(current_line(lua)))?;
        if lua.used_memory() > MUCH && !is_fine.swap(true, Relaxed) {
            watch(lua, &budget, FINE_GRAIN)?;
        }
        Ok(VmState::Continue)
    })
}

/// A number as gopher-lua writes it: integers without point or exponent, others with as many digits as needed.
fn number_text(number: f64) -> String {
    let magnitude = number.abs();
    if number.is_nan() {
        "NaN".into()
    } else if number.is_infinite() {
        if number > 0.0 {
            "+Inf".into()
        } else {
            "-Inf".into()
        }
    } else if number.fract() == 0.0 && magnitude < 9_223_372_036_854_775_808.0 {
        format!("{}", number as i64)
    } else if (1e-4..1e21).contains(&magnitude) {
        format!("{number}")
    } else {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        format!("{digits}e{sign}{exponent:0>2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_at_rest_holds_nothing_of_the_call() {
        let sandbox = Sandbox::new().unwrap();
        sandbox.budget.begin(Limits::default());
        let run = |source: &str| {
            let environment = sandbox.environment().unwrap();
            sandbox
                .lua
                .load(source)
                .set_environment(environment)
                .exec()
                .unwrap();
            sandbox.clear().unwrap()
        };
        let before = run("require('kube')");
        for source in [
            "string.kept = ('x'):rep(1e6)",
            "kept = ('x'):rep(1e6) _G.self = _G",
            "require('kube').kept = ('x'):rep(1e6) package.loaded.x = _G",
            "local x = ('x'):rep(1e6) for _ in x:gmatch('x') do break end function kept() return x end",
            "local x = ('x'):rep(1e6) pcall(error, { x }) pcall(string.gsub, x, 'x', error)",
            "os.kept = ('x'):rep(1e6)",
        ] {
            let held = run(source);
            // The buffer for joining strings shrinks by half with each collection.
            assert!(
                held < before + 500_000,
                "{source}: {before} bytes before, {held} after"
            );
        }
        assert!(before < 200_000, "{before}");
    }

    #[test]
    fn numbers_are_written_as_gopher_lua_writes_them() {
        for (number, text) in [
            (4.0, "4"),
            (-0.5, "-0.5"),
            (0.1, "0.1"),
            (1.0 / 3.0, "0.3333333333333333"),
            (17_179_869_184.0, "17179869184"),
            (1e15, "1000000000000000"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (2.5e-7, "2.5e-07"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Inf"),
        ] {
            assert_eq!(number_text(number), text);
        }
    }
}
