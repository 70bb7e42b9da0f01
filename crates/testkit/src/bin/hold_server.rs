//! Starts a shared server and keeps it running: the testkit's own tests kill this program and check that nothing remains.

use std::io::{self, Write};

use leasehold_testkit::{TestPostgres, TestTemporal};

fn main() -> io::Result<()> {
    let not_ours = || io::Error::other("another process started the server");
    let (pid, directory) = if std::env::args().nth(1).as_deref() == Some("temporal") {
        let server = TestTemporal::shared();
        (server.server_pid(), server.directory())
    } else {
        let cluster = TestPostgres::shared().own_cluster().ok_or_else(not_ours)?;
        (cluster.server_pid(), Some(cluster.directory()))
    };
    let (pid, directory) = pid.zip(directory).ok_or_else(not_ours)?;
    writeln!(io::stdout(), "{pid} {}", directory.display())?;
    // Exits cleanly when the parent closes the pipe.
    io::stdin().read_line(&mut String::new())?;
    Ok(())
}
