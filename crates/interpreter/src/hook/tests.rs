//! Hooks as users configure them, their requests, and the meaning of their responses.

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    answers::{Key, Room},
    *,
};
use crate::question::{Answer, Question};
use entourage_golden as golden;

const DEPLOYMENT: Subject<'_> = Subject {
    group: "apps",
    version: "v1",
    kind: "Deployment",
    resource: "deployments",
    is_namespaced: true,
};

const SECRET: Subject<'_> = Subject {
    group: "",
    version: "v1",
    kind: "Secret",
    resource: "secrets",
    is_namespaced: true,
};

const NODE: Subject<'_> = Subject {
    group: "",
    version: "v1",
    kind: "Node",
    resource: "nodes",
    is_namespaced: false,
};

/// The hooks of a configuration, with the required fields of every entry filled in.
fn hooks(contract: Contract, name: &str, entries: Value) -> Vec<Hook> {
    let mut entries = entries;
    for entry in entries.as_array_mut().unwrap() {
        let fields = entry.as_object_mut().unwrap();
        let client = json!({"url": "https://hooks.example.com/x"});
        fields.entry("clientConfig").or_insert(client);
        for versions in ["interpreterContextVersions", "exploreReviewVersions"] {
            fields.entry(versions).or_insert(json!(["v1alpha1"]));
        }
    }
    let whole = json!({"apiVersion": "config.karmada.io/v1alpha1", "kind": contract.configuration(),
        "metadata": {"name": name}, "webhooks": entries});
    match contract {
        Contract::Interpreter => Hook::interpreters(&serde_json::from_value(whole).unwrap()),
        Contract::Explorer => Hook::explorers(&serde_json::from_value(whole).unwrap()),
    }
}

fn hook(contract: Contract, entry: Value) -> Hook {
    let mut entry = entry;
    entry["name"] = "one.example.com".into();
    hooks(contract, "some", json!([entry])).remove(0)
}

fn all_of(contract: Contract) -> Hook {
    let rule = json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
        "kinds": ["*"], "resources": ["*"]});
    hook(contract, json!({"rules": [rule]}))
}

