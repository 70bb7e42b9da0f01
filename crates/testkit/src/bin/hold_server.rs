//! Starts the shared server and holds it until it is killed: the testkit's own tests kill it, and look what is left.

use std::io::{self, Write};

use leasehold_testkit::TestPostgres;

fn main() -> io::Result<()> {
    let server = TestPostgres::shared();
    let cluster = server
        .own_cluster()
        .ok_or_else(|| io::Error::other("the server is not our own"))?;
    let pid = cluster.server_pid().unwrap_or_default();
    writeln!(
        io::stdout(),
        "{pid} {} {}",
        cluster.folder().display(),
        server.url()
    )?;
    // Ends with an orderly exit when the starter closes the pipe, and not before.
    io::stdin().read_line(&mut String::new())?;
    Ok(())
}
