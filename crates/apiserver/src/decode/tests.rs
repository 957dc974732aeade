//! Edges that the recorded exchanges lack.

use serde_json::json;

use super::*;

fn read(group: &str, plural: &str, text: &str) -> Result<Decoded> {
    read_as(group, plural, text, Media::Json, FieldValidation::Warn)
}

fn read_as(
    group: &str,
    plural: &str,
    text: &str,
    media: Media,
    validation: FieldValidation,
) -> Result<Decoded> {
    let kinds = crate::kinds::builtin();
    let resource = kinds.find(group, "v1", plural).unwrap();
    body(resource, text.as_bytes(), media, validation)
}

fn error(group: &str, plural: &str, text: &str) -> String {
    let message = read(group, plural, text).unwrap_err().message;
    message
        .split_once("cannot be handled as a ")
        .and_then(|(_, rest)| rest.split_once(": "))
        .map_or(message.clone(), |(_, rest)| rest.to_owned())
}

#[test]
fn type_errors_name_struct_fields_and_types_as_go_does() {
    for (group, plural, text, expected) in [
        (
            "",
            "pods",
            r#"{"spec":{"containers":{}}}"#,
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            "",
            "pods",
            r#"{"spec":{"containers":["x"]}}"#,
            "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type v1.Container",
        ),
        (
            "",
            "pods",
            r#"{"spec":{"containers":[{"ports":[{"containerPort":"x"}]}]}}"#,
            "json: cannot unmarshal string into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
        ),
        (
            "",
            "pods",
            r#"{"spec":5,"metadata":[]}"#,
            "json: cannot unmarshal number into Go struct field Pod.spec of type v1.PodSpec",
        ),
        (
            "",
            "pods",
            r#"{"metadata":{"finalizers":"x"}}"#,
            "json: cannot unmarshal string into Go struct field ObjectMeta.metadata.finalizers of type []string",
        ),
        (
            "",
            "secrets",
            r#"{"data":{"a":5}}"#,
            "json: cannot unmarshal number into Go struct field Secret.data of type []uint8",
        ),
        (
            "",
            "services",
            r#"{"spec":{"ports":[{"targetPort":true}]}}"#,
            "json: cannot unmarshal bool into Go value of type int32",
        ),
        (
            "",
            "pods",
            r#"{"spec":{"hostNetwork":1,"containers":[{"resources":{"limits":{"cpu":{}}}}]}}"#,
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            "",
            "pods",
            r#"{"metadata":{"creationTimestamp":5}}"#,
            "json: cannot unmarshal number into Go value of type string",
        ),
    ] {
        assert_eq!(error(group, plural, text), expected, "{text}");
    }
}

#[test]
fn what_go_leaves_out_is_left_out_and_what_it_sends_is_there() {
    let pod = read(
        "",
        "pods",
        r#"{"metadata":{"name":"a","labels":{},"annotations":null,"generateName":"","creationTimestamp":null},
            "spec":{"hostNetwork":false,"automountServiceAccountToken":false,"nodeSelector":{},"volumes":[],
                "securityContext":{},"containers":[{"name":"c","stdin":false,"env":[{"name":"e","value":""}],
                    "resources":{"limits":{"memory":"1024Mi","cpu":0.5}},"ports":[{"containerPort":80,"hostPort":0}]}]}}"#,
    )
    .unwrap();
    assert!(pod.warnings.is_empty());
    assert_eq!(
        Value::Object(pod.object),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "status": {},
            "spec": {"automountServiceAccountToken": false, "securityContext": {}, "containers": [
                {"name": "c", "env": [{"name": "e"}], "ports": [{"containerPort": 80}],
                    "resources": {"limits": {"memory": "1Gi", "cpu": "500m"}}}]}})
    );
    let role = read(
        "rbac.authorization.k8s.io",
        "roles",
        r#"{"metadata":{"name":"a"}}"#,
    )
    .unwrap();
    assert_eq!(role.object["rules"], Value::Null);
}

#[test]
fn what_was_read_reads_the_same_again() {
    let kinds = crate::kinds::builtin();
    for resource in kinds.all() {
        let once = body(resource, b"{}", Media::Json, FieldValidation::Strict).unwrap();
        let text = serde_json::to_vec(&once.object).unwrap();
        let again = body(resource, &text, Media::Json, FieldValidation::Strict).unwrap();
        assert_eq!(once.object, again.object, "{}", resource.kind);
    }
}

#[test]
fn hundreds_of_unknown_fields_make_a_hundred_warnings() {
    let fields: Vec<String> = (0..5000).map(|index| format!("\"f{index}\":1")).collect();
    let text = format!("{{\"metadata\":{{\"name\":\"a\"}},{}}}", fields.join(","));
    assert_eq!(read("", "configmaps", &text).unwrap().warnings.len(), 100);
}

#[test]
fn several_repeated_keys_of_yaml_are_one_error_and_several_warnings() {
    let text = "metadata:\n  name: a\n  name: b\ndata:\n  x: a\n  x: b\n";
    let warned = read_as("", "configmaps", text, Media::Yaml, FieldValidation::Warn).unwrap();
    assert_eq!(
        warned.warnings,
        [
            "line 3: key \"name\" already set in map",
            "line 6: key \"x\" already set in map"
        ]
    );
    let refused = read_as("", "configmaps", text, Media::Yaml, FieldValidation::Strict).unwrap_err();
    assert!(refused.message.ends_with(
        "strict decoding error: yaml: unmarshal errors:\n  line 3: key \"name\" already set in map\n  line 6: key \"x\" already set in map"
    ));
}

