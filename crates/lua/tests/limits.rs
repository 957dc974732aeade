//! Scripts that would not end, or would take all memory: each is stopped, soon after the limit, and cannot catch that.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use entourage_interpreter::question::{Answer, Question};
use entourage_lua::{Limits, Script, ScriptError};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_millis(200);

/// The longest time after the limit until a script is stopped, in an unoptimised build on a busy machine: one step of the
/// virtual machine or of a library function on as much memory as there may be.
const LATE: Duration = Duration::from_millis(1500);

fn limits() -> Limits {
    Limits {
        time: LIMIT,
        // The other limits are so large that the clock stops a script that only takes time.
        instructions: u64::MAX,
        ..Limits::default()
    }
}

/// The result of a script, and its duration. A script that is not stopped fails the test instead of blocking it.
fn run(body: &str, limits: Limits, object: Value) -> (Result<(), ScriptError>, Duration) {
    let source = format!("function InterpretHealth(obj)\n{body}\nreturn true\nend");
    let script = Script::with_limits("hostile", &source, limits).unwrap_or_else(|error| panic!("{error}"));
    let (sender, receiver) = mpsc::channel();
    // The stack is as large as that of a worker thread of the controllers.
    let worker = thread::Builder::new().stack_size(2 << 20);
    worker
        .spawn(move || {
            let started = Instant::now();
            let result = script.answer(Question::Health(&object)).map(|_| ());
            let _ = sender.send((result, started.elapsed()));
        })
        .unwrap();
    receiver
        .recv_timeout(Duration::from_secs(20))
        .unwrap_or_else(|error| panic!("{error}: not stopped: {body}"))
}

const ENDLESS: &[(&str, &str)] = &[
    ("a loop", "while true do end"),
    (
        "a loop that does nothing but call",
        "local function f() end while true do f() end",
    ),
    ("tail calls", "local function f() return f() end f()"),
    (
        "a pattern that backtracks",
        "string.find(('a'):rep(1e4), '.-.-.-.-b$')",
    ),
    ("the same by match", "string.match(('a'):rep(1e4), '.-.-.-.-b$')"),
    ("the same by a method", "(('a'):rep(1e4)):find('.-.-.-.-b$')"),
    (
        "the same by gmatch",
        "for _ in string.gmatch(('a'):rep(1e4), '.-.-.-.-b') do end",
    ),
    ("the same by gsub", "string.gsub(('a'):rep(1e4), '.-.-.-.-b', '')"),
    ("back references", "string.find(('a'):rep(1e5), '(.*)%1b')"),
    ("a balanced pattern", "string.find(('('):rep(1e6), '%b()')"),
    (
        "a set as long as the subject",
        "string.find(('a'):rep(1e5), '[' .. ('b'):rep(1e5) .. ']')",
    ),
    (
        "a plain needle in a like haystack",
        "string.find(('a'):rep(2e6), ('a'):rep(1e6) .. 'b', 1, true)",
    ),
    (
        "gsub with a function that loops",
        "string.gsub('a', 'a', function() while true do end end)",
    ),
    (
        "a sort with a comparison that loops",
        "table.sort({ 3, 2, 1 }, function() while true do end end)",
    ),
    (
        "sorting again and again",
        "local t = {} for i = 1, 2e5 do t[i] = -i end while true do table.sort(t) table.sort(t, function(a, b) return a > b end) end",
    ),
    (
        "a comparison without an order",
        "local t = {} for i = 1, 1e5 do t[i] = i % 7 end while true do pcall(table.sort, t, function() return true end) end",
    ),
    (
        "inserting at the front",
        "local t = {} for i = 1, 1e7 do table.insert(t, 1, i) end",
    ),
    (
        "removing from the front",
        "local t = {} for i = 1, 1e6 do t[i] = i end for i = 1, 1e6 do table.remove(t, 1) end",
    ),
    (
        "concatenating a table again and again",
        "local t = {} for i = 1, 1e5 do t[i] = 'abc' end while true do table.concat(t) end",
    ),
    ("repeating nothing", "while true do local s = (''):rep(1e18) end"),
    (
        "formatting",
        "local s = ('x'):rep(1e5) while true do string.format('%s%s%s', s, s, s) end",
    ),
    (
        "changing case",
        "local s = ('x'):rep(1e6) while true do s = s:upper():lower():reverse() end",
    ),
    (
        "joining large strings",
        "local s = ('x'):rep(1e6) while true do local t = s .. 'y' .. s end",
    ),
    (
        "comparing large strings",
        "local a = ('x'):rep(8e6) local b = a .. 'a' local c = a .. 'b' while true do local d = b < c end",
    ),
    (
        "numbers of large strings",
        "local s = ('1'):rep(8e6) while true do local n = s + 0 end",
    ),
    (
        "strings that the table of strings takes for each other",
        "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1000) .. i end",
    ),
    (
        "calling itself twice and catching",
        "local function f() pcall(f) pcall(f) end f()",
    ),
    (
        "handlers that call twice",
        "local function h() xpcall(error, h) xpcall(error, h) end while true do xpcall(error, h) end",
    ),
    (
        "looking for what is next",
        "local t = {} for i = 1, 1e6 do t[i] = i end for i = 1, 1e6 do t[i] = nil end while true do next(t) end",
    ),
    (
        "catching what stops it",
        "while true do pcall(function() while true do end end) end",
    ),
    (
        "catching it with a handler",
        "while true do xpcall(function() while true do end end, function() return 'caught' end) end",
    ),
    (
        "a handler that loops",
        "xpcall(function() error('a') end, function() while true do end end)",
    ),
    (
        "a handler of handlers",
        "local function h() xpcall(error, h) end while true do xpcall(error, h) end",
    ),
    (
        "catching in a tail call",
        "local function f() return pcall(f) end while true do f() end",
    ),
    (
        "catching in a sort",
        "while true do pcall(table.sort, { 3, 2, 1 }, function() while true do end end) end",
    ),
    (
        "catching in gsub",
        "while true do pcall(string.gsub, 'aaa', 'a', function() while true do end end) end",
    ),
    (
        "reading pods again and again",
        "local kube = require('kube') local t = {} for i = 1, 1e3 do t[i] = { name = 'c' .. i } end while true do kube.getPodDependencies({ spec = { containers = t } }, 'a') end",
    ),
    ("the time of day", "while true do os.date('!%c', 1) end"),
];

