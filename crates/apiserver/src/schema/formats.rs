//! The formats of strings that a kube-apiserver knows and checks. An unknown format is no error of an object, only a warning
//! about the CRD.

use std::{net::IpAddr, sync::LazyLock};

use regex::Regex;

/// True if a text has a format.
type Check = fn(&str) -> bool;

/// Every known format.
const FORMATS: &[(&str, Check)] = &[
    ("bsonobjectid", |text| text.len() == 24 && hex(text)),
    ("byte", |text| !text.is_empty() && BASE64.is_match(text)),
    ("cidr", cidr),
    ("creditcard", creditcard),
    ("date", date),
    ("date-time", date_time),
    ("datetime", date_time),
    ("duration", duration),
    ("email", email),
    ("hexcolor", |text| HEXCOLOR.is_match(text)),
    ("hostname", hostname),
    ("ipv4", |text| matches!(text.parse::<IpAddr>(), Ok(IpAddr::V4(_)))),
    ("ipv6", |text| matches!(text.parse::<IpAddr>(), Ok(IpAddr::V6(_)))),
    ("isbn", |text| isbn(text, 10) || isbn(text, 13)),
    ("isbn10", |text| isbn(text, 10)),
    ("isbn13", |text| isbn(text, 13)),
    ("k8s-long-name", |text| {
        text.len() <= 253 && LONG_NAME.is_match(text)
    }),
    ("k8s-short-name", |text| {
        text.len() <= 63 && SHORT_NAME.is_match(text)
    }),
    ("mac", |text| MAC.is_match(text)),
    ("password", |_| true),
    ("rgbcolor", rgbcolor),
    ("ssn", |text| SSN.is_match(text)),
    ("uri", uri),
    ("uuid", |text| UUID.is_match(text)),
    ("uuid3", |text| UUID.is_match(text) && version(text) == Some('3')),
    ("uuid4", |text| has_variant(text) && version(text) == Some('4')),
    ("uuid5", |text| has_variant(text) && version(text) == Some('5')),
];

/// Formats that are known for numbers and elsewhere, without a check of strings.
const OTHERS: [&str; 6] = ["double", "float", "int32", "int64", "uint32", "uint64"];

static BASE64: LazyLock<Regex> =
    LazyLock::new(|| compiled("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"));
/// The numbers that issuers give out, by their first digits and their length.
static CREDITCARD: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        "^(4[0-9]{12}([0-9]{3})?",
        "|5[1-5][0-9]{14}",
        "|(222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}",
        "|6(011|5[0-9]{2})[0-9]{12}",
        "|3[47][0-9]{13}",
        "|3(0[0-5]|[68][0-9])[0-9]{11}",
        "|(2131|1800|35[0-9]{3})[0-9]{11}",
        "|6[27][0-9]{14})$",
    ))
});
static HEXCOLOR: LazyLock<Regex> = LazyLock::new(|| compiled("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"));
/// The letters of a label of a host name, without its dashes.
static LETTERS: LazyLock<Regex> = LazyLock::new(|| compiled(r"^[a-zA-Z0-9\p{S}\p{L}]*$"));
static LONG_NAME: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"));
static SHORT_NAME: LazyLock<Regex> = LazyLock::new(|| compiled("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"));
static MAC: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        "^(([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}|([0-9A-Fa-f]{2}[:-]){7}[0-9A-Fa-f]{2}|([0-9A-Fa-f]{4}[.]){2}[0-9A-Fa-f]{4})$",
    )
});
static RGBCOLOR: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"^rgb\(\s*([0-9]{1,3})\s*,\s*([0-9]{1,3})\s*,\s*([0-9]{1,3})\s*\)$"));
static SSN: LazyLock<Regex> = LazyLock::new(|| compiled("^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));
static UUID: LazyLock<Regex> =
    LazyLock::new(|| compiled("^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"));
static DATE_TIME: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})$"));
static URI: LazyLock<Regex> = LazyLock::new(|| compiled(r"^(/|[A-Za-z][A-Za-z0-9+.-]*:)[^\x00-\x1f\x7f]*$"));
static DURATION: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"^[+-]?((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$|^[+-]?0$"));
static WORDY: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"^((\d+)\s*(ns|nanos?|nanoseconds?|us|µs|micros?|microseconds?|ms|millis?|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?|wks?)\s*)+$",
    )
});

