//! Compares docs/reference/exit-codes.md with the program.

use leasehold_console::Exit;

const PAGE: &str = include_str!("../../../docs/reference/exit-codes.md");

#[test]
fn page_lists_every_exit_code_with_its_meaning() {
    let rows: Vec<&str> = PAGE.lines().filter(|line| line.starts_with("| ")).collect();
    for exit in Exit::ALL {
        let row = format!("| {} | {} |", exit.code(), exit.meaning());
        assert!(rows.iter().any(|line| line.starts_with(&row)), "{row}");
    }
    // And no others: the heading, zero, and these.
    assert_eq!(rows.len(), Exit::ALL.len() + 2, "{rows:?}");
}