#[test]
fn what_does_not_end_is_stopped_by_the_clock() {
    for (what, body) in ENDLESS {
        let (result, took) = run(body, limits(), json!({}));
        assert!(
            matches!(result, Err(ScriptError::Time { .. })),
            "{what}: {result:?}"
        );
        assert!(took < LIMIT + LATE, "{what}: stopped after {took:?}");
        if took > LIMIT + Duration::from_millis(100) {
            println!("{what}: {took:?}");
        }
    }
}

const GREEDY: &[(&str, &str)] = &[
    (
        "a table without end",
        "local t = {} for i = 1, 1e9 do t[i] = i end",
    ),
    ("tables without end", "local t = {} while true do t = { t } end"),
    (
        "a string that doubles",
        "local s = 'x' while true do s = s .. s end",
    ),
    (
        "strings without end",
        "local t = {} for i = 1, 1e9 do t[i] = tostring(i):rep(200) end",
    ),
    ("a string repeated", "local s = ('x'):rep(1e9)"),
    ("more than there are numbers", "local s = ('x'):rep(1e300)"),
    (
        "a replacement that grows",
        "local s = ('x'):rep(1e6) s:gsub('x', ('y'):rep(1000))",
    ),
    (
        "a table joined",
        "local t = {} local s = ('x'):rep(1e6) for i = 1, 1000 do t[i] = s end table.concat(t)",
    ),
    (
        "a format",
        "local s = ('x'):rep(15e6) string.format('%s%s%s%s%s%s', s, s, s, s, s, s)",
    ),
    (
        "catching it",
        "while true do pcall(function() local s = 'x' while true do s = s .. s end end) end",
    ),
    (
        "catching it with a handler",
        "while true do xpcall(function() local s = ('x'):rep(1e9) end, function(e) return e end) end",
    ),
    (
        "closures without end",
        "local t = {} while true do local n = #t t[n + 1] = function() return t, n end end",
    ),
    (
        "a large error",
        "local s = 'x' while true do s = s .. s pcall(error, s) end",
    ),
    (
        "a pod template that contains itself many times",
        "local t = { 1 } for i = 1, 60 do t = { t, t } end require('kube').getPodDependencies({ spec = t }, 'a')",
    ),
];

