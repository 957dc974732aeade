//! DeleteOptions: from the body, or, when there is none, from the query.

use serde_json::Value;

use crate::{
    call::Call,
    decode::{Media, custom::name_of},
    object::Object,
    registry::{self, dry_run_problems, media},
    status::{FieldError, Problem, Result, Status},
};

/// The treatment of the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They are collected later.
    Background,
    /// They go first.
    Foreground,
    /// They stay, and lose the owner.
    Orphan,
}

/// The options of a deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    pub(crate) dry_run: bool,
    /// Seconds of grace.
    pub(crate) grace: Option<i64>,
    /// The object must have this uid.
    pub(crate) uid: Option<String>,
    /// The object must be in this state.
    pub(crate) resource_version: Option<String>,
    pub(crate) propagation: Option<Propagation>,
    /// The deprecated form of Orphan.
    pub(crate) orphan: Option<bool>,
}

impl DeleteOptions {
    /// The options of a request, checked. A body makes the query ignored.
    pub(crate) fn of(call: &Call) -> Result<Self> {
        let raw = if call.body.is_empty() {
            Raw::of_query(call)?
        } else {
            Raw::of_body(call)?
        };
        raw.checked()
    }
}

/// The options as written.
#[derive(Default)]
struct Raw {
    dry_run: Vec<String>,
    policy: Option<String>,
    options: DeleteOptions,
}

impl Raw {
    fn of_query(call: &Call) -> Result<Self> {
        let query = &call.query;
        let precondition = |name: &str| query.get(name).filter(|text| !text.is_empty()).map(str::to_owned);
        let grace = query.get("gracePeriodSeconds").map(|text| {
            text.parse::<i64>().map_err(|error| {
                let range = matches!(
                    error.kind(),
                    std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow
                );
                let why = if range {
                    "value out of range"
                } else {
                    "invalid syntax"
                };
                Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
            })
        });
        Ok(Self {
            dry_run: query.all("dryRun").map(str::to_owned).collect(),
            policy: query.get("propagationPolicy").map(str::to_owned),
            options: DeleteOptions {
                grace: grace.transpose()?,
                orphan: query
                    .get("orphanDependents")
                    .map(|_| query.flag("orphanDependents")),
                uid: precondition("uid"),
                resource_version: precondition("resourceVersion"),
                ..DeleteOptions::default()
            },
        })
    }

    fn of_body(call: &Call) -> Result<Self> {
        let object = object_of(call)?;
        right_kind(&object)?;
        let text = |value: Option<&Value>, field: &str, kind: &str| match value {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(mistyped(other, field, kind)),
        };
        let mut raw = Self::default();
        match object.get("dryRun") {
            None | Some(Value::Null) => {}
            Some(Value::Array(values)) => {
                for value in values {
                    let value = text(Some(value), "dryRun", "string")?;
                    raw.dry_run.push(value.unwrap_or_default());
                }
            }
            Some(other) => return Err(mistyped(other, "dryRun", "[]string")),
        }
        raw.policy = text(
            object.get("propagationPolicy"),
            "propagationPolicy",
            "v1.DeletionPropagation",
        )?;
        raw.options.grace = match object.get("gracePeriodSeconds") {
            None | Some(Value::Null) => None,
            Some(value) => Some(
                value
                    .as_i64()
                    .ok_or_else(|| mistyped(value, "gracePeriodSeconds", "int64"))?,
            ),
        };
        raw.options.orphan = match object.get("orphanDependents") {
            None | Some(Value::Null) => None,
            Some(Value::Bool(orphan)) => Some(*orphan),
            Some(other) => return Err(mistyped(other, "orphanDependents", "bool")),
        };
        match object.get("preconditions") {
            None | Some(Value::Null) => {}
            Some(Value::Object(conditions)) => {
                raw.options.uid = text(conditions.get("uid"), "preconditions.uid", "types.UID")?;
                raw.options.resource_version = text(
                    conditions.get("resourceVersion"),
                    "preconditions.resourceVersion",
                    "string",
                )?;
            }
            Some(other) => return Err(mistyped(other, "preconditions", "v1.Preconditions")),
        }
        Ok(raw)
    }

    fn checked(self) -> Result<DeleteOptions> {
        const FIELD: &str = "propagationPolicy";
        let mut errors = Vec::new();
        let mut options = self.options;
        if let Some(policy) = self.policy {
            if options.orphan.is_some() {
                errors.push(FieldError::invalid(
                    FIELD,
                    policy.as_str(),
                    "orphanDependents and deletionPropagation cannot be both set",
                ));
            }
            options.propagation = match policy.as_str() {
                "Background" => Some(Propagation::Background),
                "Foreground" => Some(Propagation::Foreground),
                "Orphan" => Some(Propagation::Orphan),
                _ => None,
            };
            if options.propagation.is_none() {
                let detail = r#"supported values: "Foreground", "Background", "Orphan", "nil""#;
                errors.push(FieldError::new(
                    FIELD,
                    Problem::NotSupported(policy.into()),
                    detail,
                ));
            }
        }
        let dry_run: Vec<&str> = self.dry_run.iter().map(String::as_str).collect();
        errors.extend(dry_run_problems(&dry_run));
        options.dry_run = !dry_run.is_empty();
        if errors.is_empty() {
            Ok(options)
        } else {
            Err(Status::invalid(registry::options("DeleteOptions"), &errors))
        }
    }
}

/// The body as an object.
fn object_of(call: &Call) -> Result<Object> {
    let value: Value = match media(call)? {
        Media::Json => serde_json::from_slice(&call.body).map_err(|error| {
            let why = if error.is_eof() {
                "unexpected end of JSON input".to_owned()
            } else {
                error.to_string()
            };
            Status::bad_request(format!("couldn't get version/kind; json parse error: {why}"))
        })?,
        Media::Yaml => serde_saphyr::from_slice(&call.body).map_err(|error| {
            Status::bad_request(format!(
                "couldn't get version/kind; json parse error: error converting YAML to JSON: {error}"
            ))
        })?,
    };
    match value {
        Value::Object(object) => Ok(object),
        Value::Null => Ok(Object::new()),
        other => {
            let what = name_of(&other);
            let target = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
            Err(Status::bad_request(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {what} into Go value of type {target}"
            )))
        }
    }
}

/// DeleteOptions may be of any version that the server knows; anything else is another kind.
fn right_kind(object: &Object) -> Result<()> {
    const SCHEME: &str = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27";
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    if matches!(kind, "" | "DeleteOptions") {
        return Ok(());
    }
    let version = if version.is_empty() {
        "meta.k8s.io/v1"
    } else {
        version
    };
    Err(Status::bad_request(format!(
        "no kind {kind:?} is registered for version {version:?} in scheme {SCHEME:?}"
    )))
}

fn mistyped(value: &Value, field: &str, kind: &str) -> Box<Status> {
    let what = match value {
        Value::Number(number) if kind == "int64" => format!("number {number}"),
        other => name_of(other).to_owned(),
    };
    Status::bad_request(format!(
        "json: cannot unmarshal {what} into Go struct field DeleteOptions.{field} of type {kind}"
    ))
}
