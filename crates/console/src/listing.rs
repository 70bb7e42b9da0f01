//! Lists: a screenful, or as many as asked, or all, page after page. Knows no noun.

use crate::output::{Output, clean};
use crate::session::Session;
use crate::trouble::Outcome;
use clap::Args;
use leasehold_client::List;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::Write;

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
        let out = &session.out;
        if out.is_json() {
            return self.stream(out, list).await;
        }
        let mut items = Vec::new();
        let more = self
            .read(list, |page| {
                items.extend(page);
                Ok(())
            })
            .await?;
        if items.is_empty() {
            note(none);
            return Ok(());
        }
        out.table(headings, rows(&items).await?)?;
        if more {
            note("there are more: --limit N shows so many, --all shows all");
        }
        Ok(())
    }

    /// One array, written as its pages come: however long it is, no more than a page is held.
    async fn stream<T>(self, out: &Output, list: List<T>) -> Outcome
    where
        T: DeserializeOwned + Serialize + Send + 'static,
    {
        let mut first = true;
        self.read(list, |page| {
            for item in page {
                out.part(if first { "[\n  " } else { ",\n  " })?;
                first = false;
                out.json_part(&item)?;
            }
            Ok(())
        })
        .await?;
        Ok(out.line(if first { "[]" } else { "\n]" })?)
    }

    /// Hands over page after page, as many as asked; whether there are more.
    async fn read<T>(self, list: List<T>, mut take: impl FnMut(Vec<T>) -> Outcome) -> Outcome<bool>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let mut left = if self.all { u32::MAX } else { self.limit };
        let list = list.limit(left.min(PAGE));
        let mut after = None;
        loop {
            let mut page = list.page(after.as_deref()).await?;
            let all_fit = u32::try_from(page.items.len()).is_ok_and(|count| count <= left);
            page.items.truncate(left as usize);
            if !self.all {
                left -= u32::try_from(page.items.len()).unwrap_or(left);
            }
            take(page.items)?;
            after = page.next;
            if after.is_none() || left == 0 {
                return Ok(after.is_some() || !all_fit);
            }
        }
    }
}

/// Something beside what was asked for: on standard error, so that it is in nobody's way.
pub(crate) fn note(text: &str) {
    // Whoever closed it does not want to know.
    let _ = writeln!(anstream::stderr(), "{}", clean(text));
}
