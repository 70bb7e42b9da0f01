//! Compares costs: prints a table, and asserts the ratios. Does not measure.

use super::measured::Cost;

/// The costs of one comparison, each with its baseline.
pub(crate) struct Table {
    title: &'static str,
    rows: Vec<Row>,
}

struct Row {
    name: String,
    cost: Cost,
    base: usize,
}

impl Table {
    pub(crate) fn new(title: &'static str) -> Self {
        Self {
            title,
            rows: Vec::new(),
        }
    }

    /// Adds a baseline, and returns its index.
    pub(crate) fn baseline(&mut self, name: &str, cost: Cost) -> usize {
        let base = self.rows.len();
        self.compare(base, name, cost);
        base
    }

    /// Adds a cost that is compared with the baseline `base`.
    pub(crate) fn compare(&mut self, base: usize, name: &str, cost: Cost) {
        let name = name.to_owned();
        self.rows.push(Row { name, cost, base });
    }

    /// Prints the table, then asserts that no cost is twice its baseline.
    pub(crate) fn assert_less_than_twice(&self) {
        println!("{}", self.text());
        for row in &self.rows {
            let (statement, whole) = self.ratios(row);
            assert!(
                statement < 2.0 && whole < 2.0,
                "{}: a claim costs {statement:.2} times as much, {whole:.2} with its triggers",
                row.name
            );
        }
    }

    fn ratios(&self, row: &Row) -> (f64, f64) {
        let base = &self.rows[row.base].cost;
        (
            row.cost.statement / base.statement,
            row.cost.whole / base.whole,
        )
    }

    /// Returns one string, so that tables of parallel tests do not interleave.
    fn text(&self) -> String {
        let mut text = format!(
            "\n{:<62} {:>9} {:>6} {:>9} {:>6} {:>9}\n",
            format!("{}: buffers per admitted request", self.title),
            "statement",
            "ratio",
            "+triggers",
            "ratio",
            "worst"
        );
        for row in &self.rows {
            let (statement, whole) = self.ratios(row);
            text += &format!(
                "{:<62} {:>9.1} {:>6.2} {:>9.1} {:>6.2} {:>9.1}\n",
                row.name, row.cost.statement, statement, row.cost.whole, whole, row.cost.worst
            );
        }
        text
    }
}
