//! `cargo +nightly fuzz run lua`: what an interpreter script may not do, whatever it says and whatever it is asked about.
//!
//! Not one of the library's targets: the embedded server runs no scripts. Whole hostile scripts are tests of `entourage-lua`.

#![no_main]

use std::time::{Duration, Instant};

use arbitrary::{Result, Unstructured};
use entourage_core::interpreter::question::Question;
use entourage_fuzz::{Case, make};
use entourage_lua::{Limits, Script};
use libfuzzer_sys::{Corpus, fuzz_target};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

fuzz_target!(|input: &[u8]| -> Corpus {
    match entourage_fuzz::read::<Asked>(input) {
        Some(case) => {
            case.check();
            Corpus::Keep
        }
        None => Corpus::Reject,
    }
});

/// A script, and the object that it is asked about.
#[derive(Debug, Serialize, Deserialize)]
struct Asked {
    source: String,
    object: Value,
    question: u8,
}

/// Stands in the object, and in nothing that is reported about it.
const CANARY: &str = "c4n4ry7f3a";

/// The longest time after its limit until a script is stopped: one step of a library function on as much memory as there may
/// be.
const LATE: Duration = Duration::from_secs(2);

/// The longest error, the name of the script included.
const LONGEST: usize = 1024;

const LIMITS: Limits = Limits {
    time: Duration::from_millis(100),
    instructions: 1_000_000,
    memory: 4 << 20,
    string: 1 << 20,
    answer: 256 << 10,
};

const FUNCTIONS: [&str; 8] = [
    "GetReplicas(obj)",
    "GetComponents(obj)",
    "ReviseReplica(obj, n)",
    "Retain(obj, live)",
    "ReflectStatus(obj)",
    "AggregateStatus(obj, items)",
    "InterpretHealth(obj)",
    "GetDependencies(obj)",
];

#[rustfmt::skip]
const WORDS: &[&str] = &[
    "obj", "n", "live", "items", "t", "f", "t.a", "t[1]", "obj.spec", "obj.metadata", "obj.status", "obj.spec.secret",
    "obj.metadata.name", "local t", "local f", "=", "==", "~=", "<", "..", "+", "-", "*", "/", "%", "^", "#", "not", "and",
    "or", "(", ")", "{", "}", "[", "]", ",", ";", ":", ".", "function()", "end", "return", "if", "then", "else", "elseif",
    "for i = 1, 9 do", "for k, v in pairs(t) do", "while true do", "repeat", "until", "do", "break", "nil", "true", "false",
    "0", "1", "-1", "1e9", "0/0", "2^53", "''", "'a'", "'%s'", "'(.-)%1'", "'[%a-'", "'%'", "'x'", "...", "k", "v", "i",
    "string.rep", "string.find", "string.gsub", "string.gmatch", "string.format", "string.match", "string.sub", "string.byte",
    "string.char", "table.insert", "table.remove", "table.concat", "table.sort", "math.floor", "math.huge", "math.random",
    "os.date", "os.time", "tostring", "tonumber", "pairs", "ipairs", "next", "select", "type", "unpack", "pcall", "xpcall",
    "error", "assert", "print", "require('kube')", "kube.resourceAdd", "kube.getResourceQuantity",
    "kube.accuratePodRequirements", "kube.getPodDependencies", "setmetatable", "getmetatable", "rawset", "load", "_G",
    "error(obj.spec.secret)", "error({a = obj.spec.secret})", "tostring(obj.spec.secret)", "\n", "--", "[[", "]]", "goto",
];

impl Case for Asked {
    fn make(u: &mut Unstructured<'_>) -> Result<Self> {
        let question = u.int_in_range(0..=7)?;
        let mut object = json!({"apiVersion": "example.com/v1", "kind": "Farm",
            "metadata": {"name": "a", "namespace": "b", "uid": "u"}, "spec": {"secret": CANARY}});
        object["status"] = make::any(u, 4)?;
        object["spec"]["more"] = make::any(u, 4)?;
        let source = if u.ratio(1, 8)? {
            String::from_utf8_lossy(u.bytes(u.len())?).into_owned()
        } else {
            let mut source = String::new();
            let is_framed = u.ratio(7, 8)?;
            if is_framed {
                source += "local kube = require('kube')\nlocal t, f = {}, print\nfunction ";
                source += FUNCTIONS[usize::from(question)];
                source += "\n";
            }
            while !u.is_empty() {
                source += u.choose(WORDS)?;
                source += " ";
            }
            if is_framed {
                source += "\nend";
            }
            source
        };
        Ok(Self {
            source,
            object,
            question,
        })
    }

    fn check(&self) {
        let script = match Script::with_limits("fuzzed", &self.source, LIMITS) {
            Ok(script) => script,
            Err(error) => return reported(&error.to_string(), &self.source),
        };
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
        let began = Instant::now();
        let answer = script.answer(question);
        assert!(began.elapsed() < LIMITS.time + LATE, "not stopped");
        match &answer {
            Err(error) => {
                reported(&error.to_string(), &self.source);
                if error.is_limit() && object["metadata"]["uid"].is_string() {
                    let again = script.answer(question).err().map(|error| error.to_string());
                    assert_eq!(
                        again,
                        Some(error.to_string()),
                        "left alone until the object changes"
                    );
                }
            }
            Ok(entourage_core::interpreter::question::Answer::Object(after)) => {
                for field in ["/apiVersion", "/kind", "/metadata/name", "/metadata/namespace"] {
                    assert_eq!(
                        after.pointer(field),
                        object.pointer(field),
                        "it stays the same object"
                    );
                }
                let written = serde_json::to_vec(after).expect("an object can be written");
                let read: std::result::Result<Value, _> = serde_json::from_slice(&written);
                assert!(read.is_ok(), "what is answered can be read");
            }
            Ok(_) => {}
        }
    }
}

/// An error is short, and shows nothing of the object.
fn reported(error: &str, source: &str) {
    assert!(error.len() <= LONGEST, "{} bytes of error", error.len());
    assert!(source.contains(CANARY) || !error.contains(CANARY), "{error}");
}