#[test]
fn a_rule_fits_by_operation_group_version_name_and_scope() {
    use Contract::{Explorer, Interpreter};
    let rule =
        |operations: &[&str], groups: &[&str], versions: &[&str], names: &[&str], scope: Option<&str>| {
            json!({"operations": operations, "apiGroups": groups, "apiVersions": versions, "kinds": names,
            "resources": names, "scope": scope})
        };
    let all: &[&str] = &["*"];
    let health = Operation::Health;
    let table = [
        (
            Interpreter,
            rule(all, all, all, all, None),
            &DEPLOYMENT,
            health,
            true,
        ),
        (Interpreter, rule(all, all, all, all, None), &NODE, health, true),
        (
            Interpreter,
            rule(all, all, all, all, None),
            &SECRET,
            health,
            false,
        ),
        (
            Interpreter,
            rule(all, all, all, &["*", "Secret"], None),
            &SECRET,
            health,
            true,
        ),
        (
            Interpreter,
            rule(all, &["apps"], all, &["Secret"], None),
            &SECRET,
            health,
            false,
        ),
        (
            Interpreter,
            rule(all, &[""], &["v1"], &["Secret"], None),
            &SECRET,
            health,
            true,
        ),
        (
            Interpreter,
            rule(&["InterpretHealth"], &["apps"], &["v1"], &["Deployment"], None),
            &DEPLOYMENT,
            health,
            true,
        ),
        (
            Interpreter,
            rule(&["Retain"], &["apps"], &["v1"], &["Deployment"], None),
            &DEPLOYMENT,
            health,
            false,
        ),
        (
            Interpreter,
            rule(all, &[""], all, all, None),
            &DEPLOYMENT,
            health,
            false,
        ),
        (
            Interpreter,
            rule(all, &["apps"], &["v2"], all, None),
            &DEPLOYMENT,
            health,
            false,
        ),
        (
            Interpreter,
            rule(all, all, all, &["deployments"], None),
            &DEPLOYMENT,
            health,
            false,
        ),
        (
            Interpreter,
            rule(&[], all, all, all, None),
            &DEPLOYMENT,
            health,
            false,
        ),
        (
            Interpreter,
            rule(all, all, all, all, None),
            &DEPLOYMENT,
            Operation::Components,
            false,
        ),
        (
            Interpreter,
            rule(&["InterpretComponent"], all, all, all, None),
            &DEPLOYMENT,
            Operation::Components,
            true,
        ),
        (
            Interpreter,
            rule(all, all, all, all, None),
            &DEPLOYMENT,
            Operation::Prune,
            false,
        ),
        (
            Interpreter,
            rule(&["Prune"], all, all, all, None),
            &DEPLOYMENT,
            Operation::Prune,
            true,
        ),
        (
            Explorer,
            rule(all, all, all, all, None),
            &DEPLOYMENT,
            Operation::Prune,
            false,
        ),
        (
            Explorer,
            rule(&["ExplorePacking"], all, all, all, None),
            &DEPLOYMENT,
            Operation::Prune,
            true,
        ),
        (
            Explorer,
            rule(all, all, all, all, None),
            &DEPLOYMENT,
            health,
            true,
        ),
        (
            Explorer,
            rule(all, all, all, &["*/*"], None),
            &DEPLOYMENT,
            health,
            true,
        ),
        (
            Explorer,
            rule(all, all, all, all, None),
            &DEPLOYMENT,
            Operation::Components,
            false,
        ),
        (
            Explorer,
            rule(all, all, all, &["deployments/*"], None),
            &DEPLOYMENT,
            health,
            false,
        ),
        (
            Explorer,
            rule(all, all, all, &["Deployment"], None),
            &DEPLOYMENT,
            health,
            false,
        ),
        (
            Explorer,
            rule(
                &["ExploreHealthy"],
                all,
                all,
                &["deployments"],
                Some("Namespaced"),
            ),
            &DEPLOYMENT,
            health,
            true,
        ),
        (
            Explorer,
            rule(all, all, all, all, Some("Cluster")),
            &DEPLOYMENT,
            health,
            false,
        ),
        (
            Explorer,
            rule(all, all, all, all, Some("Cluster")),
            &NODE,
            health,
            true,
        ),
        (
            Explorer,
            rule(all, all, all, all, Some("Namespaced")),
            &NODE,
            health,
            false,
        ),
        (Explorer, rule(all, all, all, all, Some("*")), &NODE, health, true),
        (
            Explorer,
            rule(all, all, all, &["*", "*/*"], None),
            &SECRET,
            health,
            false,
        ),
        (
            Explorer,
            rule(all, all, all, &["secrets"], None),
            &SECRET,
            health,
            true,
        ),
    ];
    for (contract, rule, subject, operation, wanted) in table {
        let hook = hook(contract, json!({"rules": [rule]}));
        assert_eq!(
            hook.is_about(subject, operation),
            wanted,
            "{contract:?} {rule} {subject:?} {operation:?}"
        );
    }
}

#[test]
fn of_several_hooks_the_one_with_the_smallest_name_is_asked() {
    let rule = |kinds: &[&str]| json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "kinds": kinds}]);
    let mut all = hooks(
        Contract::Interpreter,
        "b",
        json!([{"name": "a.x.y", "rules": rule(&["*"])}]),
    );
    all.extend(hooks(
        Contract::Interpreter,
        "a",
        json!([{"name": "z.x.y", "rules": rule(&["Deployment"])}, {"name": "b.x.y", "rules": rule(&["Pod"])}]),
    ));
    let chosen = |subject| choose(&all, subject, Operation::Health).map(Hook::name);
    assert_eq!(chosen(&DEPLOYMENT), Some("a/z.x.y"));
    assert_eq!(chosen(&NODE), Some("b/a.x.y"));
    assert_eq!(chosen(&SECRET), None);
    assert_eq!(
        all[0].layer(),
        r#"ResourceInterpreterWebhookConfiguration "b/a.x.y""#
    );
}

