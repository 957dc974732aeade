//! The type check of a ValidatingAdmissionPolicy: its expressions against the schemas of the kinds that it matches. Its findings
//! are warnings and change nothing else. Source: `TypeChecker` of k8s.io/apiserver.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::{
    admit::{checked, syntax},
    parse,
    types::Ty,
};
use crate::{
    object::{
        Object,
        tree::{items, list, text},
    },
    schema::{Schema, Type, declared::understand},
};

/// The type of the variable `authorizer`.
const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";

static REQUEST: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let strings = |names: &[&str]| {
        let fields = names
            .iter()
            .map(|name| ((*name).to_owned(), json!({"type": "string"})));
        json!({"type": "object", "properties": fields.collect::<Object>()})
    };
    let list = json!({"type": "array", "items": {"type": "string"}});
    let mut request = strings(&[
        "subResource",
        "requestSubResource",
        "name",
        "namespace",
        "operation",
    ]);
    let mut user = strings(&["username", "uid"]);
    user["properties"]["extra"] = json!({"type": "object", "additionalProperties": list});
    user["properties"]["groups"] = list;
    let fields = &mut request["properties"];
    for name in ["kind", "requestKind"] {
        fields[name] = strings(&["group", "version", "kind"]);
    }
    for name in ["resource", "requestResource"] {
        fields[name] = strings(&["group", "version", "resource"]);
    }
    fields["userInfo"] = user;
    fields["dryRun"] = json!({"type": "boolean"});
    fields["options"] = json!({"x-kubernetes-int-or-string": true});
    Arc::new(understand(&request, 0))
});

static NAMESPACE: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let (string, time) = (
        json!({"type": "string"}),
        json!({"type": "string", "format": "date-time"}),
    );
    let list = json!({"type": "array", "items": string});
    let map = json!({"type": "object", "additionalProperties": string});
    let object = |fields: Value| json!({"type": "object", "properties": fields});
    let condition = object(
        json!({"type": string, "status": string, "reason": string, "message": string,
        "lastTransitionTime": time}),
    );
    let metadata = object(
        json!({"name": string, "generateName": string, "namespace": string, "UID": string,
        "resourceVersion": string, "labels": map, "annotations": map, "finalizers": list, "creationTimestamp": time,
        "deletionTimestamp": time, "deletionGracePeriodSeconds": {"type": "integer"}, "generation": {"type": "integer"}}),
    );
    let namespace = object(
        json!({"metadata": metadata, "spec": object(json!({"finalizers": list})),
        "status": object(json!({"phase": string, "conditions": {"type": "array", "items": condition}}))}),
    );
    Arc::new(understand(&namespace, 0))
});

/// The warnings about the expressions of `spec`, as `status.typeChecking.expressionWarnings` lists them. `matched`: the names and
/// schemas of the kinds that the policy matches; `params`: the schema of its parameters. O(kinds × expressions).
pub(crate) fn warnings(
    spec: &Object,
    matched: &[(String, Arc<Schema>)],
    params: Option<&Arc<Schema>>,
) -> Vec<Value> {
    let variables = list(spec, "variables");
    let scopes: Vec<(&str, Vec<(String, Ty)>)> = matched
        .iter()
        .map(|(name, schema)| (name.as_str(), scope(schema, params, variables)))
        .collect();
    let mut warnings = Vec::new();
    for (path, validation) in items(spec, "validations", "spec") {
        for field in ["expression", "messageExpression"] {
            let expression = text(validation, field);
            if expression.is_empty() {
                continue;
            }
            let found = scopes.iter().filter_map(|(name, scope)| {
                let problem = ty(expression, scope).err()?;
                Some(format!("{name}: {problem}\n"))
            });
            let found: Vec<String> = found.collect();
            if !found.is_empty() {
                warnings.push(json!({"fieldRef": format!("{path}.{field}"), "warning": found.join("\n")}));
            }
        }
    }
    warnings
}

/// The variables of the expressions of a policy, for one kind that it matches.
fn scope(object: &Arc<Schema>, params: Option<&Arc<Schema>>, variables: &[Value]) -> Vec<(String, Ty)> {
    let nothing = Arc::new(Schema {
        kind: Type::Object,
        ..Schema::default()
    });
    let object = whole(object);
    let mut scope = vec![
        ("namespaceObject".to_owned(), Ty::Object(Arc::clone(&NAMESPACE))),
        ("request".to_owned(), Ty::Object(Arc::clone(&REQUEST))),
        ("object".to_owned(), object.clone()),
        ("oldObject".to_owned(), object),
        ("authorizer".to_owned(), Ty::Opaque(AUTHORIZER)),
        ("variables".to_owned(), Ty::Object(nothing)),
    ];
    scope.extend(params.map(|params| ("params".to_owned(), whole(params))));
    for variable in variables.iter().filter_map(Value::as_object) {
        // Of one that is wrong nothing is known.
        let ty = ty(text(variable, "expression"), &scope).map_or(Ty::Dyn, plain);
        scope.push((format!("variables.{}", text(variable, "name")), ty));
    }
    scope
}

/// The type of a whole object: unlike rules of a CRD, a policy sees all of its metadata.
fn whole(schema: &Arc<Schema>) -> Ty {
    let schema = Arc::new(Schema {
        embedded: false,
        ..Schema::clone(schema)
    });
    Ty::of(&schema).unwrap_or(Ty::Dyn)
}

