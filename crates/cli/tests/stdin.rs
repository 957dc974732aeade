//! `entourage plan -f -` behind a pipe, as in `kustomize build overlays/prod | entourage plan -f -`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

/// In the form of what kustomize builds: no `---` before the first document, sorted keys, names with hashes.
const BUILT: &str = r#"apiVersion: v1
data:
  color: blue
kind: ConfigMap
metadata:
  labels:
    app: web
  name: prod-settings-6g9ct2d4f8
  namespace: shop
---
apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    app: web
  name: prod-web
  namespace: shop
spec:
  replicas: 2
  selector:
    matchLabels:
      app: web
  template:
    metadata:
      labels:
        app: web
    spec:
      containers:
      - envFrom:
        - configMapRef:
            name: prod-settings-6g9ct2d4f8
        image: nginx
        name: web
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: prod-web
  namespace: shop
spec:
  placement:
    clusterAffinity:
      clusterNames:
      - east
  propagateDeps: true
  resourceSelectors:
  - apiVersion: apps/v1
    kind: Deployment
    name: prod-web
"#;

/// Standard output and standard error of the command, and whether it ended well.
fn piped(text: &str, args: &[&str]) -> (String, String, bool) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_entourage"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    process.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let done = process.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(done.stdout), text(done.stderr), done.status.success())
}

#[test]
fn what_kustomize_builds_is_planned_from_standard_input() {
    let (out, error, is_right) = piped(BUILT, &["plan", "-f", "-"]);
    assert!(is_right, "{error}");
    assert_eq!(
        out,
        "\
note: the clusters are assumed: east, which the policies name; ready, without labels or taints, and empty

hub
  created    configmap shop/prod-settings-6g9ct2d4f8
  created    deployment.apps shop/prod-web
  created    propagationpolicy.policy.karmada.io shop/prod-web
  created    resourcebinding.work.karmada.io shop/prod-settings-6g9ct2d4f8-configmap
  created    resourcebinding.work.karmada.io shop/prod-web-deployment
east
  created    configmap shop/prod-settings-6g9ct2d4f8  dependency of Deployment shop/prod-web
  created    namespace shop
  created    deployment.apps shop/prod-web            by policy shop/prod-web

On the hub: 5 created. On 1 member: 3 created.
"
    );
}

#[test]
fn what_is_wrong_with_standard_input_is_reported_by_its_line() {
    let wrong =
        format!("{BUILT}---\napiVersion: v1\nkind: Secret\nmetadata: {{}}\nstringData: {{a: c4n4ry}}\n");
    let (out, error, is_right) = piped(&wrong, &["plan", "-f", "-"]);
    assert!(!is_right && out.is_empty(), "{out}");
    assert!(
        error.starts_with("error: standard input, document 4 at line 51: the object has no metadata.name"),
        "{error}"
    );
    assert!(!error.contains("c4n4ry"));
    let (_, error, is_right) = piped("", &["plan", "-f", "-"]);
    assert!(!is_right && error.contains("no object found in -"), "{error}");
}

#[test]
fn customizations_of_a_hub_are_asked_from_standard_input() {
    let shop = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/interpret/shop.yaml");
    let shops = include_str!("../testdata/interpret/shops.yaml").replace('\n', "\n  ");
    // As `kubectl get resourceinterpretercustomizations -o yaml` prints it.
    let list = format!("apiVersion: v1\nkind: List\nitems:\n- {shops}");
    let (out, error, is_right) = piped(
        &list,
        &["interpret", "-f", "-", "--layers", "--desired-file", shop],
    );
    assert!(is_right, "{error}");
    assert!(
        out.starts_with(
            "example.com/v1 Shop:\n    Retain:                 ResourceInterpreterCustomization \"shops\"\n"
        ),
        "{out}"
    );
}
