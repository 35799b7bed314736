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
    #[must_use]
    pub fn offset(self) -> u64 {
        u64::from(self.page.saturating_sub(1)) * u64::from(self.page_size)
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
