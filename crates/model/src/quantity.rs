//! Kubernetes quantities ("500m", "1Gi", "1e3"), compared and written by amount.

use std::cmp::Ordering;

use serde_json::Value;

/// Compares two quantities by amount; `None` if either is not a quantity. A JSON number counts as its decimal text, as an API
/// server reads it.
#[must_use]
pub fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    Some(amount(left)?.cmp(&amount(right)?))
}

/// The amount in units of 10⁻⁹, the smallest of an API server; finer amounts are rounded up, as it does. `None` if it is not a
/// quantity.
#[must_use]
pub fn amount(value: &Value) -> Option<i128> {
    match value {
        Value::String(text) => parse(text),
        Value::Number(number) => parse(&number.to_string()),
        _ => None,
    }
}

/// An amount that is not negative, in the form in which an API server writes it for this resource: cpu to the
/// thousandth, all else in whole units, rounded up; memory and storage in powers of 1024.
#[must_use]
pub fn display(resource: &str, amount: i128) -> String {
    const MILLI: i128 = 1_000_000;
    let up = |unit: i128| amount.max(0).saturating_add(unit - 1) / unit;
    if resource == "cpu" && up(MILLI) % 1000 != 0 {
        return format!("{}m", up(MILLI));
    }
    let whole = up(1000 * MILLI);
    let is_binary =
        ["memory", "storage", "ephemeral-storage"].contains(&resource) || resource.starts_with("hugepages-");
    if is_binary && whole >= 1024 {
        scaled(whole, 1024, &["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"])
    } else {
        scaled(whole, 1000, &["", "k", "M", "G", "T", "P", "E"])
    }
}

/// The sum, in the form of the first quantity that is not zero, as an API server's library writes it; `None` if one is not a
/// quantity or the sum is out of range. An empty list is "0".
///
/// Source: `resource.Quantity` (Add, String): amounts in powers of 1024 only while they are at least 1024.
#[must_use]
pub fn sum(quantities: &[Value]) -> Option<String> {
    const UNIT: i128 = 1_000_000_000;
    let mut sum = 0_i128;
    let mut form = None;
    for each in quantities {
        let amount = amount(each)?;
        sum = sum.checked_add(amount)?;
        if amount != 0 && form.is_none() {
            form = Some(suffix(each.as_str().unwrap_or_default()));
        }
    }
    let form = form.unwrap_or_default();
    let (sign, magnitude) = if sum < 0 {
        ("-", sum.checked_neg()?)
    } else {
        ("", sum)
    };
    let is_exponent = form.strip_prefix(['e', 'E']).is_some_and(|rest| !rest.is_empty());
    let text = if form.ends_with('i') && magnitude >= 1024 * UNIT {
        scaled(
            magnitude.checked_add(UNIT - 1)? / UNIT,
            1024,
            &["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"],
        )
    } else if is_exponent {
        scaled(
            magnitude,
            1000,
            &["e-9", "e-6", "e-3", "", "e3", "e6", "e9", "e12", "e15", "e18"],
        )
    } else {
        scaled(
            magnitude,
            1000,
            &["n", "u", "m", "", "k", "M", "G", "T", "P", "E"],
        )
    };
    Some(if sum == 0 {
        "0".to_owned()
    } else {
        format!("{sign}{text}")
    })
}

/// The amount as the nearest floating-point number; `None` if it is not a quantity.
#[must_use]
pub fn approximate(quantity: &Value) -> Option<f64> {
    Some(amount(quantity)? as f64 / 1e9)
}

fn suffix(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii_digit() || ['+', '-', '.'].contains(&c))
}

/// A number with the largest suffix that leaves an integer.
fn scaled(mut number: i128, base: i128, suffixes: &[&str]) -> String {
    let mut power = 0;
    while number != 0 && number % base == 0 && power + 1 < suffixes.len() {
        number /= base;
        power += 1;
    }
    format!("{number}{}", suffixes[power])
}

