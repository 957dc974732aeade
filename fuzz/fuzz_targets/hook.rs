//! `cargo +nightly fuzz run hook`: what the answer of a hook may not do, whatever it holds: it comes from somebody whom we do
//! not trust.
//!
//! Not one of the library's targets: the embedded server asks no hooks.

#![no_main]

use arbitrary::{Result, Unstructured};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use entourage_api::config::{ResourceExploringWebhookConfiguration, ResourceInterpreterWebhookConfiguration};
use entourage_core::interpreter::{
    hook::Hook,
    question::{Answer, Question, check_dependency},
};
use entourage_fuzz::{Case, make};
use libfuzzer_sys::{Corpus, fuzz_target};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

fuzz_target!(|input: &[u8]| -> Corpus {
    match entourage_fuzz::read::<Answered>(input) {
        Some(case) => {
            case.check();
            Corpus::Keep
        }
        None => Corpus::Reject,
    }
});

/// A request to a hook, and its response.
#[derive(Debug, Serialize, Deserialize)]
struct Answered {
    is_exploring: bool,
    question: u8,
    object: Value,
    /// The response; its `patch`, if it is a list, is sent as hooks send it.
    response: Value,
    /// Sent as they are instead, if there are any.
    bytes: Vec<u8>,
}

/// Stands in the object, and in nothing that is reported about it.
const CANARY: &str = "c4n4ry7f3a";

/// The longest error: the hook's own message is a part of it.
const LONGEST: usize = 2048;

/// The most dependencies and parts.
const MOST: usize = 1000;

/// The largest answer and object, small so that it is reached.
const LARGEST: usize = 16 << 10;

impl Case for Answered {
    fn make(u: &mut Unstructured<'_>) -> Result<Self> {
        let mut object = json!({"apiVersion": "example.com/v1", "kind": "Farm",
            "metadata": {"name": "a", "namespace": "b", "uid": "u"}, "data": {"secret": CANARY}});
        object["spec"] = make::any(u, 5)?;
        if u.ratio(1, 8)? {
            (object["apiVersion"], object["kind"]) = ("v1".into(), "Secret".into());
        }
        let mut response = json!({"uid": "asked", "successful": u.ratio(9, 10)?});
        for field in [
            "replicas",
            "replicaRequirements",
            "components",
            "dependencies",
            "rawStatus",
            "status",
            "healthy",
            "uid",
        ] {
            if u.ratio(1, 4)? {
                response[field] = field_of(u, field)?;
            }
        }
        if u.ratio(1, 2)? {
            let length = u.int_in_range(0..=12)?;
            let pointers = make::pointers(&object, 64);
            let steps = (0..length).map(|_| step(u, &pointers)).collect::<Result<_>>()?;
            (response["patch"], response["patchType"]) = (Value::Array(steps), "JSONPatch".into());
        }
        let bytes = if u.ratio(1, 16)? {
            u.bytes(u.len())?.to_vec()
        } else {
            Vec::new()
        };
        Ok(Self {
            is_exploring: u.arbitrary()?,
            question: u.int_in_range(0..=7)?,
            object,
            response,
            bytes,
        })
    }

    fn check(&self) {
        let object = &self.object;
        let question = match self.question {
            0 => Question::Replicas(object),
            1 => Question::Components(object),
            2 => Question::Revise(object, 3),
            3 => Question::Retain {
                desired: object,
                live: object,
            },
            4 => Question::Reflect(object),
            5 => Question::Aggregate {
                template: object,
                items: &[],
            },
            6 => Question::Health(object),
            _ => Question::Dependencies(object),
        };
        let sent = self.sent();
        match hook(self.is_exploring).answer("asked", question, &sent, LARGEST) {
            Err(error) => {
                assert!(error.len() <= LONGEST, "{} bytes of error", error.len());
                let sent = String::from_utf8_lossy(&sent);
                assert!(sent.contains(CANARY) || !error.contains(CANARY), "{error}");
            }
            Ok(answer) => self.lawful(answer),
        }
    }
}

impl Answered {
    fn sent(&self) -> Vec<u8> {
        if !self.bytes.is_empty() {
            return self.bytes.clone();
        }
        let mut response = self.response.clone();
        if response["patch"].is_array() {
            response["patch"] = STANDARD.encode(response["patch"].to_string()).into();
        }
        json!({ "response": response }).to_string().into_bytes()
    }

