//! `leasehold definition`: publishing workflows and looking at them.

use crate::command::Act;
use crate::exit::Failure;
use crate::input;
use crate::listing::Listing;
use crate::output::{Output, clean};
use crate::scope::WorkspaceFlag;
use crate::session::Session;
use crate::shown;
use crate::trouble::{OrMissing, Outcome, missing};
use clap::{Args, Subcommand};
use leasehold_client::api::Code;
use leasehold_client::api::definition::{Definition, NewDefinition, NewVersion, Version};
use leasehold_core::duration::millis;
use leasehold_core::graph::Graph;
use leasehold_core::{DefinitionId, VersionBody, WorkspaceId};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What to do with definitions.
#[derive(Subcommand, Clone, Debug)]
pub enum DefinitionAction {
    /// Lists the definitions of a workspace.
    List(Listing),
    /// Shows a definition and what its current version runs.
    Get {
        /// Its name or id.
        definition: String,
        /// Another version than the current one.
        #[arg(long, value_name = "N")]
        version: Option<u32>,
    },
    /// Lists the versions of a definition.
    Versions {
        /// Its name or id.
        definition: String,
        #[command(flatten)]
        listing: Listing,
    },
    /// Publishes a version and makes it current; the definition is made if it is not there.
    Publish(Publish),
    /// Says whether a file can be published, without a server.
    Check {
        /// The file, or `-`.
        file: PathBuf,
    },
    /// Deletes a definition: what waits for it fails when its turn comes, what runs runs on.
    Delete {
        /// Its name or id.
        definition: String,
    },
}

/// What to publish.
#[derive(Args, Clone, Debug)]
pub struct Publish {
    /// The definition's name.
    definition: String,
    /// A file with a graph, or with a whole version; `-` is standard input.
    #[arg(required_unless_present = "workflow_type")]
    file: Option<PathBuf>,
    /// Binds to this workflow type of your own Temporal workers, instead of a graph.
    #[arg(
        long,
        value_name = "TYPE",
        requires = "task_queue",
        conflicts_with = "file"
    )]
    workflow_type: Option<String>,
    /// The task queue that your own Temporal workers poll.
    #[arg(long, value_name = "NAME", requires = "workflow_type")]
    task_queue: Option<String>,
    /// A file with the JSON Schema that params must match.
    #[arg(long, value_name = "FILE")]
    params_schema: Option<PathBuf>,
    /// How long an execution may take.
    #[arg(long, value_name = "TIME", value_parser = input::span)]
    timeout: Option<Duration>,
}

const LOOK: &str = "definition list";

impl Act for DefinitionAction {
    fn alone(&self, out: &Output) -> Option<Outcome> {
        match self {
            Self::Check { file } => Some(check(out, file)),
            _ => None,
        }
    }

    async fn act(self, session: &Session, scope: &WorkspaceFlag) -> Outcome {
        let workspace = scope.id(session).await?;
        match self {
            Self::List(listing) => list(session, workspace, listing).await,
            Self::Get {
                definition,
                version,
            } => get(session, workspace, &definition, version).await,
            Self::Versions {
                definition,
                listing,
            } => versions(session, workspace, &definition, listing).await,
            Self::Publish(publish) => publish.run(session, workspace).await,
            Self::Check { file } => check(&session.out, &file),
            Self::Delete { definition } => {
                let id = session.definition(workspace, &definition).await?;
                let deleted = session.client.definition_delete(workspace, id).await;
                deleted.or_missing(|| format!("definition `{definition}`"), LOOK)?;
                let document = json!({ "deleted": definition });
                let sentence = format!("definition {} is deleted", clean(&definition));
                Ok(session.out.told(&document, &sentence)?)
            }
        }
    }
}

impl Publish {
    async fn run(self, session: &Session, workspace: WorkspaceId) -> Outcome {
        let version = self.version()?;
        let id = made(session, workspace, &self.definition).await?;
        let published = session
            .client
            .version_publish(workspace, id, &version)
            .await;
        let published =
            published.or_missing(|| format!("definition `{}`", self.definition), LOOK)?;
        if session.out.is_json() {
            return Ok(session.out.json(&published)?);
        }
        let (name, number) = (clean(&self.definition), published.number);
        let what = described(&published.body);
        Ok(session.out.line(format!(
            "definition {name} has version {number} now: {what}"
        ))?)
    }

    fn version(&self) -> Result<NewVersion, Failure> {
        let mut version = match (&self.file, &self.workflow_type, &self.task_queue) {
            (Some(file), _, _) => of_file(file)?,
            (None, Some(workflow_type), Some(task_queue)) => plain(VersionBody::Binding {
                workflow_type: workflow_type.clone(),
                task_queue: task_queue.clone(),
            }),
            _ => {
                return Err(Failure::usage(
                    "name a file with a graph, or --workflow-type and --task-queue",
                ));
            }
        };
        if let Some(file) = &self.params_schema {
            version.params_schema = Some(input::json(&input::text(file)?, &input::named(file))?);
        }
        if let Some(timeout) = self.timeout {
            version.execution_timeout_ms = Some(millis(timeout));
        }
        Ok(version)
    }
}

/// The definition of that name; another process may be making it at the same time.
async fn made(session: &Session, workspace: WorkspaceId, named: &str) -> Outcome<DefinitionId> {
    if let Ok(id) = named.parse() {
        return Ok(id);
    }
    let found = session.client.definition_find(workspace, named).await;
    let found = found.or_missing(|| format!("workspace {workspace}"), "workspace list")?;
    if let Some(found) = found {
        return Ok(found.id);
    }
    let new = NewDefinition {
        name: named.to_owned(),
    };
    match session.client.definition_create(workspace, &new).await {
        Err(error) if error.code() == Some(Code::NameTaken) => {
            session.definition(workspace, named).await
        }
        made => Ok(made?.id),
    }
}

