//! Comparing quantities.

use serde_json::Value;

use crate::quantity::Quantity;

/// A quantity in billionths; `None` when it is none.
pub(crate) fn nano(value: &Value) -> Option<i128> {
    Quantity::of(value).map(Quantity::nano)
}

/// An amount in billionths as a quantity, in the notation of another.
pub(crate) fn written(nano: i128, like: &Value) -> String {
    let like = Quantity::of(like).unwrap_or_else(|| Quantity::units(0));
    like.with_nano(nano).to_string()
}

/// An amount as it was given.
pub(crate) fn shown(amount: &Value) -> String {
    amount.as_str().map_or_else(|| amount.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{nano, written};

    #[test]
    fn sums_are_written_like_their_limit() {
        for (amount, like, text) in [
            ("1536Mi", "2Gi", "1536Mi"),
            ("2048Mi", "4Gi", "2Gi"),
            ("1500m", "2", "1500m"),
            ("3", "5", "3"),
            ("0", "1Gi", "0"),
        ] {
            let nano = nano(&json!(amount)).unwrap_or(-1);
            assert_eq!(written(nano, &json!(like)), text);
        }
    }

    #[test]
    fn quantities_of_different_forms_compare() {
        for (one, other) in [
            ("1", "1000m"),
            ("0.5Gi", "512Mi"),
            ("1e3", "1k"),
            ("-2", "-2000m"),
            ("1.5G", "1500M"),
        ] {
            assert_eq!(nano(&json!(one)), nano(&json!(other)), "{one} {other}");
        }
        assert!(nano(&json!("2")) > nano(&json!("1999m")));
        for none in ["", "x", "1x", "--1", "1e"] {
            assert!(nano(&json!(none)).is_none(), "{none}");
        }
    }
}
