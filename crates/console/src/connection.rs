//! The connection flags of every client command: server address and API key.

use crate::exit::{Exit, Failure};
use crate::local_data_dir::LocalDataDir;
use clap::Args;
use leasehold_client::{Client, ClientOptions};
use leasehold_core::key::Secret;
use std::path::{Path, PathBuf};
use std::time::Duration;

const DEFAULT_SERVER: &str = "http://127.0.0.1:7777";
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
    /// Server URL [default: the address in the data directory, else http://127.0.0.1:7777].
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "LEASEHOLD_SERVER",
        hide_env = true
    )]
    server: Option<String>,
    /// File that contains only the API key [default: the variable LEASEHOLD_KEY, else the key in the data directory].
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
    pub(crate) server: String,
    /// Source of the key; `None` without a key.
    pub(crate) key_from: Option<String>,
}

impl Connection {
    /// Builds the client from the flags, the environment and the data directory.
    pub(crate) fn resolve(&self) -> Result<ResolvedConnection, Failure> {
        let local = LocalDataDir::find(self.data_dir.as_deref())?;
        let local_address = local.as_ref().and_then(|local| local.address.clone());
        let server = self.server.clone().or(local_address);
        let server = server.unwrap_or_else(|| DEFAULT_SERVER.to_owned());
        let ca_pem = match &self.ca_file {
            Some(file) => Some(read(file)?),
            None => None,
        };
        let options = ClientOptions {
            timeout: REQUEST_TIMEOUT,
            max_attempts: MAX_ATTEMPTS,
            ca_pem,
            ..ClientOptions::default()
        };
        let client = |key: &str| {
            let made = Client::with(&server, key, options.clone());
            made.map_err(|error| Failure::usage(format!("--server: {error}")))
        };
        let without_key = client("")?;
        let belongs_to_server = |local: &LocalDataDir| {
            local.address.as_deref() == Some(&server) || without_key.is_local()
        };
        let (client, key_from) = match self.key(local.filter(belongs_to_server))? {
            Some((secret, from)) => (client(&secret)?, Some(from)),
            None => (without_key, None),
        };
        Ok(ResolvedConnection {
            client,
            server,
            key_from,
        })
    }

    /// Order: flag, environment variable, data directory.
    fn key(&self, local: Option<LocalDataDir>) -> Result<Option<(String, String)>, Failure> {
        if let Some(file) = &self.key_file {
            return key_from_file(file).map(Some);
        }
        if let Some(key) = variable(KEY_VARIABLE)? {
            return checked_key(&key, KEY_VARIABLE.to_owned()).map(Some);
        }
        if let Some(file) = variable(KEY_FILE_VARIABLE)? {
            return key_from_file(Path::new(&file)).map(Some);
        }
        let Some(local) = local else { return Ok(None) };
        let from = local.dir.join("admin.key").display().to_string();
        local.key.map(|key| checked_key(&key, from)).transpose()
    }
}

/// Reads a variable. An empty variable is an error: falling back to the administrator key would be a surprise.
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

fn key_from_file(file: &Path) -> Result<(String, String), Failure> {
    let text = String::from_utf8_lossy(&read(file)?).into_owned();
    checked_key(text.trim(), file.display().to_string())
}

fn checked_key(key: &str, from: String) -> Result<(String, String), Failure> {
    if Secret::parse(key).is_none() {
        let message = format!(
            "invalid API key in {from}: a key starts with lh_ and must be copied completely"
        );
        return Err(Failure::new(Exit::Denied, message));
    }
    Ok((key.to_owned(), from))
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(file)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", file.display())))
}
