//! Items that operations skipped because they cannot be read or changed. Logs each once a minute. Knows no table.

use leasehold_store::ErrorKind;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How often a failure of the same item is logged.
const REMIND_EVERY: Duration = Duration::from_secs(60);

/// An item that an operation skipped.
#[derive(Debug)]
pub(crate) struct BrokenItem {
    pub(crate) item: String,
    pub(crate) fault: ErrorKind,
}

/// The items that were logged in the last minute.
#[derive(Debug, Default)]
pub(crate) struct BrokenItemLog(HashMap<String, Instant>);

impl BrokenItemLog {
    /// Logs those that were not logged in the last minute.
    pub(crate) fn log(&mut self, operation: &'static str, items: Vec<BrokenItem>) {
        if items.is_empty() {
            return;
        }
        for BrokenItem { item, fault } in self.due(items, Instant::now()) {
            tracing::warn!(operation, item, error = %fault, "skipped a broken item; the others are not affected");
        }
    }

    fn due(&mut self, mut items: Vec<BrokenItem>, now: Instant) -> Vec<BrokenItem> {
        self.0
            .retain(|_, at| now.saturating_duration_since(*at) < REMIND_EVERY);
        items.retain(|broken| {
            let is_due = !self.0.contains_key(&broken.item);
            if is_due {
                self.0.insert(broken.item.clone(), now);
            }
            is_due
        });
        items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(item: &str) -> BrokenItem {
        BrokenItem {
            item: item.to_owned(),
            fault: ErrorKind::Broken("gone".to_owned()),
        }
    }

    #[test]
    fn item_is_logged_once_a_minute() {
        let mut log = BrokenItemLog::default();
        let begun = Instant::now();
        let items = || vec![item("one"), item("two"), item("one")];
        assert_eq!(log.due(items(), begun).len(), 2);
        assert_eq!(log.due(items(), begun + REMIND_EVERY / 2).len(), 0);
        assert_eq!(log.due(items(), begun + REMIND_EVERY).len(), 2);
    }
}
