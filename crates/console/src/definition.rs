//! `leasehold definition`: publishes and shows workflow definitions.

use crate::command::Execute;
use crate::command_error::{CommandResult, OrNotFound, not_found};
use crate::display;
use crate::exit::Failure;
use crate::input;
use crate::listing::Listing;
use crate::output::{Output, clean};
use crate::scope::WorkspaceFlag;
use crate::session::Session;
use clap::{Args, Subcommand};
use leasehold_client::api::Code;
use leasehold_client::api::definition::{Definition, NewDefinition, NewVersion, Version};
use leasehold_core::duration::millis;
use leasehold_core::graph::Graph;
use leasehold_core::{DefinitionId, VersionBody, WorkspaceId};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Subcommands of `leasehold definition`.
#[derive(Subcommand, Clone, Debug)]
pub enum DefinitionAction {
    /// List the definitions of a workspace.
    List(Listing),
    /// Show a definition and the body of its current version.
    Get {
        /// Definition name or id.
        definition: String,
        /// Version number [default: the current version].
        #[arg(long, value_name = "N")]
        version: Option<u32>,
    },
    /// List the versions of a definition.
    Versions {
        /// Definition name or id.
        definition: String,
        #[command(flatten)]
        listing: Listing,
    },
    /// Publish a version and make it current; create the definition if it does not exist.
    Publish(Publish),
    /// Validate a definition file without a server.
    Check {
        /// File, or `-` for standard input.
        file: PathBuf,
    },
    /// Delete a definition; its pending requests fail when their turn comes, running executions continue.
    Delete {
        /// Definition name or id.
        definition: String,
    },
}

/// Flags of `leasehold definition publish`.
#[derive(Args, Clone, Debug)]
pub struct Publish {
    /// Definition name.
    definition: String,
    /// File with a graph or a complete version; `-` for standard input.
    #[arg(required_unless_present = "workflow_type")]
    file: Option<PathBuf>,
    /// Bind to this workflow type of your own Temporal workers, instead of a graph.
    #[arg(
        long,
        value_name = "TYPE",
        requires = "task_queue",
        conflicts_with = "file"
    )]
    workflow_type: Option<String>,
    /// Task queue that your own Temporal workers poll.
    #[arg(long, value_name = "NAME", requires = "workflow_type")]
    task_queue: Option<String>,
    /// File with the JSON Schema that params must match.
    #[arg(long, value_name = "FILE")]
    params_schema: Option<PathBuf>,
    /// Execution timeout, such as 10m [default: none].
    #[arg(long, value_name = "TIME", value_parser = input::duration)]
    timeout: Option<Duration>,
}

const LIST_COMMAND: &str = "definition list";

impl Execute for DefinitionAction {
    fn execute_offline(&self, out: &Output) -> Option<CommandResult> {
        match self {
            Self::Check { file } => Some(check(out, file)),
            _ => None,
        }
    }

    async fn execute(self, session: &Session, scope: &WorkspaceFlag) -> CommandResult {
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
                deleted.or_not_found(|| format!("definition `{definition}`"), LIST_COMMAND)?;
                let document = json!({ "deleted": definition });
                let sentence = format!("deleted definition {}", clean(&definition));
                Ok(session.out.print_result(&document, &sentence)?)
            }
        }
    }
}

impl Publish {
    async fn run(self, session: &Session, workspace: WorkspaceId) -> CommandResult {
        let version = self.version()?;
        let id = find_or_create(session, workspace, &self.definition).await?;
        let published = session
            .client
            .version_publish(workspace, id, &version)
            .await;
        let published =
            published.or_not_found(|| format!("definition `{}`", self.definition), LIST_COMMAND)?;
        if session.out.is_json() {
            return Ok(session.out.json(&published)?);
        }
        let (name, number) = (clean(&self.definition), published.number);
        let what = describe(&published.body);
        Ok(session
            .out
            .line(format!("published {name} version {number} ({what})"))?)
    }

