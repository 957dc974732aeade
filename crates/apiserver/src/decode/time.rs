//! Times, read and reported in errors as Go does.

use jiff::{Timestamp, civil::DateTime};

/// The layout of a time in whole seconds, and of one in microseconds.
const SECONDS: &[&str] = &[
    "2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05", "Z07:00",
];
const MICROS: &[&str] = &[
    "2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05", ".000000", "Z07:00",
];

/// Reads a time as Go does and writes it in UTC, in whole seconds or (`micro`) in microseconds; `None` for the zero time.
///
/// # Errors
/// Go's text for what is no time of this layout.
pub(crate) fn read(text: &str, micro: bool) -> Result<Option<String>, String> {
    let timestamp = Parse::new(text, micro).run().map_err(|error| {
        let layout = if micro { MICROS } else { SECONDS };
        format!("parsing time {}{error}", quoted(text)).replace("{layout}", &quoted(&layout.concat()))
    })?;
    let Some(timestamp) = timestamp else {
        return Ok(None);
    };
    let form = if micro {
        "%Y-%m-%dT%H:%M:%S.%6fZ"
    } else {
        "%Y-%m-%dT%H:%M:%SZ"
    };
    Ok(Some(timestamp.strftime(form).to_string()))
}

/// Go's way to quote in errors about times: bytes that are no printable ASCII become `\xNN`.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(char);
            }
            ' '..='~' => quoted.push(char),
            other => {
                let mut bytes = [0; 4];
                for byte in other.encode_utf8(&mut bytes).bytes() {
                    quoted.push_str(&format!("\\x{byte:02x}"));
                }
            }
        }
    }
    quoted.push('"');
    quoted
}

/// A time being read, element by element.
struct Parse<'a> {
    rest: &'a str,
    micro: bool,
    /// year, month, day, hour, minute, second
    parts: [i32; 6],
    nanos: i32,
    /// Seconds east of UTC.
    offset: i64,
}

impl<'a> Parse<'a> {
    fn new(text: &'a str, micro: bool) -> Self {
        Self {
            rest: text,
            micro,
            parts: [0; 6],
            nanos: 0,
            offset: 0,
        }
    }

    fn run(mut self) -> Result<Option<Timestamp>, String> {
        let layout = if self.micro { MICROS } else { SECONDS };
        for element in layout {
            let before = self.rest;
            self.element(element).map_err(|out_of_range| match out_of_range {
                Some(what) => format!(": {what} out of range"),
                None => format!(
                    " as {{layout}}: cannot parse {} as {}",
                    quoted(before),
                    quoted(element)
                ),
            })?;
        }
        if !self.rest.is_empty() {
            return Err(format!(": extra text: {}", quoted(self.rest)));
        }
        let small = |value: i32| i8::try_from(value).unwrap_or(-1);
        let [year, month, day, hour, minute, second] = self.parts;
        let year = i16::try_from(year).unwrap_or(i16::MAX);
        let civil = DateTime::new(
            year,
            small(month),
            small(day),
            small(hour),
            small(minute),
            small(second),
            self.nanos,
        )
        .map_err(|_| ": day out of range".to_owned())?;
        let utc = jiff::tz::Offset::UTC
            .to_timestamp(civil)
            .and_then(|timestamp| timestamp.checked_sub(jiff::SignedDuration::from_secs(self.offset)))
            .map_err(|_| ": day out of range".to_owned())?;
        let is_zero = (utc.as_second(), utc.subsec_nanosecond()) == (-62_135_596_800, 0);
        Ok((!is_zero).then_some(utc))
    }

