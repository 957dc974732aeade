//! `CronJobs` and their schedules.

use crate::{
    kinds::{
        batch::{job, schedule},
        kind_def::KindDef,
        pod_spec, workloads,
    },
    object::{
        Object, field,
        tree::{Errors, below, default, made, object, text},
    },
    printer::{AGE, CONTAINERS, IMAGES, NAME, NONE, Printer, UNSET, boolean, integer, wide, words},
    status::FieldError,
};

/// The longest name: a job's has eleven characters more.
const LONGEST_NAME: usize = 52;

pub(super) static DEF: KindDef = KindDef {
    short: &["cj"],
    categories: &["all"],
    subresources: &["status"],
    has_generation: true,
    defaults,
    created: |job| workloads::fresh_status(job, &[]),
    errors: |job, errors| {
        cron_spec(below(job, "spec"), None, errors);
        let name = field(job, "name");
        if name.len() > LONGEST_NAME {
            errors.invalid("metadata.name", name, "must be no more than 52 characters");
        }
    },
    changes: Some(|new, old, errors| cron_spec(below(new, "spec"), Some(below(old, "spec")), errors)),
    warnings,
    pod_spec: &["spec", "jobTemplate", "spec", "template", "spec"],
    printer: Printer::of(&[
        NAME,
        words("Schedule", ".spec.schedule"),
        words("Timezone", ".spec.timeZone").or(NONE),
        boolean("Suspend", ".spec.suspend").shows(|object| {
            let suspended = match object.at("spec.suspend").and_then(serde_json::Value::as_bool) {
                Some(true) => "True",
                Some(false) => "False",
                None => UNSET,
            };
            suspended.into()
        }),
        integer("Active", ".status.active").shows(|object| object.count("status.active").into()),
        words("Last Schedule", ".status.lastScheduleTime").shows(|object| {
            let last = match object.text("status.lastScheduleTime") {
                "" => NONE.to_owned(),
                time => object.since_text(time),
            };
            last.into()
        }),
        AGE,
        CONTAINERS.shows(|object| object.joined("spec.jobTemplate.spec.template.spec.containers", "name")),
        IMAGES.shows(|object| object.joined("spec.jobTemplate.spec.template.spec.containers", "image")),
        wide("Selector", ".spec.jobTemplate.spec.selector")
            .shows(|object| object.selector("spec.jobTemplate.spec.selector")),
    ]),
    ..KindDef::of::<k8s_openapi::api::batch::v1::CronJob>()
};

fn defaults(object: &mut Object) {
    let spec = made(object, "spec");
    default(spec, "concurrencyPolicy", "Allow");
    default(spec, "suspend", false);
    default(spec, "successfulJobsHistoryLimit", 3);
    default(spec, "failedJobsHistoryLimit", 1);
    let job = made(spec, "jobTemplate");
    made(job, "metadata");
    pod_spec::template_defaults(made(job, "spec"));
    made(object, "status");
}

fn warnings(new: &Object, old: Option<&Object>) -> Vec<String> {
    let template = |object| {
        below(
            below(below(below(object, "spec"), "jobTemplate"), "spec"),
            "template",
        )
    };
    let mut found = Vec::new();
    if old.is_none() {
        found.extend(workloads::name_warning(new));
    }
    if old.is_none_or(|old| template(old) != template(new)) {
        found.extend(pod_spec::template_warnings(
            template(new),
            "spec.jobTemplate.spec.template",
        ));
    }
    found
}

fn cron_spec(spec: &Object, old: Option<&Object>, errors: &mut Errors) {
    let schedule = text(spec, "schedule");
    if schedule.is_empty() {
        errors.required("spec.schedule", "");
    } else {
        schedule_format(spec, old, errors);
    }
    errors.nonnegative(spec, "spec", "startingDeadlineSeconds");
    if spec.contains_key("timeZone") && old.is_none_or(|old| old.get("timeZone") != spec.get("timeZone")) {
        time_zone(text(spec, "timeZone"), errors);
    }
    errors.required_one_of(
        "spec.concurrencyPolicy",
        text(spec, "concurrencyPolicy"),
        &["Allow", "Forbid", "Replace"],
    );
    let job = below(below(spec, "jobTemplate"), "spec");
    job::work(job, "spec.jobTemplate.spec", errors);
    if let Some(selector) = object(job, "selector") {
        errors.invalid(
            "spec.jobTemplate.spec.selector",
            serde_json::Value::Object(selector.clone()),
            "`selector` will be auto-generated",
        );
    }
    if crate::object::tree::flag(job, "manualSelector") {
        errors.push(FieldError::not_supported(
            "spec.jobTemplate.spec.manualSelector",
            true,
            &["nil", "false"],
        ));
    }
    for key in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        errors.nonnegative(spec, "spec", key);
    }
}

fn schedule_format(spec: &Object, old: Option<&Object>, errors: &mut Errors) {
    let schedule = text(spec, "schedule");
    let problem = if schedule.contains("TZ") && spec.contains_key("timeZone") {
        Some("cannot use both timeZone field and TZ or CRON_TZ in schedule".to_owned())
    } else if schedule.contains("TZ") && !old.is_some_and(|old| text(old, "schedule").contains("TZ")) {
        Some("cannot use TZ or CRON_TZ in schedule, use timeZone field instead".to_owned())
    } else {
        None
    };
    if let Some(problem) = problem {
        errors.invalid("spec.schedule", schedule, &problem);
    }
    if let Err(problem) = schedule::parse(schedule) {
        errors.invalid("spec.schedule", schedule, &problem);
    }
}

fn time_zone(zone: &str, errors: &mut Errors) {
    let problem = if zone.is_empty() {
        "timeZone must be nil or non-empty string".to_owned()
    } else if zone.eq_ignore_ascii_case("local") {
        "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones".to_owned()
    } else if is_known(zone) {
        return;
    } else {
        format!("unknown time zone {zone}")
    };
    errors.invalid("spec.timeZone", zone, &problem);
}

/// The areas of the time zone database.
const AREAS: [&str; 11] = [
    "Africa",
    "America",
    "Antarctica",
    "Arctic",
    "Asia",
    "Atlantic",
    "Australia",
    "Etc",
    "Europe",
    "Indian",
    "Pacific",
];

/// Zones without an area.
const ZONES: [&str; 14] = [
    "CET", "EET", "EST", "EST5EDT", "GMT", "HST", "MET", "MST", "MST7MDT", "PST8PDT", "UCT", "UTC", "WET",
    "Zulu",
];

/// True if a name looks like a time zone of the database, which is not available here: only the area is checked.
fn is_known(zone: &str) -> bool {
    match zone.split_once('/') {
        None => ZONES.contains(&zone),
        Some((area, place)) => {
            AREAS.contains(&area)
                && place.starts_with(|first: char| first.is_ascii_uppercase())
                && place
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '/'))
        }
    }
}
