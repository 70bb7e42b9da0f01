//! `leasehold key`: creates, shows and revokes API keys.

use crate::command::Execute;
use crate::command_error::{CommandResult, OrNotFound};
use crate::display;
use crate::listing::{Listing, note};
use crate::output::clean;
use crate::scope::{NameCache, WorkspaceFlag};
use crate::session::Session;
use clap::{Args, Subcommand};
use leasehold_client::api::key::{Key, NewKey, Scope};
use leasehold_core::KeyId;

/// Subcommands of `leasehold key`.
#[derive(Subcommand, Clone, Debug)]
pub enum KeyAction {
    /// Create a key; its secret is shown only once.
    Create(CreateKey),
    /// List keys, including revoked ones.
    List(Listing),
    /// Show a key.
    Get {
        /// Key id.
        id: KeyId,
    },
    /// Revoke a key permanently.
    Revoke {
        /// Key id.
        id: KeyId,
    },
    /// Show the key that this command uses.
    Me,
}

/// Flags of `leasehold key create`.
#[derive(Args, Clone, Debug)]
#[command(group(clap::ArgGroup::new("scope").required(true)))]
pub struct CreateKey {
    /// Name of the key.
    name: String,
    /// Access to everything.
    #[arg(long, group = "scope")]
    admin: bool,
    /// Access to one workspace, by name or id.
    #[arg(long, value_name = "NAME|ID", group = "scope")]
    for_workspace: Option<String>,
    /// Access to the jobs of this queue; repeat for more queues.
    #[arg(long, value_name = "QUEUE", group = "scope")]
    for_queue: Vec<String>,
}

const LIST_COMMAND: &str = "key list";

impl Execute for KeyAction {
    async fn execute(self, session: &Session, _: &WorkspaceFlag) -> CommandResult {
        match self {
            Self::Create(create) => create.run(session).await,
            Self::List(listing) => list(session, listing).await,
            Self::Get { id } => {
                let key = session.client.key_get(id).await;
                let key = key.or_not_found(|| format!("key {id}"), LIST_COMMAND)?;
                print(session, &key).await
            }
            Self::Revoke { id } => {
                let key = session.client.key_revoke(id).await;
                let key = key.or_not_found(|| format!("key {id}"), LIST_COMMAND)?;
                if session.out.is_json() {
                    return Ok(session.out.json(&key)?);
                }
                let name = clean(&key.name);
                Ok(session.out.line(format!("revoked key {id} ({name})"))?)
            }
            Self::Me => print(session, session.me().await?).await,
        }
    }
}

impl CreateKey {
    async fn run(self, session: &Session) -> CommandResult {
        let scope = match (&self.for_workspace, self.for_queue.is_empty()) {
            (Some(named), _) => Scope::Workspace {
                workspace: session.workspace(named).await?,
            },
            (None, false) => Scope::Worker {
                queues: self.for_queue.clone(),
            },
            (None, true) => Scope::Admin,
        };
        let new = NewKey {
            name: self.name,
            scope,
        };
        let made = session.client.key_create(&new).await?;
        let out = &session.out;
        if out.is_json() {
            return Ok(out.json(&made)?);
        }
        // Only the secret goes to standard output, so that `> file` contains nothing else.
        let access = access(session, &mut NameCache::default(), &made.key.scope).await;
        let text = format!(
            "created key {} with access to {access}; its secret, shown only once:",
            made.key.id
        );
        note(&text);
        Ok(out.line(&made.secret)?)
    }
}

async fn access(session: &Session, names: &mut NameCache, scope: &Scope) -> String {
    match scope {
        Scope::Admin => "everything".to_owned(),
        Scope::Workspace { workspace } => {
            let name = names.workspace(session, *workspace).await;
            format!("workspace {}", clean(&name))
        }
        Scope::Worker { queues } => {
            let queues: Vec<String> = queues.iter().map(|queue| clean(queue)).collect();
            format!("queues {}", queues.join(", "))
        }
    }
}

async fn list(session: &Session, listing: Listing) -> CommandResult {
    let headings = ["ID", "NAME", "ACCESS", "CREATED", "STATE"];
    let rows = async |items: &[Key]| {
        let (mut names, mut rows) = (NameCache::default(), Vec::new());
        for key in items {
            rows.push(vec![
                key.id.to_string(),
                clean(&key.name),
                display::truncate(&access(session, &mut names, &key.scope).await),
                display::age(key.created_at, jiff::Timestamp::now()),
                display::word_if(key.revoked_at.is_some(), "revoked"),
            ]);
        }
        Ok(rows)
    };
    let list = session.client.key_list();
    listing
        .print(session, list, &headings, "no keys", rows)
        .await
}

async fn print(session: &Session, key: &Key) -> CommandResult {
    if session.out.is_json() {
        return Ok(session.out.json(key)?);
    }
    Ok(session.out.fields(vec![
        ("key", key.id.to_string()),
        ("name", clean(&key.name)),
        (
            "access",
            access(session, &mut NameCache::default(), &key.scope).await,
        ),
        ("created", display::timestamp(key.created_at)),
        ("revoked", display::optional_timestamp(key.revoked_at)),
    ])?)
}