#[test]
fn addresses_timeouts_versions_and_policies_are_read() {
    let call = |entry: Value| hook(Contract::Explorer, entry).call().unwrap().clone();
    let url = |url: &str| call(json!({"clientConfig": {"url": url}})).address;
    let address = |host: &str, port, path: &str| Address::Url {
        host: host.into(),
        port,
        path: path.into(),
    };
    assert_eq!(
        url("https://Hooks.example.com"),
        address("hooks.example.com", 443, "/")
    );
    assert_eq!(
        url("https://10.0.0.7:8443/a/b"),
        address("10.0.0.7", 8443, "/a/b")
    );
    assert_eq!(url("https://[fd00::7]:8443/"), address("[fd00::7]", 8443, "/"));
    assert_eq!(url("https://[fd00::7]"), address("[fd00::7]", 443, "/"));
    let service = call(json!({"clientConfig": {"service": {"namespace": "n", "name": "s"}, "caBundle": ""}}));
    assert_eq!(service.address.host(), "s.n.svc");
    assert_eq!(service.address.port_and_path(), (443, "/"));
    assert_eq!((service.ca_bundle, service.timeout.as_secs()), (None, 10));
    let service = call(
        json!({"timeoutSeconds": 30, "exploreReviewVersions": ["v2", "v1alpha1"],
        "clientConfig": {"service": {"namespace": "n", "name": "s", "port": 8443, "path": "p"}, "caBundle": "eA=="}}),
    );
    assert_eq!(service.address.port_and_path(), (8443, "/p"));
    assert_eq!(
        (service.ca_bundle, service.timeout.as_secs()),
        (Some(b"x".to_vec()), 30)
    );
    assert_eq!(service.version, "v1alpha1");
    let ignoring = hook(Contract::Explorer, json!({"failurePolicy": "Ignore"}));
    assert_eq!(ignoring.policy(), Policy::Ignore);
    assert_eq!(all_of(Contract::Explorer).policy(), Policy::Fail);
    assert_eq!(all_of(Contract::Interpreter).policy(), Policy::Fail);
    assert_ne!(ignoring.version(), all_of(Contract::Explorer).version());
}

#[test]
fn an_entry_that_cannot_be_called_keeps_its_kinds_and_names_itself_and_the_field() {
    let client = |client: Value| json!({ "clientConfig": client });
    let service = |field: &str, value: Value| {
        let mut service = json!({"namespace": "n", "name": "s"});
        service[field] = value;
        client(json!({ "service": service }))
    };
    let table = [
        (client(json!({})), "clientConfig: "),
        (
            client(json!({"url": "https://x", "service": {"namespace": "n", "name": "s"}})),
            "clientConfig: ",
        ),
        (
            client(json!({"url": "http://x"})),
            "clientConfig.url: it does not begin with https://",
        ),
        (
            client(json!({"url": "https://"})),
            "clientConfig.url: it has no host",
        ),
        (
            client(json!({"url": "https://:443"})),
            "clientConfig.url: it has no host",
        ),
        (
            client(json!({"url": "https://u:p@x/"})),
            "clientConfig.url: it has a user",
        ),
        (
            client(json!({"url": "https://x/?q"})),
            "clientConfig.url: it has a user",
        ),
        (
            client(json!({"url": "https://x/#f"})),
            "clientConfig.url: it has a user",
        ),
        (
            client(json!({"url": "https://x y/"})),
            "clientConfig.url: it has a user",
        ),
        (
            client(json!({"url": "https://x/\u{7f}"})),
            "clientConfig.url: it has a user",
        ),
        (
            client(json!({"url": "https://x:0/"})),
            "clientConfig.url: its port",
        ),
        (
            client(json!({"url": "https://x:65536/"})),
            "clientConfig.url: its port",
        ),
        (
            client(json!({"url": "https://fd00::7/"})),
            "clientConfig.url: it has no host",
        ),
        (service("name", json!("")), "clientConfig.service.name: "),
        (service("name", json!("a.b/c")), "clientConfig.service.name: "),
        (
            service("namespace", json!("-n")),
            "clientConfig.service.namespace: ",
        ),
        (service("port", json!(0)), "clientConfig.service.port: "),
        (service("port", json!(-1)), "clientConfig.service.port: "),
        (service("path", json!("a b")), "clientConfig.service.path: "),
        (json!({"timeoutSeconds": 0}), "timeoutSeconds: 0 is out of range"),
        (
            json!({"timeoutSeconds": 31}),
            "timeoutSeconds: 31 is out of range",
        ),
    ];
    for contract in [Contract::Interpreter, Contract::Explorer] {
        let versions = match contract {
            Contract::Interpreter => "interpreterContextVersions",
            Contract::Explorer => "exploreReviewVersions",
        };
        let unspoken = (
            json!({versions: ["v2"]}),
            &*format!("{versions}: none of them is supported"),
        );
        for (entry, wanted) in table
            .iter()
            .map(|(entry, wanted)| (entry.clone(), *wanted))
            .chain([unspoken])
        {
            let mut entry = entry;
            entry["rules"] = json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
                "kinds": ["*"], "resources": ["*"]}]);
            let hook = hook(contract, entry.clone());
            let wanted = format!("webhook some/one.example.com cannot be called: {wanted}");
            let got = hook.call().unwrap_err().to_string();
            assert!(got.starts_with(&wanted), "{entry}: {got}");
            assert!(hook.is_about(&DEPLOYMENT, Operation::Health), "{entry}");
        }
    }
}

