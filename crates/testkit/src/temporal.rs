//! A throwaway Temporal server: its options, its life, its own command line. Does not know what runs on it.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::account::Account;
use crate::server::{Server, ServerKind};
use crate::tools::temporal_cli;
use crate::unique::unique_name;
use crate::wait::wait_until;

/// Holds `host:port` of the Temporal server to test on; `cargo xtask test` sets it.
pub const TEMPORAL_VARIABLE: &str = "LEASEHOLD_TEST_TEMPORAL";

const NAMESPACE_LIMIT: Duration = Duration::from_secs(30);
/// More than two cores can ask for: a test must meet the limits it sets, not those of a development server.
const NO_LIMIT: &str = "1000000";
/// Calls a second, of a namespace and of a service; the usual values lie between 1 and 3,000.
const RATE_SETTINGS: [&str; 7] = [
    "frontend.rps",
    "frontend.namespaceRPS",
    "frontend.namespaceRPS.visibility",
    "frontend.rps.namespaceReplicationInducingAPIs",
    "frontend.namespaceRPS.namespaceReplicationInducingAPIs",
    "history.rps",
    "matching.rps",
];
/// A server that is killed loses nothing by this, only a machine that loses power; and it is three times as fast.
const FILE_PRAGMAS: [&str; 2] = ["journal_mode=WAL", "synchronous=OFF"];
/// What the CLI says of a workflow that is not there: all of the server that finds it has answered then.
const NOT_FOUND: &str = "workflow not found";

/// What a private server shall be like; in memory unless said otherwise.
#[derive(Debug, Clone, Default)]
pub struct TemporalOptions {
    on_file: bool,
    namespaces: Vec<String>,
    search_attributes: Vec<String>,
    settings: Vec<String>,
}

impl TemporalOptions {
    /// Keeps everything in a file, so that it is there when the server is started again.
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

    /// Adds a search attribute, such as `Tenant` of type `Keyword`, to all namespaces.
    #[must_use]
    pub fn search_attribute(mut self, name: &str, of_type: &str) -> Self {
        self.search_attributes.push(format!("{name}={of_type}"));
        self
    }

    /// Sets a dynamic configuration value, in JSON; it wins over the one set here by default.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push(format!("{name}={value}"));
        self
    }
}

/// A real Temporal server for tests: Temporal's own development server, without its rate limits.
///
/// One that was started here ends, and its folder goes, when the handle is dropped or the process ends, even by `kill -9`.
/// All methods block the thread.
pub struct TestTemporal {
    address: String,
    cli: PathBuf,
    /// None when the server is somebody else's.
    own: Option<Server<DevServer>>,
}

impl TestTemporal {
    /// The server all tests of this process share: that of [`TEMPORAL_VARIABLE`], or else a throwaway one in memory that
    /// is started at the first call and ends with the process.
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
                Err(_) => Self::start(TemporalOptions::default()),
            };
            server.unwrap_or_else(|error| panic!("{error}"))
        })
    }

    /// Starts a private server on free loopback ports and waits until all its namespaces are served.
    ///
    /// # Errors
    /// When Temporal's CLI is not installed or the server does not start; the message says what to do.
    pub fn start(options: TemporalOptions) -> io::Result<Self> {
        Self::start_with(&temporal_cli()?, options)
    }

    /// The same, with the CLI that is named.
    ///
    /// # Errors
    /// When the server does not start.
    pub fn start_with(cli: &Path, options: TemporalOptions) -> io::Result<Self> {
        let cli = cli.to_owned();
        let kind = DevServer {
            cli: cli.clone(),
            options,
        };
        let server = Server::start(Account::ours(), kind)?;
        Ok(Self {
            address: address(server.port()),
            cli,
            own: Some(server),
        })
    }

    /// `host:port` of its gRPC service.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The process id of the server that was started last, when it is our own.
    #[must_use]
    pub fn server_pid(&self) -> Option<u32> {
        self.own.as_ref().and_then(Server::pid)
    }

    /// The folder that holds the server's messages (`log`) and its file, when it is our own.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.own.as_ref().map(Server::folder)
    }

    /// Stops the server in order.
    pub fn stop(&mut self) -> io::Result<()> {
        self.own()?.end("TERM")
    }

    /// Kills the server with `kill -9`, as a failing machine would.
    pub fn kill(&mut self) -> io::Result<()> {
        self.own()?.end("KILL")
    }

    /// Starts a stopped or killed server again on the same port and, if it has one, the same file.
    pub fn start_again(&mut self) -> io::Result<()> {
        let server = self.own()?;
        server.start_again()
    }

    /// Runs Temporal's CLI against this server, for example `["workflow", "list", "--output", "json"]`, and returns what it
    /// prints.
    ///
    /// # Errors
    /// When the CLI fails; the error is what it said.
    pub fn cli(&self, arguments: &[&str]) -> io::Result<String> {
        run_cli(&self.cli, &self.address, arguments)
    }

    /// Makes a namespace with a name of its own, so that tests on a shared server do not see each other's workflows.
    ///
    /// # Panics
    /// When the server refuses, or does not serve it in time.
    #[must_use]
    pub fn fresh_namespace(&self) -> String {
        let name = unique_name().replace('_', "-");
        self.cli(&["operator", "namespace", "create", "--namespace", &name])
            .unwrap_or_else(|error| panic!("namespace {name} could not be made: {error}"));
        let served = || serves(&self.cli, &self.address, &name);
        assert!(
            wait_until(NAMESPACE_LIMIT, served),
            "namespace {name} is not served"
        );
        name
    }

    fn own(&mut self) -> io::Result<&mut Server<DevServer>> {
        let shared = || io::Error::other("this Temporal server was not started by this process");
        self.own.as_mut().ok_or_else(shared)
    }
}

struct DevServer {
    cli: PathBuf,
    options: TemporalOptions,
}

impl ServerKind for DevServer {
    const NAME: &'static str = "Temporal";
    const END_SIGNAL: &'static str = "KILL";

    /// Its other ports are chosen by the server among the system's free ones; a collision is a failed start, and repeated.
    fn command(&self, folder: &Path, port: u16) -> Vec<OsString> {
        // It would keep a cluster id in the home folder otherwise.
        let home = |variable: &str| format!("{variable}={}", folder.display());
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
            command.push(folder.join("temporal.db").into());
        }
        command
    }

    fn is_ready(&self, _folder: &Path, port: u16, _pid: u32) -> bool {
        // Cheap, and so asked first.
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

/// Whether a namespace is served, down to where executions are kept.
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
        // Somebody's own profile must not lead to somebody's own server.
        .args(["--disable-config-file", "--disable-config-env"])
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let asked = arguments.join(" ");
        return Err(io::Error::other(format!(
            "temporal {asked}: {}",
            said.trim()
        )));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
