//! Our pattern functions against the virtual machine's own: the same results, and errors where it has errors.

use std::time::Duration;

use mlua::{Lua, LuaOptions, StdLib, Table};
use proptest::prelude::*;

use crate::{limits::Limits, sandbox::Sandbox};

/// The result of a call, as text: its values with their types, or that it failed.
const REPORT: &str = "
  local call = ...
  local function report(ok, ...)
    if not ok then
      return 'failed'
    end
    local texts = {}
    for i = 1, select('#', ...) do
      local value = (select(i, ...))
      texts[i] = type(value) .. '(' .. tostring(value) .. ')'
    end
    return table.concat(texts, ' ')
  end
  return report(pcall(call))
";

const CALLS: &str = "
  local subject, pattern, replacement, init = ...
  return {
    function() return string.find(subject, pattern, init) end,
    function() return string.find(subject, pattern, init, true) end,
    function() return string.match(subject, pattern, init) end,
    function() return string.gsub(subject, pattern, replacement) end,
    function() return string.gsub(subject, pattern, replacement, init) end,
    function() return string.gsub(subject, pattern, { a = 'X', ab = 7, b = false }) end,
    function() return string.gsub(subject, pattern, function(...)
      local values = { ... }
      for i = 1, #values do values[i] = tostring(values[i]) end
      return table.concat(values, '|')
    end) end,
    function()
      local all = {}
      for a, b, c in string.gmatch(subject, pattern) do
        all[#all + 1] = tostring(a) .. ',' .. tostring(b) .. ',' .. tostring(c)
        if #all > 50 then break end
      end
      return table.concat(all, ' ')
    end,
  }
";

fn outcomes(
    (lua, environment): &(Lua, Table),
    subject: &[u8],
    pattern: &[u8],
    replacement: &[u8],
    init: i32,
) -> Vec<String> {
    let text = |bytes: &[u8]| lua.create_string(bytes).unwrap();
    let given = (text(subject), text(pattern), text(replacement), init);
    let calls: Table = lua
        .load(CALLS)
        .set_environment(environment.clone())
        .call(given)
        .unwrap();
    let report = lua
        .load(REPORT)
        .set_environment(environment.clone())
        .into_function()
        .unwrap();
    calls
        .sequence_values::<mlua::Function>()
        .map(|call| {
            report
                .call::<mlua::LuaString>(call.unwrap())
                .unwrap()
                .to_string_lossy()
        })
        .collect()
}

/// The virtual machine's own library, and ours with enough time.
fn both() -> [(Lua, Table); 2] {
    let own = Lua::new_with(StdLib::TABLE | StdLib::STRING, LuaOptions::new()).unwrap();
    let limits = Limits {
        time: Duration::from_secs(600),
        instructions: u64::MAX,
        ..Limits::default()
    };
    let ours = Sandbox::begin(limits).unwrap();
    let (environment, globals) = (ours.environment().unwrap(), own.globals());
    [(own, globals), (ours.lua().clone(), environment)]
}

#[test]
fn known_patterns_do_what_the_virtual_machine_does() {
    let [own, ours] = both();
    let subjects: [&[u8]; 9] = [
        b"",
        b"a",
        b"aab",
        b"hello world",
        b"key = value",
        b"(a(b)c)",
        b"f(a,b) g()",
        b"THE (quick) fox\0z",
        b"\xff\xfea-1_",
    ];
    let patterns: [&[u8]; 62] = [
        b"",
        b"^",
        b"$",
        b"^$",
        b"a",
        b"a*",
        b"a+",
        b"a-",
        b"a?",
        b".-b",
        b"^a",
        b"a$",
        b"$a",
        b"a^b",
        b"%a+",
        b"%A",
        b"%s",
        b"%d*",
        b"%w+",
        b"%x",
        b"%p",
        b"%c",
        b"%l%u",
        b"%z",
        b"%.",
        b"(a)(b)",
        b"(a*(.)%w(%s*))",
        b"()",
        b"()a()",
        b"(%w+) (%w+)",
        b"(%w)%1",
        b"(a",
        b"a)",
        b"%",
        b"[",
        b"[a",
        b"[]",
        b"[]]",
        b"[^]]",
        b"[a-]",
        b"[-a]",
        b"[%a_]",
        b"[^%s]",
        b"[a-c]+",
        b"[%]",
        b"%b()",
        b"%b",
        b"%bx",
        b"%f[%w]%w+",
        b"%f",
        b"%f[%z]",
        b"%1",
        b"(a)%2",
        b"(()a)",
        b"[%a-z]",
        b"[a%-c]",
        b"([^=]+)=(.*)",
        b"^%s*(.-)%s*$",
        b"((a))",
        b"(a)?",
        b"%)",
        b"a**",
    ];
    let replacements: [&[u8]; 8] = [b"", b"x", b"%0", b"%1", b"%1%1", b"%2", b"%%", b"<%0>"];
    for subject in subjects {
        for pattern in patterns {
            for (replacement, init) in replacements.into_iter().zip([-3, -1, 0, 1, 2, 3, 10, 1]) {
                assert_eq!(
                    outcomes(&ours, subject, pattern, replacement, init),
                    outcomes(&own, subject, pattern, replacement, init),
                    "{:?} {:?} {:?} {init}",
                    String::from_utf8_lossy(subject),
                    String::from_utf8_lossy(pattern),
                    String::from_utf8_lossy(replacement),
                );
            }
        }
    }
}

/// Few letters, so that many match; a NUL is excluded from patterns, where Lua 5.1 takes it for their end.
fn pattern() -> impl Strategy<Value = Vec<u8>> {
    let part = prop::sample::select(vec![
        "a", "b", "c", ".", "%a", "%w", "%s", "%d", "%S", "[ab]", "[^a]", "[a-c]", "[%w_]", "(", ")", "()",
        "*", "+", "-", "?", "^", "$", "%1", "%2", "%b()", "%bab", "%f[%w]", "%f[^a]", "%%", "%", "[", "]",
        "%.", "[]a]", "[^]]", "[a-", " ",
    ]);
    prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat().into_bytes())
}

fn subject() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(b"aaabbc ().%1-_\0\xff".to_vec()), 0..24)
}

/// Without a `%` at the end, where Lua 5.1 reads the byte after the text.
fn replacement() -> impl Strategy<Value = Vec<u8>> {
    let part = prop::sample::select(vec!["x", "%0", "%1", "%2", "%%", "%a", "%9"]);
    prop::collection::vec(part, 0..4).prop_map(|parts| parts.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn random_patterns_do_what_the_virtual_machine_does(
        subject in subject(), pattern in pattern(), replacement in replacement(), init in -30..30_i32,
    ) {
        thread_local!(static BOTH: [(Lua, Table); 2] = both());
        BOTH.with(|[own, ours]| {
            prop_assert_eq!(
                outcomes(ours, &subject, &pattern, &replacement, init),
                outcomes(own, &subject, &pattern, &replacement, init)
            );
            Ok(())
        })?;
    }

    #[test]
    fn random_bytes_are_matched_or_refused_and_never_panic(
        subject in prop::collection::vec(any::<u8>(), 0..60),
        pattern in prop::collection::vec(any::<u8>(), 0..30),
        replacement in prop::collection::vec(any::<u8>(), 0..10),
        init in any::<i32>(),
    ) {
        let [_, ours] = both();
        outcomes(&ours, &subject, &pattern, &replacement, init);
    }
}
