//! `leasehold top`: the live activity of the server on a terminal, or as one snapshot. Read-only.

mod figures;
mod head;
mod help;
mod line;
mod live;
mod model;
mod page;
mod poll;
mod render;
mod screen;
mod table;
mod tables;
#[cfg(test)]
mod tests;
mod theme;
mod view;

pub use model::{Rates, TopModel};

use crate::command::Execute;
use crate::command_error::CommandResult;
use crate::exit::Failure;
use crate::input;
use crate::scope::WorkspaceFlag;
use crate::session::Session;
use clap::Args;
use std::ops::RangeInclusive;
use std::time::Duration;
use theme::Theme;
use tokio_util::sync::CancellationToken;
use view::View;

/// Default time between two polls.
const INTERVAL: Duration = Duration::from_secs(2);
const INTERVALS: RangeInclusive<Duration> = Duration::from_millis(250)..=Duration::from_secs(3_600);
/// Width of a snapshot if standard output is not a terminal.
const DEFAULT_COLUMNS: usize = 100;

/// Flags of `leasehold top`.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Top {
    /// Time between two polls [default: 2s].
    #[arg(long, value_name = "TIME", value_parser = interval)]
    interval: Option<Duration>,
    /// Print one snapshot and exit; the default if standard output is not a terminal. With --interval it polls twice and prints rates.
    #[arg(long)]
    once: bool,
}

impl Execute for Top {
    /// Shows the screen until the user quits.
    async fn execute(self, session: &Session, _: &WorkspaceFlag) -> CommandResult {
        let every = self.interval.unwrap_or(INTERVAL);
        if session.out.is_json() {
            return self.print_json(session, every).await;
        }
        if self.once || !session.out.is_terminal() || is_dumb() {
            return self.print_once(session).await;
        }
        live::run(session, every, CancellationToken::new()).await
    }
}

impl Top {
    async fn print_once(&self, session: &Session) -> CommandResult {
        let mut model = TopModel::new(&session.server);
        let first = poll::fetch(&session.client).await?;
        model.update(first.overview, first.instances);
        if let Some(wait) = self.interval {
            tokio::time::sleep(wait).await;
            let second = poll::fetch(&session.client).await?;
            model.update(second.overview, second.instances);
        }
        let size = ratatui::crossterm::terminal::size().ok();
        let columns = size.filter(|_| session.out.is_terminal());
        let columns = columns.map_or(DEFAULT_COLUMNS, |(columns, _)| usize::from(columns));
        let theme = Theme::new(session.out.has_colors());
        let lines = page::whole(&model, &View::default(), theme, columns);
        Ok(session.out.line(render::to_text(&lines, theme))?)
    }

    /// Prints the server's overview as JSON.
    async fn print_json(&self, session: &Session, every: Duration) -> CommandResult {
        if self.once {
            let snapshot = poll::fetch(&session.client).await?;
            return Ok(session.out.json(&snapshot.overview)?);
        }
        loop {
            let snapshot = poll::fetch(&session.client).await?;
            session.out.json_line(&snapshot.overview)?;
            tokio::time::sleep(every).await;
        }
    }
}

/// Draws the live screen until a key, a signal or `stop` ends it. Retries while the server is unreachable.
///
/// # Errors
/// Fails if the first poll fails, the key is not an administrator key, or the terminal cannot be used.
pub async fn show(
    session: &Session,
    every: Duration,
    stop: CancellationToken,
) -> Result<(), Failure> {
    session
        .finish(live::run(session, every, stop).await)
        .map(drop)
}

/// Prints one line of figures per interval, for output that is not a terminal. Retries while the server is unreachable.
///
/// # Errors
/// Fails if the first poll fails or the key is not an administrator key.
pub async fn print_lines(
    session: &Session,
    every: Duration,
    stop: CancellationToken,
) -> Result<(), Failure> {
    session
        .finish(run_lines(session, every, stop).await)
        .map(drop)
}

async fn run_lines(session: &Session, every: Duration, stop: CancellationToken) -> CommandResult {
    let mut model = TopModel::new(&session.server);
    let first = poll::fetch(&session.client).await?;
    model.update(first.overview, first.instances);
    loop {
        session.out.line(line::summary(&model))?;
        let next = async {
            tokio::time::sleep(every).await;
            poll::fetch(&session.client).await
        };
        let fetched = tokio::select! {
            fetched = next => fetched,
            () = stop.cancelled() => return Ok(()),
        };
        match fetched {
            Ok(snapshot) => model.update(snapshot.overview, snapshot.instances),
            Err(error) => model.record_failure(&poll::last_cause(&error), jiff::Timestamp::now()),
        }
    }
}

/// Whether the terminal does not support cursor movement.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|name| name == "dumb")
}

fn interval(text: &str) -> Result<Duration, String> {
    let span = input::duration(text)?;
    if INTERVALS.contains(&span) {
        return Ok(span);
    }
    Err("must be from 250ms to 1h".to_owned())
}
