//! Lists: a screenful, or as many as asked, or all, page after page. Knows no noun.

use crate::output::Output;
use crate::session::Session;
use crate::trouble::Outcome;
use clap::Args;
use leasehold_client::List;
use serde::Serialize;
use serde::de::DeserializeOwned;

const SCREENFUL: u32 = 50;
const PAGE: u32 = 1_000;

/// How much of a list to show.
#[derive(Args, Clone, Copy, Debug)]
pub struct Listing {
    /// How many to show at most.
    #[arg(long, value_name = "N", default_value_t = SCREENFUL, value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "all")]
    limit: u32,
    /// Show all of them.
    #[arg(long)]
    all: bool,
}

impl Listing {
    /// Reads what was asked for and prints it: JSON as it is, else the rows that `rows` makes of it.
    pub(crate) async fn print<T>(
        self,
        session: &Session,
        list: List<T>,
        headings: &[&str],
        none: &str,
        rows: impl AsyncFnOnce(&[T]) -> Outcome<Vec<Vec<String>>>,
    ) -> Outcome
    where
        T: DeserializeOwned + Serialize + Send + 'static,
    {
        let (items, more) = self.read(list).await?;
        let out = &session.out;
        if out.is_json() {
            return Ok(out.json(&items)?);
        }
        if items.is_empty() {
            return Ok(note(out, none)?);
        }
        out.table(headings, rows(&items).await?)?;
        if more {
            note(
                out,
                "there are more: --limit N shows so many, --all shows all",
            )?;
        }
        Ok(())
    }

    async fn read<T>(self, list: List<T>) -> Outcome<(Vec<T>, bool)>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let most = if self.all {
            usize::MAX
        } else {
            self.limit as usize
        };
        let page = u32::try_from(most).unwrap_or(PAGE).min(PAGE);
        let list = list.limit(page);
        let (mut items, mut after) = (Vec::new(), None);
        loop {
            let read = list.page(after.as_deref()).await?;
            items.extend(read.items);
            after = read.next;
            if after.is_none() || items.len() >= most {
                let more = after.is_some() || items.len() > most;
                items.truncate(most);
                return Ok((items, more));
            }
        }
    }
}

/// Something beside what was asked for: on standard error, so that it is in nobody's way.
#[allow(
    clippy::print_stderr,
    reason = "this is for whoever looks, not for what reads standard output"
)]
pub(crate) fn note(_: &Output, text: &str) -> std::io::Result<()> {
    anstream::eprintln!("{text}");
    Ok(())
}
