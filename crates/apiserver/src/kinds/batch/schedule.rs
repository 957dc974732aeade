//! Schedules of CronJobs, read as cron reads them, and when they are next. Source: robfig/cron.

use jiff::{
    SignedDuration, Timestamp,
    civil::{Date, Time},
    tz::TimeZone,
};

/// The times at which a CronJob runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Schedule {
    /// The values of the fields.
    Fields {
        /// Minutes, hours, days of the month, months, days of the week: a bit for each value.
        values: [u64; 5],
        /// True if one of the two fields of days names all of them: a day must be in both then, otherwise in one of them.
        any_day: bool,
    },
    /// So long after the last time.
    Every(SignedDuration),
}

/// The days that are looked at for the next time: a 29th of February comes back after eight years at most.
const DAYS: usize = 3000;

impl Schedule {
    /// The first time after another one; `None` when there is none.
    pub(crate) fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let (values, any_day) = match self {
            Self::Fields { values, any_day } => (values, *any_day),
            Self::Every(pause) => return after_pauses(after, *pause, 1),
        };
        let mut day = after.to_zoned(zone.clone()).date();
        for _ in 0..DAYS {
            if is_day(values, any_day, day) {
                let found = times(values).find_map(|time| {
                    let time = day.to_datetime(time).to_zoned(zone.clone()).ok()?.timestamp();
                    (time > after).then_some(time)
                });
                if found.is_some() {
                    return found;
                }
            }
            day = day.tomorrow().ok()?;
        }
        None
    }

    /// The last time after one and not after another; `None` when there is none.
    pub(crate) fn last(&self, after: Timestamp, until: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let (values, any_day) = match self {
            Self::Fields { values, any_day } => (values, *any_day),
            Self::Every(pause) => {
                let passed = until.as_second().checked_sub(after.as_second())?;
                let pauses = passed / pause.as_secs().max(1);
                return (pauses > 0)
                    .then(|| after_pauses(after, *pause, pauses))
                    .flatten();
            }
        };
        let first = after.to_zoned(zone.clone()).date();
        let mut day = until.to_zoned(zone.clone()).date();
        while day >= first {
            if is_day(values, any_day, day) {
                let found = times(values).rev().find_map(|time| {
                    let time = day.to_datetime(time).to_zoned(zone.clone()).ok()?.timestamp();
                    (time <= until).then_some(time)
                });
                if found.is_some() {
                    return found.filter(|found| *found > after);
                }
            }
            day = day.yesterday().ok()?;
        }
        None
    }
}

/// The time so many pauses later, in whole seconds.
fn after_pauses(time: Timestamp, pause: SignedDuration, pauses: i64) -> Option<Timestamp> {
    let passed = pause.as_secs().max(1).checked_mul(pauses)?;
    Timestamp::from_second(time.as_second().checked_add(passed)?).ok()
}

fn has(values: u64, value: i8) -> bool {
    values >> value & 1 == 1
}

fn is_day(values: &[u64; 5], any_day: bool, day: Date) -> bool {
    let of_month = has(values[2], day.day());
    let of_week = has(values[4], day.weekday().to_sunday_zero_offset());
    has(values[3], day.month())
        && if any_day {
            of_month && of_week
        } else {
            of_month || of_week
        }
}

/// The times of a day.
fn times(values: &[u64; 5]) -> impl DoubleEndedIterator<Item = Time> + use<> {
    let [minutes, hours, ..] = *values;
    (0..24)
        .filter(move |hour| has(hours, *hour))
        .flat_map(move |hour| {
            (0..60)
                .filter(move |minute| has(minutes, *minute))
                .map(move |minute| Time::constant(hour, minute, 0, 0))
        })
}

/// A field of a schedule: least, most, names of values.
type Bounds = (u32, u32, &'static [&'static str]);

const FIELDS: [Bounds; 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (
        1,
        12,
        &[
            "", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
    ),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

const MACROS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// Reads a schedule as cron does: five fields or a macro. Errors are those of the real server.
pub(crate) fn parse(schedule: &str) -> Result<Schedule, String> {
    let zone = ["TZ=", "CRON_TZ="]
        .iter()
        .any(|prefix| schedule.starts_with(prefix));
    let schedule = match schedule.split_once(' ') {
        Some((_, rest)) if zone => rest.trim(),
        None if zone => return Err("provided bad location".to_owned()),
        _ => schedule,
    };
    if schedule.starts_with('@') {
        if let Some((_, fields)) = MACROS.iter().find(|(name, _)| *name == schedule) {
            return parse(fields);
        }
        return match schedule.strip_prefix("@every ") {
            Some(every) => duration(every).map(Schedule::Every).ok_or_else(|| {
                format!("failed to parse duration {schedule}: time: invalid duration {every:?}")
            }),
            None => Err(format!("unrecognized descriptor: {schedule}")),
        };
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            fields.join(" ")
        ));
    }
    let (mut values, mut is_any) = ([0; 5], [false; 5]);
    for (at, (text, bounds)) in fields.iter().zip(FIELDS).enumerate() {
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (some, all) = range(part, bounds)?;
            values[at] |= some;
            is_any[at] |= all;
        }
    }
    Ok(Schedule::Fields {
        values,
        any_day: is_any[2] || is_any[4],
    })
}

/// A duration as Go writes it, in whole units of at least a second.
fn duration(text: &str) -> Option<SignedDuration> {
    let is_written = text.starts_with(|c: char| c.is_ascii_digit())
        && text
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '.' | 'h' | 'm' | 's' | 'u' | 'n'));
    text.parse().ok().filter(|_| is_written)
}