/// A question about an object: the operation's name in Karmada's contract, and its inputs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    operation: String,
    object: Value,
    live: Option<Value>,
    replicas: Option<i64>,
    #[serde(default)]
    items: Vec<entourage_api::work::AggregatedStatusItem>,
    /// A response of each contract, without its uid; a patch is written as it is.
    #[serde(default)]
    answers: Vec<Answered>,
}

#[derive(Deserialize)]
struct Answered {
    contract: String,
    response: Value,
}

impl Case {
    fn question(&self) -> Question<'_> {
        match Contract::Interpreter.operation(&self.operation).unwrap() {
            Operation::Replicas => Question::Replicas(&self.object),
            Operation::Components => Question::Components(&self.object),
            Operation::Revise => Question::Revise(&self.object, self.replicas.unwrap()),
            Operation::Retain => Question::Retain {
                desired: &self.object,
                live: self.live.as_ref().unwrap(),
            },
            Operation::Reflect => Question::Reflect(&self.object),
            Operation::Aggregate => Question::Aggregate {
                template: &self.object,
                items: &self.items,
            },
            Operation::Health => Question::Health(&self.object),
            Operation::References => Question::Dependencies(&self.object),
            Operation::Prune => Question::Prune(&self.object),
        }
    }

    fn subject(&self) -> Subject<'_> {
        let version = self.object["apiVersion"].as_str().unwrap();
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        Subject {
            group,
            version,
            kind: self.object["kind"].as_str().unwrap(),
            resource: "x",
            is_namespaced: true,
        }
    }
}

/// An answer as JSON, readable; an object as changes of the given one.
fn shown(answer: Result<Answer, Cow<'static, str>>, given: &Value) -> Value {
    match answer {
        Ok(Answer::Replicas {
            replicas,
            requirements,
        }) => json!({"replicas": replicas, "requirements": requirements}),
        Ok(Answer::Components(all)) => json!({ "components": all }),
        Ok(Answer::Object(object)) => json!({ "object": golden::changes(given, &object) }),
        Ok(Answer::Status(status)) => json!({ "status": status }),
        Ok(Answer::Healthy(is_healthy)) => json!({ "healthy": is_healthy }),
        Ok(Answer::Dependencies(all)) => json!({ "dependencies": all }),
        Ok(Answer::References(all)) => json!({ "dependencies": all }),
        Err(why) => json!({ "error": why }),
    }
}

