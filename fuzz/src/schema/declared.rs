//! Schemas made of choices, with validation rules.

use arbitrary::{Result, Unstructured};
use serde_json::{Map, Value, json};

use super::make;

/// A structural schema, mostly.
pub fn declared(u: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    let kind = if depth == 0 {
        u.int_in_range(5..=11)?
    } else {
        u.int_in_range(0..=11)?
    };
    let mut schema = match kind {
        0..=2 => {
            let mut properties = Map::new();
            for name in ["a", "b", "c", "metadata"] {
                if u.ratio(1, 2)? && (name != "metadata" || u.ratio(1, 8)?) {
                    properties.insert(name.to_owned(), declared(u, depth - 1)?);
                }
            }
            let mut schema = json!({"type": "object", "properties": properties});
            extend(
                u,
                &mut schema,
                &[
                    ("required", json!(["a"])),
                    ("x-kubernetes-preserve-unknown-fields", json!(true)),
                    ("x-kubernetes-embedded-resource", json!(true)),
                    ("x-kubernetes-map-type", json!("atomic")),
                    ("minProperties", json!(1)),
                    ("maxProperties", json!(2)),
                    ("default", json!({})),
                    ("default", json!({"a": null})),
                ],
            )?;
            schema
        }
        3 => {
            let mut schema = json!({"type": "object", "additionalProperties": declared(u, depth - 1)?});
            extend(
                u,
                &mut schema,
                &[
                    ("maxProperties", json!(2)),
                    ("default", json!({"a": 1})),
                    ("default", json!({"x": {}})),
                ],
            )?;
            schema
        }
        4 => {
            let mut schema = json!({"type": "array", "items": declared(u, depth - 1)?});
            extend(
                u,
                &mut schema,
                &[
                    ("x-kubernetes-list-type", json!("set")),
                    ("x-kubernetes-list-type", json!("atomic")),
                    ("maxItems", json!(3)),
                    ("minItems", json!(1)),
                    ("uniqueItems", json!(true)),
                    ("default", json!([])),
                    ("default", json!([{}, null])),
                ],
            )?;
            if u.ratio(1, 3)? {
                schema["x-kubernetes-list-type"] = json!("map");
                schema["x-kubernetes-list-map-keys"] = json!(["a"]);
            }
            schema
        }
        5 | 6 => {
            let mut schema = json!({"type": "string"});
            extend(
                u,
                &mut schema,
                &[
                    ("enum", json!(["a", "b", ""])),
                    ("pattern", json!("^[a-z]*$")),
                    ("maxLength", json!(2)),
                    ("minLength", json!(1)),
                    ("default", json!("a")),
                    ("default", json!("")),
                    ("pattern", json!("(a|b{1,9}){1,9}")),
                    ("maxLength", json!(-1)),
                ],
            )?;
            if u.ratio(1, 4)? {
                schema["format"] = make::one_of(u, FORMATS)?.into();
            }
            if u.ratio(1, 16)? {
                schema["pattern"] = make::text(u, 12)?.into();
            }
            schema
        }
        7 => with_limits(u, "integer")?,
        8 => with_limits(u, "number")?,
        9 => json!({"type": "boolean", "default": u.arbitrary::<bool>()?}),
        10 => json!({"x-kubernetes-int-or-string": true}),
        _ => json!({"x-kubernetes-preserve-unknown-fields": true}),
    };
    extend(
        u,
        &mut schema,
        &[
            ("nullable", json!(true)),
            ("nullable", json!(true)),
            ("default", Value::Null),
            ("default", json!("a")),
            ("default", json!(1.0)),
            ("not", json!({"enum": ["a"]})),
            ("description", json!("x")),
            ("x-kubernetes-preserve-unknown-fields", json!(true)),
            ("oneOf", json!([{"required": ["a"]}, {"required": ["b"]}])),
            ("anyOf", json!([{"minimum": 1}, {"pattern": "^a"}])),
            ("allOf", json!([{"properties": {"a": {"maximum": 1}}}])),
            ("enum", json!([1, "a", null, {}, [1.0]])),
            ("$ref", json!("#/x")),
        ],
    )?;
    if u.ratio(1, 4)? {
        schema["x-kubernetes-validations"] = rules(u)?;
    }
    if u.ratio(1, 24)? {
        make::tweak(u, &mut schema)?;
    }
    Ok(schema)
}

