//! Every client command: a resource, its action, and the flags that all commands share.

use crate::audit::AuditAction;
use crate::command_error::{self, CommandResult};
use crate::connection::Connection;
use crate::dead_letter::DeadLetterAction;
use crate::definition::DefinitionAction;
use crate::execution::ExecutionAction;
use crate::exit::Failure;
use crate::job::JobAction;
use crate::key::KeyAction;
use crate::output::{Output, OutputFlags};
use crate::queue::QueueAction;
use crate::request::RequestAction;
use crate::scope::WorkspaceFlag;
use crate::server_info::{ChangesArgs, InstanceAction, LockAction};
use crate::session::Session;
use crate::top::Top;
use crate::workspace::WorkspaceAction;
use clap::{Args, Subcommand};

/// A client command.
#[derive(Subcommand, Clone, Debug)]
pub enum Command {
    /// Create, show, update and delete workspaces.
    Workspace(GlobalCommand<WorkspaceAction>),
    /// Publish and show workflow definitions.
    Definition(WorkspaceCommand<DefinitionAction>),
    /// Enqueue, show, watch, cancel and redrive requests.
    Request(WorkspaceCommand<RequestAction>),
    /// Show executions and their nodes.
    Execution(WorkspaceCommand<ExecutionAction>),
    /// Show and redrive failed requests.
    DeadLetter(WorkspaceCommand<DeadLetterAction>),
    /// Show, configure and pause job queues.
    Queue(GlobalCommand<QueueAction>),
    /// Enqueue and show jobs, and run a worker with any program.
    Job(GlobalCommand<JobAction>),
    /// Create, show, rotate and revoke API keys.
    Key(GlobalCommand<KeyAction>),
    /// Show which key made which change.
    Audit(GlobalCommand<AuditAction>),
    /// Show the server processes.
    Instance(GlobalCommand<InstanceAction>),
    /// Show the locks of the server processes.
    Lock(GlobalCommand<LockAction>),
    /// Stream every request change of a workspace, or of all workspaces.
    Changes(ChangesCommand),
    /// Show live activity of the server (requires an administrator key).
    Top(TopCommand),
}

/// A command that takes no workspace.
#[derive(Args, Clone, Debug)]
pub struct GlobalCommand<A: Subcommand> {
    #[command(subcommand)]
    action: A,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    output: OutputFlags,
}

/// A command that runs in a workspace.
#[derive(Args, Clone, Debug)]
pub struct WorkspaceCommand<A: Subcommand> {
    #[command(subcommand)]
    action: A,
    #[command(flatten)]
    workspace: WorkspaceFlag,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    output: OutputFlags,
}

/// `leasehold changes`.
#[derive(Args, Clone, Debug)]
pub struct ChangesCommand {
    #[command(flatten)]
    changes: ChangesArgs,
    #[command(flatten)]
    workspace: WorkspaceFlag,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    output: OutputFlags,
}

/// `leasehold top`.
#[derive(Args, Clone, Debug)]
pub struct TopCommand {
    #[command(flatten)]
    top: Top,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    output: OutputFlags,
}

/// An action that runs against a server.
pub(crate) trait Execute: Sized {
    /// Runs the action.
    async fn execute(self, session: &Session, workspace: &WorkspaceFlag) -> CommandResult;

    /// The result if the action needs no server, else `None`.
    fn execute_offline(&self, _: &Output) -> Option<CommandResult> {
        None
    }
}

async fn execute(
    action: impl Execute,
    workspace: &WorkspaceFlag,
    connection: &Connection,
    output: &OutputFlags,
) -> Result<(), Failure> {
    if let Some(done) = action.execute_offline(&Output::new(output)) {
        return command_error::finish(done).map(drop);
    }
    let session = Session::open(connection, output).await?;
    let done = action.execute(&session, workspace).await;
    session.finish(done).map(drop)
}

async fn run_global<A: Subcommand + Execute>(command: GlobalCommand<A>) -> Result<(), Failure> {
    let no_workspace = WorkspaceFlag::default();
    execute(
        command.action,
        &no_workspace,
        &command.connection,
        &command.output,
    )
    .await
}

async fn run_in_workspace<A: Subcommand + Execute>(
    command: WorkspaceCommand<A>,
) -> Result<(), Failure> {
    execute(
        command.action,
        &command.workspace,
        &command.connection,
        &command.output,
    )
    .await
}

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// Returns a failure with the exit code and the message to print.
    pub async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Workspace(command) => run_global(command).await,
            Self::Definition(command) => run_in_workspace(command).await,
            Self::Request(command) => run_in_workspace(command).await,
            Self::Execution(command) => run_in_workspace(command).await,
            Self::DeadLetter(command) => run_in_workspace(command).await,
            Self::Queue(command) => run_global(command).await,
            Self::Job(command) => run_global(command).await,
            Self::Key(command) => run_global(command).await,
            Self::Audit(command) => run_global(command).await,
            Self::Instance(command) => run_global(command).await,
            Self::Lock(command) => run_global(command).await,
            Self::Changes(follow) => {
                let ChangesCommand {
                    changes,
                    workspace,
                    connection,
                    output,
                } = follow;
                execute(changes, &workspace, &connection, &output).await
            }
            Self::Top(live) => {
                let no_workspace = WorkspaceFlag::default();
                execute(live.top, &no_workspace, &live.connection, &live.output).await
            }
        }
    }
}
