//! Quantities: `100m`, `1Gi`, and their canonical form. Source: `k8s.io/apimachinery/pkg/api/resource`.

use std::{cmp::Ordering, fmt};

use serde_json::Value;

const WRONG_FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const WRONG_SUFFIX: &str = "unable to parse quantity's suffix";

/// Billionths in a unit: the precision of a quantity.
const UNIT: i128 = 1_000_000_000;
/// The largest quantity, in units.
const MOST: i128 = i64::MAX as i128;

/// The suffix of a quantity, which its canonical form keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// `m`, none, `k`, `M` …
    Decimal,
    /// `e3`.
    Exponent,
    /// `Ki`, `Mi` …
    Binary,
}

/// A fixed-point number of billionths, with a notation. Compares by value alone.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nano: i128,
    format: Format,
}

const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl Quantity {
    /// Reads a quantity; what is finer than a billionth is rounded away from zero, what is too large is cut to the largest.
    ///
    /// # Errors
    /// The server's text for what is no quantity.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() {
            return Err(WRONG_FORMAT);
        }
        let (negative, unsigned) = match text.as_bytes()[0] {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, rest) = unsigned.split_at(digits(unsigned));
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => rest.split_at(digits(rest)),
            None => ("", rest),
        };
        let letters = suffix
            .bytes()
            .take_while(|byte| b"eEinumkKMGTP".contains(byte))
            .count();
        let exponent = suffix[letters..]
            .strip_prefix(['+', '-'])
            .unwrap_or(&suffix[letters..]);
        if !exponent.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(WRONG_FORMAT);
        }
        let (format, factor) = notation(suffix).ok_or(WRONG_SUFFIX)?;
        let nano = scaled(whole, fraction, factor).min(MOST * UNIT);
        Ok(Self {
            nano: if negative { -nano } else { nano },
            format: if format == Format::Binary && nano < UNIT {
                Format::Decimal
            } else {
                format
            },
        })
    }

    /// A quantity in an object: a string or a number; `None` when it is none.
    #[must_use]
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text).ok(),
            Value::Number(number) => Self::parse(&number.to_string()).ok(),
            _ => None,
        }
    }

    /// A quantity of whole units, in decimal notation.
    #[must_use]
    pub fn units(units: i64) -> Self {
        Self {
            nano: i128::from(units) * UNIT,
            format: Format::Decimal,
        }
    }

    /// The value in billionths.
    #[must_use]
    pub fn nano(self) -> i128 {
        self.nano
    }

    /// Another value, in billionths, in the same notation.
    #[must_use]
    pub fn with_nano(self, nano: i128) -> Self {
        Self { nano, ..self }
    }

    /// -1, 0 or 1.
    #[must_use]
    pub fn sign(&self) -> i32 {
        match self.nano.cmp(&0) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }
    }

    /// The value in whole units, rounded away from zero.
    #[must_use]
    pub fn ceil(&self) -> i64 {
        let whole = self.nano / UNIT + (self.nano % UNIT).signum();
        i64::try_from(whole).unwrap_or(if whole < 0 { i64::MIN } else { i64::MAX })
    }

    /// True if it is a whole number of units.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.nano % UNIT == 0
    }

    /// The sum in the notation of the first that is not zero; cut to the largest.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            nano: (self.nano + other.nano).clamp(-MOST * UNIT, MOST * UNIT),
            format: if self.nano == 0 { other.format } else { self.format },
        }
    }

    /// The difference, likewise.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.plus(Self {
            nano: -other.nano,
            ..other
        })
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nano.cmp(&other.nano)
    }
}

/// The canonical form: no fraction, the largest suffix that loses nothing.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nano == 0 {
            return f.write_str("0");
        }
        if self.format == Format::Binary && self.is_whole() && self.nano.abs() >= 1024 * UNIT {
            let mut number = self.nano / UNIT;
            let mut power = 0;
            while number % 1024 == 0 && power < BINARY.len() {
                number /= 1024;
                power += 1;
            }
            let suffix = power.checked_sub(1).map_or("", |index| BINARY[index]);
            return write!(f, "{number}{suffix}");
        }
        let mut number = self.nano;
        let mut index = 0;
        while number % 1000 == 0 && index + 1 < DECIMAL.len() {
            number /= 1000;
            index += 1;
        }
        let (suffix, exponent) = DECIMAL[index];
        match self.format {
            Format::Exponent if exponent != 0 => write!(f, "{number}e{exponent}"),
            _ => write!(f, "{number}{suffix}"),
        }
    }
}

/// A power of ten or of two.
#[derive(Clone, Copy)]
enum Factor {
    Ten(i32),
    Two(u32),
}

fn notation(suffix: &str) -> Option<(Format, Factor)> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((Format::Decimal, Factor::Ten(*exponent)));
    }
    if let Some(index) = BINARY.iter().position(|name| *name == suffix) {
        let power = u32::try_from(index + 1).ok()? * 10;
        return Some((Format::Binary, Factor::Two(power)));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse::<i64>().ok()?;
    // Beyond these nothing changes: rounded to a billionth, or cut to the largest.
    let exponent = i32::try_from(exponent.clamp(-4096, 4096)).ok()?;
    Some((Format::Exponent, Factor::Ten(exponent)))
}

