//! The table of decisions: Cluster, Secret and address.

use super::*;

const HERE: Address<'static> = Address {
    endpoint: "https://m1:6443",
    proxy: "",
    insecure: false,
};

fn secret(name: &str, annotations: &[(&str, &str)]) -> SecretFacts {
    let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    SecretFacts {
        namespace: "karmada-cluster".into(),
        name: name.into(),
        secret_type: OPAQUE.into(),
        annotations: annotations.iter().map(pair).collect(),
        owners: Vec::new(),
    }
}

/// The Secret as `join` writes it, for m1 at an address.
fn joined(address: &Address<'_>) -> SecretFacts {
    let record = record("m1", address);
    let all: Vec<(&str, &str)> = record.iter().map(|(key, value)| (*key, &**value)).collect();
    secret("m1", &all)
}

fn refusal(decision: Decision) -> Refusal {
    match decision {
        Decision::Refuse(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_join_writes_is_used_and_nothing_more_is_recorded() {
    let proxied = Address {
        proxy: "http://user:canary@proxy:3128/",
        insecure: true,
        ..HERE
    };
    for address in [HERE, proxied] {
        let secret = joined(&address);
        assert_eq!(
            evaluate("m1", Identity::Controllers, &address, &secret),
            Decision::Use
        );
        assert!(!format!("{secret:?}").contains("canary"), "{secret:?}");
    }
    // The same address, spelled differently.
    let spelled = Address {
        endpoint: "HTTPS://M1:6443/",
        ..HERE
    };
    assert_eq!(
        evaluate("m1", Identity::Controllers, &spelled, &joined(&HERE)),
        Decision::Use
    );
}

#[test]
fn a_change_of_where_the_token_is_sent_needs_the_secret_to_say_the_same() {
    let elsewhere = |endpoint| Address { endpoint, ..HERE };
    let insecure = Address {
        insecure: true,
        ..HERE
    };
    let proxied = Address {
        proxy: "http://user:canary@evil:3128",
        ..HERE
    };
    let cases = [
        (elsewhere("https://evil:6443"), "spec.apiEndpoint"),
        (elsewhere("https://m1:6444"), "spec.apiEndpoint"),
        (elsewhere("http://m1:6443"), "spec.apiEndpoint"),
        (elsewhere("https://m1:6443/path"), "spec.apiEndpoint"),
        (elsewhere("https://m1:6443@evil"), "spec.apiEndpoint"),
        (elsewhere(r"https://evil\@m1:6443"), "spec.apiEndpoint"),
        (elsewhere("https://evil@evil@m1:6443"), "spec.apiEndpoint"),
        (insecure, "spec.insecureSkipTLSVerification"),
        (proxied, "spec.proxyURL"),
    ];
    for (address, field) in cases {
        let refusal = refusal(evaluate("m1", Identity::Controllers, &address, &joined(&HERE)));
        assert_eq!(refusal.reason, reason::CREDENTIALS_NOT_FOR_ADDRESS, "{address:?}");
        let message = refusal.message;
        assert!(
            message.contains(field) && message.contains("karmada-cluster/m1"),
            "{message}"
        );
        assert!(
            message.contains("no token is sent") && message.contains("entourage join m1"),
            "{message}"
        );
        assert!(!message.contains("canary"), "{message}");
        // If the Secret has it too, it is intended.
        assert_eq!(
            evaluate("m1", Identity::Controllers, &address, &joined(&address)),
            Decision::Use
        );
    }
    // A removed proxy is a change; a certificate that is verified after all is none.
    assert!(matches!(
        evaluate("m1", Identity::Controllers, &HERE, &joined(&proxied)),
        Decision::Refuse(_)
    ));
    assert_eq!(
        evaluate("m1", Identity::Controllers, &HERE, &joined(&insecure)),
        Decision::Use
    );
}

#[test]
fn a_cluster_does_not_get_the_secret_of_another() {
    let refused = |cluster: &str, secret: &SecretFacts| {
        let refusal = refusal(evaluate(cluster, Identity::Controllers, &HERE, secret));
        assert_eq!(refusal.reason, reason::CREDENTIALS_NOT_FOR_CLUSTER, "{secret:?}");
        assert!(refusal.message.contains("entourage join"), "{}", refusal.message);
    };
    refused("m2", &joined(&HERE));
    // Its name alone counts for nothing if the annotation names another one.
    refused("m1", &secret("m1", &[(annotation::CREDENTIALS_CLUSTER, "m2")]));
    refused("m2", &secret("m1", &[]));
    refused("m1-impersonator", &secret("m1-impersonator", &[]));
    let mut owned = secret("m1-token", &[]);
    owned.owners = vec!["m1".into()];
    refused("m1-token", &owned);
    let mut token = secret("default-token-x7x2p", &[]);
    token.secret_type = "kubernetes.io/service-account-token".into();
    refused("default-token-x7x2p", &token);
}

#[test]
fn a_secret_by_karmadas_convention_is_recorded_at_first_use_and_bound_from_then_on() {
    let mut karmada = secret("m1", &[]);
    for owners in [vec![], vec!["m1".to_owned()]] {
        karmada.owners = owners;
        assert_eq!(
            evaluate("m1", Identity::Controllers, &HERE, &karmada),
            Decision::Record(record("m1", &HERE))
        );
    }
    let elsewhere = Address {
        endpoint: "https://evil",
        ..HERE
    };
    assert!(matches!(
        evaluate("m1", Identity::Controllers, &elsewhere, &joined(&HERE)),
        Decision::Refuse(_)
    ));
    // A name that its administrator wrote on it is enough, too.
    let named = secret("anything", &[(annotation::CREDENTIALS_CLUSTER, "m1")]);
    assert_eq!(
        evaluate("m1", Identity::Controllers, &HERE, &named),
        Decision::Record(record("m1", &HERE))
    );
}

#[test]
fn an_impersonators_secret_is_named_after_its_cluster_and_owned_by_it_or_says_so() {
    let as_impersonator =
        |cluster: &str, secret: &SecretFacts| evaluate(cluster, Identity::Impersonator, &HERE, secret);
    let karmada = |owner: &str| SecretFacts {
        owners: vec![owner.to_owned()],
        ..secret(&impersonator_secret("m1"), &[])
    };
    let of_impersonator = SecretFacts {
        name: impersonator_secret("m1"),
        ..joined(&HERE)
    };
    assert_eq!(as_impersonator("m1", &of_impersonator), Decision::Use);
    assert_eq!(
        as_impersonator("m1", &karmada("m1")),
        Decision::Record(record("m1", &HERE))
    );
    let others = [
        ("m2", of_impersonator),
        ("m1", karmada("m2")),
        ("m2", karmada("m2")),
        ("m1", secret("m1", &[])),
        // The Secret of the controllers, as `join` writes it.
        ("m1", joined(&HERE)),
        (
            "m1",
            secret("anything", &[(annotation::CREDENTIALS_CLUSTER, "m1")]),
        ),
        // The Secret of a Cluster that is called so.
        ("m1", secret("m1-impersonator", &[])),
        (
            "m1",
            secret(
                "m1-impersonator",
                &[(annotation::CREDENTIALS_CLUSTER, "m1-impersonator")],
            ),
        ),
    ];
    for (cluster, secret) in others {
        let refusal = refusal(as_impersonator(cluster, &secret));
        assert_eq!(refusal.reason, reason::CREDENTIALS_NOT_FOR_CLUSTER, "{secret:?}");
        assert!(
            refusal.message.to_lowercase().contains("no token is sent"),
            "{refusal:?}"
        );
    }
    let refusal = refusal(as_impersonator("m1", &joined(&HERE)));
    assert!(
        refusal.message.contains("spec.impersonatorSecretRef") && refusal.message.contains("m1-impersonator"),
        "{refusal:?}"
    );
}

#[test]
fn the_controllers_do_not_use_the_secret_of_the_impersonator() {
    let named = |name: &str, cluster: &str| secret(name, &[(annotation::CREDENTIALS_CLUSTER, cluster)]);
    let refusal = refusal(evaluate(
        "m1",
        Identity::Controllers,
        &HERE,
        &named("m1-impersonator", "m1"),
    ));
    assert_eq!(refusal.reason, reason::CREDENTIALS_NOT_FOR_CLUSTER);
    assert!(refusal.message.contains("spec.secretRef"), "{refusal:?}");
    // A Cluster may be called so.
    assert_eq!(
        evaluate(
            "m1-impersonator",
            Identity::Controllers,
            &HERE,
            &named("m1-impersonator", "m1-impersonator")
        ),
        Decision::Record(record("m1-impersonator", &HERE))
    );
}
