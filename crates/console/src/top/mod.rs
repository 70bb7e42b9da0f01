//! `leasehold top`: what goes on in the whole server, live on a terminal, or as one picture. Reads only, and never more often than it was told.

mod figures;
mod head;
mod help;
mod line;
mod live;
mod look;
mod model;
mod page;
mod picture;
mod poll;
mod screen;
mod table;
mod tables;
#[cfg(test)]
mod tests;
mod view;

pub use model::{Model, Rates};

use crate::command::Act;
use crate::exit::Failure;
use crate::input;
use crate::scope::WorkspaceFlag;
use crate::session::Session;
use crate::trouble::Outcome;
use clap::Args;
use look::Look;
use std::ops::RangeInclusive;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use view::View;

/// Between two looks, unless told.
const INTERVAL: Duration = Duration::from_secs(2);
const INTERVALS: RangeInclusive<Duration> = Duration::from_millis(250)..=Duration::from_secs(3_600);
/// As wide as a picture is for whoever reads it elsewhere.
const PAPER_COLUMNS: usize = 100;

/// The flags.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Top {
    /// How often to look [default: 2s].
    #[arg(long, value_name = "TIME", value_parser = interval)]
    interval: Option<Duration>,
    /// Print one picture and end, as it also does where standard output is no terminal. With --interval it looks twice, so far apart, and tells rates.
    #[arg(long)]
    once: bool,
}

impl Act for Top {
    /// Shows it until somebody has seen enough.
    async fn act(self, session: &Session, _: &WorkspaceFlag) -> Outcome {
        let every = self.interval.unwrap_or(INTERVAL);
        if session.out.is_json() {
            return self.documents(session, every).await;
        }
        if self.once || !session.out.is_terminal() || is_dumb() {
            return self.picture(session).await;
        }
        live::run(session, every, CancellationToken::new()).await
    }
}

impl Top {
    async fn picture(&self, session: &Session) -> Outcome {
        let mut model = Model::new(&session.server);
        let first = poll::look(&session.client).await?;
        model.take(first.overview, first.instances);
        if let Some(wait) = self.interval {
            tokio::time::sleep(wait).await;
            let second = poll::look(&session.client).await?;
            model.take(second.overview, second.instances);
        }
        let size = ratatui::crossterm::terminal::size().ok();
        let columns = size.filter(|_| session.out.is_terminal());
        let columns = columns.map_or(PAPER_COLUMNS, |(columns, _)| usize::from(columns));
        let look = Look::new(session.out.has_colors());
        let lines = page::whole(&model, &View::default(), look, columns);
        Ok(session.out.line(picture::text(&lines, look))?)
    }

    /// What the server says, as it says it.
    async fn documents(&self, session: &Session, every: Duration) -> Outcome {
        if self.once {
            let look = poll::look(&session.client).await?;
            return Ok(session.out.json(&look.overview)?);
        }
        loop {
            let look = poll::look(&session.client).await?;
            session.out.json_line(&look.overview)?;
            tokio::time::sleep(every).await;
        }
    }
}

/// Shows what goes on, drawn on the terminal, until a key, a signal or `stop` ends it. A server that goes away is waited for.
///
/// # Errors
/// If the server does not answer the first time, the key is not an administrator's, or the terminal cannot be used.
pub async fn show(
    session: &Session,
    every: Duration,
    stop: CancellationToken,
) -> Result<(), Failure> {
    session
        .told(live::run(session, every, stop).await)
        .map(drop)
}

/// Prints a line of figures now and then, for where there is no terminal to draw on. A server that is away is waited for.
///
/// # Errors
/// If the server does not answer the first time, or the key is not an administrator's.
pub async fn tell(
    session: &Session,
    every: Duration,
    stop: CancellationToken,
) -> Result<(), Failure> {
    session.told(told(session, every, stop).await).map(drop)
}

async fn told(session: &Session, every: Duration, stop: CancellationToken) -> Outcome {
    let mut model = Model::new(&session.server);
    let first = poll::look(&session.client).await?;
    model.take(first.overview, first.instances);
    loop {
        session.out.line(line::of(&model))?;
        let next = async {
            tokio::time::sleep(every).await;
            poll::look(&session.client).await
        };
        let looked = tokio::select! {
            looked = next => looked,
            () = stop.cancelled() => return Ok(()),
        };
        match looked {
            Ok(seen) => model.take(seen.overview, seen.instances),
            Err(error) => model.lost(&poll::short(&error), jiff::Timestamp::now()),
        }
    }
}

/// Whether the terminal can only be written on line by line.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|name| name == "dumb")
}

fn interval(text: &str) -> Result<Duration, String> {
    let span = input::span(text)?;
    if INTERVALS.contains(&span) {
        return Ok(span);
    }
    Err("choose from 250ms to 1h".to_owned())
}
