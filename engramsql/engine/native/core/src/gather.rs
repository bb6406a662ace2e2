//! What becomes of gathered rows: copied, decoded to float32, decoded to bfloat16. Fused with the gather: a row is
//! used while it is in the processor's cache, and no row is stored twice.

use crate::format::{Decoder, Stream};
use crate::read::{ReadError, ReadPlan, Readers, Row, RowSink};
use crate::source::Layout;
use crate::workers::{self, Call};

/// Rows that are worth another thread, which may have to be woken.
const ROWS_PER_THREAD: usize = 32 << 10;
/// The same for calls that follow each other, so that the other thread is awake: sharing then takes as long as gathering a
/// hundred. A host that calls from several threads keeps the processors busy itself.
const ROWS_PER_THREAD_ALONE: usize = 1 << 10;

/// Bytes of vectors from which on nobody finds the first in a cache when the last is written; storing past the caches then
/// pays, while for rows as they are stored, a quarter of the bytes, it did not.
const STREAM_FROM: usize = 64 << 20;

/// Makes the sinks of one call and cuts its output into disjoint pieces, one for each thread.
pub(crate) trait Output: Send + Sized {
    /// Splits before row `row`.
    fn split(self, row: usize) -> (Self, Self);
    /// The sink that writes the rows of this piece; positions count from its first row.
    fn sink(&mut self) -> impl RowSink;
}

/// Reads the rows of `ids`, which are in range of `layout`, into `output`; each counts as `weight` rows of a table.
pub(crate) fn gather(
    readers: &Readers,
    layout: &Layout,
    ids: &[i64],
    weight: usize,
    output: impl Output,
) -> Result<(), ReadError> {
    let call = Call::begin();
    // Rows from the disk are waited for, which one thread does as well as two.
    let per_thread = if call.alone() { ROWS_PER_THREAD_ALONE } else { ROWS_PER_THREAD };
    let worth = ids.len().saturating_mul(weight) / per_thread;
    let threads = if readers.in_memory() { worth.min(call.threads()).min(ids.len()) } else { 1 };
    gather_on(threads, readers, layout, ids, output)
}

fn gather_on(
    threads: usize,
    readers: &Readers,
    layout: &Layout,
    ids: &[i64],
    mut output: impl Output,
) -> Result<(), ReadError> {
    if threads > 1 {
        let here = ids.len() / threads;
        let (first, rest) = output.split(here);
        let (mine, others) = workers::both(
            || gather_on(1, readers, layout, &ids[..here], first),
            || gather_on(threads - 1, readers, layout, &ids[here..], rest),
        );
        return mine.and(others);
    }
    if ids.is_empty() {
        return Ok(());
    }
    readers.read(&ReadPlan::proven(layout, ids), &mut output.sink())
}

/// Rows as they are stored, parts packed one after the other.
pub(crate) struct Bytes<'a> {
    pub(crate) width: usize,
    pub(crate) out: &'a mut [u8],
}

impl Output for Bytes<'_> {
    fn split(self, row: usize) -> (Self, Self) {
        let (head, tail) = self.out.split_at_mut(row * self.width);
        (Bytes { width: self.width, out: head }, Bytes { width: self.width, out: tail })
    }

    fn sink(&mut self) -> impl RowSink {
        CopyRows { width: self.width, out: self.out }
    }
}

struct CopyRows<'a> {
    width: usize,
    out: &'a mut [u8],
}

impl RowSink for CopyRows<'_> {
    #[inline(always)]
    fn take(&mut self, rows: &[Row<'_>]) {
        for row in rows {
            let out = &mut self.out[row.position * self.width..][..self.width];
            let (values, scales) = out.split_at_mut(row.values.len());
            values.copy_from_slice(row.values);
            if !row.scales.is_empty() {
                scales.copy_from_slice(row.scales);
            }
        }
    }
}

/// The exact product value x scale in float32.
pub(crate) struct Vectors<'a> {
    pub(crate) decoder: &'a Decoder,
    pub(crate) dim: usize,
    pub(crate) out: &'a mut [f32],
}

