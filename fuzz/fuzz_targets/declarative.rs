//! `cargo +nightly fuzz run declarative`: what rules made of paths may not do, whatever they say and whatever an object holds.
//!
//! Not one of the library's targets: the embedded server knows no rules.

#![no_main]

use arbitrary::{Result, Unstructured};
use entourage_api::config::declarative::DeclarativeRules;
use entourage_core::interpreter::declarative::Declared;
use entourage_fuzz::{Case, make};
use libfuzzer_sys::{Corpus, fuzz_target};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

fuzz_target!(|input: &[u8]| -> Corpus {
    match entourage_fuzz::read::<Ruled>(input) {
        Some(case) => {
            case.check();
            Corpus::Keep
        }
        None => Corpus::Reject,
    }
});

/// Rules, and what they are about.
#[derive(Debug, Serialize, Deserialize)]
struct Ruled {
    rules: Value,
    object: Value,
    live: Value,
    replicas: i64,
}

/// The depth of the nested objects; a value that is written at a path is at most 32 steps deeper.
const DEPTH: usize = 5;

impl Case for Ruled {
    fn make(u: &mut Unstructured<'_>) -> Result<Self> {
        let mut rules = json!({});
        for field in [
            "podTemplates",
            "containers",
            "dependencies",
            "replicas",
            "retention",
            "statusReflection",
            "statusAggregation",
            "health",
        ] {
            if u.ratio(1, 2)? {
                rules[field] = rule(u, field)?;
            }
        }
        Ok(Self {
            rules,
            object: object(u)?,
            live: object(u)?,
            replicas: u.arbitrary()?,
        })
    }

    fn check(&self) {
        let Ok(rules) = DeclarativeRules::deserialize(&self.rules) else {
            return;
        };
        let declared = match Declared::compile(&rules) {
            Ok(declared) => declared,
            Err(error) => {
                assert!(!error.field.is_empty() && !error.problem.is_empty() && !error.remedy.is_empty());
                // A path is refused by its place; only an apiVersion is quoted.
                return assert!(error.to_string().len() < 2048, "{error}");
            }
        };
        let (object, live) = (&self.object, &self.live);
        self.mentions(&declared);
        let _ = (declared.pods(object).len(), declared.health(object));

        let mut revised = object.clone();
        declared.revise_replicas(&mut revised, self.replicas);
        same_object(object, &revised);
        if declared.replicas(object).is_some() {
            assert_eq!(
                declared.replicas(&revised),
                Some(self.replicas),
                "what is set is there"
            );
        }
        let mut retained = object.clone();
        declared.retain(&mut retained, live);
        same_object(object, &retained);
        let mut again = retained.clone();
        declared.retain(&mut again, live);
        assert_eq!(again, retained, "retained twice is retained no more");

        let reflected = declared.reflect(live);
        if let Some(reflected) = &reflected {
            assert!(
                size(reflected) <= size(&live["status"]) + 40 * 32,
                "no more than the status and names on the way"
            );
        }
        let items = [
            ("m1", reflected.as_ref()),
            ("m2", Some(&live["status"])),
            ("m3", None),
        ];
        if let Some(status) = declared.aggregate(object, &items) {
            let sum = items
                .iter()
                .flat_map(|(_, item)| item)
                .map(|item| size(item))
                .sum::<usize>();
            assert!(
                size(&status) <= size(object) + 4 * sum + 4096,
                "no more than was reported"
            );
        }
    }
}

impl Ruled {
    /// Each object once, sorted, and none of a namespace that may not be reached.
    fn mentions(&self, declared: &Declared) {
        for namespace in ["", "b"] {
            let mentioned = declared.references(namespace, &self.object);
            assert!(
                mentioned.is_sorted_by(|one, other| one.id < other.id),
                "sorted, each once"
            );
            for each in &mentioned {
                let target = &*each.id.namespace;
                let may = target == namespace || namespace.is_empty() && !target.starts_with("kube-");
                assert!(may || target.is_empty(), "{:?} from {namespace:?}", each.id);
                assert!(!each.id.name.is_empty() && !each.id.gvk.kind.is_empty());
            }
        }
    }
}

/// Whoever is written to is who was asked about.
fn same_object(before: &Value, after: &Value) {
    for field in [
        "/apiVersion",
        "/kind",
        "/metadata/name",
        "/metadata/namespace",
        "/metadata/uid",
    ] {
        assert_eq!(before.pointer(field), after.pointer(field), "{field} stays");
    }
}