/// A response with its patch, if it has one as JSON, in base64.
fn message(contract: Contract, uid: &str, response: &Value) -> Value {
    let mut response = response.clone();
    response["uid"] = uid.into();
    if response["patch"].is_array() {
        response["patch"] = STANDARD.encode(response["patch"].to_string()).into();
    }
    json!({"apiVersion": "config.karmada.io/v1alpha1", "kind": contract.message(), "response": response})
}

/// The cases in `testdata/interpreter-hooks`: the requests in both contracts, and the meaning of the responses.
#[test]
fn questions_and_answers_have_the_wire_forms_of_both_contracts() {
    let seen = std::cell::RefCell::new(BTreeSet::new());
    golden::run("interpreter-hooks", 8, |case: &Case| {
        let (question, subject) = (case.question(), case.subject());
        seen.borrow_mut().insert(question.operation());
        let mut want = serde_json::Map::new();
        for contract in [Contract::Interpreter, Contract::Explorer] {
            let hook = all_of(contract);
            let mut request = hook.request("u-1", &subject, question);
            if let Some(message) = &mut request {
                let request = &mut message["request"];
                request["object"] = golden::changes(&case.object, &request["object"]);
                if let Some(observed) = request.get_mut("observedObject") {
                    *observed = golden::changes(case.live.as_ref().unwrap(), observed);
                }
            }
            let answers = case
                .answers
                .iter()
                .filter(|each| each.contract == contract.message());
            let answers = answers.map(|each| {
                let bytes = message(contract, "u-1", &each.response).to_string();
                shown(
                    hook.answer("u-1", question, bytes.as_bytes(), LARGEST),
                    &case.object,
                )
            });
            let answers: Vec<_> = answers.collect();
            want.insert(
                contract.message().to_owned(),
                json!({"asks": request, "answers": answers}),
            );
        }
        golden::wanted(&want.into())
    });
    assert_eq!(seen.take().len(), 8, "every operation that hooks are asked");
}

fn object() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 1, "note": "c4n4ry"},
        "metadata": {"name": "d", "namespace": "n", "uid": "o-1", "resourceVersion": "7"}})
}

