//! Pages of listings.

/// One page of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// Number of the page, from 1.
    pub page: u32,
    /// Rows per page.
    pub page_size: u32,
}

impl PageRequest {
    /// Returns the number of rows before the page.
    #[must_use]
    pub fn offset(self) -> u64 {
        u64::from(self.page.saturating_sub(1)) * u64::from(self.page_size)
    }
}

/// A range of rows, for listings whose rows may be large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Number of rows before the range.
    pub offset: u64,
    /// Maximum number of rows.
    pub limit: u32,
    /// Maximum number of bytes of the rows; the first row is returned in any case.
    pub max_bytes: usize,
}

impl From<PageRequest> for Rows {
    fn from(page: PageRequest) -> Self {
        Self { offset: page.offset(), limit: page.page_size, max_bytes: usize::MAX }
    }
}

/// The rows of one page, and the total number of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Number of rows on all pages.
    pub total: u64,
}

impl<T> Page<T> {
    /// Returns the page of an empty listing.
    pub(crate) const fn empty() -> Self {
        Self { items: Vec::new(), total: 0 }
    }
}
