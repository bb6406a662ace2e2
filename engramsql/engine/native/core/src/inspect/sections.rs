//! Which head the rows of a range belong to.

use crate::table::Table;
use std::ops::Range;

/// Consecutive rows of one head, or of none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) head: Option<u32>,
    pub(super) rows: Range<u64>,
}

/// Sections of the rows `rows` of a table, in row order; each head and each gap is one, none is empty. They say what
/// [`Table::head_of`] says of every row.
pub(super) fn sections(table: &Table, rows: Range<u64>) -> Vec<Section> {
    let heads = table.heads();
    let offsets: Vec<(u64, u64)> = heads.iter().map(|head| (head.first_row, head.rows)).collect();
    cut(&offsets, rows)
}

/// The same for heads given by offset and size, by offset.
fn cut(heads: &[(u64, u64)], rows: Range<u64>) -> Vec<Section> {
    let mut sections = Vec::new();
    let mut push = |head, from: u64, to: u64| {
        let rows = from.max(rows.start)..to.min(rows.end);
        if !rows.is_empty() {
            sections.push(Section { head, rows });
        }
    };
    push(None, 0, heads.first().map_or(u64::MAX, |&(first, _)| first));
    for (head, &(first, size)) in heads.iter().enumerate() {
        let next = heads.get(head + 1).map_or(u64::MAX, |&(next, _)| next);
        let end = first.saturating_add(size).min(next);
        push(u32::try_from(head).ok(), first, end);
        push(None, end, next);
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(heads: &[(u64, u64)], rows: Range<u64>) -> Vec<(Option<u32>, Range<u64>)> {
        cut(heads, rows).into_iter().map(|section| (section.head, section.rows)).collect()
    }

    #[test]
    fn heads_and_gaps_come_in_row_order() {
        let heads = [(0, 3), (3, 4), (10, 2)];
        let all = [(Some(0), 0..3), (Some(1), 3..7), (None, 7..10), (Some(2), 10..12), (None, 12..20)];
        assert_eq!(cuts(&heads, 0..20), all);
        assert_eq!(cuts(&heads, 4..11), [(Some(1), 4..7), (None, 7..10), (Some(2), 10..11)]);
        assert_eq!(cuts(&heads, 5..5), []);
        // A table without a spec.
        assert_eq!(cuts(&[], 2..9), [(None, 2..9)]);
        // A head without rows, and rows before the first.
        assert_eq!(cuts(&[(2, 2), (4, 0), (4, 1)], 0..5), [(None, 0..2), (Some(0), 2..4), (Some(2), 4..5)]);
    }
}
