//! Starts a shared server and holds it until it is killed: the testkit's own tests kill it, and look what is left.

use std::io::{self, Write};

use leasehold_testkit::{TestPostgres, TestTemporal};

fn main() -> io::Result<()> {
    let not_ours = || io::Error::other("the server is not our own");
    let (pid, folder) = if std::env::args().nth(1).as_deref() == Some("temporal") {
        let server = TestTemporal::shared();
        (server.server_pid(), server.folder())
    } else {
        let cluster = TestPostgres::shared().own_cluster().ok_or_else(not_ours)?;
        (cluster.server_pid(), Some(cluster.folder()))
    };
    let (pid, folder) = pid.zip(folder).ok_or_else(not_ours)?;
    writeln!(io::stdout(), "{pid} {}", folder.display())?;
    // Ends with an orderly exit when the starter closes the pipe, and not before.
    io::stdin().read_line(&mut String::new())?;
    Ok(())
}
