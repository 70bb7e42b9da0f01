//! `leasehold key`: creates, shows, rotates and revokes API keys.

use crate::command::Execute;
use crate::command_error::{CommandResult, OrNotFound};
use crate::display;
use crate::exit::{Exit, Failure};
use crate::input;
use crate::listing::{Listing, note};
use crate::output::clean;
use crate::scope::{NameCache, WorkspaceFlag};
use crate::session::Session;
use clap::{Args, Subcommand};
use leasehold_client::api::Code;
use leasehold_client::api::key::{Access, Key, NewKey, Payloads, RotationOptions, Scope};
use leasehold_core::KeyId;
use leasehold_core::duration::millis;
use std::time::Duration;

/// Subcommands of `leasehold key`.
#[derive(Subcommand, Clone, Debug)]
pub enum KeyAction {
    /// Create a key; its secret is shown only once.
    Create(CreateKey),
    /// List keys, including revoked and expired ones.
    List(Listing),
    /// Show a key.
    Get {
        /// Key id.
        id: KeyId,
    },
    /// Create a successor of a key and let the key expire after an overlap; the secret is shown only once.
    Rotate(RotateKey),
    /// Revoke a key permanently.
    Revoke {
        /// Key id.
        id: KeyId,
        /// Revoke even the last administrator key.
        #[arg(long)]
        force: bool,
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
    /// Access to the metrics only, for Prometheus.
    #[arg(long, group = "scope")]
    metrics: bool,
    /// Allow reading only.
    #[arg(long)]
    read_only: bool,
    /// Hide params, payloads, results, outputs, progress and error texts.
    #[arg(long)]
    hide_payloads: bool,
    /// How long the key is valid, such as 30d or 12h [default: until it is revoked].
    #[arg(long, value_name = "TIME", value_parser = input::lifetime)]
    expires: Option<Duration>,
}

/// Flags of `leasehold key rotate`.
#[derive(Args, Clone, Copy, Debug)]
pub struct RotateKey {
    /// Key id.
    id: KeyId,
    /// How long the old key stays valid, such as 1h or 7d [default: 24h].
    #[arg(long, value_name = "TIME", value_parser = input::lifetime)]
    overlap: Option<Duration>,
    /// How long the new key is valid, such as 30d [default: as long as the old one was when it was created].
    #[arg(long, value_name = "TIME", value_parser = input::lifetime)]
    expires: Option<Duration>,
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
            Self::Rotate(rotate) => rotate.run(session).await,
            Self::Revoke { id, force } => revoke(session, id, force).await,
            Self::Me => print(session, session.me().await?).await,
        }
    }
}

async fn revoke(session: &Session, id: KeyId, force: bool) -> CommandResult {
    let revoked = match force {
        true => session.client.key_revoke_forced(id).await,
        false => session.client.key_revoke(id).await,
    };
    if let Err(error) = &revoked
        && error.code() == Some(Code::LastAdminKey)
    {
        let message = format!(
            "key {id} is the last administrator key; create another first with `leasehold key create NAME --admin`, or revoke it \
             with --force: then only `leasehold admin-key` creates a new one"
        );
        return Err(Failure::new(Exit::Conflict, message).into());
    }
    let key = revoked.or_not_found(|| format!("key {id}"), LIST_COMMAND)?;
    if session.out.is_json() {
        return Ok(session.out.json(&key)?);
    }
    let name = clean(&key.name);
    Ok(session.out.line(format!("revoked key {id} ({name})"))?)
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
            (None, true) if self.metrics => Scope::Metrics,
            (None, true) => Scope::Admin,
        };
        let new = NewKey {
            access: match self.read_only {
                true => Access::Read,
                false => Access::Full,
            },
            payloads: match self.hide_payloads {
                true => Payloads::Hidden,
                false => Payloads::Shown,
            },
            expires_in_ms: self.expires.map(millis),
            ..NewKey::full(self.name, scope)
        };
        let made = session.client.key_create(&new).await?;
        let out = &session.out;
        if out.is_json() {
            return Ok(out.json(&made)?);
        }
        // Only the secret goes to standard output, so that `> file` contains nothing else.
        let scope = scope_text(session, &mut NameCache::default(), &made.key.scope).await;
        let text = format!(
            "created key {} with access to {scope}{}; its secret, shown only once:",
            made.key.id,
            restrictions(&made.key)
        );
        note(&text);
        Ok(out.line(&made.secret)?)
    }
}