const FORMATS: &[&str] = &[
    "date-time",
    "date",
    "duration",
    "byte",
    "int32",
    "int64",
    "float",
    "double",
    "uuid",
    "ipv4",
    "ipv6",
    "cidr",
    "email",
    "uri",
    "hostname",
    "password",
    "mac",
    "isbn",
    "creditcard",
    "hexcolor",
    "rgbcolor",
    "quantity",
    "datetime",
    "k8s-short-name",
    "x",
];

fn with_limits(u: &mut Unstructured<'_>, kind: &str) -> Result<Value> {
    let mut schema = json!({"type": kind});
    extend(
        u,
        &mut schema,
        &[
            ("minimum", json!(0)),
            ("maximum", json!(2.5)),
            ("exclusiveMinimum", json!(true)),
            ("multipleOf", json!(0.1)),
            ("multipleOf", json!(0)),
            ("maximum", json!(u64::MAX)),
            ("multipleOf", json!(1e300)),
            ("format", json!("int32")),
            ("format", json!("float")),
            ("default", json!(1)),
            ("default", json!(1e21)),
            ("enum", json!([1, 2.0])),
            ("minimum", json!("a")),
        ],
    )?;
    Ok(schema)
}

/// Some of these properties, seldom more than one.
fn extend(u: &mut Unstructured<'_>, schema: &mut Value, with: &[(&str, Value)]) -> Result<()> {
    let Value::Object(schema) = schema else {
        return Ok(());
    };
    for _ in 0..u.int_in_range(0..=5_u8)?.saturating_sub(3) {
        let (name, value) = u.choose(with)?;
        schema.insert((*name).to_owned(), value.clone());
    }
    Ok(())
}

/// A list of validation rules.
pub fn rules(u: &mut Unstructured<'_>) -> Result<Value> {
    let mut rules = Vec::new();
    for _ in 0..u.int_in_range(1..=2)? {
        let mut rule = json!({"rule": expression(u, 5)?});
        if u.ratio(1, 4)? {
            rule["messageExpression"] = expression(u, 3)?.into();
        }
        if u.ratio(1, 8)? {
            rule["optionalOldSelf"] = true.into();
        }
        if u.ratio(1, 8)? {
            rule["fieldPath"] =
                make::one_of(u, &[".a", ".a.b", "['a']", ".a[0]", "x", "", ".\u{0}", ".é['"])?.into();
        }
        if u.ratio(1, 8)? {
            rule["reason"] = make::one_of(u, &["FieldValueForbidden", "FieldValueDuplicate", "x"])?.into();
        }
        rules.push(rule);
    }
    Ok(Value::Array(rules))
}

