//! Durations as Go writes them: `1h30m`, `300ms`, `-1.5s`.

/// Seconds of a duration; otherwise Go's words for what is wrong with it.
pub(super) fn parse(text: &str) -> Result<f64, String> {
    let bad = || format!("time: invalid duration {text:?}");
    let (sign, mut rest) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (if text.starts_with('-') { -1.0 } else { 1.0 }, rest),
        None => (1.0, text),
    };
    if rest == "0" {
        return Ok(0.0);
    }
    if rest.is_empty() {
        return Err(bad());
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let number: f64 = rest[..end].parse().map_err(|_| bad())?;
        rest = &rest[end..];
        let end = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "" => return Err(format!("time: missing unit in duration {text:?}")),
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            unit => return Err(format!("time: unknown unit {unit:?} in duration {text:?}")),
        };
        rest = &rest[end..];
        total += number * unit;
    }
    if total.is_finite() && total < 9.2e9 {
        Ok(sign * total)
    } else {
        Err(bad())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_does() {
        let cases = [
            ("5s", Ok(5.0)),
            ("1h30m", Ok(5400.0)),
            ("-1s", Ok(-1.0)),
            ("0", Ok(0.0)),
            ("1.5s", Ok(1.5)),
            ("5", Err("time: missing unit in duration \"5\"")),
            ("soon", Err("time: invalid duration \"soon\"")),
            ("", Err("time: invalid duration \"\"")),
            ("5x", Err("time: unknown unit \"x\" in duration \"5x\"")),
            ("999999999999h", Err("time: invalid duration \"999999999999h\"")),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), expected.map_err(str::to_owned), "{text}");
        }
    }
}