/// The value in billionths: digits times factor, rounded up; at most about [`MOST`].
fn scaled(whole: &str, fraction: &str, factor: Factor) -> i128 {
    let digits: Vec<u8> = whole
        .bytes()
        .chain(fraction.bytes())
        .skip_while(|digit| *digit == b'0')
        .collect();
    if digits.is_empty() {
        return 0;
    }
    let point = -i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    let (ten, two) = match factor {
        Factor::Ten(exponent) => (i64::from(exponent), 0),
        Factor::Two(power) => (0, power),
    };
    // billionths = digits × 10^power × 2^two
    let power = point.saturating_add(ten).saturating_add(9);
    let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    let magnitude = length.saturating_add(power);
    if magnitude > 29 {
        return MOST * UNIT;
    }
    if magnitude < -20 {
        return 1;
    }
    // 40 digits would not fit; what stands behind 20 of them is far below a billionth unless it was cut already.
    let kept = digits.len().min(30);
    let mut value: i128 = digits[..kept]
        .iter()
        .fold(0, |value, digit| value * 10 + i128::from(digit - b'0'));
    let mut lost = digits[kept..].iter().any(|digit| *digit != b'0');
    let mut power = power + i64::try_from(digits.len() - kept).unwrap_or(i64::MAX);
    while power > 0 {
        value = value.saturating_mul(10);
        power -= 1;
    }
    let mut shifted = 0;
    while shifted < two {
        // Digits are dropped only once the value is beyond all bounds or finer than matters.
        match value.checked_mul(2) {
            Some(doubled) => value = doubled,
            None if power < 0 => {
                lost |= value % 10 != 0;
                value /= 10;
                power += 1;
                continue;
            }
            None => return MOST * UNIT,
        }
        shifted += 1;
    }
    while power < 0 {
        lost |= value % 10 != 0;
        value /= 10;
        power += 1;
    }
    value.saturating_add(i128::from(lost))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn canonical_forms() {
        for (text, canonical) in [
            ("0", "0"),
            ("0Gi", "0"),
            ("-0", "0"),
            ("1", "1"),
            ("1000", "1k"),
            ("1024", "1024"),
            ("1024Mi", "1Gi"),
            ("1536Mi", "1536Mi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Gi", "512Mi"),
            ("1.5G", "1500M"),
            ("0.1", "100m"),
            ("100m", "100m"),
            ("1000m", "1"),
            ("0.0001", "100u"),
            ("1500", "1500"),
            ("+5", "5"),
            ("-1.5", "-1500m"),
            ("1e3", "1e3"),
            ("1E3", "1e3"),
            ("1E", "1E"),
            ("1.5e3", "1500"),
            ("12e-1", "1200e-3"),
            ("512Ki", "512Ki"),
            ("0.5Ki", "512"),
            ("1Ki", "1Ki"),
            ("0.1n", "1n"),
            ("1.G", "1G"),
            (".5", "500m"),
            ("m", "0"),
            ("1.0000000001Ki", "1024000000103n"),
            ("9223372036854775808", "9223372036854775807"),
            ("100E", "9223372036854775807"),
            ("1e-4000", "1e-9"),
            ("007", "7"),
        ] {
            assert_eq!(Quantity::parse(text).unwrap().to_string(), canonical, "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_reported_as_the_server_tells_it() {
        for text in ["", "lots", "1.2.3", "1 Gi", "1Gi ", "1KI", "1m5x"] {
            assert_eq!(Quantity::parse(text), Err(WRONG_FORMAT), "{text}");
        }
        for text in ["1ki", "1MM", "1e", "1m5", "--1"] {
            assert_eq!(Quantity::parse(text), Err(WRONG_SUFFIX), "{text}");
        }
    }

    #[test]
    fn they_compare_and_add_by_value() {
        let of = |text: &str| Quantity::parse(text).unwrap();
        assert_eq!(of("1"), of("1000m"));
        assert!(of("1Gi") > of("1G"));
        assert_eq!(of("512Mi").plus(of("512Mi")).to_string(), "1Gi");
        assert_eq!(of("1").minus(of("100m")).to_string(), "900m");
        assert_eq!(of("1500m").ceil(), 2);
        assert_eq!(of("-1500m").ceil(), -2);
        assert_eq!(of("-1").sign(), -1);
    }

    proptest! {
        #[test]
        fn canonical_forms_are_stable_and_mean_the_same(text in "[+-]?[0-9]{0,12}(\\.[0-9]{0,6})?(n|u|m|k|M|G|T|Ki|Mi|Gi|Ti|e[0-9]|e-[0-9])?") {
            if let Ok(quantity) = Quantity::parse(&text) {
                let again = Quantity::parse(&quantity.to_string()).unwrap();
                prop_assert_eq!(quantity, again);
                prop_assert_eq!(quantity.to_string(), again.to_string());
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "[+-]?[0-9.]{0,60}[eEinumkKMGTP]{0,3}[+-]?[0-9]{0,12}") {
            let _ = Quantity::parse(&text);
        }
    }
}