/// The type of an expression, or what is wrong with it.
fn ty(text: &str, scope: &[(String, Ty)]) -> Result<Ty, String> {
    let expr = parse(text).map_err(|error| syntax(text, &error))?;
    let variables: Vec<(&str, Ty)> = scope
        .iter()
        .map(|(name, ty)| (name.as_str(), ty.clone()))
        .collect();
    checked(text, &expr, &variables).map(|checked| checked.ty)
}

/// The type of a variable of the policy: objects lose theirs.
fn plain(ty: Ty) -> Ty {
    match ty {
        Ty::List(items) => Ty::List(Box::new(plain(*items))),
        Ty::Map(keys, values) => Ty::Map(Box::new(plain(*keys)), Box::new(plain(*values))),
        Ty::Object(_) | Ty::Optional(_) | Ty::Type(_) | Ty::Opaque(_) | Ty::Var(_) | Ty::Error => Ty::Dyn,
        ty => ty,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    fn found(spec: &Value) -> Vec<(String, String)> {
        let deployment = kinds::definition("io.k8s.api.apps.v1.Deployment");
        let matched = [("apps/v1, Kind=Deployment".to_owned(), deployment)];
        let map = kinds::definition("io.k8s.api.core.v1.ConfigMap");
        let params = spec.get("paramKind").map(|_| &map);
        let warnings = warnings(spec.as_object().expect("an object"), &matched, params);
        let text = |warning: &Value, key: &str| warning[key].as_str().unwrap_or_default().to_owned();
        warnings
            .iter()
            .map(|warning| (text(warning, "fieldRef"), text(warning, "warning")))
            .collect()
    }

    #[test]
    fn expressions_that_fit_the_kind_have_no_warning() {
        for expression in [
            "object.spec.replicas <= 5",
            "object.metadata.labels['a'] == 'b' && oldObject.metadata.generation > 1",
            "object.spec.template.spec.containers.all(c, !has(c.image) || c.image.startsWith('a/'))",
            "object.spec.strategy.rollingUpdate.maxSurge == '25%'",
            "request.userInfo.groups.exists(g, g == 'a') && request.dryRun && request.options.x == 1",
            "request.kind.kind == 'Deployment' && request.resource.resource == 'deployments'",
            "namespaceObject.metadata.labels['a'] == 'b' && namespaceObject.status.phase == 'Active'",
            "authorizer.group('apps').resource('deployments').namespace('a').name('b').check('get').allowed()",
            "authorizer.path('/healthz').check('get').reason() == ''",
            "variables.count + 1 > variables.named['a'].size() && variables.wrong.x.y == 1 && variables.first.x == 1",
            "params.data['most'] == '1'",
        ] {
            let spec = json!({"paramKind": {}, "validations": [{"expression": expression}], "variables": [
                {"name": "count", "expression": "object.spec.replicas"},
                {"name": "named", "expression": "{'a': 'b'}"},
                {"name": "first", "expression": "object.spec.template.spec.containers[0]"},
                {"name": "wrong", "expression": "object.nope"}]});
            assert_eq!(found(&spec), [], "{expression}");
        }
    }

    #[test]
    fn warnings_have_the_kind_and_the_place_of_the_error() {
        for (expression, problem) in [
            (
                "object.replicas > 1",
                "ERROR: <input>:1:7: undefined field 'replicas'\n | object.replicas > 1\n | ......^",
            ),
            (
                "object.spec.replicas > '1'",
                "ERROR: <input>:1:22: found no matching overload for '_>_' applied to '(int, string)'\n | object.spec.replicas > '1'\n | .....................^",
            ),
            (
                "object.spec.template.spec.containers.all(c, has(c.resources.limits))",
                "ERROR: <input>:1:60: undefined field 'limits'\n | object.spec.template.spec.containers.all(c, has(c.resources.limits))\n | ...........................................................^",
            ),
            (
                "params.data['a'] == ''",
                "ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n | params.data['a'] == ''\n | ^",
            ),
            (
                "variables.nope == 1",
                "ERROR: <input>:1:10: undefined field 'nope'\n | variables.nope == 1\n | .........^",
            ),
        ] {
            let spec = json!({"validations": [{"expression": "true", "messageExpression": expression}]});
            assert_eq!(
                found(&spec),
                [(
                    "spec.validations[0].messageExpression".to_owned(),
                    format!("apps/v1, Kind=Deployment: {problem}\n")
                )]
            );
        }
    }

    #[test]
    fn every_kind_has_a_warning_of_its_own() {
        let matched = ["Secret", "ConfigMap"].map(|kind| {
            let schema = kinds::definition(&format!("io.k8s.api.core.v1.{kind}"));
            (format!("/v1, Kind={kind}"), schema)
        });
        let spec = json!({"validations": [{"expression": "object.type != 'a'"}, {"expression": "object.spec == 1"}]});
        let warnings = warnings(spec.as_object().expect("an object"), &matched, None);
        assert_eq!(
            warnings,
            [
                json!({"fieldRef": "spec.validations[0].expression", "warning":
                    "/v1, Kind=ConfigMap: ERROR: <input>:1:7: undefined field 'type'\n | object.type != 'a'\n | ......^\n"}),
                json!({"fieldRef": "spec.validations[1].expression", "warning":
                    "/v1, Kind=Secret: ERROR: <input>:1:7: undefined field 'spec'\n | object.spec == 1\n | ......^\n\n/v1, Kind=ConfigMap: ERROR: <input>:1:7: undefined field 'spec'\n | object.spec == 1\n | ......^\n"}),
            ]
        );
    }
}
