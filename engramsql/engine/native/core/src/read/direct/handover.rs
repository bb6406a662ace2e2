//! From finished reads to the sink: at once for rows of one part, when both are there for rows of two.

use super::order::Order;
use super::planner::Segment;
use crate::read::{Row, RowSink};
use crate::source::Part;

/// Rows handed to the sink in one call.
const GROUP: usize = 32;

/// Hands the rows of finished segments to a sink.
pub(super) struct Handover<'a> {
    sink: &'a mut dyn RowSink,
    parts: &'a [Part],
    order: &'a Order,
    /// For rows of two parts.
    staging: Option<Staging>,
}

/// Rows of which a part is missing, in a ring over their ranks.
struct Staging {
    rows: Vec<u8>,
    row_bytes: usize,
    /// How many parts of each row are there.
    arrived: Vec<u8>,
    /// Rank of the oldest row that is not complete.
    oldest: usize,
}

impl<'a> Handover<'a> {
    /// A handover that holds back at most `window` rows of two parts.
    pub(super) fn new(sink: &'a mut dyn RowSink, parts: &'a [Part], order: &'a Order, window: usize) -> Handover<'a> {
        let row_bytes = parts.iter().map(Part::width).sum();
        let staging = (parts.len() > 1).then(|| {
            let window = window.min(order.len());
            Staging { rows: vec![0; window * row_bytes], row_bytes, arrived: vec![0; window], oldest: 0 }
        });
        Handover { sink, parts, order, staging }
    }

    /// Rank of the oldest row that was not handed over; rows of one part are never held back.
    pub(super) fn oldest(&self) -> usize {
        self.staging.as_ref().map_or(0, |staging| staging.oldest)
    }

    /// Takes the bytes of a finished segment, from its start to the end of its last row at least.
    pub(super) fn take(&mut self, segment: &Segment, bytes: &[u8]) {
        let width = self.parts[segment.part].width();
        let part_of = |id: u64| {
            let offset = segment.extent.offset + (id - segment.extent.first_row) * width as u64;
            &bytes[(offset - segment.start) as usize..][..width]
        };
        match &mut self.staging {
            // Scattered rows come alone; the group would cost more than the call.
            None if segment.end == segment.first + 1 => {
                let (position, id) = (self.order.position(segment.first), self.order.id(segment.first));
                self.sink.take(&[Row { position, values: part_of(id), scales: &[] }]);
            }
            None => {
                let mut group = [Row { position: 0, values: &[], scales: &[] }; GROUP];
                let mut first = segment.first;
                while first < segment.end {
                    let end = segment.end.min(first + GROUP);
                    for (row, index) in group.iter_mut().zip(first..end) {
                        row.position = self.order.position(index);
                        row.values = part_of(self.order.id(index));
                    }
                    self.sink.take(&group[..end - first]);
                    first = end;
                }
            }
            Some(staging) => {
                let before = if segment.part == 0 { 0 } else { self.parts[0].width() };
                let values = self.parts[0].width();
                let (mut first, mut rank) = (segment.first, segment.rank);
                while first < segment.end {
                    let end = self.order.run_end(first);
                    let slot = rank % staging.arrived.len();
                    let row = &mut staging.rows[slot * staging.row_bytes..][..staging.row_bytes];
                    row[before..][..width].copy_from_slice(part_of(self.order.id(first)));
                    staging.arrived[slot] += 1;
                    if usize::from(staging.arrived[slot]) == self.parts.len() {
                        let (values, scales) = row.split_at(values);
                        for index in first..end {
                            let position = self.order.position(index);
                            self.sink.take(&[Row { position, values, scales }]);
                        }
                    }
                    (first, rank) = (end, rank + 1);
                }
                staging.advance(self.parts.len());
            }
        }
    }
}

impl Staging {
    /// Moves past the complete rows, whose places are then free for rows a window further.
    fn advance(&mut self, parts: usize) {
        loop {
            let slot = self.oldest % self.arrived.len();
            if usize::from(self.arrived[slot]) != parts {
                return;
            }
            self.arrived[slot] = 0;
            self.oldest += 1;
        }
    }
}