#[test]
fn an_answer_that_is_none_to_the_request_is_refused_in_words_without_content() {
    let (object, hook) = (object(), all_of(Contract::Interpreter));
    let good = json!({"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterContext",
        "response": {"uid": "u", "successful": true, "healthy": true}});
    let asked =
        |question, message: &Value| hook.answer("u", question, message.to_string().as_bytes(), LARGEST);
    assert!(asked(Question::Health(&object), &good) == Ok(Answer::Healthy(true)));
    let with = |pointer: &str, value: Value| {
        let mut message = good.clone();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        message.pointer_mut(parent).unwrap()[field] = value;
        message
    };
    // Frameworks for Karmada omit them.
    let mut bare = with("/apiVersion", json!(null));
    bare.as_object_mut().unwrap().remove("kind");
    assert!(asked(Question::Health(&object), &bare) == Ok(Answer::Healthy(true)));
    let patch = |patch: &[Value]| {
        let mut message = with(
            "/response/patch",
            json!(STANDARD.encode(json!(patch).to_string())),
        );
        message["response"]["patchType"] = "JSONPatch".into();
        message
    };
    let replace = |path: &str| patch(&[json!({"op": "replace", "path": path, "value": "c4n4ry"})]);
    let (health, revise) = (Question::Health(&object), Question::Revise(&object, 2));
    let many = |name: &str| {
        json!(vec![
            json!({"apiVersion": "v1", "kind": "Secret", "name": name});
            1001
        ])
    };
    let large = "c4n4ry".repeat(LARGEST / 8);
    let table = [
        (health, json!([]), "no field response"),
        (health, json!("c4n4ry"), "no field response"),
        (
            health,
            with("/apiVersion", json!("config.karmada.io/c4n4ry")),
            "apiVersion is not config.karmada.io/v1alpha1",
        ),
        (
            health,
            with("/kind", json!("ExploreReview")),
            "kind is not ResourceInterpreterContext",
        ),
        (health, with("/response", json!(null)), "no field response"),
        (
            health,
            with("/response/uid", json!("c4n4ry")),
            "uid is not that of the request",
        ),
        (
            health,
            with("/response/uid", json!(null)),
            "uid is not that of the request",
        ),
        (
            health,
            with("/response/successful", json!(false)),
            "was not successful",
        ),
        (
            health,
            with("/response/successful", json!(null)),
            "was not successful",
        ),
        (
            health,
            with("/response/healthy", json!("c4n4ry")),
            "healthy is not true or false",
        ),
        (health, with("/response/healthy", json!(null)), "has no healthy"),
        (Question::Replicas(&object), good.clone(), "has no replicas"),
        (
            Question::Replicas(&object),
            with("/response/replicas", json!(-1)),
            "replicas is not",
        ),
        (
            Question::Replicas(&object),
            with("/response/replicas", json!(2_147_483_648_u64)),
            "more than",
        ),
        (
            Question::Reflect(&object),
            with("/response/rawStatus", json!("c4n4ry")),
            "rawStatus is not an object",
        ),
        (
            Question::Components(&object),
            with("/response/components", json!([{"name": "", "replicas": 1}])),
            "no name",
        ),
        (
            Question::Components(&object),
            with("/response/components", json!(["c4n4ry"])),
            "components is not",
        ),
        (
            Question::Dependencies(&object),
            with("/response/dependencies", many("c4n4ry")),
            "more than 1000",
        ),
        (
            Question::Dependencies(&object),
            with(
                "/response/dependencies",
                json!([{"apiVersion": "v1", "kind": "c4n4ry"}]),
            ),
            "dependency 0",
        ),
        (
            Question::Dependencies(&object),
            with("/response/dependencies", json!({"c4n4ry": 1})),
            "dependencies is not",
        ),
        (
            revise,
            with("/response/patch", json!("c4n4ry")),
            "patchType is not",
        ),
        (
            revise,
            {
                let mut m = replace("/spec");
                m["response"]["patch"] = json!("%c4n4ry");
                m
            },
            "not base64",
        ),
        (
            revise,
            {
                let mut m = replace("/spec");
                m["response"]["patchType"] = json!("c4n4ry");
                m
            },
            "patchType is not",
        ),
        (
            revise,
            replace("/spec/c4n4ry"),
            "operation 0 of the patch: there is nothing",
        ),
        (revise, replace("/kind"), "changes kind"),
        (revise, replace("/apiVersion"), "changes apiVersion"),
        (revise, replace("/metadata/name"), "changes metadata.name"),
        (
            revise,
            replace("/metadata/namespace"),
            "changes metadata.namespace",
        ),
        (revise, replace("/metadata/uid"), "changes metadata.uid"),
        (revise, replace("/metadata"), "changes metadata.name"),
        (revise, replace(""), "changes apiVersion"),
        (
            revise,
            patch(&[
                json!({"op": "add", "path": "/spec/a", "value": large}),
                json!({"op": "copy", "from": "/spec/a", "path": "/spec/b"}),
            ]),
            "larger than",
        ),
    ];
    for (question, message, wanted) in table {
        let Err(got) = asked(question, &message) else {
            panic!("{wanted}: it was taken");
        };
        assert!(got.contains(wanted), "{got} is not about {wanted:?}");
        assert!(!got.contains("c4n4ry") && got.len() < 200, "{got}");
    }
    let garbage = hook.answer("u", health, b"{\"c4n4ry\": c4n4ry", LARGEST);
    assert_eq!(
        garbage.err().unwrap(),
        "the response is not JSON: Syntax error at line 1 column 12"
    );
    let long = hook.answer("u", health, good.to_string().as_bytes(), 10);
    assert_eq!(long.err().unwrap(), "the response is larger than 10 bytes");
}

