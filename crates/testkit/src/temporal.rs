//! A throwaway Temporal server: its options, start and stop, and Temporal's CLI. Does not know what runs on it.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::os_user::OsUser;
use crate::server::{Server, ServerKind};
use crate::tools::temporal_cli;
use crate::unique::unique_name;
use crate::wait::wait_until;

/// `host:port` of the Temporal server to test on; `cargo xtask test` sets it.
pub const TEMPORAL_VARIABLE: &str = "LEASEHOLD_TEST_TEMPORAL";

const NAMESPACE_TIMEOUT: Duration = Duration::from_secs(180);
/// More calls than two cores can send, so that the development server's own rate limits do not affect tests.
const NO_LIMIT: &str = "1000000";
/// Calls per second of a namespace and of a service; the defaults lie between 1 and 3,000.
const RATE_SETTINGS: [&str; 7] = [
    "frontend.rps",
    "frontend.namespaceRPS",
    "frontend.namespaceRPS.visibility",
    "frontend.rps.namespaceReplicationInducingAPIs",
    "frontend.namespaceRPS.namespaceReplicationInducingAPIs",
    "history.rps",
    "matching.rps",
];
/// Three times as fast. Data survives a killed server, but not a power failure.
const FILE_PRAGMAS: [&str; 2] = ["journal_mode=WAL", "synchronous=OFF"];
/// The CLI waits five seconds for a connection, which a busy machine may need.
const CLI_ATTEMPTS: u32 = 3;
/// The CLI's error if it has no connection; it has sent no command then.
const UNREACHED: &str = "failed reaching server";
/// The CLI's error for an unknown workflow: it shows that the server's services answer.
const NOT_FOUND: &str = "workflow not found";

/// Options of a private server, which is in memory by default.
#[derive(Debug, Clone, Default)]
pub struct DevServerOptions {
    on_file: bool,
    namespaces: Vec<String>,
    search_attributes: Vec<String>,
    settings: Vec<String>,
}

impl DevServerOptions {
    /// Stores all data in a file, so that it survives a restart.
    #[must_use]
    pub fn on_file(mut self) -> Self {
        self.on_file = true;
        self
    }

    /// Adds a namespace beside `default`.
    #[must_use]
    pub fn namespace(mut self, name: &str) -> Self {
        self.namespaces.push(name.to_owned());
        self
    }

    /// Adds a search attribute to all namespaces, such as `Tenant` of type `Keyword`.
    #[must_use]
    pub fn search_attribute(mut self, name: &str, of_type: &str) -> Self {
        self.search_attributes.push(format!("{name}={of_type}"));
        self
    }

    /// Sets a dynamic configuration value, in JSON; overrides the default set here.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push(format!("{name}={value}"));
        self
    }
}

/// A real Temporal server for tests: Temporal's development server without its rate limits.
///
/// A server started here stops, and its directory is removed, when the handle is dropped or the process exits, even by `kill -9`.
/// All methods block the thread.
pub struct TestTemporal {
    address: String,
    cli: PathBuf,
    /// None when another process started the server.
    own: Option<Server<DevServer>>,
}