    fn lawful(&self, answer: Answer) {
        match answer {
            Answer::Object(after) => {
                for field in [
                    "/apiVersion",
                    "/kind",
                    "/metadata/name",
                    "/metadata/namespace",
                    "/metadata/uid",
                ] {
                    assert_eq!(
                        after.pointer(field),
                        self.object.pointer(field),
                        "it stays the same object"
                    );
                }
                let written = serde_json::to_vec(&after).expect("an object can be written");
                let is_new = after != self.object;
                assert!(!is_new || written.len() <= LARGEST, "{} bytes", written.len());
                let read: std::result::Result<Value, _> = serde_json::from_slice(&written);
                assert!(read.is_ok(), "what a patch makes can be read");
            }
            Answer::Replicas { replicas, .. } => assert!((0..=i64::from(i32::MAX)).contains(&replicas)),
            Answer::Components(parts) => {
                assert!(parts.len() <= MOST);
                assert!(
                    parts
                        .iter()
                        .all(|part| part.replicas >= 0 && !part.name.is_empty())
                );
            }
            Answer::Status(status) => assert!(status.is_none_or(|status| status.is_object())),
            Answer::Dependencies(found) => {
                assert!(found.len() <= MOST && found.iter().all(|each| check_dependency(each).is_ok()));
                let texts: Vec<_> = found
                    .iter()
                    .filter_map(|each| serde_json::to_string(each).ok())
                    .collect();
                assert!(texts.is_sorted_by(|one, other| one < other), "sorted, each once");
            }
            Answer::Healthy(_) | Answer::References(_) => {}
        }
    }
}

fn hook(is_exploring: bool) -> Hook {
    let mut webhook =
        json!({"name": "a.example.com", "clientConfig": {"url": "https://x.example.com"}, "rules": []});
    let mut configuration = json!({"apiVersion": "config.karmada.io/v1alpha1", "metadata": {"name": "i"}});
    let hooks = if is_exploring {
        webhook["exploreReviewVersions"] = json!(["v1alpha1"]);
        configuration["kind"] = "ResourceExploringWebhookConfiguration".into();
        configuration["webhooks"] = json!([webhook]);
        Hook::explorers(&ResourceExploringWebhookConfiguration::deserialize(&configuration).expect("fits"))
    } else {
        webhook["interpreterContextVersions"] = json!(["v1alpha1"]);
        configuration["kind"] = "ResourceInterpreterWebhookConfiguration".into();
        configuration["webhooks"] = json!([webhook]);
        Hook::interpreters(
            &ResourceInterpreterWebhookConfiguration::deserialize(&configuration).expect("fits"),
        )
    };
    hooks.into_iter().next().expect("there is one")
}

/// A value for a field of a response, mostly of the type that it must have.
fn field_of(u: &mut Unstructured<'_>, field: &str) -> Result<Value> {
    if u.ratio(1, 4)? {
        return make::any(u, 4);
    }
    let amounts = |u: &mut Unstructured<'_>| -> Result<Value> {
        Ok(
            json!({"resourceRequest": {"cpu": make::one_of(u, &["1", "100m", "1e400", "-1", "x", "9223372036854775807Ei"])?},
            "nodeClaim": make::any(u, 2)?, "namespace": make::word(u)?}),
        )
    };
    Ok(match field {
        "replicas" => json!(u.arbitrary::<i64>()?),
        "replicaRequirements" => amounts(u)?,
        "components" => {
            let length = u.int_in_range(0..=3)?;
            let part = |u: &mut Unstructured<'_>| -> Result<Value> {
                Ok(
                    json!({"name": make::word(u)?, "replicas": u.arbitrary::<i32>()?, "replicaRequirements": amounts(u)?}),
                )
            };
            Value::Array((0..length).map(|_| part(u)).collect::<Result<_>>()?)
        }
        "dependencies" => {
            let length = u.int_in_range(0..=4)?;
            let one = |u: &mut Unstructured<'_>| -> Result<Value> {
                let mut one = json!({"apiVersion": make::word(u)?, "kind": make::word(u)?, "namespace": make::word(u)?});
                match u.int_in_range(0..=2)? {
                    0 => one["name"] = make::word(u)?.into(),
                    1 => one["labelSelector"] = json!({"matchLabels": make::any(u, 2)?}),
                    _ => {
                        one["labelSelector"] = json!({"matchExpressions": [{"key": make::word(u)?, "operator": make::one_of(u, &["In", "Exists", "Gt"])?, "values": make::any(u, 1)?}]})
                    }
                }
                Ok(one)
            };
            Value::Array((0..length).map(|_| one(u)).collect::<Result<_>>()?)
        }
        "status" | "rawStatus" => json!({"message": make::text(u, 400)?, "phase": make::word(u)?}),
        "healthy" => json!(u.arbitrary::<bool>()?),
        _ => make::word(u)?.into(),
    })
}

/// An operation of a patch.
fn step(u: &mut Unstructured<'_>, pointers: &[String]) -> Result<Value> {
    let place = |u: &mut Unstructured<'_>| -> Result<String> {
        let mut place = if u.ratio(1, 12)? {
            make::text(u, 12)?
        } else {
            u.choose(pointers)?.clone()
        };
        if u.ratio(1, 3)? {
            place += &make::one_of(u, &["/-", "/0", "/new", "/~1", "/01"])?;
        }
        Ok(place)
    };
    Ok(
        json!({"op": make::one_of(u, &["add", "remove", "replace", "move", "copy", "test", "merge"])?,
        "path": place(u)?, "from": place(u)?, "value": make::any(u, 3)?}),
    )
}