impl RotateKey {
    async fn run(self, session: &Session) -> CommandResult {
        let options = RotationOptions {
            overlap_ms: self.overlap.map(millis),
            expires_in_ms: self.expires.map(millis),
        };
        let id = self.id;
        let rotated = session.client.key_rotate(id, &options).await;
        let rotated = rotated.or_not_found(|| format!("key {id}"), LIST_COMMAND)?;
        let out = &session.out;
        if out.is_json() {
            return Ok(out.json(&rotated)?);
        }
        // Only the secret goes to standard output, as for a created key.
        note(&format!(
            "created key {}, the successor of key {id}, which expires at {}; the secret of the new key, shown only once:",
            rotated.key.id,
            display::optional_timestamp(rotated.old.expires_at)
        ));
        Ok(out.line(&rotated.secret)?)
    }
}

/// The restrictions of a key, after what it gives access to.
fn restrictions(key: &Key) -> String {
    let mut text = String::new();
    if key.access == Access::Read {
        text.push_str(", read-only");
    }
    if key.payloads == Payloads::Hidden {
        text.push_str(", payloads hidden");
    }
    if let Some(at) = key.expires_at {
        text.push_str(&format!(", expires at {}", display::timestamp(at)));
    }
    text
}

fn state(key: &Key) -> &'static str {
    match (key.revoked_at, key.expired, key.successor) {
        (Some(_), ..) => "revoked",
        (None, true, _) => "expired",
        (None, false, Some(_)) => "rotated",
        (None, false, None) => "",
    }
}

const fn access_name(access: Access) -> &'static str {
    match access {
        Access::Full => "full",
        Access::Read => "read",
    }
}

const fn payloads_name(payloads: Payloads) -> &'static str {
    match payloads {
        Payloads::Shown => "shown",
        Payloads::Hidden => "hidden",
    }
}

async fn scope_text(session: &Session, names: &mut NameCache, scope: &Scope) -> String {
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
        Scope::Metrics => "metrics".to_owned(),
    }
}

async fn list(session: &Session, listing: Listing) -> CommandResult {
    let headings = [
        "ID",
        "NAME",
        "SCOPE",
        "ACCESS",
        "PAYLOADS",
        "CREATED",
        "LAST USED",
        "EXPIRES",
        "STATE",
    ];
    let rows = async |items: &[Key]| {
        let (mut names, mut rows) = (NameCache::default(), Vec::new());
        let now = jiff::Timestamp::now();
        for key in items {
            rows.push(vec![
                key.id.to_string(),
                clean(&key.name),
                display::truncate(&scope_text(session, &mut names, &key.scope).await),
                access_name(key.access).to_owned(),
                payloads_name(key.payloads).to_owned(),
                display::age(key.created_at, now),
                key.last_used_at
                    .map_or_else(String::new, |at| display::age(at, now)),
                display::optional_timestamp(key.expires_at),
                state(key).to_owned(),
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
            "scope",
            scope_text(session, &mut NameCache::default(), &key.scope).await,
        ),
        ("access", access_name(key.access).to_owned()),
        ("payloads", payloads_name(key.payloads).to_owned()),
        ("created", display::timestamp(key.created_at)),
        ("last used", display::optional_timestamp(key.last_used_at)),
        ("expires", display::optional_timestamp(key.expires_at)),
        (
            "successor",
            key.successor.map(|id| id.to_string()).unwrap_or_default(),
        ),
        ("revoked", display::optional_timestamp(key.revoked_at)),
    ])?)
}
