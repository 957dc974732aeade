//! Derived names against golden vectors of the wire contract.

use super::*;

#[test]
fn golden_vectors_of_the_wire_contract() {
    let vectors: &[(String, &str)] = &[
        (binding_name("Deployment", "nginx"), "nginx-deployment"),
        (
            binding_name("ClusterRole", "system:Foo"),
            "system.foo-clusterrole",
        ),
        (execution_namespace("member1"), "karmada-es-member1"),
        (work_name("default", "nginx", "Deployment"), "nginx-687f7fb96f"),
        (
            work_name("default", "my-nginx-config", "ConfigMap"),
            "my-nginx-config-bdb94dd58",
        ),
        (work_name("", "test", "Namespace"), "test-69fd499b4c"),
        (work_name("", "system:foo", "ClusterRole"), "system.foo-5f7d88f69"),
        (
            work_name("default", "myapp-config", "ConfigMap"),
            "myapp-config-567c465fbb",
        ),
        (work_name("default", "myapp", "Deployment"), "myapp-7f576ddd8b"),
        (
            depended_by_key("default", "nginx-deployment"),
            "resourcebinding.karmada.io/depended-by-5bdc5c4dcf",
        ),
        (
            depended_by_key("default", "myapp-deployment"),
            "resourcebinding.karmada.io/depended-by-6df6d5d8c6",
        ),
        (safe_encode(2_439_396_529), "687f7fb96f"),
        (safe_encode(123_456_789), "56789bcdf"),
    ];
    for (got, want) in vectors {
        assert_eq!(got, want);
    }
    assert_eq!(fnv1a_32(b"default-nginx-deployment"), 2_439_396_529);
}

#[test]
fn an_execution_namespace_names_its_cluster() {
    assert_eq!(
        cluster_of_execution_namespace("karmada-es-member1"),
        Some("member1")
    );
    assert_eq!(cluster_of_execution_namespace("karmada-es-"), None);
    assert_eq!(cluster_of_execution_namespace("default"), None);
}

#[test]
fn a_binding_of_a_second_group_gets_a_name_of_its_own() {
    let core = binding_name("Service", "web");
    let knative = binding_name_of_group("serving.knative.dev", "Service", "web");
    assert!(knative.starts_with(&format!("{core}-")));
    assert_ne!(knative, binding_name_of_group("example.io", "Service", "web"));
}

#[test]
fn a_permanent_id_is_a_version_8_uuid_and_stays_the_same() {
    let id = permanent_id(&["hub", "default", "nginx-deployment"]);
    assert_eq!(id, permanent_id(&["hub", "default", "nginx-deployment"]));
    let groups: Vec<usize> = id.split('-').map(str::len).collect();
    assert_eq!(groups, [8, 4, 4, 4, 12]);
    assert_eq!(&id[14..15], "8");
    assert!(["8", "9", "a", "b"].contains(&&id[19..20]));
    assert!(
        id.bytes()
            .all(|b| b == b'-' || b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    );
}

#[test]
fn parts_of_a_permanent_id_do_not_run_together() {
    assert_ne!(permanent_id(&["ab", "c"]), permanent_id(&["a", "bc"]));
    assert_ne!(permanent_id(&["a"]), permanent_id(&["a", ""]));
}

#[test]
fn names_that_are_one_binding_name_are_distinguished_in_the_end() {
    let of = |name| binding_names("rbac.authorization.k8s.io", "ClusterRole", name);
    let [one, other] = ["a:b", "a.b"].map(of);
    assert_eq!((&one[0], &one[1]), (&other[0], &other[1]));
    assert_ne!(one[2], other[2]);
}
