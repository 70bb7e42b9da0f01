//! Headers of migrations, and what a program makes of a schema that a newer one has migrated.

use super::*;

const FIRST: Migration = Migration::from_file(
    1,
    "0001_first",
    "-- The first.\n-- compatible_from: 1\n\nSELECT 1",
);
const SECOND: Migration = Migration::from_file(
    2,
    "0002_second",
    "-- The second.\r\n-- compatible_from: 1\r\n",
);
const PROGRAM: &[Migration] = &[FIRST, SECOND];

fn applied(number: u32, name: &str, compatible_from: u32) -> AppliedMigration {
    let known = PROGRAM.iter().find(|one| one.number == number);
    AppliedMigration {
        number,
        name: name.to_owned(),
        checksum: known.map_or(0, Migration::checksum),
        compatible_from,
        applied_by: format!("0.{number}.0"),
    }
}

fn states(applied: &[AppliedMigration]) -> Vec<(u32, MigrationState)> {
    let status = compare_migrations(PROGRAM, applied);
    status.iter().map(|one| (one.number, one.state)).collect()
}

#[test]
fn second_line_of_a_migration_says_which_programs_may_use_it() {
    assert_eq!((FIRST.compatible_from, SECOND.compatible_from), (1, 1));
    let file = |text: &'static str| {
        std::panic::catch_unwind(|| Migration::from_file(3, "0003_third", text).compatible_from)
    };
    assert_eq!(file("-- The third.\n-- compatible_from: 3\n").unwrap(), 3);
    for wrong in [
        "",
        "-- No second line.",
        "-- No header.\nCREATE TABLE a ();\n",
        "-- No number.\n-- compatible_from: \n",
        "-- No number.\n-- compatible_from: x\n",
        "-- None can be compatible from before the first.\n-- compatible_from: 0\n",
        "-- Later than itself.\n-- compatible_from: 4\n",
    ] {
        assert!(file(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn program_may_use_a_newer_schema_that_it_is_compatible_with() {
    use MigrationState::{Applied, Incompatible, Newer, Pending};
    assert_eq!(states(&[]), [(1, Pending), (2, Pending)]);
    let mut database = vec![applied(1, "0001_first", 1), applied(2, "0002_second", 1)];
    assert_eq!(states(&database), [(1, Applied), (2, Applied)]);
    database.push(applied(3, "0003_third", 2));
    assert_eq!(states(&database), [(1, Applied), (2, Applied), (3, Newer)]);
    assert_eq!(
        schema_refusal(&compare_migrations(PROGRAM, &database)),
        None
    );
    database.push(applied(4, "0004_fourth", 4));
    assert_eq!(
        states(&database),
        [(1, Applied), (2, Applied), (3, Newer), (4, Incompatible)]
    );
    let refusal = schema_refusal(&compare_migrations(PROGRAM, &database)).unwrap();
    let expected = "the schema is too new for this program: migration 0004_fourth was applied by Leasehold 0.4.0 and needs a program with migration \
                    4 or a later one, this program's last one is 2; run Leasehold 0.4.0 or newer, or restore a backup from before that migration";
    assert_eq!(refusal, expected);
}

#[test]
fn program_refuses_a_migration_with_another_text() {
    let mut changed = applied(2, "0002_second", 1);
    changed.checksum += 1;
    let status = compare_migrations(PROGRAM, &[applied(1, "0001_first", 1), changed]);
    assert_eq!(status[1].state, MigrationState::Changed);
    let refusal = schema_refusal(&status).unwrap();
    assert!(
        refusal.starts_with("migration 0002_second was applied with a different text"),
        "{refusal}"
    );
}