#[test]
fn schemas_of_crds_are_read_at_any_depth() {
    let text = r#"{"spec":{"group":"g","versions":[{"name":"v1","schema":{"openAPIV3Schema":{"type":"object","properties":{
        "a":{"type":"object","nullable":false,"properties":{"b":{"type":"array","frob":1,"items":{"type":"string","nope":1}}},
            "additionalProperties":false}}}}}]}}"#;
    let crd = read("apiextensions.k8s.io", "customresourcedefinitions", text).unwrap();
    assert_eq!(
        crd.warnings,
        ["unknown field \"spec.versions[0].schema.openAPIV3Schema.properties.a.properties.b.frob\""]
    );
    assert_eq!(
        crd.object["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["a"],
        json!({"type": "object", "additionalProperties": false,
            "properties": {"b": {"type": "array", "items": {"type": "string"}}}})
    );
}

#[test]
fn an_object_of_another_version_of_the_same_kind_gets_the_version() {
    let error = read(
        "autoscaling",
        "horizontalpodautoscalers",
        r#"{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler"}"#,
    );
    assert_eq!(
        error.unwrap_err().message,
        "the API version in the data (autoscaling/v2) does not match the expected API version (autoscaling/v1)"
    );
}

#[test]
fn an_apply_keeps_what_was_written() {
    let kinds = crate::kinds::builtin();
    let resource = kinds.find("", "v1", "configmaps").unwrap();
    let text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: null}\nnope: 1\n";
    let applied = applied(resource, text, FieldValidation::Warn).unwrap();
    assert_eq!(applied.object["nope"], 1);
    assert_eq!(applied.object["data"], json!({"a": null}));
    let merged = value(resource, Value::Object(applied.object), FieldValidation::Ignore).unwrap();
    assert_eq!(merged.object["data"], json!({"a": ""}));
    assert_eq!(merged.object.get("nope"), None);
}

#[test]
fn refused_patches_quote_the_object_or_the_patch() {
    let kinds = crate::kinds::builtin();
    let resource = kinds.find("", "v1", "configmaps").unwrap();
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "nope": 1,
        "metadata": {"name": "a", "namespace": "n", "uid": "u", "creationTimestamp": "2020-01-01T00:00:00Z"}});
    let read = |object: &Value, kind, patch: &[u8]| {
        patched(
            resource,
            object.clone(),
            (kind, patch),
            FieldValidation::Strict,
            &|| object.clone(),
        )
        .unwrap_err()
        .message
    };
    let quoted = r#""{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"u\",\"creationTimestamp\":\"2020-01-01T00:00:00Z\"},\"nope\":1}""#;
    assert_eq!(
        read(&object, PatchKind::Merge, br#"{"nope":1}"#),
        format!(
            " \"\" is invalid: patch: Invalid value: {quoted}: strict decoding error: unknown field \"nope\""
        )
    );
    assert_eq!(
        read(&object, PatchKind::Strategic, br#"{"nope":1}"#),
        " \"\" is invalid: patch: Invalid value: \"map[nope:1]\": strict decoding error: unknown field \"nope\""
    );
    let odd = read(
        &json!({}),
        PatchKind::Json,
        br#"[{"op":"add","path":"/data","value":{},"junk":1}]"#,
    );
    assert!(odd.ends_with("strict decoding error: json patch unknown field \"[0].junk\""));
    let wrong = json!({"data": {"a": [1]}});
    assert!(
        read(&wrong, PatchKind::Strategic, br#"{"data":{"a":[1]}}"#).ends_with("unrecognized type: string")
    );
    let number = json!({"data": {"a": 5}});
    assert!(read(&number, PatchKind::Strategic, b"{}").ends_with("cannot convert int64 to string"));
}

#[test]
fn a_patch_that_names_another_version_of_the_kind_is_read_as_that_and_kept_as_ours() {
    let kinds = crate::kinds::builtin();
    let read = |group, version, plural, object: Value| {
        let resource = kinds.find(group, version, plural).unwrap();
        value(resource, object, FieldValidation::Strict).unwrap().object
    };
    let event = json!({"apiVersion": "v1", "kind": "Event", "involvedObject": {"name": "a"}, "message": "m"});
    let event = read("events.k8s.io", "v1", "events", event);
    assert_eq!(event["apiVersion"], "events.k8s.io/v1");
    assert_eq!(
        (&event["regarding"], &event["note"]),
        (&json!({"name": "a"}), &json!("m"))
    );
    assert_eq!((event.get("involvedObject"), event.get("message")), (None, None));
    let scaler = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
        "spec": {"maxReplicas": 2, "targetCPUUtilizationPercentage": 50}});
    let scaler = read("autoscaling", "v2", "horizontalpodautoscalers", scaler);
    assert_eq!(scaler["spec"].get("targetCPUUtilizationPercentage"), None);
    assert_eq!(
        scaler["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"],
        50
    );
}

#[test]
fn empty_lists_are_none_once_stored() {
    let kinds = crate::kinds::builtin();
    let resource = kinds.find("rbac.authorization.k8s.io", "v1", "roles").unwrap();
    let mut role = value(resource, json!({"rules": []}), FieldValidation::Warn)
        .unwrap()
        .object;
    assert_eq!(role["rules"], json!([]));
    stored(resource, &mut role);
    assert_eq!(role["rules"], Value::Null);
}
