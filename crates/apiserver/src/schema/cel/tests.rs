//! The rules of CRDs that are taken and those that are refused, in the words of a kube-apiserver.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{admit, check::check, cost::estimated, parse, types::Ty};
use crate::schema::declared::understand;

fn sample() -> Value {
    json!({"type": "object", "properties": {
        "i": {"type": "integer"}, "n": {"type": "number"}, "b": {"type": "boolean"},
        "s": {"type": "string"}, "short": {"type": "string", "maxLength": 10},
        "d": {"type": "string", "format": "duration"}, "t": {"type": "string", "format": "date-time"},
        "l": {"type": "array", "items": {"type": "string"}},
        "few": {"type": "array", "maxItems": 3, "items": {"type": "string", "maxLength": 10}},
        "ints": {"type": "array", "items": {"type": "integer"}},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        "o": {"type": "object", "properties": {"x": {"type": "string"}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "open": {"type": "object", "additionalProperties": true},
        "any": {"x-kubernetes-preserve-unknown-fields": true},
        "either": {"x-kubernetes-int-or-string": true},
    }})
}

/// The type of an expression over the sample, or the lines of its errors.
fn checked(text: &str) -> Result<String, String> {
    let schema = Arc::new(understand(&sample(), 0));
    let this = Ty::of(&schema).expect("a type");
    let expr = parse(text).expect(text);
    let checked = check(text, &expr, &[("self", this.clone()), ("oldSelf", this)]);
    if checked.errors.is_empty() {
        return Ok(checked.ty.name());
    }
    let first = |error: &String| {
        error
            .lines()
            .next()
            .unwrap_or_default()
            .replace("ERROR: <input>:", "")
    };
    Err(checked.errors.iter().map(first).collect::<Vec<_>>().join("; "))
}

#[test]
fn expressions_have_the_types_of_cel() {
    for (text, ty) in [
        ("self.i + 1", "int"),
        ("self.n < 1", "bool"),
        ("self.either == 5 || self.either == 'x'", "bool"),
        ("self.l.map(x, x.size())", "list(int)"),
        ("self.l.filter(x, x != '')", "list(string)"),
        ("self.l.map(x, x != '', {x: 1})", "list(map(string, int))"),
        ("self.m.all(k, self.m[k] > 0)", "bool"),
        ("self.l[0]", "string"),
        ("self.?o.?x", "optional_type(string)"),
        ("self.?o.x.orValue('')", "string"),
        ("self.l[?0].hasValue()", "bool"),
        ("optional.of(1).optMap(v, v + 1).value()", "int"),
        ("self.m.transformList(k, v, v > 1, k)", "list(string)"),
        ("self.l.exists_one(x, x == 'a')", "bool"),
        ("quantity('1Gi').isGreaterThan(quantity('1Mi'))", "bool"),
        ("ip('::1').family() == 6", "bool"),
        ("self.ints.sum()", "int"),
        ("self.t - self.t < duration('5m')", "bool"),
        ("has(self.open) && self.open == self.open", "bool"),
        ("self.s.matches('^[[]{{$')", "bool"),
        ("{self.s: 1}", "map(string, int)"),
        ("{self.l: 1}", "map(dyn, int)"),
        ("[]", "list(dyn)"),
        ("self.l + []", "list(string)"),
        ("self.o == null", "bool"),
        ("self.b ? 1 : 2", "int"),
        ("dyn(self.i) == 1.0", "bool"),
        ("type(self.i) == int", "bool"),
        ("format.dns1123Label().validate('x').hasValue()", "bool"),
        ("sets.contains(self.l, ['a'])", "bool"),
        ("url('https://a/').getQuery()", "map(string, list(string))"),
    ] {
        assert_eq!(checked(text).as_deref(), Ok(ty), "{text}");
    }
}

#[test]
fn errors_are_in_the_words_and_at_the_place_of_cel() {
    for (text, error) in [
        ("self.nope == 1", "1:5: undefined field 'nope'"),
        ("self.free.x == 1", "1:10: undefined field 'x'"),
        ("self.any == 1", "1:5: undefined field 'any'"),
        ("self.open.x == 1", "1:10: undefined field 'x'"),
        (
            "self.s + 1 == 's'",
            "1:8: found no matching overload for '_+_' applied to '(string, int)'",
        ),
        (
            "self.i == 1.0",
            "1:8: found no matching overload for '_==_' applied to '(int, double)'",
        ),
        (
            "self.i == null",
            "1:8: found no matching overload for '_==_' applied to '(int, null)'",
        ),
        (
            "self.l == null",
            "1:8: found no matching overload for '_==_' applied to '(list(string), null)'",
        ),
        (
            "self.s.contains(1)",
            "1:16: found no matching overload for 'contains' applied to 'string.(int)'",
        ),
        (
            "self.i.startsWith('a')",
            "1:18: found no matching overload for 'startsWith' applied to 'int.(string)'",
        ),
        (
            "size(self.i) > 1",
            "1:5: found no matching overload for 'size' applied to '(int)'",
        ),
        ("self.i && true", "1:5: expected type 'bool' but found 'int'"),
        (
            "!self.s",
            "1:1: found no matching overload for '!_' applied to '(string)'",
        ),
        (
            "self.l.all(x, x)",
            "1:15: expected type 'bool' but found 'string'",
        ),
        (
            "self.i.all(x, true)",
            "1:5: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        (
            "self.l[self.s] == ''",
            "1:7: found no matching overload for '_[_]' applied to '(list(string), string)'",
        ),
        (
            "1 in self.l",
            "1:3: found no matching overload for '@in' applied to '(int, list(string))'",
        ),
        (
            "[1, 'a'].size() > 0",
            "1:5: expected type 'int' but found 'string'",
        ),
        (
            "self.s.x == ''",
            "1:7: type 'string' does not support field selection",
        ),
        ("foo == 1", "1:1: undeclared reference to 'foo' (in container '')"),
        ("foo(1)", "1:4: undeclared reference to 'foo' (in container '')"),
        (
            "base64.decode(self.s) == b'hi'",
            "1:1: undeclared reference to 'base64' (in container ''); 1:14: undeclared reference to 'decode' (in container '')",
        ),
        (
            "self.b ? 1 : 'a'",
            "1:8: found no matching overload for '_?_:_' applied to '(bool, int, string)'",
        ),
        (
            "self.d < self.t",
            "1:8: found no matching overload for '_<_' applied to '(duration, timestamp)'",
        ),
        (
            "self.t > 'x'",
            "1:8: found no matching overload for '_>_' applied to '(timestamp, string)'",
        ),
        ("duration('5x') > self.d", "1:10: invalid duration argument"),
        ("self.s.matches('[')", "1:16: invalid matches argument"),
        (
            "self.nope || self.none",
            "1:5: undefined field 'nope'; 1:18: undefined field 'none'",
        ),
        ("has(self.nope)", "1:9: undefined field 'nope'"),
        (
            "self.l.sum() > 1",
            "1:11: found no matching overload for 'sum' applied to 'list(string).()'",
        ),
    ] {
        assert_eq!(
            checked(text).as_ref().err().map(String::as_str),
            Some(error),
            "{text}"
        );
    }
}

#[test]
fn a_rule_costs_what_it_may_do_at_the_largest_values() {
    let schema = Arc::new(understand(&sample(), 0));
    let this = Ty::of(&schema).expect("a type");
    for (text, cost) in [
        ("true", 0),
        ("self.i > 0", 3),
        ("self.b && self.i > 0", 5),
        ("self.short == 'abc'", 3),
        ("self.short.startsWith('abc')", 3),
        ("self.short.contains('abc')", 6),
        ("self.few.all(x, x.size() > 0)", 21),
        ("has(self.i)", 1),
    ] {
        let expr = parse(text).expect(text);
        let checked = check(text, &expr, &[("self", this.clone())]);
        assert!(checked.errors.is_empty(), "{text}: {:?}", checked.errors);
        assert_eq!(estimated(&expr, &checked.types, &schema), cost, "{text}");
    }
}

#[test]
fn rules_that_are_wrong_are_errors_of_the_definition() {
    let errors = |field: Value| {
        let root = json!({"type": "object", "properties": {"spec": field}});
        let root = root.as_object().expect("an object");
        let errors = admit::errors(root, "schema", true);
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let with = |rule: Value| {
        let mut field = sample();
        field["x-kubernetes-validations"] = json!([rule]);
        errors(field)
    };
    assert!(with(json!({"rule": "self.i > 0", "messageExpression": "'got ' + string(self.i)"})).is_empty());
    let [error] = &with(json!({"rule": "dyn(self.b)"}))[..] else {
        panic!("one error")
    };
    assert!(
        error.ends_with("cel expression must evaluate to a bool"),
        "{error}"
    );
    let [error] = &with(json!({"rule": "self.i > 0", "messageExpression": "self.i"}))[..] else {
        panic!("one error")
    };
    assert!(
        error.ends_with("messageExpression must evaluate to a string"),
        "{error}"
    );
    let expensive = with(json!({"rule": "self.l.all(x, self.l.all(y, x == y))"}));
    assert!(
        expensive
            .iter()
            .any(|error| error.contains("estimated rule cost exceeds budget by factor of more than 100x"))
    );
    assert!(with(json!({"rule": "self.few.all(x, self.few.exists(y, x == y))"})).is_empty());
}
