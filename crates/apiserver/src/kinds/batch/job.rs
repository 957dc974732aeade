//! Jobs.

use serde_json::{Value, json};

use crate::{
    kinds::{
        kind_def::{KindDef, fields},
        pod_spec, workloads,
    },
    names,
    object::{
        Object, field,
        tree::{
            Errors, IMMUTABLE, below, count, default, each, flag, items, list, made, number, object, same,
            text, within,
        },
    },
    printer::{AGE, CONTAINERS, IMAGES, NAME, Printer, View, duration, seconds, wide, words},
    status::{FieldError, Problem},
};

/// Labels of a job's pods: with its name, with its uid; the old name first.
const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];

const UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];

/// The most pods of an indexed job.
const MOST_INDEXED: i64 = 100_000;

/// The fields of the template that may change in a suspended job that has not started.
const SCHEDULING: [&str; 4] = ["nodeSelector", "tolerations", "schedulingGates", "affinity"];

const ORPHANS: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

pub(super) static DEF: KindDef = KindDef {
    categories: &["all"],
    subresources: &["status"],
    has_generation: true,
    orphans_by_default: true,
    orphan_warning: Some(ORPHANS),
    defaults,
    created: |job| {
        generate_selector(job);
        workloads::labels_of_template(job);
        workloads::fresh_status(job, &[]);
    },
    updated: |subresource, new, _| {
        if subresource.is_empty() {
            workloads::labels_of_template(new);
        }
    },
    errors: |job, errors| {
        generated_selector(job, errors);
        job_spec(below(job, "spec"), errors);
    },
    changes: Some(changes),
    status_changes: |new, _, errors| {
        let counts = ["active", "succeeded", "failed", "ready", "terminating"];
        errors.extend(workloads::counts(below(new, "status"), &counts, &[]));
    },
    warnings: workloads::warnings,
    selectable: Some(|job| {
        let succeeded = count(below(job, "status"), "succeeded");
        fields([("status.successful", &succeeded.to_string())])
    }),
    pod_spec: &["spec", "template", "spec"],
    printer: Printer::of(&[
        NAME,
        words("Status", "Status of the job.").shows(|object| job_status(object).into()),
        words("Completions", ".status.succeeded").shows(|object| done(object).into()),
        words("Duration", "Time required to complete the job.").shows(|object| job_duration(object).into()),
        AGE,
        CONTAINERS,
        IMAGES,
        wide("Selector", ".spec.selector").shows(|object| object.selector("spec.selector")),
    ]),
    ..KindDef::of::<k8s_openapi::api::batch::v1::Job>()
};

