//! The cursors of lists and of the change stream: opaque to callers, bound to their list and workspace. Loads the installation's secret at the first use.

use crate::api_error::{ApiError, ApiResult};
use crate::params::PAGE_DEFAULT;
use leasehold_core::WorkspaceId;
use leasehold_core::cursor::{CursorContext, CursorKey};
use leasehold_core::limits::PAGE_MAX;
use leasehold_ops as ops;
use leasehold_store::{Page, PerEpoch, Store};
use std::str::FromStr;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// The cursors of this installation.
pub(crate) struct Cursors {
    store: Arc<dyn Store>,
    key: PerEpoch<OnceCell<Arc<CursorKey>>>,
}

/// The cursors of one list.
#[derive(Clone)]
pub(crate) struct ListCursors<'a> {
    key: Arc<CursorKey>,
    context: CursorContext<'a>,
}

impl Cursors {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        let key = PerEpoch::default();
        Self { store, key }
    }

    /// Returns the cursors of a list, named by its operation id: of this workspace, or of all.
    pub(crate) async fn of(
        &self,
        list: &'static str,
        workspace: Option<WorkspaceId>,
    ) -> ApiResult<ListCursors<'static>> {
        let load = async || {
            let secret = ops::installation::secret(&*self.store).await?;
            Ok::<_, ApiError>(Arc::new(CursorKey::new(&secret)))
        };
        // The creation of a secret may be lost by a failover.
        let key = self.key.of(self.store.epoch());
        Ok(ListCursors {
            key: Arc::clone(key.get_or_try_init(load).await?),
            context: CursorContext {
                list,
                workspace,
                within: "",
            },
        })
    }
}

impl ListCursors<'_> {
    /// Returns the cursors of the list within this queue or definition.
    pub(crate) fn within<'b>(&self, name: &'b str) -> ListCursors<'b>
    where
        Self: 'b,
    {
        let Self { key, context } = self;
        let context = CursorContext {
            list: context.list,
            workspace: context.workspace,
            within: name,
        };
        ListCursors {
            key: Arc::clone(key),
            context,
        }
    }

    /// Writes a position as a cursor.
    pub(crate) fn seal(&self, position: impl AsRef<[u8]>) -> String {
        self.key.seal(&self.context, position.as_ref())
    }

    /// Returns the position of a cursor; none if it is not a cursor of this list.
    pub(crate) fn open(&self, text: &str) -> Option<Vec<u8>> {
        self.key.open(&self.context, text)
    }

    /// Returns the page to request from the store.
    pub(crate) fn page<K: FromStr>(
        &self,
        after: Option<&str>,
        limit: Option<u32>,
    ) -> ApiResult<Page<K>> {
        let limit = page_limit(limit)?;
        let parse = |text: &str| {
            let position = String::from_utf8(self.open(text)?).ok()?;
            position.parse().ok()
        };
        let after = after
            .map(|text| {
                let problem = "must be the `next` of a previous page of this list";
                parse(text).ok_or_else(|| ApiError::parameter("after", problem))
            })
            .transpose()?;
        Ok(Page { after, limit })
    }
}

/// Returns the number of items of a page.
pub(crate) fn page_limit(limit: Option<u32>) -> ApiResult<u32> {
    let limit = limit.unwrap_or(PAGE_DEFAULT);
    if !(1..=PAGE_MAX).contains(&limit) {
        return Err(ApiError::parameter(
            "limit",
            format!("must be between 1 and {PAGE_MAX}"),
        ));
    }
    Ok(limit)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns the cursors of a list for tests.
    pub(crate) fn test_cursors() -> ListCursors<'static> {
        let key = Arc::new(CursorKey::new(&[1; 32]));
        let context = CursorContext {
            list: "test",
            workspace: None,
            within: "",
        };
        ListCursors { key, context }
    }

    #[test]
    fn page_continues_after_its_own_cursor_only() {
        let list = test_cursors();
        let page = list.page::<i64>(Some(&list.seal("42")), None);
        assert_eq!(page.ok().map(|page| page.after), Some(Some(42)));
        for strange in ["42", "", "x", &list.seal("x"), &list.within("q").seal("42")] {
            assert!(list.page::<i64>(Some(strange), None).is_err(), "{strange}");
        }
    }
}
