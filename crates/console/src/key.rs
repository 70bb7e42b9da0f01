//! `leasehold key`: who gets in.

use crate::command::Act;
use crate::listing::{Listing, note};
use crate::output::clean;
use crate::scope::{Names, WorkspaceFlag};
use crate::session::Session;
use crate::shown;
use crate::trouble::{OrMissing, Outcome};
use clap::{Args, Subcommand};
use leasehold_client::api::key::{Key, NewKey, Scope};
use leasehold_core::KeyId;

/// What to do with keys.
#[derive(Subcommand, Clone, Debug)]
pub enum KeyAction {
    /// Makes a key; its secret is shown this once.
    Create(CreateKey),
    /// Lists keys, revoked ones too.
    List(Listing),
    /// Shows a key.
    Get {
        /// Its id.
        id: KeyId,
    },
    /// Revokes a key for good.
    Revoke {
        /// Its id.
        id: KeyId,
    },
    /// Shows the key that this command uses.
    Me,
}

/// A key to make.
#[derive(Args, Clone, Debug)]
#[command(group(clap::ArgGroup::new("scope").required(true)))]
pub struct CreateKey {
    /// What people call it.
    name: String,
    /// It opens everything.
    #[arg(long, group = "scope")]
    admin: bool,
    /// It opens one workspace, by name or id.
    #[arg(long, value_name = "NAME|ID", group = "scope")]
    for_workspace: Option<String>,
    /// It opens the jobs of this queue; may be said again for more.
    #[arg(long, value_name = "QUEUE", group = "scope")]
    for_queue: Vec<String>,
}

const LOOK: &str = "key list";

impl Act for KeyAction {
    async fn act(self, session: &Session, _: &WorkspaceFlag) -> Outcome {
        match self {
            Self::Create(create) => create.run(session).await,
            Self::List(listing) => list(session, listing).await,
            Self::Get { id } => {
                let key = session.client.key_get(id).await;
                let key = key.or_missing(|| format!("key {id}"), LOOK)?;
                print(session, &key).await
            }
            Self::Revoke { id } => {
                let key = session.client.key_revoke(id).await;
                let key = key.or_missing(|| format!("key {id}"), LOOK)?;
                if session.out.is_json() {
                    return Ok(session.out.json(&key)?);
                }
                let name = clean(&key.name);
                Ok(session
                    .out
                    .line(format!("key {id} ({name}) opens nothing any more"))?)
            }
            Self::Me => print(session, session.me().await?).await,
        }
    }
}

impl CreateKey {
    async fn run(self, session: &Session) -> Outcome {
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
        // The secret alone on standard output, so that `> file` keeps nothing else.
        let opens = opens(session, &mut Names::default(), &made.key.scope).await;
        let text = format!(
            "key {} opens {opens}; this is its secret, shown this once:",
            made.key.id
        );
        note(&text);
        Ok(out.line(&made.secret)?)
    }
}

async fn opens(session: &Session, names: &mut Names, scope: &Scope) -> String {
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

async fn list(session: &Session, listing: Listing) -> Outcome {
    let headings = ["ID", "NAME", "OPENS", "MADE", "STATE"];
    let rows = async |items: &[Key]| {
        let (mut names, mut rows) = (Names::default(), Vec::new());
        for key in items {
            rows.push(vec![
                key.id.to_string(),
                clean(&key.name),
                shown::cut(&opens(session, &mut names, &key.scope).await),
                shown::age(key.created_at, jiff::Timestamp::now()),
                shown::yes(key.revoked_at.is_some(), "revoked"),
            ]);
        }
        Ok(rows)
    };
    let list = session.client.key_list();
    listing
        .print(session, list, &headings, "there are no keys", rows)
        .await
}

async fn print(session: &Session, key: &Key) -> Outcome {
    if session.out.is_json() {
        return Ok(session.out.json(key)?);
    }
    Ok(session.out.fields(vec![
        ("key", key.id.to_string()),
        ("name", clean(&key.name)),
        (
            "opens",
            opens(session, &mut Names::default(), &key.scope).await,
        ),
        ("made", shown::moment(key.created_at)),
        ("revoked", shown::maybe(key.revoked_at)),
    ])?)
}
