//! Numbers: ranges, multiples, and the equality of what is written differently.

use serde_json::{Number, Value};

use super::{FieldError, Walk, wanted};
use crate::schema::{Rules, Schema, Type};

/// True if a number has no fraction.
pub(super) fn is_whole(value: &Value) -> bool {
    // Beyond this, not every integer is a float.
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    value
        .as_f64()
        .is_some_and(|float| float.fract() == 0.0 && float.abs() <= LARGEST)
}

/// Equality of JSON values in which 1 and 1.0 are the same.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        _ => a == b,
    }
}

/// A float as Go prints it with `%v`.
fn shown(float: f64) -> String {
    if float != 0.0 && (float.abs() >= 1e21 || float.abs() < 1e-4) {
        let text = format!("{float:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(rest) => ('-', rest),
            None => ('+', exponent),
        };
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{float}")
}

impl Walk<'_> {
    pub(super) fn number_errors(&self, number: &Number, schema: &Schema, rules: &Rules) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if !in_range(number, schema) {
            let name = wanted(schema.kind).first().copied().unwrap_or_default();
            let format = match schema.format.as_deref() {
                Some(format) if !format.is_empty() => format!("with format {format}"),
                _ => "(default format)".to_owned(),
            };
            errors.push(self.composite(format!(
                "Checked value must be of type {name} {format} in {}",
                self.path
            )));
        }
        errors.extend(
            rules
                .multiple_of
                .and_then(|factor| self.multiple_error(number, factor)),
        );
        if let Some((most, exclusive)) = rules.maximum {
            let limit = Limit::of(number, most);
            if limit.over || (exclusive && limit.equal) {
                let or_equal = if exclusive { "" } else { " or equal to" };
                errors.push(self.invalid(
                    number.clone(),
                    &format!("should be less than{or_equal} {}", limit.text),
                ));
            }
        }
        if let Some((least, exclusive)) = rules.minimum {
            let limit = Limit::of(number, least);
            if limit.under || (exclusive && limit.equal) {
                let or_equal = if exclusive { "" } else { " or equal to" };
                errors.push(self.invalid(
                    number.clone(),
                    &format!("should be greater than{or_equal} {}", limit.text),
                ));
            }
        }
        errors
    }

    /// Whole numbers are divided by the whole part of the factor, as a kube-apiserver does: a factor below 1 never fits.
    fn multiple_error(&self, number: &Number, factor: f64) -> Option<FieldError> {
        let not_positive = |factor: Value| {
            let message = format!(
                "factor MultipleOf declared for {} must be positive: {factor}",
                self.path
            );
            FieldError::invalid(self.field(&self.path), factor, message)
        };
        if let Some(whole) = number.as_i64() {
            #[expect(clippy::cast_possible_truncation, reason = "the whole part is what is meant")]
            let factor = factor as i64;
            if factor <= 0 {
                return Some(not_positive(factor.into()));
            }
            return (whole % factor != 0)
                .then(|| self.invalid(whole, &format!("should be a multiple of {factor}")));
        }
        if factor <= 0.0 {
            return Some(not_positive(factor.into()));
        }
        let data = number.as_f64()?;
        let multiple = if factor < 1.0 {
            1.0 / factor * data
        } else {
            data / factor
        };
        (multiple.fract().abs() > 1e-9 && (1.0 - multiple.fract().abs()) > 1e-9).then(|| {
            self.invalid(
                number.clone(),
                &format!("should be a multiple of {}", shown(factor)),
            )
        })
    }
}

/// True if the number fits into the type and format that are declared.
fn in_range(number: &Number, schema: &Schema) -> bool {
    match schema.kind {
        Type::Integer => {
            let whole = match number.as_i64() {
                Some(whole) => Some(whole),
                #[expect(clippy::cast_possible_truncation, reason = "whole and within 53 bits")]
                None => number
                    .as_f64()
                    .filter(|_| is_whole(&Value::Number(number.clone())))
                    .map(|float| float as i64),
            };
            match schema.format.as_deref() {
                Some("int32") => whole.is_some_and(|whole| i32::try_from(whole).is_ok()),
                Some("uint32") => whole.is_some_and(|whole| u32::try_from(whole).is_ok()),
                Some("uint64") => whole.is_some_and(|whole| whole >= 0) || number.is_u64(),
                _ => whole.is_some(),
            }
        }
        Type::Number if matches!(schema.format.as_deref(), Some("float" | "float32")) => number
            .as_f64()
            .is_some_and(|float| float.abs() <= f64::from(f32::MAX)),
        _ => true,
    }
}

/// A number beside a bound.
struct Limit {
    over: bool,
    under: bool,
    equal: bool,
    text: String,
}

impl Limit {
    fn of(number: &Number, bound: f64) -> Self {
        if let Some(whole) = number.as_i64() {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "bounds of whole numbers are cut, as in a kube-apiserver"
            )]
            let bound = bound as i64;
            return Self {
                over: whole > bound,
                under: whole < bound,
                equal: whole == bound,
                text: bound.to_string(),
            };
        }
        let float = number.as_f64().unwrap_or_default();
        Self {
            over: float > bound,
            under: float < bound,
            #[expect(clippy::float_cmp, reason = "a bound is hit exactly or not at all")]
            equal: float == bound,
            text: shown(bound),
        }
    }
}
