//! Every client command: a noun, what to do with it, and the flags that all have in common.

use crate::about::{Changes, InstanceAction, LockAction};
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
use crate::session::Session;
use crate::top::Top;
use crate::trouble::{self, Outcome};
use crate::workspace::WorkspaceAction;
use clap::{Args, Subcommand};

/// A client command.
#[derive(Subcommand, Clone, Debug)]
pub enum Command {
    /// Makes, shows, changes and deletes workspaces.
    Workspace(Noun<WorkspaceAction>),
    /// Publishes workflows and shows them.
    Definition(InWorkspace<DefinitionAction>),
    /// Enqueues requests, shows, watches, cancels and redrives them.
    Request(InWorkspace<RequestAction>),
    /// Shows executions, node by node.
    Execution(InWorkspace<ExecutionAction>),
    /// Shows requests that have failed, and redrives them.
    DeadLetter(InWorkspace<DeadLetterAction>),
    /// Shows, sets up and pauses queues of jobs.
    Queue(Noun<QueueAction>),
    /// Enqueues jobs, shows them, and works on them with any program.
    Job(Noun<JobAction>),
    /// Makes, shows and revokes keys.
    Key(Noun<KeyAction>),
    /// Shows the processes that serve.
    Instance(Noun<InstanceAction>),
    /// Shows the locks they hold.
    Lock(Noun<LockAction>),
    /// Follows every change of every request of a workspace, or of all.
    Changes(Follow),
    /// Shows what goes on in the whole server, live; for administrators.
    Top(Live),
}

/// Something to do, with a server.
#[derive(Args, Clone, Debug)]
pub struct Noun<A: Subcommand> {
    #[command(subcommand)]
    action: A,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    output: OutputFlags,
}

/// The same in a workspace.
#[derive(Args, Clone, Debug)]
pub struct InWorkspace<A: Subcommand> {
    #[command(subcommand)]
    action: A,
    #[command(flatten)]
    workspace: WorkspaceFlag,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    output: OutputFlags,
}

/// What to follow.
#[derive(Args, Clone, Debug)]
pub struct Follow {
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    workspace: WorkspaceFlag,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    output: OutputFlags,
}

/// What to show live.
#[derive(Args, Clone, Debug)]
pub struct Live {
    #[command(flatten)]
    top: Top,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    output: OutputFlags,
}

/// Something to do with a server.
pub(crate) trait Act: Sized {
    /// Does it.
    async fn act(self, session: &Session, workspace: &WorkspaceFlag) -> Outcome;

    /// What it comes to, if it needs no server.
    fn alone(&self, _: &Output) -> Option<Outcome> {
        None
    }
}

async fn act(
    action: impl Act,
    workspace: &WorkspaceFlag,
    connection: &Connection,
    output: &OutputFlags,
) -> Result<(), Failure> {
    if let Some(done) = action.alone(&Output::new(output)) {
        return trouble::told(done).map(drop);
    }
    let session = Session::open(connection, output).await?;
    let done = action.act(&session, workspace).await;
    session.told(done).map(drop)
}

async fn anywhere<A: Subcommand + Act>(noun: Noun<A>) -> Result<(), Failure> {
    let nowhere = WorkspaceFlag::default();
    act(noun.action, &nowhere, &noun.connection, &noun.output).await
}

async fn within<A: Subcommand + Act>(noun: InWorkspace<A>) -> Result<(), Failure> {
    act(noun.action, &noun.workspace, &noun.connection, &noun.output).await
}

impl Command {
    /// Does it.
    ///
    /// # Errors
    /// If it does not end well; the failure says how.
    pub async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Workspace(noun) => anywhere(noun).await,
            Self::Definition(noun) => within(noun).await,
            Self::Request(noun) => within(noun).await,
            Self::Execution(noun) => within(noun).await,
            Self::DeadLetter(noun) => within(noun).await,
            Self::Queue(noun) => anywhere(noun).await,
            Self::Job(noun) => anywhere(noun).await,
            Self::Key(noun) => anywhere(noun).await,
            Self::Instance(noun) => anywhere(noun).await,
            Self::Lock(noun) => anywhere(noun).await,
            Self::Changes(follow) => {
                let Follow {
                    changes,
                    workspace,
                    connection,
                    output,
                } = follow;
                act(changes, &workspace, &connection, &output).await
            }
            Self::Top(live) => {
                let nowhere = WorkspaceFlag::default();
                act(live.top, &nowhere, &live.connection, &live.output).await
            }
        }
    }
}
