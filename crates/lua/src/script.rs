//! A script: compiled once, run in an environment of its own for each question.

use std::{
    borrow::Cow,
    collections::hash_map::DefaultHasher,
    fmt,
    hash::{Hash as _, Hasher as _},
    sync::{Mutex, MutexGuard, PoisonError},
};

use entourage_interpreter::question::{Answer, Question, Rule};
use mlua::{Function, MultiValue, Table, Value};
use serde_json::Value as Json;

use crate::{
    chunks::CHUNK,
    error::{self, ScriptError},
    json::to_lua,
    limits::Limits,
    quarantine::{Quarantine, Version},
    run_error,
    sandbox::{self, Sandbox},
    shape::{self, Wrong},
};

/// A script in the style of Karmada's interpreter customisations. It can be used by several threads at once.
pub struct Script {
    name: String,
    source: String,
    compiled: Vec<u8>,
    limits: Limits,
    /// The objects that it is not run for.
    quarantine: Mutex<Quarantine>,
}

/// The maximum number of quarantined objects of one script; an entry is about 300 bytes.
const HELD: usize = 10_000;

/// Larger than the size limit of an object in an API server.
const MAX_SOURCE: usize = 2 << 20;

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Rule for Script {
    fn answer(&self, question: Question<'_>) -> Result<Answer, Cow<'static, str>> {
        Self::answer(self, question).map_err(|error| error.to_string().into())
    }
}

impl Script {
    /// Compiles a script with the default [`Limits`]. `name` is its name in errors.
    ///
    /// # Errors
    /// [`ScriptError::Syntax`] with the line. A missing function is detected only when it is called.
    pub fn compile(name: &str, source: &str) -> Result<Self, ScriptError> {
        Self::with_limits(name, source, Limits::default())
    }

    /// Compiles a script with other limits.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub fn with_limits(name: &str, source: &str, limits: Limits) -> Result<Self, ScriptError> {
        if source.len() > MAX_SOURCE {
            return Err(ScriptError::Syntax {
                script: name.to_owned(),
                what: format!("longer than {MAX_SOURCE} bytes"),
            });
        }
        let compiled = sandbox::compile(source, CHUNK).map_err(|error| error::of_syntax(name, &error))?;
        Ok(Self {
            name: name.to_owned(),
            source: source.to_owned(),
            compiled,
            limits,
            quarantine: Mutex::new(Quarantine::new(HELD)),
        })
    }

    /// Runs the script; blocks until it has returned or was stopped. The same question gets the same answer, unless the script
    /// reads the time of day.
    ///
    /// Cost: some tens of microseconds, and that of reading the object, the script and reading its result; the limits are
    /// exceeded by at most one step of a library function. A question about an object for which the script reached a limit is
    /// not run again until the object changes.
    ///
    /// # Errors
    /// Those of [`ScriptError`]; none has content of the object.
    pub fn answer(&self, question: Question<'_>) -> Result<Answer, ScriptError> {
        self.check(&question)?;
        let result = self.run(&question);
        // The identity costs a hash of parts of the object: computed only if there is something to record.
        let reached = result.as_ref().err().filter(|why| why.is_limit());
        if let Some(why) = reached
            && let Some((uid, version)) = identity(&question)
        {
            self.quarantine().hold(&uid, version, why.clone());
        }
        result
    }

    /// Fails if the script is quarantined for a question.
    fn check(&self, question: &Question<'_>) -> Result<(), ScriptError> {
        let is_clean = self.quarantine().is_empty();
        let asked = if is_clean { None } else { identity(question) };
        match asked.and_then(|(uid, version)| self.quarantine().holds(&uid, &version)) {
            Some(why) => Err(ScriptError::Quarantined(Box::new(why))),
            None => Ok(()),
        }
    }

    fn run(&self, question: &Question<'_>) -> Result<Answer, ScriptError> {
        let sandbox = Sandbox::begin(self.limits).map_err(|_| ScriptError::Failed {
            script: self.name.clone(),
            line: None,
            what: "no state of the virtual machine can be made".to_owned(),
        })?;
        let answer = self.asked(question, &sandbox)?;
        sandbox.end();
        Ok(answer)
    }

    fn asked(&self, question: &Question<'_>, sandbox: &Sandbox) -> Result<Answer, ScriptError> {
        let (lua, budget) = (sandbox.lua(), &*sandbox.budget);
        let function = shape::function(question);
        let failed = |error: &mlua::Error| run_error::of_run(&self.name, &self.source, budget, error);

        let (environment, given) = self.prepared(question, sandbox).map_err(|error| failed(&error))?;
        let main = sandbox::binary(lua, &self.compiled, CHUNK).map_err(|error| failed(&error))?;
        main.set_environment(environment.clone())
            .map_err(|error| failed(&error))?;
        main.call::<()>(()).map_err(|error| failed(&error))?;
        let Ok(called) = environment.raw_get::<Function>(function) else {
            return Err(ScriptError::Missing {
                script: self.name.clone(),
                function,
            });
        };
        let results = called.call::<MultiValue>(given).map_err(|error| failed(&error))?;
        shape::answer(question, &results, budget).map_err(|wrong| match wrong {
            Wrong::Unreadable(error) => match failed(&error) {
                ScriptError::Failed { script, what, .. } => ScriptError::Failed {
                    script,
                    line: None,
                    what: format!("what {function} returned cannot be read: {what}"),
                },
                limit => limit,
            },
            Wrong::Shape(field, expected) => ScriptError::Shape {
                script: self.name.clone(),
                function,
                field,
                expected,
            },
        })
    }

    /// The globals of the call and the arguments of the function. The memory limit is set last: without one, building tables
    /// costs half.
    fn prepared(&self, question: &Question<'_>, sandbox: &Sandbox) -> mlua::Result<(Table, MultiValue)> {
        let lua = sandbox.lua();
        let environment = sandbox.environment()?;
        let given = match *question {
            Question::Replicas(object)
            | Question::Components(object)
            | Question::Prune(object)
            | Question::Reflect(object)
            | Question::Health(object)
            | Question::Dependencies(object) => vec![to_lua(lua, object)?],
            Question::Revise(object, replicas) => vec![to_lua(lua, object)?, Value::Integer(replicas)],
            Question::Retain { desired, live } => vec![to_lua(lua, desired)?, to_lua(lua, live)?],
            Question::Aggregate { template, items } => {
                vec![to_lua(lua, template)?, to_lua(lua, &shape::items(items))?]
            }
        };
        lua.set_memory_limit(self.limits.memory)?;
        Ok((environment, MultiValue::from_vec(given)))
    }

    fn quarantine(&self) -> MutexGuard<'_, Quarantine> {
        self.quarantine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The object of a question, and its version; `None` if it has neither uid nor name.
fn identity(question: &Question<'_>) -> Option<(String, Version)> {
    let operation = question.operation();
    let (object, version) = match *question {
        Question::Replicas(object)
        | Question::Components(object)
        | Question::Prune(object)
        | Question::Dependencies(object) => (object, content(object)),
        Question::Revise(object, replicas) => (object, format!("{} {replicas}", content(object))),
        Question::Reflect(object) | Question::Health(object) => (object, revision(object)),
        Question::Retain { desired, live } => (live, format!("{} {}", content(desired), revision(live))),
        Question::Aggregate { template, items } => {
            let reported = hashed(&shape::items(items));
            (template, format!("{} {reported}", content(template)))
        }
    };
    let metadata = &object["metadata"];
    let identity = match (&metadata["uid"], &metadata["name"]) {
        (Json::String(uid), _) => uid.clone(),
        (_, Json::String(name)) => format!("{}/{name}", metadata["namespace"].as_str().unwrap_or_default()),
        _ => return None,
    };
    Some((format!("{operation:?} {identity}"), Version(version)))
}

/// Changes with the spec, labels and annotations of an object; with any field of it if it has no generation.
fn content(object: &Json) -> String {
    let metadata = &object["metadata"];
    match metadata["generation"].as_i64() {
        Some(generation) => format!(
            "{generation} {} {}",
            hashed(&metadata["labels"]),
            hashed(&metadata["annotations"])
        ),
        None => revision(object),
    }
}

/// Changes with any field of an object. A rendered one has no version of its own.
fn revision(object: &Json) -> String {
    match object["metadata"]["resourceVersion"].as_str() {
        Some(version) => version.to_owned(),
        None => hashed(object),
    }
}

/// In memory only, so it need not be the same in the next release.
fn hashed(value: &Json) -> String {
    let mut hash = DefaultHasher::new();
    value.hash(&mut hash);
    format!("{:x}", hash.finish())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(question: Question<'_>) -> (String, Version) {
        identity(&question).unwrap()
    }

    #[test]
    fn a_version_changes_with_what_the_script_would_see() {
        let object = |spec: i64, generation: i64, label: &str| json!({"metadata": {"uid": "u", "generation": generation, "resourceVersion": spec.to_string(), "labels": {"a": label}}, "spec": spec});
        let (a, status, label) = (object(1, 1, "x"), object(2, 1, "x"), object(1, 1, "y"));
        assert_eq!(
            of(Question::Dependencies(&a)),
            of(Question::Dependencies(&status))
        );
        assert_ne!(of(Question::Dependencies(&a)), of(Question::Dependencies(&label)));
        assert_ne!(of(Question::Health(&a)), of(Question::Health(&status)));
        assert_ne!(of(Question::Revise(&a, 1)), of(Question::Revise(&a, 2)));
        assert_ne!(of(Question::Dependencies(&a)).0, of(Question::Replicas(&a)).0);
    }

    #[test]
    fn a_rendered_object_is_reported_by_all_of_it() {
        let live = json!({"metadata": {"uid": "u", "resourceVersion": "1"}});
        let rendered = |spec: i64| json!({"metadata": {"name": "a", "namespace": "b"}, "spec": spec});
        let (first, second) = (rendered(1), rendered(2));
        let retain = |desired| of(Question::Retain { desired, live: &live });
        assert_eq!(retain(&first), retain(&first));
        assert_ne!(retain(&first), retain(&second));
        assert_ne!(of(Question::Revise(&first, 1)), of(Question::Revise(&second, 1)));
        assert!(identity(&Question::Health(&json!({}))).is_none());
    }
}
