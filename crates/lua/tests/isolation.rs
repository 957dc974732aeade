//! Nothing that a script sets is seen by another one, by the next call of its own, or by another thread; nothing of an
//! object is seen in an error; and nothing of the machine is seen by a script.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::{sync::Arc, thread};

use entourage_interpreter::question::{Answer, Question};
use entourage_lua::{Script, ScriptError};
use serde_json::{Value, json};

fn reflect(script: &Script, object: &Value) -> Result<Value, ScriptError> {
    match script.answer(Question::Reflect(object))? {
        Answer::Status(status) => Ok(status.unwrap_or_default()),
        _ => panic!("a status is asked for"),
    }
}

fn script(body: &str) -> Script {
    let source = format!("function ReflectStatus(obj)\n{body}\nend");
    Script::compile("sample", &source).unwrap_or_else(|error| panic!("{error}"))
}

/// Each tries to leave something behind.
const ATTEMPTS: &[&str] = &[
    "leaked = 1",
    "_G.leaked = 1",
    "string.leaked = 1",
    "string.upper = function() return 'leaked' end",
    "string.find, string.format, string.rep = nil, nil, nil",
    "table.insert = nil table.leaked = 1",
    "math.floor = function() return 'leaked' end math.leaked = 1",
    "os.leaked = 1 os.time = nil",
    "package.loaded.kube = { leaked = 1 }",
    "package.loaded.leaked = 1 package.preload.leaked = 1 package.leaked = 1",
    "require('kube').leaked = 1 require('kube').resourceAdd = nil",
    "for name in pairs(_G) do if name ~= '_G' and name ~= 'pairs' then _G[name] = nil end end",
    "pairs, ipairs, type, tostring, pcall, error, require, select = nil",
    "local s = '' pcall(function() s.leaked = 1 end) pcall(function() ('').leaked = 1 end)",
    "pcall(setmetatable, _G, { __index = function() return 'leaked' end })",
    "pcall(function() getmetatable('').__index = { leaked = 1 } end)",
    "pcall(rawset, _G, 'leaked', 1) pcall(setfenv, 1, { leaked = 1 })",
    "obj.leaked = 1 obj.spec.leaked = 1",
    "math.randomseed(4)",
    "_VERSION = 'leaked' _G._G = { leaked = 1 }",
    "function ReflectStatus() return { leaked = 1 } end",
];