fn defaults(object: &mut Object) {
    let spec = made(object, "spec");
    if number(spec, "parallelism").is_none() {
        if number(spec, "completions").is_none() {
            default(spec, "completions", 1);
        }
        default(spec, "parallelism", 1);
    }
    let limit = if spec.contains_key("backoffLimitPerIndex") {
        i64::from(i32::MAX)
    } else {
        6
    };
    default(spec, "backoffLimit", limit);
    default(spec, "completionMode", "NonIndexed");
    default(spec, "suspend", false);
    default(spec, "manualSelector", false);
    let replacement = if spec.contains_key("podFailurePolicy") {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    default(spec, "podReplacementPolicy", replacement);
    within(spec, "podFailurePolicy", |policy| {
        each(policy, "rules", |rule| {
            each(rule, "onPodConditions", |one| default(one, "status", "True"));
        });
    });
    pod_spec::template_defaults(spec);
    workloads::labels_of_template(object);
    made(object, "status");
}

fn changes(new: &Object, old: &Object, errors: &mut Errors) {
    let (new, old) = (below(new, "spec"), below(old, "spec"));
    job_spec(new, errors);
    completions(new, old, errors);
    errors.immutable(new, old, "spec", "selector");
    template_change(new, old, errors);
    for key in [
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
        errors.immutable(new, old, "spec", key);
    }
}

/// Jobs select their pods by the job's uid, unless they have a selector of their own.
fn generate_selector(object: &mut Object) {
    let (name, uid) = (field(object, "name").to_owned(), field(object, "uid").to_owned());
    let spec = made(object, "spec");
    if flag(spec, "manualSelector") {
        return;
    }
    let labels = made(made(made(spec, "template"), "metadata"), "labels");
    for (keys, value) in [(NAME_LABELS, &name), (UID_LABELS, &uid)] {
        for key in keys {
            labels.entry(key).or_insert_with(|| value.as_str().into());
        }
    }
    made(made(spec, "selector"), "matchLabels")
        .entry(UID_LABELS[1])
        .or_insert_with(|| uid.into());
}

fn generated_selector(job: &Object, errors: &mut Errors) {
    let spec = below(job, "spec");
    let Some(selector) = object(spec, "selector") else {
        return;
    };
    if flag(spec, "manualSelector") {
        return;
    }
    let (name, uid) = (field(job, "name"), field(job, "uid"));
    let labels = workloads::template_labels(spec);
    let mut expected = Object::new();
    for (keys, value) in [(UID_LABELS, uid), (NAME_LABELS, name)] {
        for key in keys {
            expected.insert(key.to_owned(), value.into());
            let path = format!("spec.template.metadata.labels[{key}]");
            let why = format!("must be '{value}'");
            match labels.get(key).and_then(Value::as_str) {
                None => errors.required(path, &why),
                Some(other) if other != value => errors.invalid(path, other, &why),
                Some(_) => {}
            }
        }
    }
    if !workloads::selects(Some(selector), &expected) {
        errors.invalid(
            "spec.selector",
            Value::Object(selector.clone()),
            "`selector` not auto-generated",
        );
    }
}

fn job_spec(spec: &Object, errors: &mut Errors) {
    work(spec, "spec", errors);
    match object(spec, "selector") {
        None => errors.required("spec.selector", ""),
        Some(selector) => errors.extend(names::label_selector(selector, "spec.selector")),
    }
    if !workloads::selects(object(spec, "selector"), workloads::template_labels(spec)) {
        workloads::mismatch(spec, "spec", errors);
    }
}

/// The errors in the spec of a job, or of the jobs that a `CronJob` creates; without those of the selector.
pub(super) fn work(spec: &Object, path: &str, errors: &mut Errors) {
    for key in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        errors.nonnegative(spec, path, key);
    }
    indexed(spec, path, errors);
    let replacement = text(spec, "podReplacementPolicy");
    if !replacement.is_empty() {
        errors.one_of(
            format!("{path}.podReplacementPolicy"),
            replacement,
            &["Failed", "TerminatingOrFailed"],
        );
    }
    failure_policy(spec, path, errors);
    errors.extend(pod_spec::validate_template(
        below(spec, "template"),
        &format!("{path}.template"),
    ));
    let policy = text(below(below(spec, "template"), "spec"), "restartPolicy");
    let field = format!("{path}.template.spec.restartPolicy");
    match policy {
        "" | "Always" => errors.required(&field, "valid values: \"OnFailure\", \"Never\""),
        other => errors.one_of(&field, other, &["OnFailure", "Never"]),
    }
    if spec.contains_key("podFailurePolicy") && policy != "Never" {
        errors.invalid(
            &field,
            policy,
            "only \"Never\" is supported when podFailurePolicy is specified",
        );
    }
}

fn indexed(spec: &Object, path: &str, errors: &mut Errors) {
    let mode = text(spec, "completionMode");
    if !mode.is_empty() {
        errors.one_of(format!("{path}.completionMode"), mode, &["Indexed", "NonIndexed"]);
    }
    if mode != "Indexed" {
        for key in ["backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"] {
            if let Some(value) = spec.get(key) {
                let field = format!("{path}.{key}");
                errors.invalid(field, value.clone(), "requires indexed completion mode");
            }
        }
        return;
    }
    if number(spec, "completions").is_none() {
        errors.required(format!("{path}.completions"), "when completion mode is Indexed");
    }
    if let Some(parallelism) = number(spec, "parallelism").filter(|many| *many > MOST_INDEXED) {
        errors.invalid(
            format!("{path}.parallelism"),
            parallelism,
            "must be less than or equal to 100000 when completion mode is Indexed",
        );
    }
    if count(spec, "maxFailedIndexes") > count(spec, "completions") {
        errors.invalid(
            format!("{path}.maxFailedIndexes"),
            count(spec, "maxFailedIndexes"),
            "must be less than or equal to completions",
        );
    }
}