/// The values of a part of a field, a bit each, and whether it names all there are.
fn range(part: &str, (least, most, names): Bounds) -> Result<(u64, bool), String> {
    let (span, step) = match part.split_once('/') {
        Some((_, step)) if step.contains('/') => return Err(format!("too many slashes: {part}")),
        Some((span, step)) => (span, Some(step)),
        None => (part, None),
    };
    let value = |text: &str| -> Result<u32, String> {
        if let Some(at) = names
            .iter()
            .position(|name| !name.is_empty() && name.eq_ignore_ascii_case(text))
        {
            return Ok(u32::try_from(at).unwrap_or(0));
        }
        match text.parse::<i64>() {
            Ok(number) if number < 0 => Err(format!("negative number ({number}) not allowed: {text}")),
            Ok(number) => Ok(u32::try_from(number).unwrap_or(u32::MAX)),
            Err(_) => Err(format!(
                "failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax"
            )),
        }
    };
    let (from, to) = match span.split_once('-') {
        _ if span == "*" || span == "?" => (least, most),
        Some((_, to)) if to.contains('-') => return Err(format!("too many hyphens: {part}")),
        Some((from, to)) => (value(from)?, value(to)?),
        None => {
            let from = value(span)?;
            (from, if step.is_some() { most } else { from })
        }
    };
    let step = step.map(value).transpose()?.unwrap_or(1);
    if step == 0 {
        return Err(format!("step of range should be a positive number: {part}"));
    }
    if from < least {
        return Err(format!(
            "beginning of range ({from}) below minimum ({least}): {part}"
        ));
    }
    if to > most {
        return Err(format!("end of range ({to}) above maximum ({most}): {part}"));
    }
    if from > to {
        return Err(format!(
            "beginning of range ({from}) beyond end of range ({to}): {part}"
        ));
    }
    let steps = usize::try_from(step).unwrap_or(usize::MAX);
    let values = (from..=to)
        .step_by(steps)
        .fold(0, |values, value| values | 1_u64 << value);
    Ok((values, matches!(span, "*" | "?") && step == 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read_as_cron_reads_them() {
        for good in [
            "*/5 * * * *",
            "0 0 1 jan sun",
            "1,2,3-5 * ? * 1-5/2",
            "@daily",
            "@every 1h30m",
            "@every 1.5h",
            "@every 300ms",
            "5/10 * * * *",
        ] {
            assert!(parse(good).is_ok(), "{good}");
        }
        for (bad, why) in [
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            (
                "5-3 * * * *",
                "beginning of range (5) beyond end of range (3): 5-3",
            ),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            (
                "x * * * *",
                "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            ("@never", "unrecognized descriptor: @never"),
            (
                "@every 1x",
                "failed to parse duration @every 1x: time: invalid duration \"1x\"",
            ),
        ] {
            assert_eq!(parse(bad), Err(why.to_owned()), "{bad}");
        }
    }

    #[test]
    fn the_next_time_is_the_first_that_fits() {
        let cases = [
            ("*/5 * * * *", "2026-01-01T00:05:00Z", "2026-01-01T00:10:00Z"),
            ("*/5 * * * *", "2026-01-01T00:04:59Z", "2026-01-01T00:05:00Z"),
            ("30 4 * * *", "2026-01-01T05:00:00Z", "2026-01-02T04:30:00Z"),
            ("0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"),
            ("0 0 * * sun", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"),
            // Both fields of days: one of them is enough.
            ("0 0 2 * sun", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
            ("@hourly", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"),
            ("@every 1h30m", "2026-01-01T00:00:00Z", "2026-01-01T01:30:00Z"),
        ];
        for (schedule, after, next) in cases {
            let after: Timestamp = after.parse().expect(after);
            let found = parse(schedule).expect(schedule).next(after, &TimeZone::UTC);
            assert_eq!(
                found.map(|time| time.to_string()),
                Some(next.to_owned()),
                "{schedule}"
            );
        }
        let never = parse("0 0 30 2 *").expect("a schedule");
        let after: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        assert_eq!(never.next(after, &TimeZone::UTC), None);
    }

    #[test]
    fn the_last_time_is_the_one_before_now() {
        let cases = [
            (
                "*/5 * * * *",
                "2026-01-01T00:00:00Z",
                Some("2026-03-01T12:30:00Z"),
            ),
            ("* * 1 1 *", "2026-01-01T00:00:00Z", Some("2026-01-01T23:59:00Z")),
            (
                "30 12 * * *",
                "2026-03-01T12:29:59Z",
                Some("2026-03-01T12:30:00Z"),
            ),
            ("30 12 * * *", "2026-03-01T12:30:00Z", None),
            ("31 12 * * *", "2026-03-01T00:00:00Z", None),
            ("0 0 29 2 *", "2020-01-01T00:00:00Z", Some("2024-02-29T00:00:00Z")),
            ("0 0 30 2 *", "2026-01-01T00:00:00Z", None),
            ("@every 1h", "2026-03-01T00:10:00Z", Some("2026-03-01T12:10:00Z")),
            ("@every 1h", "2026-03-01T12:10:00Z", None),
        ];
        let until: Timestamp = "2026-03-01T12:30:00Z".parse().expect("a time");
        for (schedule, after, last) in cases {
            let after: Timestamp = after.parse().expect(after);
            let found = parse(schedule)
                .expect(schedule)
                .last(after, until, &TimeZone::UTC);
            let found = found.map(|time| time.to_string());
            assert_eq!(found.as_deref(), last, "{schedule}");
        }
    }
}
