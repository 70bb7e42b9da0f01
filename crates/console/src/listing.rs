//! Lists: reads pages up to the limit and prints a table or a JSON array. Knows no resource type.

use crate::command_error::CommandResult;
use crate::output::{Output, clean};
use crate::session::Session;
use clap::Args;
use leasehold_client::List;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::Write;

const DEFAULT_LIMIT: u32 = 50;
const PAGE_SIZE: u32 = 1_000;

/// Flags that limit a list.
#[derive(Args, Clone, Copy, Debug)]
pub struct Listing {
    /// Maximum number of rows.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_LIMIT, value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "all")]
    limit: u32,
    /// Show all rows.
    #[arg(long)]
    all: bool,
}

impl Listing {
    /// Reads the list and prints it: JSON unchanged, else the table rows that `rows` returns.
    pub(crate) async fn print<T>(
        self,
        session: &Session,
        list: List<T>,
        headings: &[&str],
        none: &str,
        rows: impl AsyncFnOnce(&[T]) -> CommandResult<Vec<Vec<String>>>,
    ) -> CommandResult
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
            note("more rows exist; use --limit N or --all");
        }
        Ok(())
    }

    /// Writes one JSON array page by page; holds one page in memory.
    async fn stream<T>(self, out: &Output, list: List<T>) -> CommandResult
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

    /// Passes each page to `take` up to the limit; returns whether more items exist.
    async fn read<T>(
        self,
        list: List<T>,
        mut take: impl FnMut(Vec<T>) -> CommandResult,
    ) -> CommandResult<bool>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let mut left = if self.all { u32::MAX } else { self.limit };
        let list = list.limit(left.min(PAGE_SIZE));
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

/// Prints a note to standard error.
pub(crate) fn note(text: &str) {
    // A closed standard error is not a failure.
    let _ = writeln!(anstream::stderr(), "{}", clean(text));
}
