//! Pages of a list with the newest row first. The store lists the oldest first.

use sakshi_store::{Page, PageRequest};

/// Rows on one page.
pub const ROWS: u32 = 10;

/// A page of a list, newest row first.
#[derive(Debug)]
pub struct Newest<T> {
    /// Rows, newest first.
    pub items: Vec<T>,
    /// Position in the list.
    pub pages: Pages,
}

/// The numbers of the current page and of the last page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    /// Number of this page, from 1.
    pub page: u32,
    /// Number of the last page.
    pub last: u32,
}

impl Pages {
    /// Returns the position of a page in a list of `total` rows; the last page if the number is beyond it.
    #[must_use]
    pub fn new(page: u32, total: u64) -> Self {
        let last = u32::try_from(total.div_ceil(u64::from(ROWS))).unwrap_or(u32::MAX).max(1);
        Self { page: page.clamp(1, last), last }
    }

    /// Returns the number of the page with newer rows.
    #[must_use]
    pub fn newer_page(self) -> Option<u32> {
        (self.page > 1).then(|| self.page - 1)
    }

    /// Returns the number of the page with older rows.
    #[must_use]
    pub fn older_page(self) -> Option<u32> {
        (self.page < self.last).then(|| self.page + 1)
    }
}

/// Returns a page, counted from 1, of the list that `fetch` returns oldest first. Its rows lie on at most two pages of
/// the store.
///
/// # Errors
/// Any error of `fetch`.
pub async fn newest<T, E, F>(page: u32, fetch: impl Fn(PageRequest) -> F) -> Result<Newest<T>, E>
where
    F: Future<Output = Result<Page<T>, E>>,
{
    let total = fetch(PageRequest { page: 1, page_size: 1 }).await?.total;
    let pages = Pages::new(page, total);
    let rows = u64::from(ROWS);
    let end = total.saturating_sub(u64::from(pages.page - 1) * rows);
    let start = end.saturating_sub(rows);
    let mut items = Vec::new();
    if end > start {
        let (first, last) = (start / rows, (end - 1) / rows);
        for number in first..=last {
            let request = PageRequest { page: u32::try_from(number + 1).unwrap_or(u32::MAX), page_size: ROWS };
            items.extend(fetch(request).await?.items);
        }
        let skipped = usize::try_from(start - first * rows).unwrap_or(usize::MAX);
        items.drain(..skipped.min(items.len()));
        items.truncate(usize::try_from(end - start).unwrap_or(usize::MAX));
        items.reverse();
    }
    Ok(Newest { items, pages })
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    /// Returns a store's list of the numbers below `total`.
    fn numbers(total: u64) -> impl Fn(PageRequest) -> std::future::Ready<Result<Page<u64>, std::convert::Infallible>> {
        move |PageRequest { page, page_size }| {
            let first = u64::from(page - 1) * u64::from(page_size);
            ready(Ok::<_, std::convert::Infallible>(Page {
                items: (first..total.min(first + u64::from(page_size))).collect(),
                total,
            }))
        }
    }

    #[tokio::test]
    async fn every_row_is_on_one_page_and_the_newest_is_first() {
        for total in [0, 1, 19, 20, 21, 40, 45] {
            let mut rows = Vec::new();
            let last = newest(1, numbers(total)).await.unwrap().pages.last;
            for page in 1..=last {
                let listed = newest(page, numbers(total)).await.unwrap();
                assert_eq!(listed.pages, Pages { page, last });
                rows.extend(listed.items);
            }
            assert_eq!(rows, (0..total).rev().collect::<Vec<_>>(), "{total}");
        }
        assert_eq!(
            newest(9, numbers(5)).await.unwrap().pages,
            Pages { page: 1, last: 1 },
            "a page beyond the last page is the last page"
        );
    }
}