#[test]
fn what_takes_all_memory_is_stopped() {
    for (what, body) in GREEDY {
        let limits = Limits {
            time: Duration::from_secs(10),
            ..limits()
        };
        let (result, took) = run(body, limits, json!({}));
        assert!(
            matches!(result, Err(ScriptError::Memory { .. })),
            "{what}: {result:?}"
        );
        assert!(took < Duration::from_secs(9), "{what}: stopped after {took:?}");
    }
}

/// Failures of the virtual machine that a script may catch: they cost little, and it goes on within its limits.
const DEEP: &[(&str, &str)] = &[
    ("recursion", "local function f() return 1 + f() end f()"),
    (
        "recursion through pcall",
        "local function f() local ok, e = pcall(f) error(e) end f()",
    ),
    (
        "recursion through gsub",
        "local function f() return (('a'):gsub('a', f)) end f()",
    ),
    (
        "recursion through sort",
        "local function f() table.sort({ 2, 1 }, f) end f()",
    ),
    (
        "recursion through gmatch",
        "local function f() for _ in ('a'):gmatch('a') do f() end end f()",
    ),
    (
        "a pattern with many items",
        "string.find(('a'):rep(1e5), ('a?'):rep(1e5))",
    ),
    (
        "a pattern with many captures",
        "string.find('a', ('('):rep(1000) .. (')'):rep(1000))",
    ),
    (
        "unpacking a lot",
        "local t = {} for i = 1, 1e6 do t[i] = i end local x = { unpack(t) }",
    ),
    ("unpacking to the end", "unpack({}, 0, 2 ^ 31 - 1)"),
    (
        "inserting far before the front",
        "table.insert({ 1 }, -2 ^ 31, 1)",
    ),
    ("inserting nowhere", "table.insert({ 1 }, 0 / 0, 1)"),
    ("joining to the end", "table.concat({}, 'x', 1, 2 ^ 31 - 2)"),
    ("many arguments", "string.char(unpack({ 1, 2, 3 }, 1, 1e7))"),
];

#[test]
fn what_goes_too_deep_fails_and_does_no_harm() {
    for (what, body) in DEEP {
        let limits = Limits {
            time: Duration::from_secs(5),
            ..Limits::default()
        };
        let (result, took) = run(body, limits, json!({}));
        let error = result.expect_err(what);
        assert!(!matches!(error, ScriptError::Time { .. }), "{what}: {error}");
        assert!(took < Duration::from_secs(4), "{what}: {took:?}");
    }
}

#[test]
fn instructions_are_counted_and_the_line_is_named() {
    let limits = Limits {
        instructions: 100_000,
        time: Duration::from_secs(10),
        ..Limits::default()
    };
    let (result, _) = run("local n = 0\nwhile true do n = n + 1 end", limits, json!({}));
    assert!(
        matches!(result, Err(ScriptError::Instructions { line: Some(3), .. })),
        "{result:?}"
    );
    let (result, _) = run("local n = 0\nfor i = 1, 1000 do n = n + i end", limits, json!({}));
    assert_eq!(result, Ok(()));
}

#[test]
fn a_limit_inside_a_library_function_names_the_line_that_called_it() {
    let (result, _) = run(
        "\n\nstring.find(('a'):rep(1e4), '.-.-.-.-b$')",
        limits(),
        json!({}),
    );
    assert!(
        matches!(result, Err(ScriptError::Time { line: Some(4), .. })),
        "{result:?}"
    );
    let (result, _) = run("\nlocal s = ('x'):rep(1e9)", limits(), json!({}));
    assert!(
        matches!(result, Err(ScriptError::Memory { line: Some(3), .. })),
        "{result:?}"
    );
}

#[test]
fn an_answer_is_bounded_in_size_and_depth() {
    let answer = |body: &str| {
        let source = format!("function ReflectStatus(obj)\n{body}\nend");
        let limits = Limits {
            time: Duration::from_secs(10),
            ..Limits::default()
        };
        Script::with_limits("large", &source, limits)
            .unwrap()
            .answer(Question::Reflect(&json!({})))
    };
    let many = answer("local t = { 1 } for i = 1, 60 do t = { t, t } end return { t = t }");
    assert!(matches!(many.err(), Some(ScriptError::Memory { .. })));
    let deep = answer("local t = { 1 } for i = 1, 1000 do t = { t } end return { t = t }");
    assert!(matches!(deep.err(), Some(ScriptError::Failed { .. })));
    let itself = answer("local t = {} t.t = t return t");
    assert!(matches!(itself.err(), Some(ScriptError::Failed { .. })));
    let sparse = answer("local t = {} for i = 0, 30 do t[2 ^ i] = 1 end return { t = t }");
    assert!(matches!(sparse.err(), Some(ScriptError::Failed { .. })));
    assert!(answer("return { a = { { { 1 } } } }").is_ok());
}

