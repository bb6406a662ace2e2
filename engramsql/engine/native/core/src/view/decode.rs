//! Records to values.

use super::options::Form;
use crate::format::Decoder;

/// Decodes the records of one view.
#[derive(Clone)]
pub(super) struct RecordDecoder {
    form: Form,
    decoder: Decoder,
    heads: usize,
    dim: usize,
    row_bytes: usize,
}

impl RecordDecoder {
    /// For records of `heads` rows of `row_bytes` bytes, which `decoder` turns into `dim` values each.
    pub(super) fn new(form: Form, decoder: Decoder, heads: usize, dim: usize, row_bytes: usize) -> RecordDecoder {
        RecordDecoder { form, decoder, heads, dim, row_bytes }
    }

    /// Values of a record.
    pub(super) fn values(&self) -> usize {
        self.heads * self.dim
    }

    /// The values of `record`, which may be longer than one; `out` holds [`values`](RecordDecoder::values).
    pub(super) fn decode(&self, record: &[u8], out: &mut [f32]) {
        match self.form {
            Form::Rows => {
                let value_bytes = self.decoder.format().value_bytes(self.dim);
                for (row, out) in record.chunks_exact(self.row_bytes).zip(out.chunks_exact_mut(self.dim)) {
                    let (values, scales) = row.split_at(value_bytes);
                    self.decoder.decode(values, scales, out);
                }
            }
            Form::Float32 => {
                for (bytes, out) in record.as_chunks::<4>().0.iter().zip(out) {
                    *out = f32::from_le_bytes(*bytes);
                }
            }
        }
    }

    /// The same as bfloat16 bit patterns, those that the rows themselves give.
    pub(super) fn decode_bf16(&self, record: &[u8], scratch: &mut Vec<f32>, out: &mut [u16]) {
        match self.form {
            Form::Rows => {
                scratch.resize(self.dim, 0.0);
                let value_bytes = self.decoder.format().value_bytes(self.dim);
                for (row, out) in record.chunks_exact(self.row_bytes).zip(out.chunks_exact_mut(self.dim)) {
                    let (values, scales) = row.split_at(value_bytes);
                    self.decoder.decode_bf16(values, scales, scratch, out);
                }
            }
            Form::Float32 => {
                scratch.resize(self.values(), 0.0);
                self.decode(record, scratch);
                self.decoder.round_bf16(scratch, out);
            }
        }
    }
}