    /// Takes one element; the error is what is out of range, `None` when the text does not fit.
    fn element(&mut self, element: &str) -> Result<(), Option<&'static str>> {
        match element {
            "2006" => self.field(0, 4, 4, 0..=9999, "year"),
            "01" => self.field(1, 2, 2, 1..=12, "month"),
            "02" => self.field(2, 2, 2, 1..=31, "day"),
            "15" => self.field(3, 1, 2, 0..=23, "hour"),
            "04" => self.field(4, 2, 2, 0..=59, "minute"),
            "05" => {
                self.field(5, 2, 2, 0..=59, "second")?;
                if !self.micro {
                    self.fraction();
                }
                Ok(())
            }
            ".000000" => self.micros().ok_or(None),
            "Z07:00" => self.zone(),
            literal => {
                self.rest = self.rest.strip_prefix(literal).ok_or(None)?;
                Ok(())
            }
        }
    }

    fn field(
        &mut self,
        index: usize,
        least: usize,
        most: usize,
        range: std::ops::RangeInclusive<i32>,
        name: &'static str,
    ) -> Result<(), Option<&'static str>> {
        let digits = self.digits().min(most);
        if digits < least {
            return Err(None);
        }
        let (digits, rest) = self.rest.split_at(digits);
        self.rest = rest;
        self.parts[index] = digits.parse().map_err(|_| None)?;
        if range.contains(&self.parts[index]) {
            Ok(())
        } else {
            Err(Some(name))
        }
    }

    fn digits(&self) -> usize {
        self.rest.bytes().take_while(u8::is_ascii_digit).count()
    }

    /// A fraction that the layout does not have: it is read, and dropped when the time is written.
    fn fraction(&mut self) {
        let Some(after) = self.rest.strip_prefix(['.', ',']) else {
            return;
        };
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            self.rest = &after[digits..];
        }
    }

    fn micros(&mut self) -> Option<()> {
        let after = self.rest.strip_prefix('.')?;
        let digits = after.bytes().take(6).take_while(u8::is_ascii_digit).count();
        if digits < 6 {
            return None;
        }
        self.nanos = after[..6].parse::<i32>().ok()? * 1000;
        self.rest = &after[6..];
        Some(())
    }

    fn zone(&mut self) -> Result<(), Option<&'static str>> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(());
        }
        let zone = self.rest.get(..6).ok_or(None)?;
        let sign = match zone.as_bytes()[0] {
            b'+' => 1,
            b'-' => -1,
            _ => return Err(None),
        };
        let (hours, minutes) = zone[1..].split_once(':').ok_or(None)?;
        let two = |text: &str| {
            (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit()))
                .then(|| text.parse::<i64>().ok())
                .flatten()
                .ok_or(None)
        };
        let (hours, minutes) = (two(hours)?, two(minutes)?);
        if hours > 24 {
            return Err(Some("time zone offset hour"));
        }
        if minutes > 60 {
            return Err(Some("time zone offset minute"));
        }
        self.offset = sign * (hours * 3600 + minutes * 60);
        self.rest = &self.rest[6..];
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_go_reads_them() {
        for (text, micro, result) in [
            ("2020-02-02T02:02:02Z", false, Ok("2020-02-02T02:02:02Z")),
            ("2020-02-02T02:02:02.5+02:00", false, Ok("2020-02-02T00:02:02Z")),
            (
                "2020-02-02T02:02:02.000001Z",
                true,
                Ok("2020-02-02T02:02:02.000001Z"),
            ),
            (
                "yesterday",
                false,
                Err(
                    r#"parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006""#,
                ),
            ),
            (
                "2020-02-02T02:02:02Z",
                true,
                Err(
                    r#"parsing time "2020-02-02T02:02:02Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000""#,
                ),
            ),
            (
                "2020-02-02T02:02:02.123456789Z",
                true,
                Err(
                    r#"parsing time "2020-02-02T02:02:02.123456789Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "789Z" as "Z07:00""#,
                ),
            ),
            (
                "2020-02-02",
                true,
                Err(
                    r#"parsing time "2020-02-02" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "" as "T""#,
                ),
            ),
            (
                "2020-13-02T02:02:02Z",
                false,
                Err(r#"parsing time "2020-13-02T02:02:02Z": month out of range"#),
            ),
            (
                "2020-02-30T02:02:02Z",
                false,
                Err(r#"parsing time "2020-02-30T02:02:02Z": day out of range"#),
            ),
            (
                "2020-02-02T02:02:02Zx",
                false,
                Err(r#"parsing time "2020-02-02T02:02:02Zx": extra text: "x""#),
            ),
            (
                "",
                false,
                Err(r#"parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006""#),
            ),
        ] {
            let result = result.map(|text| Some(text.to_owned())).map_err(str::to_owned);
            assert_eq!(read(text, micro), result, "{text}");
        }
        assert_eq!(read("0001-01-01T00:00:00Z", false), Ok(None));
    }

    #[test]
    fn odd_texts_make_no_panic() {
        for text in [
            "é",
            "2020é",
            "2020-02-02T02:02:02+éé:é",
            "20é0-02-02T02:02:02+01:é0",
        ] {
            let _ = (read(text, false), read(text, true));
        }
    }
}
