//! Durations in the form that the API and the databases use.

use std::time::Duration;

/// Returns the whole milliseconds of `time`, for a field or column named `…_ms`. At most `i64::MAX`, so that it fits a signed column.
pub fn millis(time: Duration) -> u64 {
    let most = i64::MAX.cast_unsigned();
    u64::try_from(time.as_millis()).map_or(most, |millis| millis.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_long_duration_is_capped_at_the_column_maximum() {
        assert_eq!(millis(Duration::from_micros(1_999)), 1);
        assert_eq!(millis(Duration::MAX).cast_signed(), i64::MAX);
        assert_eq!(
            millis(Duration::from_millis(u64::MAX)).cast_signed(),
            i64::MAX
        );
    }
}