fn size(value: &Value) -> usize {
    value.to_string().len()
}

fn object(u: &mut Unstructured<'_>) -> Result<Value> {
    let mut object = json!({"apiVersion": "example.com/v1", "kind": "Farm",
        "metadata": {"name": "a", "namespace": "b", "uid": "u", "generation": 3}});
    for field in ["spec", "status", "data"] {
        object[field] = make::any(u, DEPTH)?;
    }
    if u.ratio(1, 4)? {
        object["metadata"]["labels"] = json!({"resourcetemplate.karmada.io/retain-replicas": "true"});
    }
    Ok(object)
}

/// The rule of a field, mostly of the shape that it must have.
fn rule(u: &mut Unstructured<'_>, field: &str) -> Result<Value> {
    let number = |u: &mut Unstructured<'_>| -> Result<Value> {
        Ok(json!({"path": path(u)?, "default": u.arbitrary::<Option<i64>>()?}))
    };
    Ok(match field {
        "podTemplates" => json!([{"paths": [path(u)?], "nameFrom": path(u)?, "replicas": number(u)?,
            "namespaceFrom": path(u)?, "ownClaims": path(u)?}]),
        "containers" => json!([path(u)?]),
        "dependencies" => {
            let mut rule = json!({"paths": [path(u)?, path(u)?], "kind": make::one_of(u, &["Secret", "ConfigMap", "Farm", ""])?});
            if u.ratio(1, 2)? {
                rule["namespaceFrom"] = path(u)?.into();
            }
            if u.ratio(1, 2)? {
                rule["apiVersion"] = make::one_of(u, &["v1", "a/b", "", "a/b/c"])?.into();
            }
            if u.ratio(1, 3)? {
                (rule["kindFrom"], rule["optionalFrom"]) = (path(u)?.into(), path(u)?.into());
            }
            if u.ratio(1, 3)? {
                rule["when"] = json!([{"path": path(u)?, "in": [make::word(u)?], "exists": u.arbitrary::<Option<bool>>()?}]);
            }
            if u.ratio(1, 3)? {
                (rule["prefix"], rule["suffix"]) = (make::word(u)?.into(), make::word(u)?.into());
            }
            json!([rule])
        }
        "replicas" => number(u)?,
        "retention" => json!([path(u)?, path(u)?]),
        "statusReflection" => json!({"paths": [path(u)?, path(u)?], "generations": u.arbitrary::<bool>()?}),
        "statusAggregation" => {
            let merge = |u: &mut Unstructured<'_>| {
                make::one_of(
                    u,
                    &[
                        "Sum",
                        "Max",
                        "Min",
                        "Latest",
                        "First",
                        "Same",
                        "Concat",
                        "Conditions",
                    ],
                )
            };
            json!({"fields": [{"path": path(u)?, "merge": merge(u)?}, {"path": path(u)?, "merge": merge(u)?}],
                "observedGeneration": u.arbitrary::<bool>()?})
        }
        _ => json!({"phases": [{"path": path(u)?, "healthy": [make::word(u)?]}],
            "comparisons": [{"number": number(u)?, "atLeast": number(u)?}],
            "conditions": [{"type": make::word(u)?}], "observedGeneration": u.arbitrary::<bool>()?}),
    })
}

/// A path, seldom a text that is none.
fn path(u: &mut Unstructured<'_>) -> Result<String> {
    if u.ratio(1, 16)? {
        return make::text(u, 40);
    }
    let mut path = make::one_of(u, &["spec", "$.spec", "status", "data", "metadata", "$", "kind"])?;
    for _ in 0..u.int_in_range(0..=5)? {
        match u.int_in_range(0..=9)? {
            0..=3 => path += &format!(".{}", make::word(u)?),
            4 => path += "[*]",
            5 => path += ".*",
            6 => path += &format!("[{}]", u.int_in_range(0..=3)?),
            7 => path += &format!("['{}', '{}']", make::word(u)?, make::word(u)?),
            8 => path += &format!("[?@.{} == '{}']", make::word(u)?, make::word(u)?),
            _ => path += &format!("[?@.{}]", make::word(u)?),
        }
    }
    Ok(path)
}