/// Templates of expressions; `@` stands for a part.
const EXPRESSIONS: &[&str] = &[
    "@ + @",
    "@ - @",
    "@ * @",
    "@ / @",
    "@ % @",
    "-@",
    "@ == @",
    "@ != @",
    "@ < @",
    "@ >= @",
    "@ && @",
    "@ || @",
    "!@",
    "@ in @",
    "@ ? @ : @",
    "@[@]",
    "[@, @]",
    "{@: @}",
    "(@)",
    "size(@)",
    "@.size()",
    "int(@)",
    "uint(@)",
    "double(@)",
    "string(@)",
    "bytes(@)",
    "type(@)",
    "duration(@)",
    "timestamp(@)",
    "@.getFullYear()",
    "@.getHours('+01:00')",
    "@.getSeconds()",
    "has(self.a)",
    "has(@.a)",
    "@.all(x, @)",
    "@.exists(x, @)",
    "@.exists_one(x, @)",
    "@.map(x, @)",
    "@.map(x, @, @)",
    "@.filter(x, @)",
    "self.all(x, self.all(y, @))",
    "@.matches(@)",
    "@.find(@)",
    "@.findAll(@)",
    "@.findAll(@, @)",
    "@.contains(@)",
    "@.startsWith(@)",
    "@.endsWith(@)",
    "@.split(@)",
    "@.split(@, @)",
    "@.join(@)",
    "@.replace(@, @)",
    "@.replace(@, @, @)",
    "@.substring(@, @)",
    "@.charAt(@)",
    "@.indexOf(@)",
    "@.lastIndexOf(@)",
    "@.trim()",
    "@.upperAscii()",
    "@.reverse()",
    "@.format([@])",
    "strings.quote(@)",
    "@.sum()",
    "@.min()",
    "@.max()",
    "@.isSorted()",
    "@.flatten()",
    "@.distinct()",
    "@.sort()",
    "@.slice(@, @)",
    "lists.range(@)",
    "quantity(@)",
    "isQuantity(@)",
    "@.compareTo(@)",
    "@.add(@)",
    "@.sub(@)",
    "@.asInteger()",
    "@.asApproximateFloat()",
    "@.sign()",
    "url(@)",
    "isURL(@)",
    "@.getHost()",
    "ip(@)",
    "ip.isCanonical(@)",
    "cidr(@)",
    "@.containsIP(@)",
    "semver(@)",
    "@.isGreaterThan(@)",
    "format.named(@)",
    "sets.contains(@, @)",
    "sets.intersects(@, @)",
    "math.greatest(@, @)",
    "math.abs(@)",
    "math.bitShiftLeft(@, @)",
    "@.?a",
    "@[?@]",
    "@.orValue(@)",
    "@.hasValue()",
    "@.value()",
    "optional.of(@)",
    "optional.none()",
    "@.optMap(x, @)",
    "cel.bind(x, @, @)",
    "@.transformList(i, v, @)",
    "@.all(i, v, @)",
    "base64.encode(@)",
    "base64.decode(@)",
    "jsonpatch.escapeKey(@)",
];

const ATOMS: &[&str] = &[
    "self",
    "self.a",
    "self.b",
    "self.spec",
    "self.metadata.name",
    "oldSelf",
    "oldSelf.a",
    "x",
    "y",
    "1",
    "0",
    "-1",
    "2u",
    "1.5",
    "'a'",
    "''",
    "'1'",
    "b'a'",
    "r'\\\\'",
    "true",
    "false",
    "null",
    "[]",
    "[1, 2, 3]",
    "['a', 'b']",
    "{}",
    "{'a': 1}",
    "'2026-01-01T00:00:00Z'",
    "'1h'",
    "'(a*)*b'",
    "'10.0.0.1'",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615u",
    "1e308",
    "'é'",
    "'\\u00e9'",
    "'https://a/b?c=d'",
    "'1.2.3'",
    "'100m'",
    "self['a']",
    "self[0]",
    "self.c.b.a",
    "'%s %d %.3f %x'",
    "self.__dollar__a",
    "int",
    "dyn(1)",
];

/// A CEL expression, or nearly one.
fn expression(u: &mut Unstructured<'_>, depth: usize) -> Result<String> {
    if depth == 0 || u.is_empty() || u.ratio(1, 3)? {
        return match u.int_in_range(0..=40)? {
            0 => make::text(u, 10),
            _ => make::one_of(u, ATOMS),
        };
    }
    let template = u.choose(EXPRESSIONS)?;
    let mut text = String::new();
    for letter in template.chars() {
        match letter {
            '@' => text.push_str(&expression(u, depth - 1)?),
            letter => text.push(letter),
        }
    }
    Ok(text)
}
