//! The connection flags of every client command: server address and API key.
//!
//! A key that is passed goes only to the address that is passed with it. Without both, the command uses the socket and the key of a data directory.

use crate::exit::{Exit, Failure};
use crate::local_data_dir::{LocalDataDir, checked_key};
use clap::Args;
use leasehold_client::{Client, ClientOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Holds the key. There is no flag for it because every user of the machine can read the flags of a process.
const KEY_VARIABLE: &str = "LEASEHOLD_KEY";
const KEY_FILE_VARIABLE: &str = "LEASEHOLD_KEY_FILE";
/// Short, because a person waits for the answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
const MAX_ATTEMPTS: u32 = 2;

/// Server address and credentials.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connection")]
pub struct Connection {
    /// Server URL; requires an API key [default: the socket in the data directory, with the key there].
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "LEASEHOLD_SERVER",
        hide_env = true
    )]
    server: Option<String>,
    /// File that contains only the API key for --server [default: the variable LEASEHOLD_KEY].
    #[arg(long, global = true, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// CA certificate (PEM) to verify the server with, instead of the system's CAs.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "LEASEHOLD_CA_FILE",
        hide_env = true
    )]
    ca_file: Option<PathBuf>,
    /// Data directory of a server on this machine [default: `leasehold-data` in this directory or a parent].
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "LEASEHOLD__DATA_DIR",
        hide_env = true
    )]
    data_dir: Option<PathBuf>,
}

/// The resolved server and key.
pub(crate) struct ResolvedConnection {
    pub(crate) client: Client,
    /// The URL of the server, or the path of its socket.
    pub(crate) server: String,
    /// Source of the key; `None` without a key.
    pub(crate) key_from: Option<String>,
    /// The data directory whose socket is used.
    pub(crate) local: Option<LocalDataDir>,
}

/// A key that was passed to the command, and its source.
struct PassedKey {
    secret: String,
    from: String,
}

impl Connection {
    /// Builds the client from the flags and the environment, else from the data directory.
    pub(crate) fn resolve(&self) -> Result<ResolvedConnection, Failure> {
        let options = ClientOptions {
            timeout: REQUEST_TIMEOUT,
            max_attempts: MAX_ATTEMPTS,
            ..ClientOptions::default()
        };
        match &self.server {
            Some(server) => self.to_address(server, options),
            None => self.to_data_dir(options),
        }
    }

    /// Connects to a passed address. The key of a data directory never goes there: another process may have its port.
    fn to_address(
        &self,
        server: &str,
        mut options: ClientOptions,
    ) -> Result<ResolvedConnection, Failure> {
        let key = self.passed_key()?;
        if let Some(file) = &self.ca_file {
            options.ca_pem = Some(read(file)?);
        }
        let secret = key.as_ref().map_or("", |key| &key.secret);
        let client = Client::with(server, secret, options);
        Ok(ResolvedConnection {
            client: client.map_err(|error| Failure::usage(format!("--server: {error}")))?,
            server: server.to_owned(),
            key_from: key.map(|key| key.from),
            local: None,
        })
    }

    /// Connects to the server of a data directory. A passed key never goes there: the directory may be a stranger's.
    fn to_data_dir(&self, options: ClientOptions) -> Result<ResolvedConnection, Failure> {
        let local = LocalDataDir::find(self.data_dir.as_deref())?;
        if let Some(key) = self.passed_key()? {
            return Err(no_address(&key, local.as_ref()));
        }
        let local = local.ok_or_else(no_server)?;
        let (client, key_file) = local.client(options)?;
        Ok(ResolvedConnection {
            client,
            server: local.socket().display().to_string(),
            key_from: Some(key_file.display().to_string()),
            local: Some(local),
        })
    }

    /// Order: flag, environment variables.
    fn passed_key(&self) -> Result<Option<PassedKey>, Failure> {
        if let Some(file) = &self.key_file {
            return key_from_file(file).map(Some);
        }
        if let Some(key) = variable(KEY_VARIABLE)? {
            let from = KEY_VARIABLE.to_owned();
            let secret = checked_key(&key, &from)?;
            return Ok(Some(PassedKey { secret, from }));
        }
        match variable(KEY_FILE_VARIABLE)? {
            Some(file) => key_from_file(Path::new(&file)).map(Some),
            None => Ok(None),
        }
    }
}

/// The failure of a command with a key and without an address.
fn no_address(key: &PassedKey, local: Option<&LocalDataDir>) -> Failure {
    let local = local.map(|local| {
        let dir = local.path().display();
        format!(", or pass no key to use the server and the key of the data directory {dir}")
    });
    Failure::usage(format!(
        "no server address for the API key from {}: a key goes only to an address that is passed with it; set --server or \
         LEASEHOLD_SERVER{}",
        key.from,
        local.unwrap_or_default()
    ))
}

/// The failure of a command with neither an address nor a data directory.
fn no_server() -> Failure {
    Failure::usage(
        "no server: there is no data directory `leasehold-data` of yours in this directory or a parent; run the command in the \
         directory of `leasehold serve`, set --data-dir, or set --server and LEASEHOLD_KEY",
    )
}

/// Reads a variable. An empty variable is an error: falling back to the key of the data directory would be a surprise.
fn variable(name: &str) -> Result<Option<String>, Failure> {
    let Some(value) = std::env::var_os(name) else {
        return Ok(None);
    };
    let value = value.to_string_lossy().trim().to_owned();
    if value.is_empty() {
        let message = format!("{name} is set but empty; set it to a value, or unset it");
        return Err(Failure::new(Exit::Denied, message));
    }
    Ok(Some(value))
}

fn key_from_file(file: &Path) -> Result<PassedKey, Failure> {
    let text = String::from_utf8_lossy(&read(file)?).into_owned();
    let from = file.display().to_string();
    let secret = checked_key(text.trim(), &from)?;
    Ok(PassedKey { secret, from })
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(file)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", file.display())))
}