impl TestTemporal {
    /// Returns the server that all tests of this process share: the one at [`TEMPORAL_VARIABLE`], or else a throwaway server
    /// in memory that the first call starts and that ends with the process.
    ///
    /// # Panics
    /// When Temporal's CLI is not installed (`cargo xtask setup` installs it) or the server does not start.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<TestTemporal> = OnceLock::new();
        SHARED.get_or_init(|| {
            let server = match std::env::var(TEMPORAL_VARIABLE) {
                Ok(address) => temporal_cli().map(|cli| Self {
                    address,
                    cli,
                    own: None,
                }),
                Err(_) => Self::start(DevServerOptions::default()),
            };
            server.unwrap_or_else(|error| panic!("{error}"))
        })
    }

    /// Starts a private server on free loopback ports and waits until all its namespaces are ready.
    ///
    /// # Errors
    /// When Temporal's CLI is not installed or the server does not start; the message says what to do.
    pub fn start(options: DevServerOptions) -> io::Result<Self> {
        Self::start_with(&temporal_cli()?, options)
    }

    /// Like [`start`](Self::start), with the CLI at this path.
    ///
    /// # Errors
    /// When the server does not start.
    pub fn start_with(cli: &Path, options: DevServerOptions) -> io::Result<Self> {
        let cli = cli.to_owned();
        let kind = DevServer {
            cli: cli.clone(),
            options,
        };
        let server = Server::start(OsUser::current(), kind)?;
        Ok(Self {
            address: address(server.port()),
            cli,
            own: Some(server),
        })
    }

    /// `host:port` of the gRPC service.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The process id of the current server; none if another process started it.
    #[must_use]
    pub fn server_pid(&self) -> Option<u32> {
        self.own.as_ref().and_then(Server::pid)
    }

    /// The directory with the server's log (`log`) and database file; none if another process started the server.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.own.as_ref().map(Server::directory)
    }

    /// Stops the server cleanly.
    pub fn stop(&mut self) -> io::Result<()> {
        self.own()?.end("TERM")
    }

    /// Kills the server with `kill -9`, like a machine failure.
    pub fn kill(&mut self) -> io::Result<()> {
        self.own()?.end("KILL")
    }

    /// Starts a stopped or killed server on the same port and, if it has one, the same file.
    pub fn start_again(&mut self) -> io::Result<()> {
        let server = self.own()?;
        server.start_again()
    }

    /// Runs Temporal's CLI against this server, for example `["workflow", "list", "--output", "json"]`, and returns its
    /// output.
    ///
    /// # Errors
    /// When the CLI fails; the error has the CLI's message.
    pub fn cli(&self, arguments: &[&str]) -> io::Result<String> {
        let mut attempt = 1;
        loop {
            match run_cli(&self.cli, &self.address, arguments) {
                Err(error) if attempt < CLI_ATTEMPTS && error.to_string().contains(UNREACHED) => {
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    /// Creates a namespace with a unique name, so that tests on a shared server do not see each other's workflows.
    ///
    /// # Panics
    /// When the server rejects the namespace or does not serve it in time.
    #[must_use]
    pub fn fresh_namespace(&self) -> String {
        let name = unique_name().replace('_', "-");
        self.cli(&["operator", "namespace", "create", "--namespace", &name])
            .unwrap_or_else(|error| panic!("failed to create namespace {name}: {error}"));
        let served = || serves(&self.cli, &self.address, &name);
        assert!(
            wait_until(NAMESPACE_TIMEOUT, served),
            "namespace {name} was not ready within {NAMESPACE_TIMEOUT:?}"
        );
        name
    }

    fn own(&mut self) -> io::Result<&mut Server<DevServer>> {
        let shared =
            || io::Error::other("cannot control this Temporal server: another process started it");
        self.own.as_mut().ok_or_else(shared)
    }
}

struct DevServer {
    cli: PathBuf,
    options: DevServerOptions,
}

impl ServerKind for DevServer {
    const NAME: &'static str = "Temporal";
    const END_SIGNAL: &'static str = "KILL";

    /// The server chooses its other ports among the free ones; a collision fails the start, which is then retried.
    fn command(&self, directory: &Path, port: u16) -> Vec<OsString> {
        // The CLI stores a cluster id in the home directory.
        let home = |variable: &str| format!("{variable}={}", directory.display());
        let mut command = vec![
            "env".into(),
            home("HOME").into(),
            home("XDG_CONFIG_HOME").into(),
            self.cli.clone().into(),
        ];
        let port = port.to_string();
        let usual = ["server", "start-dev", "--headless", "--ip", "127.0.0.1"];
        let mut add = |arguments: &[&str]| command.extend(arguments.iter().map(OsString::from));
        add(&usual);
        add(&["--port", &port, "--log-level", "error"]);
        for name in RATE_SETTINGS {
            let value = format!("{name}={NO_LIMIT}");
            add(&["--dynamic-config-value", &value]);
        }
        for (option, values) in [
            ("--dynamic-config-value", &self.options.settings),
            ("--namespace", &self.options.namespaces),
            ("--search-attribute", &self.options.search_attributes),
        ] {
            for value in values {
                add(&[option, value]);
            }
        }
        if self.options.on_file {
            for pragma in FILE_PRAGMAS {
                add(&["--sqlite-pragma", pragma]);
            }
            add(&["--db-filename"]);
            command.push(directory.join("temporal.db").into());
        }
        command
    }

    fn is_ready(&self, _folder: &Path, port: u16, _pid: u32) -> bool {
        // The cheap check first.
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            return false;
        }
        let named = self.options.namespaces.iter().map(String::as_str);
        std::iter::once("default")
            .chain(named)
            .all(|namespace| serves(&self.cli, &address(port), namespace))
    }
}

fn address(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

/// Whether a namespace is ready, including the service that stores executions.
fn serves(cli: &Path, address: &str, namespace: &str) -> bool {
    let describe = ["workflow", "describe", "--workflow-id", "none"];
    let mut arguments = describe.to_vec();
    arguments.extend(["--namespace", namespace]);
    run_cli(cli, address, &arguments).is_err_and(|error| error.to_string().contains(NOT_FOUND))
}

fn run_cli(cli: &Path, address: &str, arguments: &[&str]) -> io::Result<String> {
    let output = Command::new(cli)
        .args(arguments)
        .args(["--address", address, "--command-timeout", "60s"])
        // A developer's own profile must not redirect the CLI to another server.
        .args(["--disable-config-file", "--disable-config-env"])
        .output()?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        let arguments = arguments.join(" ");
        return Err(io::Error::other(format!(
            "temporal {arguments}: {}",
            error.trim()
        )));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