impl Output for Vectors<'_> {
    fn split(self, row: usize) -> (Self, Self) {
        let Vectors { decoder, dim, out } = self;
        let (head, tail) = out.split_at_mut(row * dim);
        (Vectors { decoder, dim, out: head }, Vectors { decoder, dim, out: tail })
    }

    fn sink(&mut self) -> impl RowSink {
        Decode {
            value_bytes: self.decoder.format().value_bytes(self.dim),
            dim: self.dim,
            target: if size_of_val(self.out) >= STREAM_FROM {
                Target::Stream(self.decoder.stream(self.dim, self.out))
            } else {
                Target::Plain(self.decoder, self.out)
            },
        }
    }
}

enum Target<'a> {
    Plain(&'a Decoder, &'a mut [f32]),
    Stream(Stream<'a>),
}

struct Decode<'a> {
    value_bytes: usize,
    dim: usize,
    target: Target<'a>,
}

impl RowSink for Decode<'_> {
    #[inline(always)]
    fn take(&mut self, rows: &[Row<'_>]) {
        for row in rows {
            let (values, scales) = split_row(*row, self.value_bytes);
            match &mut self.target {
                Target::Plain(decoder, out) => {
                    decoder.decode(values, scales, &mut out[row.position * self.dim..][..self.dim]);
                }
                Target::Stream(stream) => stream.decode(row.position, values, scales),
            }
        }
    }
}

/// The same rounded once to bfloat16, as bit patterns.
pub(crate) struct Bfloat16<'a> {
    pub(crate) decoder: &'a Decoder,
    pub(crate) dim: usize,
    pub(crate) out: &'a mut [u16],
}

impl Output for Bfloat16<'_> {
    fn split(self, row: usize) -> (Self, Self) {
        let Bfloat16 { decoder, dim, out } = self;
        let (head, tail) = out.split_at_mut(row * dim);
        (Bfloat16 { decoder, dim, out: head }, Bfloat16 { decoder, dim, out: tail })
    }

    fn sink(&mut self) -> impl RowSink {
        let value_bytes = self.decoder.format().value_bytes(self.dim);
        let mut scratch = vec![0.0; self.dim];
        move |row: Row<'_>| {
            let (values, scales) = split_row(row, value_bytes);
            let out = &mut self.out[row.position * self.dim..][..self.dim];
            self.decoder.decode_bf16(values, scales, &mut scratch, out);
        }
    }
}

/// Rows whose places in the output are not those of the batch: row `r` belongs at element
/// `positions[r / per] * per + r % per`, in elements of `width` values. Positions ascend.
pub(crate) struct Scattered<'a, T, D> {
    pub(crate) positions: &'a [usize],
    pub(crate) per: usize,
    pub(crate) width: usize,
    pub(crate) decode: D,
    pub(crate) out: &'a mut [T],
    /// The first row of this piece, and the values of the output before it.
    pub(crate) first: usize,
    pub(crate) before: usize,
}

impl<T, D> Scattered<'_, T, D> {
    /// Where row `row` of the batch belongs, counted in values of the whole output.
    fn place(&self, row: usize) -> usize {
        (self.positions[row / self.per] * self.per + row % self.per) * self.width
    }
}

impl<T: Send, D: Fn(&mut Vec<f32>, Row<'_>, &mut [T]) + Copy + Send> Output for Scattered<'_, T, D> {
    fn split(self, row: usize) -> (Self, Self) {
        let first = self.first + row;
        let middle = self.place(first);
        let (head, tail) = self.out.split_at_mut(middle - self.before);
        let Scattered { positions, per, width, decode, .. } = self;
        let piece = |out, first, before| Scattered { positions, per, width, decode, out, first, before };
        (piece(head, self.first, self.before), piece(tail, first, middle))
    }

    fn sink(&mut self) -> impl RowSink {
        let mut scratch = Vec::new();
        move |row: Row<'_>| {
            let at = self.place(self.first + row.position) - self.before;
            (self.decode)(&mut scratch, row, &mut self.out[at..at + self.width]);
        }
    }
}

/// Values and block scales of a row, whether they lie in two parts or packed in one.
pub(crate) fn split_row(row: Row<'_>, value_bytes: usize) -> (&[u8], &[u8]) {
    if row.scales.is_empty() { row.values.split_at(value_bytes) } else { (row.values, row.scales) }
}
