//! Medians and percentiles.

use serde::Serialize;

/// The distribution of a set of durations, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The number of durations.
    pub count: usize,
    /// Half of them took at most this.
    pub p50_ms: f64,
    /// Nine in ten took at most this.
    pub p90_ms: f64,
    /// 99 in a hundred took at most this.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

impl Spread {
    /// Computes it from values in milliseconds, in any order.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        Self {
            count: values.len(),
            p50_ms: percentile(values, 50.0),
            p90_ms: percentile(values, 90.0),
            p99_ms: percentile(values, 99.0),
            max_ms: percentile(values, 100.0),
        }
    }
}

/// The smallest value that at least `percent` of the values do not exceed (nearest rank); 0 if there are none.
#[must_use]
pub fn percentile(values: &[f64], percent: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted
        .get(rank.clamp(1, sorted.len().max(1)) - 1)
        .copied()
        .unwrap_or_default()
}

/// The middle value, or the mean of the two in the middle; 0 if there are none.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => 0.0,
        (length, middle) if length % 2 == 1 => sorted[middle],
        (_, middle) => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let values: Vec<f64> = (1..=50).rev().map(f64::from).collect();
        let spread = Spread::of(&values);
        assert_eq!(
            (spread.p50_ms, spread.p90_ms, spread.p99_ms, spread.max_ms),
            (25.0, 45.0, 50.0, 50.0)
        );
        assert_eq!(
            Spread::of(&[3.0]),
            Spread {
                count: 1,
                p50_ms: 3.0,
                p90_ms: 3.0,
                p99_ms: 3.0,
                max_ms: 3.0
            }
        );
        assert_eq!(Spread::of(&[]), Spread::default());
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[9.0, 1.0, 5.0]), 5.0);
        assert_eq!(median(&[1.0, 4.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
    }
}
