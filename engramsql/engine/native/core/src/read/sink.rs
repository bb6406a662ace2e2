//! Where the rows of a batch go.

/// One row of a batch as it lies in its files.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// Position in the batch.
    pub position: usize,
    /// The first part: the whole row, or its values.
    pub values: &'a [u8],
    /// The second part: block scales; empty for tables of one part.
    pub scales: &'a [u8],
}

/// Receives the rows of a plan, some at a time: every position comes exactly once, in any order.
pub trait RowSink {
    /// Takes `rows`; their bytes are valid during the call only.
    fn take(&mut self, rows: &[Row<'_>]);
}

impl<F: FnMut(Row<'_>)> RowSink for F {
    #[inline(always)]
    fn take(&mut self, rows: &[Row<'_>]) {
        rows.iter().for_each(|row| self(*row));
    }
}
