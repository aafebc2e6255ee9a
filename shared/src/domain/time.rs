//! Points in time, as the parts hand them to each other. Whoever needs the current one brings it.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, SecondsFormat, Utc};

/// Whole milliseconds since 1970-01-01T00:00:00Z. Prints as RFC 3339 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnixMillis(pub u64);

impl UnixMillis {
    /// The instant `later` after this one.
    pub fn plus(self, later: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(later.as_millis()).unwrap_or(u64::MAX)))
    }
}

impl From<SystemTime> for UnixMillis {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for UnixMillis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = i64::try_from(self.0).unwrap_or(i64::MAX);
        let time =
            DateTime::<Utc>::from_timestamp_millis(millis).unwrap_or(DateTime::<Utc>::MAX_UTC);
        f.write_str(&time.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_in_time_prints_as_rfc_3339() {
        assert_eq!(UnixMillis(1_800_000_000_123).to_string(), "2027-01-15T08:00:00.123Z");
        assert_eq!(UnixMillis::from(UNIX_EPOCH), UnixMillis(0));
    }
}
