//! Pages of listings.

/// One page of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// From 1.
    pub page: u32,
    /// Rows per page.
    pub page_size: u32,
}

impl PageRequest {
    /// Rows before the page.
    pub(crate) fn offset(self) -> u64 {
        u64::from(self.page.saturating_sub(1)) * u64::from(self.page_size)
    }

    /// The indexes of the first and the last row of the page, from 0, as the range commands of Redis take them; the
    /// last is before the first when the page is empty.
    pub(crate) fn index_range(self) -> (u64, u64) {
        // Redis reads signed indexes, and a negative one counts from the end.
        const LAST: u64 = i64::MAX.unsigned_abs();
        let first = self.offset().min(LAST);
        match u64::from(self.page_size) {
            0 => (1, 0),
            size => (first, (first + size - 1).min(LAST)),
        }
    }
}

/// A range of rows, for listings whose rows may be large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// How many rows come before the range.
    pub offset: u64,
    /// The range has at most so many rows.
    pub limit: u32,
    /// No further row once the rows hold so many bytes; the first row is returned in any case.
    pub max_bytes: usize,
}

impl From<PageRequest> for Rows {
    fn from(page: PageRequest) -> Self {
        Self { offset: page.offset(), limit: page.page_size, max_bytes: usize::MAX }
    }
}

/// The rows of one page, and how many rows there are on all pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Rows on all pages.
    pub total: u64,
}

impl<T> Page<T> {
    /// The page of an empty listing.
    pub(crate) const fn empty() -> Self {
        Self { items: Vec::new(), total: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::PageRequest;

    #[test]
    fn a_page_beyond_the_last_index_is_empty_and_never_counts_from_the_end() {
        let page = |page, page_size| PageRequest { page, page_size }.index_range();
        assert_eq!(page(1, 10), (0, 9));
        assert_eq!(page(3, 10), (20, 29));
        assert_eq!(page(0, 10), (0, 9));
        assert_eq!(page(3, 0), (1, 0));
        assert_eq!(page(u32::MAX, u32::MAX), (i64::MAX as u64, i64::MAX as u64));
    }
}