fn failure_policy(spec: &Object, path: &str, errors: &mut Errors) {
    let Some(policy) = object(spec, "podFailurePolicy") else {
        return;
    };
    let path = format!("{path}.podFailurePolicy");
    if list(policy, "rules").len() > 20 {
        errors.push(FieldError::new(
            format!("{path}.rules"),
            Problem::TooMany(list(policy, "rules").len().into()),
            "must have at most 20 items",
        ));
    }
    for (path, rule) in items(policy, "rules", &path) {
        errors.required_one_of(
            format!("{path}.action"),
            text(rule, "action"),
            &["Count", "FailIndex", "FailJob", "Ignore"],
        );
        let codes = object(rule, "onExitCodes");
        let conditions = list(rule, "onPodConditions");
        match (codes, conditions.is_empty()) {
            (None, true) => errors.invalid(
                &path,
                Value::Object(rule.clone()),
                "specifying one of OnExitCodes and OnPodConditions is required",
            ),
            (Some(_), false) => errors.invalid(
                &path,
                Value::Object(rule.clone()),
                "specifying both OnExitCodes and OnPodConditions is not supported",
            ),
            _ => {}
        }
        let Some(codes) = codes else { continue };
        let path = format!("{path}.onExitCodes");
        errors.required_one_of(
            format!("{path}.operator"),
            text(codes, "operator"),
            &["In", "NotIn"],
        );
        let values = list(codes, "values");
        if values.is_empty() {
            errors.invalid(
                format!("{path}.values"),
                json!([]),
                "at least one value is required",
            );
        }
    }
}

/// Completions of an indexed job may change with its parallelism.
fn completions(new: &Object, old: &Object, errors: &mut Errors) {
    let elastic = text(new, "completionMode") == "Indexed";
    let changed = new.get("completions") != old.get("completions");
    if !elastic {
        return errors.immutable(new, old, "spec", "completions");
    }
    if changed && (number(new, "completions").is_none() || new.get("completions") != new.get("parallelism")) {
        errors.invalid(
            "spec.completions",
            new.get("completions").cloned().unwrap_or_default(),
            "can only be modified in tandem with spec.parallelism",
        );
    }
}

/// The template does not change; what decides where pods run does, while the job waits.
fn template_change(new: &Object, old: &Object, errors: &mut Errors) {
    let mut wanted = below(new, "template").clone();
    let current = below(old, "template");
    if flag(old, "suspend") {
        let pod = below(current, "spec");
        let slot = made(&mut wanted, "spec");
        for key in SCHEDULING {
            match pod.get(key) {
                Some(value) => slot.insert(key.to_owned(), value.clone()),
                None => slot.remove(key),
            };
        }
        match current.get("metadata") {
            Some(metadata) => wanted.insert("metadata".to_owned(), metadata.clone()),
            None => wanted.remove("metadata"),
        };
    }
    if !same(Some(&Value::Object(wanted.clone())), old.get("template")) {
        errors.push(FieldError::new(
            "spec.template",
            Problem::InvalidText(pod_spec::internal::template(&wanted)),
            IMMUTABLE,
        ));
    }
}

/// Conditions of a job that name its state, the first that is true wins; a job being deleted comes before the rest.
const ENDED: [(&str, &str); 2] = [("Complete", "Complete"), ("Failed", "Failed")];

const ON_THE_WAY: [&str; 3] = ["Suspended", "FailureTarget", "SuccessCriteriaMet"];

fn job_status(job: &View<'_>) -> &'static str {
    for (condition, status) in ENDED {
        if job.is_true(condition) {
            return status;
        }
    }
    if job.leaving() {
        return "Terminating";
    }
    ON_THE_WAY
        .into_iter()
        .find(|condition| job.is_true(condition))
        .unwrap_or("Running")
}

fn done(job: &View<'_>) -> String {
    let done = job.number("status.succeeded");
    match (job.at("spec.completions"), job.number("spec.parallelism")) {
        (Some(wanted), _) => format!("{done}/{wanted}"),
        (None, parallel @ 2..) => format!("{done}/1 of {parallel}"),
        (None, _) => format!("{done}/1"),
    }
}

fn job_duration(job: &View<'_>) -> String {
    let Some(start) = seconds(job.text("status.startTime")) else {
        return String::new();
    };
    let end = seconds(job.text("status.completionTime")).unwrap_or(job.now);
    duration(end - start)
}
