//! Facts from the metrics of an API server: its admission plug-ins, and the size of its store.

use std::collections::BTreeSet;

/// The counter that each admission plug-in has, once it has seen a request.
const PLUGINS: &str = "apiserver_admission_controller_admission_duration_seconds_count{";

/// The size of the store, in the words of Kubernetes 1.28, 1.26 and 1.20.
const SIZES: &[&str] = &[
    "apiserver_storage_size_bytes{",
    "apiserver_storage_db_total_size_in_bytes{",
    "etcd_db_total_size_in_bytes{",
];

/// The facts from the metrics of an API server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scrape {
    /// The names of the admission plug-ins that have seen a request.
    pub plugins: BTreeSet<String>,
    /// The size of the largest member of the store, in bytes.
    pub store: Option<f64>,
}

/// Reads metrics in the text format of Prometheus.
#[must_use]
pub fn parse(metrics: &str) -> Scrape {
    let mut scrape = Scrape::default();
    for line in metrics.lines() {
        if let Some(rest) = line.strip_prefix(PLUGINS) {
            let name = rest
                .split("name=\"")
                .nth(1)
                .and_then(|rest| rest.split('"').next());
            scrape.plugins.extend(name.map(str::to_owned));
        } else if SIZES.iter().any(|size| line.starts_with(size)) {
            let value = line
                .rsplit(' ')
                .next()
                .and_then(|value| value.parse::<f64>().ok());
            // A server that does not know the size says 0.
            let value = value.filter(|value| value.is_finite() && *value > 0.0);
            scrape.store = match (scrape.store, value) {
                (Some(before), Some(now)) => Some(before.max(now)),
                (before, now) => before.or(now),
            };
        }
    }
    scrape
}

/// Reads a size in bytes: a number, with `Mi` or `Gi`.
///
/// # Errors
/// A sentence for the user.
pub fn size(text: &str) -> Result<f64, String> {
    let (number, unit) = match (text.strip_suffix("Gi"), text.strip_suffix("Mi")) {
        (Some(number), _) => (number, 1024.0 * 1024.0 * 1024.0),
        (None, Some(number)) => (number, 1024.0 * 1024.0),
        (None, None) => (text, 1.0),
    };
    let number = number
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite() && *number > 0.0);
    number
        .map(|number| number * unit)
        .ok_or_else(|| "give a size in bytes, such as 8Gi or 512Mi".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plug_ins_and_the_largest_size_are_read() {
        let metrics = "# HELP x y\n\
            apiserver_admission_controller_admission_duration_seconds_count{name=\"LimitRanger\",operation=\"CREATE\"} 3\n\
            apiserver_admission_controller_admission_duration_seconds_count{name=\"LimitRanger\",operation=\"UPDATE\"} 1\n\
            apiserver_storage_size_bytes{cluster=\"a\"} 2.5e+07\n\
            apiserver_storage_size_bytes{cluster=\"b\"} 1e+06\n\
            etcd_db_total_size_in_bytes{endpoint=\"x\"} NaN\n";
        let scrape = parse(metrics);
        assert_eq!(scrape.plugins.into_iter().collect::<Vec<_>>(), ["LimitRanger"]);
        assert_eq!(scrape.store, Some(25_000_000.0));
        assert_eq!(parse(""), Scrape::default());
        assert_eq!(
            parse("apiserver_storage_size_bytes{cluster=\"a\"} 0\n").store,
            None
        );
    }

    #[test]
    fn sizes_have_a_unit_or_none() {
        for (text, bytes) in [("1024", 1024.0), ("1Mi", 1_048_576.0), ("0.5Gi", 536_870_912.0)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "much", "-1", "0", "1Ki", "NaN", "inf"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