fn parse(text: &str) -> Option<i128> {
    let (negative, text) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let number = text.len()
        - text
            .trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
            .len();
    let (number, suffix) = text.split_at(number);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') || fraction.len() > 30 {
        return None;
    }
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let (binary, decimal) = scale(suffix)?;
    let exponent = decimal
        .checked_add(9)?
        .checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let scaled = digits.checked_mul(1_i128.checked_shl(binary)?)?;
    let magnitude = if let Ok(up) = u32::try_from(exponent) {
        scaled.checked_mul(10_i128.checked_pow(up)?)?
    } else {
        let divisor = 10_i128.checked_pow(exponent.unsigned_abs())?;
        scaled.checked_add(divisor - 1)? / divisor
    };
    Some(if negative { -magnitude } else { magnitude })
}

/// A suffix as (power of two, power of ten).
fn scale(suffix: &str) -> Option<(u32, i32)> {
    Some(match suffix {
        "" => (0, 0),
        "n" => (0, -9),
        "u" => (0, -6),
        "m" => (0, -3),
        "k" => (0, 3),
        "M" => (0, 6),
        "G" => (0, 9),
        "T" => (0, 12),
        "P" => (0, 15),
        "E" => (0, 18),
        "Ki" => (10, 0),
        "Mi" => (20, 0),
        "Gi" => (30, 0),
        "Ti" => (40, 0),
        "Pi" => (50, 0),
        "Ei" => (60, 0),
        _ => (0, suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_amounts_in_other_words_are_equal() {
        for (left, right) in [
            (json!("1024Mi"), json!("1Gi")),
            (json!("1.5G"), json!("1500M")),
            (json!("0.5"), json!("500m")),
            (json!(1), json!("1000m")),
            (json!("1e3"), json!("1k")),
            (json!("1E"), json!("1000P")),
            (json!("-1"), json!("-1000m")),
            (json!("0.1n"), json!("1n")),
        ] {
            assert_eq!(compare(&left, &right), Some(Ordering::Equal), "{left} {right}");
        }
        assert_eq!(compare(&json!("1Gi"), &json!("1G")), Some(Ordering::Greater));
    }

    #[test]
    fn amounts_are_written_as_an_api_server_writes_them() {
        for (resource, given, want) in [
            ("cpu", "0.5", "500m"),
            ("cpu", "1000m", "1"),
            ("cpu", "0.1m", "1m"),
            ("cpu", "2000", "2k"),
            ("memory", "1024Mi", "1Gi"),
            ("memory", "1500", "1500"),
            ("memory", "1000", "1k"),
            ("memory", "0", "0"),
            ("hugepages-2Mi", "4Mi", "4Mi"),
            ("example.com/gpu", "1.5", "2"),
        ] {
            let amount = amount(&json!(given)).unwrap();
            assert_eq!(display(resource, amount), want, "{resource} {given}");
        }
    }

    #[test]
    fn a_sum_is_written_as_an_api_server_writes_it() {
        for (quantities, want) in [
            (json!([]), "0"),
            (json!(["0.5", "250m"]), "750m"),
            (json!(["500m", "0.5"]), "1"),
            (json!(["1Gi", "512Mi"]), "1536Mi"),
            (json!(["0", "1Gi", "1Gi"]), "2Gi"),
            (json!(["0.5Ki"]), "512"),
            (json!(["1e3", "1k"]), "2e3"),
            (json!([1, "1"]), "2"),
            (json!(["1", "-3"]), "-2"),
            (json!(["1500M", "1Gi"]), "2573741824"),
            (json!(["0.1n"]), "1n"),
        ] {
            assert_eq!(
                sum(quantities.as_array().unwrap()).as_deref(),
                Some(want),
                "{quantities}"
            );
        }
        assert_eq!(sum(&[json!("1"), json!("x")]), None);
        assert_eq!(approximate(&json!("1500m")), Some(1.5));
        assert_eq!(approximate(&json!("1Ki")), Some(1024.0));
    }

    #[test]
    fn what_is_no_quantity_is_not_compared() {
        for bad in [
            "",
            "-",
            ".",
            "1.2.3",
            "1gi",
            "Gi",
            "1e",
            "ü",
            "99999999999999999999999999999999999999999Ei",
        ] {
            assert_eq!(compare(&json!(bad), &json!("1")), None, "{bad}");
        }
        assert_eq!(compare(&json!(null), &json!("1")), None);
    }
}