/// True if the text has the format; every text has an unknown one.
#[must_use]
pub(crate) fn has(format: &str, text: &str) -> bool {
    FORMATS
        .iter()
        .find(|(name, _)| *name == format)
        .is_none_or(|(_, check)| check(text))
}

/// True if a format is known at all.
#[must_use]
pub(crate) fn is_known(format: &str) -> bool {
    OTHERS.contains(&format) || FORMATS.iter().any(|(name, _)| *name == format)
}

/// True for what Go reads as a duration: `1h30m`.
pub(crate) fn is_go_duration(text: &str) -> bool {
    DURATION.is_match(text)
}

fn compiled(pattern: &str) -> Regex {
    #[expect(
        clippy::expect_used,
        reason = "the patterns above are constants, tested below"
    )]
    Regex::new(pattern).expect("a constant pattern")
}

fn hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.bytes().all(|byte| byte.is_ascii_digit()) && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

fn date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

fn date_time(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let Some((day, time)) = lower.split_once('t') else {
        return false;
    };
    let Some(parts) = DATE_TIME.captures(time) else {
        return false;
    };
    let most = |at: usize, most: u8| parts[at].parse::<u8>().is_ok_and(|value| value <= most);
    date(day) && most(1, 23) && most(2, 59) && most(3, 59)
}

fn duration(text: &str) -> bool {
    DURATION.is_match(text) || WORDY.is_match(text)
}

/// A number whose digits sum up as Luhn has it; blanks and dashes do not count.
fn creditcard(text: &str) -> bool {
    let number: String = text.chars().filter(char::is_ascii_digit).collect();
    let doubled = |digit: u32| if digit > 4 { 2 * digit - 9 } else { 2 * digit };
    let digits = number.chars().rev().filter_map(|digit| digit.to_digit(10));
    let sum: u32 = digits
        .enumerate()
        .map(|(at, digit)| if at % 2 == 1 { doubled(digit) } else { digit })
        .sum();
    CREDITCARD.is_match(&number) && sum.is_multiple_of(10)
}

/// One label with a dash only behind its first letter, or several of which the last has two letters at least.
fn hostname(text: &str) -> bool {
    let labels: Vec<&str> = text.split('.').collect();
    let (last, others) = labels.split_last().unwrap_or((&"", &[]));
    let sound = |label: &&str| {
        !label.is_empty()
            && label.len() <= 63
            && LETTERS.is_match(&label.replace('-', ""))
            && !label.starts_with('-')
    };
    let last_fits = if others.is_empty() {
        last.char_indices()
            .all(|(at, letter)| letter != '-' || last[..at].chars().count() == 1)
    } else {
        !last.contains("--") && !last.ends_with('-') && last.replace('-', "").chars().count() > 1
    };
    text.len() <= 255
        && labels.iter().all(sound)
        && last_fits
        && !others.iter().any(|label| label.ends_with('-'))
}

fn rgbcolor(text: &str) -> bool {
    let small = |part: &str| part.parse::<u8>().is_ok() && (part == "0" || !part.starts_with('0'));
    RGBCOLOR
        .captures(text)
        .is_some_and(|parts| (1..=3).all(|at| small(&parts[at])))
}

/// True for a UUID whose variant is that of RFC 4122.
fn has_variant(text: &str) -> bool {
    let variant = text.chars().filter(|c| *c != '-').nth(16);
    UUID.is_match(text) && matches!(variant, Some('8' | '9' | 'a' | 'b' | 'A' | 'B'))
}

