//! A printer's view of an object, and the form of times, labels and selectors in a cell.

use serde_json::Value;

use crate::object::Object;

/// The text of an absent value.
pub(crate) const NONE: &str = "<none>";

/// The text of an unset value.
pub(crate) const UNSET: &str = "<unset>";

/// The text of an unknown value.
pub(crate) const UNKNOWN: &str = "<unknown>";

/// The most addresses, ports or hosts that a cell shows.
pub(crate) const SHOWN: usize = 3;

/// An object and the time.
pub(crate) struct View<'a> {
    pub(crate) object: &'a Object,
    /// Seconds since 1970.
    pub(crate) now: i64,
}

impl<'a> View<'a> {
    /// The value at a path such as `spec.replicas`.
    pub(crate) fn at(&self, path: &str) -> Option<&'a Value> {
        let mut steps = path.split('.');
        let first = self.object.get(steps.next()?)?;
        let found = steps.try_fold(first, Value::get)?;
        (!found.is_null()).then_some(found)
    }

    /// A string, empty when it is not there.
    pub(crate) fn text(&self, path: &str) -> &'a str {
        self.at(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// A string, or what stands for nothing.
    pub(crate) fn or(&self, path: &str, absent: &str) -> Value {
        match self.text(path) {
            "" => absent.into(),
            found => found.into(),
        }
    }

    /// A whole number, 0 when it is not there.
    pub(crate) fn number(&self, path: &str) -> i64 {
        self.at(path).and_then(Value::as_i64).unwrap_or_default()
    }

    /// A boolean, false when it is not there.
    pub(crate) fn flag(&self, path: &str) -> bool {
        self.at(path).and_then(Value::as_bool).unwrap_or_default()
    }

    /// A list, empty when it is not there.
    pub(crate) fn list(&self, path: &str) -> &'a [Value] {
        self.at(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The strings of a list.
    pub(crate) fn texts(&self, path: &str) -> Vec<String> {
        let texts = self.list(path).iter().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    }

    /// Entries of a list or map.
    pub(crate) fn count(&self, path: &str) -> usize {
        match self.at(path) {
            Some(Value::Array(items)) => items.len(),
            Some(Value::Object(fields)) => fields.len(),
            _ => 0,
        }
    }

    /// The name.
    pub(crate) fn name(&self) -> Value {
        self.text("metadata.name").into()
    }

    /// The age of the object.
    pub(crate) fn age(&self) -> Value {
        self.since("metadata.creationTimestamp").into()
    }

    /// An annotation, empty when it is not there.
    pub(crate) fn annotation(&self, name: &str) -> &'a str {
        let found = self.at("metadata.annotations").and_then(|all| all.get(name));
        found.and_then(Value::as_str).unwrap_or_default()
    }

    /// True if the object is being deleted.
    pub(crate) fn leaving(&self) -> bool {
        self.at("metadata.deletionTimestamp").is_some()
    }

    /// Time since a time in the object.
    pub(crate) fn since(&self, path: &str) -> String {
        self.since_text(self.text(path))
    }

    /// Time since a time as written.
    pub(crate) fn since_text(&self, time: &str) -> String {
        seconds(time).map_or_else(|| UNKNOWN.to_owned(), |then| duration(self.now - then))
    }

    /// True if a condition of that type is true.
    pub(crate) fn is_true(&self, condition: &str) -> bool {
        self.list("status.conditions")
            .iter()
            .any(|one| one["type"] == condition && one["status"] == "True")
    }

    /// A field of the items of a list, in one cell.
    pub(crate) fn joined(&self, path: &str, field: &str) -> Value {
        let items = self.list(path).iter();
        let words: Vec<&str> = items.filter_map(|one| one[field].as_str()).collect();
        words.join(",").into()
    }

    /// A map of labels: `a=b,c=d`.
    pub(crate) fn labels(&self, path: &str) -> Value {
        let pairs = self.at(path).and_then(Value::as_object).into_iter().flatten();
        let words: Vec<String> = pairs
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect();
        or_none(words.join(","))
    }

    /// A LabelSelector as it would be typed; what selects nothing or everything is empty.
    pub(crate) fn selector_text(&self, path: &str) -> String {
        let mut words: Vec<(&str, String)> = Vec::new();
        let labels = self.at(path).and_then(|selector| selector.get("matchLabels"));
        for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
            words.push((key, format!("{key}={}", value.as_str().unwrap_or_default())));
        }
        for one in self.list(&format!("{path}.matchExpressions")) {
            let key = one["key"].as_str().unwrap_or_default();
            let mut values: Vec<&str> = one["values"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            values.sort_unstable();
            let values = values.join(",");
            let word = match one["operator"].as_str().unwrap_or_default() {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "DoesNotExist" => format!("!{key}"),
                _ => key.to_owned(),
            };
            words.push((key, word));
        }
        words.sort_by_key(|(key, _)| *key);
        let words: Vec<String> = words.into_iter().map(|(_, word)| word).collect();
        words.join(",")
    }

    /// The same in a cell of its own.
    pub(crate) fn selector(&self, path: &str) -> Value {
        or_none(self.selector_text(path))
    }
}

/// A cell that is not left empty.
pub(crate) fn or_none(text: String) -> Value {
    if text.is_empty() { NONE.into() } else { text.into() }
}

/// A time as written, in seconds since 1970.
pub(crate) fn seconds(time: &str) -> Option<i64> {
    let time: jiff::Timestamp = time.parse().ok()?;
    Some(time.as_second())
}

/// A time span for people: two units at most, fewer the longer it is. A second or less in the future counts as now.
pub(crate) fn duration(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    let two = |large: i64, large_unit: char, small: i64, small_unit: char| {
        if small == 0 {
            format!("{large}{large_unit}")
        } else {
            format!("{large}{large_unit}{small}{small_unit}")
        }
    };
    match seconds {
        ..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if seconds < 120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => two(days, 'd', hours % 24, 'h'),
        _ if days < 730 => format!("{days}d"),
        _ if days < 365 * 8 => two(days / 365, 'y', days % 365, 'd'),
        _ => format!("{}y", days / 365),
    }
}

/// The first words with how many more there are: `a,b,c + 2 more...`.
pub(crate) fn some_of(words: &[String], most: usize) -> String {
    if words.len() > most {
        format!("{} + {} more...", words[..most].join(","), words.len() - most)
    } else {
        words.join(",")
    }
}
