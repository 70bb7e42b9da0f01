//! The flags that say which server, with which key: the same for every client command.

use crate::exit::{Exit, Failure};
use crate::local::Local;
use clap::Args;
use leasehold_client::{Client, ClientOptions};
use leasehold_core::key::Secret;
use std::path::{Path, PathBuf};
use std::time::Duration;

const NEARBY: &str = "http://127.0.0.1:7777";
/// Holds the key. Never a flag: flags are seen by everybody on the machine.
const KEY_VARIABLE: &str = "LEASEHOLD_KEY";
const KEY_FILE_VARIABLE: &str = "LEASEHOLD_KEY_FILE";
/// Somebody waits: an answer that does not come is told soon.
const PATIENCE: Duration = Duration::from_secs(15);
const TRIES: u32 = 2;

/// Which server, and how to get in.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connection")]
pub struct Connection {
    /// The server's address [default: what the data folder says, else http://127.0.0.1:7777].
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "LEASEHOLD_SERVER",
        hide_env = true
    )]
    server: Option<String>,
    /// A file with the key and nothing else [default: the variable LEASEHOLD_KEY, else the data folder's].
    #[arg(long, global = true, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Trusts this authority (PEM) for the server's certificate, instead of the system's.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "LEASEHOLD_CA_FILE",
        hide_env = true
    )]
    ca_file: Option<PathBuf>,
    /// The data folder of a server on this machine [default: `leasehold-data` here or in a folder above].
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "LEASEHOLD__DATA_DIR",
        hide_env = true
    )]
    data_dir: Option<PathBuf>,
}

/// A server to talk to.
pub(crate) struct Found {
    pub(crate) client: Client,
    pub(crate) server: String,
    /// Where the key was found; none if there is none.
    pub(crate) key_from: Option<String>,
}

impl Connection {
    /// The client of the server that the flags, the variables and the data folder lead to.
    pub(crate) fn find(&self) -> Result<Found, Failure> {
        let local = Local::find(self.data_dir.as_deref())?;
        let of_local = local.as_ref().and_then(|local| local.address.clone());
        let server = self.server.clone().or(of_local);
        let server = server.unwrap_or_else(|| NEARBY.to_owned());
        let ca_pem = match &self.ca_file {
            Some(file) => Some(read(file)?),
            None => None,
        };
        let options = ClientOptions {
            timeout: PATIENCE,
            tries: TRIES,
            ca_pem,
            ..ClientOptions::default()
        };
        let client = |key: &str| {
            let made = Client::with(&server, key, options.clone());
            made.map_err(|error| Failure::usage(format!("--server: {error}")))
        };
        let without_key = client("")?;
        let its_own =
            |local: &Local| local.address.as_deref() == Some(&server) || without_key.is_local();
        let (client, key_from) = match self.key(local.filter(its_own))? {
            Some((secret, from)) => (client(&secret)?, Some(from)),
            None => (without_key, None),
        };
        Ok(Found {
            client,
            server,
            key_from,
        })
    }

    /// A flag goes before a variable, a variable before the data folder.
    fn key(&self, local: Option<Local>) -> Result<Option<(String, String)>, Failure> {
        if let Some(file) = &self.key_file {
            return of_file(file).map(Some);
        }
        if let Some(key) = variable(KEY_VARIABLE)? {
            return checked(&key, KEY_VARIABLE.to_owned()).map(Some);
        }
        if let Some(file) = variable(KEY_FILE_VARIABLE)? {
            return of_file(Path::new(&file)).map(Some);
        }
        let Some(local) = local else { return Ok(None) };
        let from = local.folder.join("admin.key").display().to_string();
        local.key.map(|key| checked(&key, from)).transpose()
    }
}

/// A variable that is set and holds nothing is a slip: whoever set it did not mean the administrator's key.
fn variable(name: &str) -> Result<Option<String>, Failure> {
    let Some(value) = std::env::var_os(name) else {
        return Ok(None);
    };
    let value = value.to_string_lossy().trim().to_owned();
    if value.is_empty() {
        let message =
            format!("{name} is set and holds nothing; unset it, or put into it what it is for");
        return Err(Failure::new(Exit::Denied, message));
    }
    Ok(Some(value))
}

fn of_file(file: &Path) -> Result<(String, String), Failure> {
    let text = String::from_utf8_lossy(&read(file)?).into_owned();
    checked(text.trim(), file.display().to_string())
}

fn checked(key: &str, from: String) -> Result<(String, String), Failure> {
    if Secret::parse(key).is_none() {
        let message = format!(
            "what {from} holds is no key of Leasehold's: it begins with lh_ and is copied whole"
        );
        return Err(Failure::new(Exit::Denied, message));
    }
    Ok((key.to_owned(), from))
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(file)
        .map_err(|error| Failure::usage(format!("{} cannot be read: {error}", file.display())))
}