fn email(text: &str) -> bool {
    let address = match (text.rfind('<'), text.strip_suffix('>')) {
        (Some(start), Some(inner)) => &inner[start + 1..],
        _ => text.trim(),
    };
    address.rsplit_once('@').is_some_and(|(local, domain)| {
        !local.is_empty()
            && !domain.is_empty()
            && !address
                .chars()
                .any(|c| c.is_whitespace() || matches!(c, '<' | '>' | ','))
            && !domain.starts_with('.')
            && !domain.ends_with('.')
    })
}

fn uri(text: &str) -> bool {
    URI.is_match(text)
}

fn version(text: &str) -> Option<char> {
    text.chars().filter(|c| *c != '-').nth(12)
}

fn isbn(text: &str, length: usize) -> bool {
    let digits: Vec<u32> = text
        .chars()
        .filter(|c| !matches!(c, '-' | ' '))
        .map(|c| match c {
            'x' | 'X' => 10,
            other => other.to_digit(10).unwrap_or(99),
        })
        .collect();
    if digits.len() != length {
        return false;
    }
    let last = length - 1;
    if digits[..last].iter().any(|digit| *digit > 9) || digits[last] > 10 {
        return false;
    }
    let weighted =
        |weight: fn(u32) -> u32| -> u32 { (0..).zip(&digits).map(|(at, digit)| weight(at) * digit).sum() };
    if length == 10 {
        weighted(|at| 10 - at) % 11 == 0
    } else {
        digits[last] < 10 && weighted(|at| if at % 2 == 0 { 1 } else { 3 }) % 10 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::{FORMATS, has};

    #[test]
    fn a_format_takes_what_it_names_and_refuses_the_rest() {
        for (format, good, bad) in [
            ("ipv4", "10.0.0.1", "999.1.1.1"),
            ("ipv6", "2001:db8::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/40"),
            ("date", "2020-02-29", "2020-13-01"),
            ("date-time", "1820-05-11T00:00:00Z", "yesterday"),
            ("date-time", "2024-01-01t10:00:00.5+02:00", "2024-01-01T25:00:00Z"),
            ("duration", "1h30m", "soon"),
            ("duration", "3 days", "1x"),
            ("byte", "aGk=", "***"),
            ("byte", "aGk=", ""),
            ("creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112"),
            ("creditcard", "5500-0000-0000-0004", "9111 1111 1111 1111"),
            ("email", "a@example.com", "nobody"),
            ("uri", "https://example.com/x y", "no spaces allowed"),
            ("uuid", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "xyz"),
            (
                "uuid4",
                "936da01f-9abd-4d9d-80c7-02af85c822a8",
                "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
            ),
            ("mac", "01:23:45:67:89:ab", "01:23"),
            ("hostname", "a.example.com", "-a"),
            ("hostname", "localhost", "a.b"),
            ("hostname", "a-b", "ab-c"),
            ("isbn10", "0-306-40615-2", "0-306-40615-3"),
            ("isbn13", "978-0-306-40615-7", "978-0-306-40615-8"),
            ("hexcolor", "#fff", "#ff"),
            ("rgbcolor", "rgb(1, 2, 3)", "rgb(1)"),
            ("rgbcolor", "rgb(255,0,0)", "rgb(256,0,0)"),
            (
                "uuid4",
                "936da01f-9abd-4d9d-80c7-02af85c822a8",
                "936da01f-9abd-4d9d-00c7-02af85c822a8",
            ),
            ("k8s-short-name", "a-b", "a.b"),
            ("k8s-long-name", "a.b", "A"),
        ] {
            assert!(has(format, good), "{format} takes {good}");
            assert!(!has(format, bad), "{format} refuses {bad}");
        }
        assert!(has("frobnicated", "anything"));
    }

    #[test]
    fn no_format_is_there_twice_and_every_pattern_compiles() {
        let mut names: Vec<_> = FORMATS.iter().map(|(name, _)| *name).collect();
        names.dedup();
        assert_eq!(names.len(), FORMATS.len());
        for (_, check) in FORMATS {
            check("");
            check("x");
        }
    }
}