fn plain(body: VersionBody) -> NewVersion {
    NewVersion {
        body,
        params_schema: None,
        execution_timeout_ms: None,
    }
}

/// A graph by itself, a body, or a whole version.
fn of_file(file: &Path) -> Result<NewVersion, Failure> {
    let (text, place) = (input::text(file)?, input::named(file));
    let value: Value = input::json(&text, &place)?;
    let has = |field| value.get(field).is_some();
    let version = if has("body") {
        input::json(&text, &place)?
    } else if has("graph") || has("binding") {
        plain(input::json(&text, &place)?)
    } else {
        plain(VersionBody::Graph(input::json::<Graph>(&text, &place)?))
    };
    version.body.validate().map_err(|problem| {
        let pointer = problem.pointer();
        let inside = if has("body") || has("graph") || has("binding") {
            pointer
        } else {
            pointer.trim_start_matches("/graph").to_owned()
        };
        let at = if inside.is_empty() {
            String::new()
        } else {
            format!("{inside}: ")
        };
        Failure::usage(format!("{place} cannot be published: {at}{problem}"))
    })?;
    Ok(version)
}

fn check(out: &Output, file: &Path) -> Outcome {
    let version = of_file(file)?;
    let (place, what) = (input::named(file), described(&version.body));
    let document = json!({ "file": place, "runs": what });
    Ok(out.told(&document, &format!("{place} can be published: {what}"))?)
}

fn described(body: &VersionBody) -> String {
    match body {
        VersionBody::Graph(graph) => {
            let (nodes, edges) = (graph.nodes.len(), graph.edges.len());
            format!(
                "a graph of {} and {}",
                count(nodes, "node"),
                count(edges, "edge")
            )
        }
        VersionBody::Binding {
            workflow_type,
            task_queue,
        } => format!(
            "bound to {} on the task queue {}",
            clean(workflow_type),
            clean(task_queue)
        ),
    }
}

fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

async fn list(session: &Session, workspace: WorkspaceId, listing: Listing) -> Outcome {
    let headings = ["NAME", "STATE", "MADE", "ID"];
    let none = "there are no definitions; `leasehold definition publish NAME FILE` makes one";
    let list = session.client.definition_list(workspace);
    let row = |definition: &Definition| {
        vec![
            clean(&definition.name),
            if definition.current_version.is_some() {
                "published"
            } else {
                "no version"
            }
            .to_owned(),
            shown::age(definition.created_at, jiff::Timestamp::now()),
            definition.id.to_string(),
        ]
    };
    let rows = async |items: &[Definition]| Ok(items.iter().map(row).collect());
    listing.print(session, list, &headings, none, rows).await
}

async fn versions(
    session: &Session,
    workspace: WorkspaceId,
    named: &str,
    listing: Listing,
) -> Outcome {
    let id = session.definition(workspace, named).await?;
    let headings = ["VERSION", "RUNS", "TIMEOUT", "PUBLISHED", "ID"];
    let none = "there is no version; `leasehold definition publish` makes one";
    let list = session.client.version_list(workspace, id);
    let row = |version: &Version| {
        let timeout = version.execution_timeout_ms;
        vec![
            version.number.to_string(),
            described(&version.body),
            timeout.map_or_else(|| "none".to_owned(), shown::length),
            shown::age(version.created_at, jiff::Timestamp::now()),
            version.id.to_string(),
        ]
    };
    let rows = async |items: &[Version]| Ok(items.iter().map(row).collect());
    listing.print(session, list, &headings, none, rows).await
}

async fn get(
    session: &Session,
    workspace: WorkspaceId,
    named: &str,
    number: Option<u32>,
) -> Outcome {
    let id = session.definition(workspace, named).await?;
    let definition = session.client.definition_get(workspace, id).await;
    let definition = definition.or_missing(|| format!("definition `{named}`"), LOOK)?;
    let version = match (number, definition.current_version) {
        (Some(number), _) => Some(numbered(session, workspace, id, named, number).await?),
        (None, Some(current)) => Some(session.client.version_get(workspace, current).await?),
        (None, None) => None,
    };
    if session.out.is_json() {
        let both = serde_json::json!({"definition": definition, "version": version});
        return Ok(session.out.json(&both)?);
    }
    let number = version.as_ref().map(|version| version.number.to_string());
    session.out.fields(vec![
        ("definition", clean(&definition.name)),
        ("id", definition.id.to_string()),
        ("made", shown::moment(definition.created_at)),
        ("version", number.unwrap_or_else(|| "none yet".to_owned())),
    ])?;
    match version {
        Some(version) => Ok(session.out.json(&version.body)?),
        None => Ok(()),
    }
}

async fn numbered(
    session: &Session,
    workspace: WorkspaceId,
    definition: DefinitionId,
    named: &str,
    number: u32,
) -> Outcome<Version> {
    let list = session.client.version_list(workspace, definition);
    let mut after = None;
    loop {
        let page = list.page(after.as_deref()).await?;
        if let Some(found) = page
            .items
            .into_iter()
            .find(|version| version.number == number)
        {
            return Ok(found);
        }
        after = page.next;
        if after.is_none() {
            let what = format!("version {number} of `{named}`");
            return Err(missing(&what, "definition versions").into());
        }
    }
}