#[test]
fn a_hooks_own_words_are_cut_and_about_a_secret_not_repeated() {
    let hook = all_of(Contract::Interpreter);
    let long_message = format!("no\u{1b}[31m\nway {}", "x".repeat(500));
    let message = message(
        Contract::Interpreter,
        "u",
        &json!({"successful": false, "status": {"message": long_message, "code": 400}}),
    );
    let asked = |object: &Value| {
        let answer = hook.answer(
            "u",
            Question::Health(object),
            message.to_string().as_bytes(),
            LARGEST,
        );
        answer.err().unwrap()
    };
    let about_any = asked(&object());
    let wanted = format!("the hook was not successful: no[31mway {}", "x".repeat(256 - 10));
    assert_eq!(about_any, wanted);
    let about_secret = asked(&json!({"apiVersion": "v1", "kind": "Secret"}));
    assert_eq!(
        about_secret,
        "the hook was not successful; its own log may show the cause"
    );
}

#[test]
fn answers_are_kept_by_version_of_object_and_hook_and_the_oldest_makes_room() {
    let (object, hook) = (object(), all_of(Contract::Interpreter));
    let key = |object: &Value| Key::of(&hook, &DEPLOYMENT, Question::Health(object));
    let first = key(&object).unwrap();
    let mut kept = Answers::new(Room { count: 2, bytes: 100 });
    kept.keep(first.clone(), Answer::Healthy(true), 40);
    assert!(kept.get(&first) == Some(Answer::Healthy(true)));
    // Any other version, operation or hook is another question.
    let mut newer = object.clone();
    newer["metadata"]["resourceVersion"] = "8".into();
    let newer = key(&newer).unwrap();
    let changed = self::hook(Contract::Interpreter, json!({"timeoutSeconds": 3}));
    for other in [
        newer.clone(),
        Key::of(&hook, &DEPLOYMENT, Question::Reflect(&object)).unwrap(),
        Key::of(
            &all_of(Contract::Explorer),
            &DEPLOYMENT,
            Question::Health(&object),
        )
        .unwrap(),
        Key::of(&changed, &DEPLOYMENT, Question::Health(&object)).unwrap(),
    ] {
        assert!(kept.get(&other).is_none(), "{other:?}");
    }
    kept.keep(newer.clone(), Answer::Healthy(false), 40);
    kept.keep(newer.clone(), Answer::Healthy(false), 50);
    assert_eq!(kept.size(), (2, 90));
    let mut third = object;
    third["metadata"]["uid"] = "o-2".into();
    let third = key(&third).unwrap();
    kept.keep(third.clone(), Answer::Healthy(true), 1);
    assert!(kept.get(&first).is_none() && kept.get(&newer).is_some() && kept.get(&third).is_some());
    kept.keep(first, Answer::Healthy(true), 100);
    assert_eq!(kept.size(), (1, 100));
    kept.keep(newer, Answer::Healthy(true), 101);
    assert_eq!(
        kept.size(),
        (1, 100),
        "what is larger than all room drives nothing out"
    );
}

#[test]
fn what_looks_at_more_than_the_object_and_what_is_secret_is_not_kept() {
    let (object, hook) = (object(), all_of(Contract::Interpreter));
    let kept = |subject: &Subject<'_>, question: Question<'_>| Key::of(&hook, subject, question).is_some();
    assert!(kept(&DEPLOYMENT, Question::Dependencies(&object)));
    for question in [
        Question::Revise(&object, 1),
        Question::Retain {
            desired: &object,
            live: &object,
        },
        Question::Aggregate {
            template: &object,
            items: &[],
        },
    ] {
        assert!(!kept(&DEPLOYMENT, question));
    }
    assert!(!kept(&SECRET, Question::Dependencies(&object)));
    for field in ["uid", "resourceVersion"] {
        let mut unknown = object.clone();
        unknown["metadata"][field] = "".into();
        assert!(!kept(&DEPLOYMENT, Question::Dependencies(&unknown)), "{field}");
    }
}

