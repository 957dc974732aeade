//! Templates and their results; the ignored test compares each with kubectl itself.

use serde_json::{Value, json};

use super::JsonPath;

/// A template, and its text; `Err` has a part of the error.
const CASES: &[(&str, Result<&str, &str>)] = &[
    ("no braces", Ok("no braces")),
    ("{.kind}", Ok("Thing")),
    ("{$.kind}|{@.kind}", Ok("Thing|Thing")),
    ("a {.kind} b{.metadata.name} c", Ok("a Thing ba c")),
    ("{.spec.none}|", Ok("|")),
    ("{.spec.missing.more}|", Ok("|")),
    ("{.spec.f} {.spec.t} {.spec.whole}", Ok("1.5 true 7")),
    ("{.spec.list}", Ok(LIST)),
    ("{.metadata}", Ok(r#"{"labels":{"q":"v","x":"1"},"name":"a"}"#)),
    ("{.spec.list[*].name}", Ok("a b c d")),
    ("{.spec.list[].name}", Ok("a")),
    ("{.spec.list[0].name}{\"\\t\"}{.kind}", Ok("a\tThing")),
    ("{.spec.list[-1:].name}", Ok("c d")),
    ("{.spec.list[-1].name}", Ok("c d")),
    ("{.spec.list[-3].name}", Ok("a")),
    ("{.spec.list[0:2].v}", Ok("1 2")),
    ("{.spec.list[1:].v}", Ok("2 3")),
    ("{.spec.list[:-1].v}", Ok("1 2")),
    ("{.spec.list[::2].v}", Ok("1 3")),
    ("{.spec.list[1:1].v}|", Ok("|")),
    ("{.spec.list[0,2].v}", Ok("1 3")),
    ("{.spec.list[0, -1].v}", Ok("1 3")),
    ("{.spec.list[*].tags[*]}", Ok("<x> y&z")),
    (
        "{.spec.list[5].name}",
        Err("array index out of bounds: index 5, length 3"),
    ),
    (
        "{.spec.list[2:1].v}",
        Err("starting index 2 is greater than ending index 1"),
    ),
    ("{.spec.list[::0].v}", Err("step must be > 0")),
    ("{.spec.empty[*].v}|", Ok("|")),
    ("{.spec.empty[0].v}|", Err("out of bounds")),
    ("{.kind[0]}", Err("string is not array or slice")),
    ("{.spec['map','f']}", Ok(r#"{"k":{"z":1}} 1.5"#)),
    ("{.spec['map']}", Ok(r#"{"k":{"z":1}}"#)),
    (r"{.spec['a\.b/c']}", Ok("dotted")),
    (r"{.spec.a\.b/c}", Ok("dotted")),
    ("{.spec[\"map\"]}", Err("invalid array index \"map\"")),
    ("{.spec.list[x]}", Err("invalid array index x")),
    ("{.spec.map.*}", Ok(r#"{"z":1}"#)),
    ("{.spec.map.*.z}", Ok("1")),
    ("{.spec..v}", Ok("1 2 3")),
    ("{..name}", Ok("a a b c d")),
    ("{.spec....v}", Err("invalid multiple recursive descent")),
    ("{.spec.list[?(@.name=='b')].v}", Ok("2")),
    ("{.spec.list[?(@.name==\"c d\")].v}", Ok("3")),
    ("{.spec.list[?(@.name!=\"b\")].v}", Ok("1 3")),
    ("{.spec.list[?(@.v>1)].name}", Ok("b c d")),
    ("{.spec.list[?(@.v >= 3)].name}", Ok("c d")),
    ("{.spec.list[?(@.v<2)].name}", Ok("a")),
    ("{.spec.list[?(@.v<=2)].name}", Ok("a b")),
    ("{.spec.list[?(@.tags)].name}", Ok("b")),
    ("{.spec.list[?(@.none==1)].name}|", Ok("|")),
    ("{.spec.list[?(@.name==\"a)\")].v}|", Ok("|")),
    (
        "{.spec.list[?(@.v==\"x\")].v}",
        Err("incompatible types for comparison"),
    ),
    ("{.spec.list[?(@.v=1)].v}", Err("unrecognized filter operator =")),
    ("{.spec.list[?(@.v==1].v}", Err("unterminated filter")),
    ("{.spec.list[?(@.v==1).v}", Err("unclosed array expect ]")),
    ("{.kind[?(@.v==1)]}", Err("cannot be filtered")),
    (
        "{range .spec.list[*]}{.name}={.v}{\"\\n\"}{end}",
        Ok("a=1\nb=2\nc d=3\n"),
    ),
    (
        "{range .spec.list[*]}[{.name}] {end}done",
        Ok("[a] [b] [c d] done"),
    ),
    ("{range .spec.empty[*]}x{end}done", Ok("done")),
    (
        "{range .spec.list[*]}{range .tags[*]}{@},{end};{end}",
        Ok(";<x>,y&z,;;"),
    ),
    ("{range .spec.empty[*]}{range .tags[*]}x{end}y{end}z", Ok("z")),
    ("{range .spec.list[*]}{.name}", Ok("abc d")),
    ("{range .spec.list[?(@.v>1)]}{.name};{end}", Ok("b;c d;")),
    ("{end}", Err("not in range, nothing to end")),
    ("{foo}", Err("unrecognized identifier foo")),
    ("{1}{true}{\"a\"}{'b'}", Ok("1trueab")),
    ("{\"\\u00e9\\\"\"}", Ok("é\"")),
    ("{.kind", Err("unclosed action")),
    ("{.kind\n}", Err("unclosed action")),
    ("{\"a}", Err("unterminated quoted string")),
    ("{.spec.list[0}", Err("unterminated array")),
    ("{#}", Err("unrecognized character in action")),
];

const LIST: &str =
    r#"[{"name":"a","v":1},{"name":"b","tags":["\u003cx\u003e","y\u0026z"],"v":2},{"name":"c d","v":3}]"#;

fn document() -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a", "labels": {"x": "1", "q": "v"}},
        "spec": {"none": null, "f": 1.5, "t": true, "whole": 7, "empty": [], "a.b/c": "dotted", "map": {"k": {"z": 1}},
            "list": [{"name": "a", "v": 1}, {"name": "b", "v": 2, "tags": ["<x>", "y&z"]}, {"name": "c d", "v": 3}]}})
}

#[test]
fn templates_print_what_kubectl_prints() {
    let document = document();
    for (template, wanted) in CASES {
        let got = JsonPath::parse(template).and_then(|path| path.text(&document));
        match wanted {
            Ok(text) => assert_eq!(got.as_deref(), Ok(*text), "{template}"),
            Err(part) => {
                let error = got.expect_err(template);
                assert!(error.contains(part), "{template}: {error}");
            }
        }
    }
}

#[test]
fn a_filter_compares_whole_numbers_with_fractions() {
    let path = JsonPath::parse("{.spec.list[?(@.v==1.0)].name}").unwrap();
    assert_eq!(path.text(&document()).as_deref(), Ok("a"));
}

#[test]
#[ignore = "needs kubectl"]
fn kubectl_itself_prints_the_same() {
    let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    std::fs::write(file.path(), document().to_string()).unwrap();
    let mut wrong = Vec::new();
    for (template, wanted) in CASES {
        let done = std::process::Command::new("kubectl")
            .args(["label", "--local", "-f"])
            .arg(file.path())
            .args(["q=v", "-o", &format!("jsonpath={template}")])
            .output()
            .unwrap();
        let out = String::from_utf8_lossy(&done.stdout).into_owned();
        // Types have the names of Go there, so an error is compared as such.
        let is_same = match wanted {
            Ok(text) => out == *text,
            Err(_) => !done.status.success(),
        };
        if !is_same {
            let error = String::from_utf8_lossy(&done.stderr).into_owned();
            wrong.push(format!("{template}: {out}{error}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
