//! The stream of changes in PostgreSQL. A place in it is a pair of snapshots, so that what commits late is not missed.

use crate::row;
use crate::store::{PostgresStore, sql};
use leasehold_core::limits::PAGE_MAX;
use leasehold_store::change::{ChangeCursor, ChangePage, ChangeStart};
use leasehold_store::{Error, ErrorKind, Result};
use uuid::Uuid;

const CONTEXT: &str = "change_list";

/// What a cursor says: events seen by `until` but not by `from` are being read. From the beginning they are read
/// request by request, later in the order they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    from: Option<String>,
    until: String,
    request: Uuid,
    event: i64,
}

impl Place {
    fn parse(cursor: &ChangeCursor) -> Option<Self> {
        let mut parts = cursor.0.split('/');
        let from = parts.next()?;
        let place = Self {
            from: (from != "oldest").then(|| from.to_owned()),
            until: parts.next()?.to_owned(),
            request: parts.next()?.parse().ok()?,
            event: parts.next()?.parse().ok()?,
        };
        let well_formed = parts.next().is_none()
            && place
                .from
                .iter()
                .chain([&place.until])
                .all(|text| is_snapshot(text));
        well_formed.then_some(place)
    }

    fn cursor(&self) -> ChangeCursor {
        let from = self.from.as_deref().unwrap_or("oldest");
        ChangeCursor(format!(
            "{from}/{}/{}/{}",
            self.until, self.request, self.event
        ))
    }

    fn at(from: Option<String>, until: String) -> Self {
        Self {
            from,
            until,
            request: Uuid::nil(),
            event: 0,
        }
    }
}

/// `xmin:xmax:xip,…` of decimal numbers, as PostgreSQL prints a snapshot.
fn is_snapshot(text: &str) -> bool {
    let mut parts = text.split(':');
    let number = |part: Option<&str>| part.is_some_and(|p| p.parse::<u64>().is_ok_and(|n| n > 0));
    number(parts.next())
        && number(parts.next())
        && parts.next().is_some_and(|list| {
            list.is_empty() || list.split(',').all(|part| part.parse::<u64>().is_ok())
        })
        && parts.next().is_none()
}

async fn snapshot(store: &PostgresStore) -> Result<String> {
    Ok(store
        .one(CONTEXT, sql!("change/now"), &[])
        .await?
        .get("snapshot"))
}

pub(crate) async fn list(
    store: &PostgresStore,
    start: &ChangeStart,
    limit: u32,
) -> Result<ChangePage> {
    let mut place = match start {
        ChangeStart::Oldest => Place::at(None, snapshot(store).await?),
        ChangeStart::Now => {
            let now = snapshot(store).await?;
            let place = Place::at(Some(now.clone()), now);
            return Ok(ChangePage {
                events: Vec::new(),
                cursor: place.cursor(),
            });
        }
        ChangeStart::After(cursor) => Place::parse(cursor).ok_or_else(|| {
            Error::new(
                CONTEXT,
                ErrorKind::Value("the cursor is not one of ours".to_owned()),
            )
        })?,
    };
    let limit = i64::from(limit.clamp(1, PAGE_MAX));
    let mut rows = read(store, &place, limit).await?;
    if rows.is_empty() {
        place = Place::at(Some(place.until), snapshot(store).await?);
        rows = read(store, &place, limit).await?;
    }
    if let Some(last) = rows.last() {
        place.request = last.get("request_id");
        place.event = last.get("id");
    }
    let events = rows.iter().map(row::event).collect::<Result<_>>()?;
    Ok(ChangePage {
        events,
        cursor: place.cursor(),
    })
}

async fn read(
    store: &PostgresStore,
    place: &Place,
    limit: i64,
) -> Result<Vec<tokio_postgres::Row>> {
    match &place.from {
        None => {
            let params: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
                [&place.until, &place.request, &place.event, &limit];
            store.many(CONTEXT, sql!("change/history"), &params).await
        }
        Some(from) => {
            let params: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
                [from, &place.until, &place.event, &limit];
            store.many(CONTEXT, sql!("change/window"), &params).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back() {
        let places = [
            Place::at(None, "10:20:11,12".into()),
            Place {
                event: 7,
                ..Place::at(Some("5:5:".into()), "10:20:".into())
            },
        ];
        for place in places {
            assert_eq!(Place::parse(&place.cursor()), Some(place));
        }
    }

    #[test]
    fn a_strange_cursor_is_refused() {
        let nil = Uuid::nil();
        for text in [
            "".to_owned(),
            "1".to_owned(),
            format!("x/1:1:/{nil}/0"),
            format!("oldest/1:1/{nil}/0"),
            format!("oldest/1:1:a/{nil}/0"),
            format!("oldest/1:1:/{nil}/0/1"),
            "oldest/1:1:/x/0".to_owned(),
            format!("oldest/0:0:/{nil}/0"),
        ] {
            assert_eq!(Place::parse(&ChangeCursor(text.clone())), None, "{text}");
        }
    }
}