/// A script that lists the names of everything reachable, and the results of some functions.
const LOOK: &str = "
  local seen, names = {}, {}
  local function walk(value, path)
    if type(value) ~= 'table' or seen[value] then
      return
    end
    seen[value] = true
    for key, inner in pairs(value) do
      local name = path .. '.' .. tostring(key) .. ':' .. type(inner)
      names[#names + 1] = name
      walk(inner, path .. '.' .. tostring(key))
    end
  end
  walk(_G, '_G')
  walk(require('kube'), 'kube')
  table.sort(names)
  return {
    names = names, leaked = tostring(leaked), method = tostring(('').leaked), upper = ('a'):upper(), floor = math.floor(1.5),
    drawn = math.random(1000), sum = require('kube').resourceAdd('1', '1'), object = obj, version = _VERSION,
    time = type(os.time()), global = tostring(leaked_too),
  }
";

#[test]
fn nothing_that_a_script_sets_is_there_in_the_next_call() {
    let object = json!({"metadata": {"name": "a"}, "spec": {"x": {}}});
    let before = reflect(&script(LOOK), &object).unwrap();
    assert!(before["names"].as_array().unwrap().len() > 50);
    for attempt in ATTEMPTS {
        // The same script, so that its own state would show too: it leaves something behind, or looks.
        let both = script(&format!("if obj.attempt then {attempt} return {{}} end {LOOK}"));
        let mut first = object.clone();
        first["attempt"] = json!(true);
        reflect(&both, &first).unwrap_or_else(|error| panic!("{attempt}: {error}"));
        assert_eq!(reflect(&both, &object).unwrap(), before, "{attempt}");
        assert_eq!(
            reflect(&script(LOOK), &object).unwrap(),
            before,
            "{attempt}: another script"
        );
    }
}

#[test]
fn variables_of_a_script_begin_anew_in_each_call() {
    let source = "local count = 0 calls = calls or 0
        function ReflectStatus(obj) count = count + 1 calls = calls + 1 return { count = count, calls = calls } end";
    let script = Script::compile("counting", source).unwrap();
    for _ in 0..3 {
        assert_eq!(
            reflect(&script, &json!({})).unwrap(),
            json!({"count": 1, "calls": 1})
        );
    }
}

#[test]
fn a_failed_call_leaves_nothing_behind() {
    let script = script("leaked = 1 if obj.fail then error('failed') end return { leaked = obj.leaked }");
    assert!(reflect(&script, &json!({"fail": true})).is_err());
    assert_eq!(reflect(&script, &json!({"a": 1})).unwrap(), json!({}));
}

#[test]
fn threads_that_ask_one_script_get_their_own_answers() {
    let script = Arc::new(script(
        "name = obj.name local n = 0 for i = 1, 2000 do n = n + #(name .. i) end return { name = name, n = n }",
    ));
    let alone: Vec<_> = (0..4)
        .map(|index| reflect(&script, &json!({"name": format!("n{index}")})).unwrap())
        .collect();
    let threads: Vec<_> = (0..4)
        .map(|index| {
            let script = Arc::clone(&script);
            thread::spawn(move || {
                (0..20)
                    .map(|_| reflect(&script, &json!({"name": format!("n{index}")})).unwrap())
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    for (index, thread) in threads.into_iter().enumerate() {
        assert!(
            thread
                .join()
                .unwrap()
                .iter()
                .all(|answer| *answer == alone[index])
        );
    }
}

#[test]
fn nothing_leads_out_of_the_sandbox() {
    for name in [
        "collectgarbage",
        "dofile",
        "getfenv",
        "getmetatable",
        "load",
        "loadfile",
        "loadstring",
        "module",
        "newproxy",
        "rawequal",
        "rawget",
        "rawset",
        "setfenv",
        "setmetatable",
    ] {
        let caught = script(&format!(
            "return {{ why = select(2, pcall({name}, 'return 1', _G)) }}"
        ));
        assert_eq!(
            reflect(&caught, &json!({})).unwrap()["why"],
            format!("{name} is not available to interpreter scripts")
        );
        let error = reflect(&script(&format!("return {name}('x')")), &json!({})).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
    for name in [
        "io",
        "debug",
        "coroutine",
        "gcinfo",
        "os.getenv",
        "os.execute",
        "os.exit",
        "os.remove",
        "os.rename",
        "os.tmpname",
        "os.setlocale",
        "package.loadlib",
        "package.seeall",
        "string.dump",
        "jit",
        "ffi",
    ] {
        let look = script(&format!("return {{ found = type({name}) }}"));
        assert_eq!(
            reflect(&look, &json!({})).unwrap(),
            json!({"found": "nil"}),
            "{name}"
        );
    }
}

#[test]
fn a_compiled_chunk_is_not_taken_for_a_script() {
    for source in ["\u{1b}Lua", "\u{1b}LuaQ\0\u{1}\u{4}\u{8}\u{4}\u{8}\0"] {
        assert!(matches!(
            Script::compile("binary", source),
            Err(ScriptError::Syntax { .. })
        ));
    }
}

/// Ways in which a value of an object might come into an error.
const TELLING: &[&str] = &[
    "error(obj.data.password)",
    "error(obj.data.password, 0)",
    "error({ obj.data.password })",
    "error('attempt to index field \\'' .. obj.data.password .. '\\' (a nil value)', 0)",
    "error('script:1: ' .. obj.data.password)",
    "error('x\\nstack traceback:\\n\\tscript:1: in ' .. obj.data.password)",
    "assert(false, obj.data.password)",
    "assert(nil, 'no ' .. obj.data.password)",
    "return obj.data.password",
    "return { [obj.data.password] = function() end }",
    "return { [obj.data.password] = 1, 2 }",
    "return { a = 0 / 0, b = obj.data.password }",
    "local x = obj.data.password + 1",
    "local x = obj.data.password .. {}",
    "local x = obj.data.password < 1",
    "local x = obj.data[obj.data.password].y",
    "_G[obj.data.password]()",
    "obj[obj.data.password]()",
    "obj.data.password()",
    "(obj.data.password)()",
    "string.rep(obj.data.password, 'many')",
    "string.rep(obj.data.password, 1e9)",
    "string.format('%d', obj.data.password)",
    "string.find('a', '[' .. obj.data.password)",
    "string.gsub('a', 'a', '%9' .. obj.data.password)",
    "string.gsub('a', 'a', function() error(obj.data.password) end)",
    "string.gsub('a', 'a', function() return { obj.data.password } end)",
    "table.sort({ 2, 1 }, function() error(obj.data.password) end)",
    "table.concat({ {}, obj.data.password })",
    "table.insert({}, obj.data.password, 1)",
    "require(obj.data.password)",
    "tonumber(obj.data.password, 99)",
    "tonumber(obj.data.password)()",
    "os.date(obj.data.password, 1e30)",
    "os.time({ year = obj.data.password })",
    "require('kube').resourceAdd(obj.data.password)",
    "require('kube').getResourceQuantity(obj.data.password)",
    "require('kube').getPodDependencies(obj.data.password, 'a')",
    "require('kube').getPodDependencies({ [obj.data.password] = 1, 2 }, 'a')",
    "require('kube').accuratePodRequirements(obj.data.password)",
    "local ok, e = pcall(error, obj.data.password) error(e)",
    "local ok, e = xpcall(function() error(obj.data.password) end, function(e) error(e .. '!') end) error(e)",
    "for i = 1, obj.data.password do end",
    "while true do leaked = obj.data.password end",
];

#[test]
fn no_error_shows_anything_of_an_object() {
    const CANARY: &str = "hunter2";
    let object = json!({"kind": "Secret", "data": {"password": CANARY}, CANARY: CANARY});
    let limits = entourage_lua::Limits {
        instructions: 1_000_000,
        ..entourage_lua::Limits::default()
    };
    for body in TELLING {
        let source = format!("function ReflectStatus(obj)\n{body}\nend");
        let script =
            Script::with_limits("telling", &source, limits).unwrap_or_else(|error| panic!("{error}"));
        let error = reflect(&script, &object).expect_err(body);
        assert!(
            !format!("{error} {error:?} {script:?}").contains(CANARY),
            "{body}: {error:?}"
        );
        assert!(error.to_string().contains("\"telling\""), "{body}: {error}");
    }
    for (function, body) in [
        ("GetReplicas", "return obj.data.password"),
        ("GetReplicas", "return 1, { nodeClaim = obj.data.password }"),
        (
            "GetReplicas",
            "return 1, { resourceRequest = { cpu = obj.data.password } }",
        ),
        (
            "GetReplicas",
            "return 1, { priorityClassName = { obj.data.password } }",
        ),
        ("GetComponents", "return { { name = { obj.data.password } } }"),
        (
            "GetComponents",
            "return { { name = 'a', replicas = obj.data.password } }",
        ),
        (
            "GetDependencies",
            "return { { apiVersion = 'v1', kind = obj.data.password } }",
        ),
        (
            "GetDependencies",
            "return { { apiVersion = 'v1', kind = 'A', labelSelector = obj.data.password } }",
        ),
        (
            "GetDependencies",
            "return { { apiVersion = 'v1', kind = 'A', labelSelector = { matchLabels = { ['-' .. obj.data.password] = '' } } } }",
        ),
        ("InterpretHealth", "return obj.data.password"),
    ] {
        let source = format!("function {function}(obj)\n{body}\nend");
        let script = Script::compile("telling", &source).unwrap();
        let question = match function {
            "GetReplicas" => Question::Replicas(&object),
            "GetComponents" => Question::Components(&object),
            "GetDependencies" => Question::Dependencies(&object),
            _ => Question::Health(&object),
        };
        let why = script.answer(question).err().unwrap_or_else(|| panic!("{body}"));
        assert!(!format!("{why} {why:?}").contains(CANARY), "{body}: {why:?}");
        let reported = entourage_interpreter::question::Rule::answer(&script, question)
            .err()
            .unwrap();
        assert!(
            !reported.contains(CANARY) && reported.contains(function),
            "{body}: {reported}"
        );
    }
}