    fn version(&self) -> Result<NewVersion, Failure> {
        let mut version = match (&self.file, &self.workflow_type, &self.task_queue) {
            (Some(file), _, _) => read_version(file)?,
            (None, Some(workflow_type), Some(task_queue)) => with_body(VersionBody::Binding {
                workflow_type: workflow_type.clone(),
                task_queue: task_queue.clone(),
            }),
            _ => {
                return Err(Failure::usage(
                    "nothing to publish: pass a file with a graph, or --workflow-type and --task-queue",
                ));
            }
        };
        if let Some(file) = &self.params_schema {
            version.params_schema = Some(input::json(
                &input::text(file)?,
                &input::display_name(file),
            )?);
        }
        if let Some(timeout) = self.timeout {
            version.execution_timeout_ms = Some(millis(timeout));
        }
        Ok(version)
    }
}

/// Finds or creates the definition. Another process may create it at the same time.
async fn find_or_create(
    session: &Session,
    workspace: WorkspaceId,
    named: &str,
) -> CommandResult<DefinitionId> {
    if let Ok(id) = named.parse() {
        return Ok(id);
    }
    let found = session.client.definition_find(workspace, named).await;
    let found = found.or_not_found(|| format!("workspace {workspace}"), "workspace list")?;
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

fn with_body(body: VersionBody) -> NewVersion {
    NewVersion {
        body,
        params_schema: None,
        execution_timeout_ms: None,
    }
}

/// Reads a graph, a body, or a complete version from a file.
fn read_version(file: &Path) -> Result<NewVersion, Failure> {
    let (text, source) = (input::text(file)?, input::display_name(file));
    let value: Value = input::json(&text, &source)?;
    let has = |field| value.get(field).is_some();
    let version = if has("body") {
        input::json(&text, &source)?
    } else if has("graph") || has("binding") {
        with_body(input::json(&text, &source)?)
    } else {
        with_body(VersionBody::Graph(input::json::<Graph>(&text, &source)?))
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
        Failure::usage(format!("invalid definition in {source}: {at}{problem}"))
    })?;
    Ok(version)
}

fn check(out: &Output, file: &Path) -> CommandResult {
    let version = read_version(file)?;
    let (source, what) = (input::display_name(file), describe(&version.body));
    let document = json!({ "file": source, "runs": what });
    Ok(out.print_result(&document, &format!("{source} is valid ({what})"))?)
}

fn describe(body: &VersionBody) -> String {
    match body {
        VersionBody::Graph(graph) => {
            let (nodes, edges) = (graph.nodes.len(), graph.edges.len());
            format!("graph: {}, {}", count(nodes, "node"), count(edges, "edge"))
        }
        VersionBody::Binding {
            workflow_type,
            task_queue,
        } => format!(
            "workflow type {} on task queue {}",
            clean(workflow_type),
            clean(task_queue)
        ),
    }
}

fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

async fn list(session: &Session, workspace: WorkspaceId, listing: Listing) -> CommandResult {
    let headings = ["NAME", "STATE", "CREATED", "ID"];
    let none = "no definitions; publish one with `leasehold definition publish NAME FILE`";
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
            display::age(definition.created_at, jiff::Timestamp::now()),
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
) -> CommandResult {
    let id = session.definition(workspace, named).await?;
    let headings = ["VERSION", "BODY", "TIMEOUT", "PUBLISHED", "ID"];
    let none = "no versions; publish one with `leasehold definition publish`";
    let list = session.client.version_list(workspace, id);
    let row = |version: &Version| {
        let timeout = version.execution_timeout_ms;
        vec![
            version.number.to_string(),
            describe(&version.body),
            timeout.map_or_else(|| "none".to_owned(), display::duration),
            display::age(version.created_at, jiff::Timestamp::now()),
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
) -> CommandResult {
    let id = session.definition(workspace, named).await?;
    let definition = session.client.definition_get(workspace, id).await;
    let definition = definition.or_not_found(|| format!("definition `{named}`"), LIST_COMMAND)?;
    let version = match (number, definition.current_version) {
        (Some(number), _) => Some(find_version(session, workspace, id, named, number).await?),
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
        ("created", display::timestamp(definition.created_at)),
        ("version", number.unwrap_or_else(|| "none".to_owned())),
    ])?;
    match version {
        Some(version) => Ok(session.out.json(&version.body)?),
        None => Ok(()),
    }
}

async fn find_version(
    session: &Session,
    workspace: WorkspaceId,
    definition: DefinitionId,
    named: &str,
    number: u32,
) -> CommandResult<Version> {
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
            return Err(not_found(&what, "definition versions").into());
        }
    }
}