#[test]
fn a_script_that_reached_a_limit_is_not_run_for_the_object_until_it_changes() {
    let source = "function InterpretHealth(obj) if obj.spec.slow then while true do end end return true end";
    let script = Script::with_limits("sometimes", source, limits()).unwrap();
    let object = |uid: &str, version: &str, is_slow: bool| json!({"metadata": {"uid": uid, "resourceVersion": version}, "spec": {"slow": is_slow}});
    let ask = |object: &Value| script.answer(Question::Health(object)).map(|_| ());

    let first = ask(&object("a", "1", true)).unwrap_err();
    assert!(matches!(first, ScriptError::Time { line: Some(1), .. }));
    let started = Instant::now();
    let second = ask(&object("a", "1", true)).unwrap_err();
    assert_eq!(second, ScriptError::Quarantined(Box::new(first.clone())));
    assert!(started.elapsed() < LIMIT, "it was not run");
    assert_eq!(second.to_string(), first.to_string(), "no news");
    assert_eq!(
        first.to_string(),
        "script \"sometimes\", line 1: hit its limit: stopped after 200ms; make it do less; \
         it runs for this object again when the object changes"
    );
    assert_eq!(
        ask(&object("b", "1", false)),
        Ok(()),
        "other objects are not held up"
    );
    assert_eq!(ask(&object("a", "2", false)), Ok(()), "a change sets it free");
}

/// The library of the virtual machine is C: whatever numbers a script gives it, it must not leave the sandbox by them.
/// Worth most in an optimised build: `cargo test --release -p entourage-lua`.
#[test]
fn every_function_takes_every_argument_and_the_thread_lives() {
    const CALLS: &str = "
        local values = {
          0 / 0, 1 / 0, -1 / 0, 0, -1, 2 ^ 31, 2 ^ 31 - 1, -2 ^ 31, 2 ^ 32, 2 ^ 53, 2 ^ 63, -2 ^ 63, 1e300, 1.5, '', 'x', '%s%99.99f',
          ('x'):rep(300), '%d', { 3, 1, 2 }, { a = 1 }, true, function() return 1 end,
        }
        local function each(f, first)
          pcall(f, first)
          for i = 0, #values do
            pcall(f, first, values[i])
            for j = 0, #values do
              pcall(f, first, values[i], values[j])
            end
          end
        end
        local library, name, index = obj.library, obj.name, obj.index
        local holder = library == 'kube' and require('kube') or _G[library]
        if index == -1 then
          local names = {}
          for name, f in pairs(holder) do
            if type(f) == 'function' then names[#names + 1] = name end
          end
          table.sort(names)
          return { names = names }
        end
        each(holder[name], values[index])
        return { count = #values }
    ";
    let source = format!("function ReflectStatus(obj)\n{CALLS}\nend");
    let limits = Limits {
        time: Duration::from_secs(5),
        instructions: 3_000_000,
        ..Limits::default()
    };
    let script = Script::with_limits("calls", &source, limits).unwrap();
    let ask = |object: Value| match script.answer(Question::Reflect(&object)) {
        Ok(Answer::Status(status)) => Ok(status.unwrap_or_default()),
        Ok(_) => panic!("a status is asked for"),
        Err(error) => Err(error),
    };
    let mut tried = 0;
    for library in ["_G", "string", "table", "math", "os", "kube"] {
        let names = ask(json!({"library": library, "name": "", "index": -1})).unwrap();
        for name in names["names"].as_array().unwrap() {
            for index in 0..=23 {
                let result = ask(json!({"library": library, "name": name, "index": index}));
                assert!(
                    result.as_ref().is_ok_and(|status| status["count"] == 23)
                        || result.as_ref().is_err_and(ScriptError::is_limit),
                    "{library}.{name} {index}: {result:?}"
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 70 * 24, "{tried}");
}