/// JSON that looks like a response, so that generated ones reach the validation.
fn responses() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z/~0-9-]{0,8}".prop_map(Value::from),
        Just(json!("u")),
        Just(json!("v1")),
    ];
    let keys = proptest::sample::select(vec![
        "uid",
        "apiVersion",
        "kind",
        "name",
        "labelSelector",
        "matchLabels",
        "replicas",
        "resourceRequest",
        "cpu",
        "nodeClaim",
        "replicaRequirements",
        "op",
        "path",
        "from",
        "value",
    ]);
    let any_json = leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(keys.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    let field = proptest::sample::select(vec![
        "replicas",
        "replicaRequirements",
        "components",
        "dependencies",
        "rawStatus",
        "status",
        "healthy",
        "successful",
    ]);
    let pointer = proptest::sample::select(vec![
        "",
        "/",
        "/spec",
        "/spec/list",
        "/spec/list/0",
        "/spec/list/-",
        "/spec/list/9",
        "/metadata/name",
        "/new",
        "/spec/new",
    ]);
    let op = proptest::sample::select(vec!["add", "remove", "replace", "move", "copy", "test", "other"]);
    let step = (op, pointer.clone(), pointer, any_json.clone())
        .prop_map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}));
    let patch =
        proptest::collection::vec(step, 0..8).prop_map(|steps| STANDARD.encode(json!(steps).to_string()));
    (proptest::collection::vec((field, any_json), 0..5), patch).prop_map(|(fields, patch)| {
        let mut response = json!({"uid": "u", "successful": true, "patch": patch, "patchType": "JSONPatch"});
        for (field, value) in fields {
            response[field] = value;
        }
        response
    })
}

fn questions(object: &Value) -> [Question<'_>; 8] {
    [
        Question::Replicas(object),
        Question::Components(object),
        Question::Revise(object, 3),
        Question::Retain {
            desired: object,
            live: object,
        },
        Question::Reflect(object),
        Question::Aggregate {
            template: object,
            items: &[],
        },
        Question::Health(object),
        Question::Dependencies(object),
    ]
}

proptest! {
    #[test]
    fn no_bytes_at_all_make_an_answer_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let object = object();
        for question in questions(&object) {
            prop_assert!(all_of(Contract::Explorer).answer("u", question, &bytes, LARGEST).is_err());
        }
    }

    #[test]
    fn whatever_is_answered_an_object_stays_itself_and_dependencies_are_well_formed(response in responses()) {
        let mut object = object();
        object["spec"]["list"] = json!([1, {"a": 2}]);
        for contract in [Contract::Interpreter, Contract::Explorer] {
            let bytes = message(contract, "u", &response).to_string();
            for question in questions(&object) {
                match all_of(contract).answer("u", question, bytes.as_bytes(), LARGEST) {
                    Ok(Answer::Object(after)) => {
                        for pointer in ["/apiVersion", "/kind", "/metadata/name", "/metadata/namespace", "/metadata/uid"] {
                            prop_assert_eq!(after.pointer(pointer), object.pointer(pointer));
                        }
                    }
                    Ok(Answer::Dependencies(all)) => {
                        prop_assert!(all.iter().all(|each| crate::question::check_dependency(each).is_ok()));
                    }
                    Ok(Answer::Replicas { replicas, .. }) => prop_assert!((0..=i64::from(i32::MAX)).contains(&replicas)),
                    Ok(_) | Err(_) => {}
                }
            }
        }
    }

    #[test]
    fn no_url_makes_a_configuration_panic(url in ".{0,40}", rest in "[:/@?#\\[\\]a-z0-9.]{0,20}") {
        for url in [url, format!("https://{rest}")] {
            if let Ok(call) = hook(Contract::Explorer, json!({"clientConfig": {"url": url}})).call() {
                let (port, path) = call.address.port_and_path();
                prop_assert!(port > 0 && path.starts_with('/') && !call.address.host().is_empty());
            }
        }
    }
}
