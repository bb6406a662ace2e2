//! Limits of copying and of widening bytes to float32, and the decoder's rate beside them.

use super::Reading;
use crate::format::Decoder;
use std::time::{Duration, Instant};

/// Where the bytes of a measurement lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// Buffers that fit into a second-level cache, used again and again.
    Cache,
    /// Buffers far beyond any cache, each byte used once.
    Main,
}

impl Memory {
    /// (bytes in, rounds): 64 KiB widen to 256 KiB, which 512 KiB of cache hold; 64 MiB widen to 256 MiB.
    fn extent(self) -> (usize, u64) {
        match self {
            Memory::Cache => (64 << 10, 256),
            Memory::Main => (64 << 20, 1),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Memory::Cache => "in L2",
            Memory::Main => "from memory",
        }
    }
}

/// Bytes that are no pattern, so that no page is shared and no branch is learnt.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect()
}

fn timed(rounds: u64, mut round: impl FnMut()) -> Duration {
    // Touches every page of the output.
    round();
    let start = Instant::now();
    (0..rounds).for_each(|_| round());
    start.elapsed()
}

fn reading(elapsed: Duration, rounds: u64, bytes: usize, path: String) -> Reading {
    Reading { elapsed, reads: rounds, bytes: rounds * bytes as u64, path }
}

/// Copies bytes: the rate at which memory takes them.
pub fn copy_rate(memory: Memory) -> Reading {
    let (len, rounds) = memory.extent();
    let (source, mut out) = (noise(len), vec![1u8; len]);
    let elapsed = timed(rounds, || std::hint::black_box(&mut out).copy_from_slice(std::hint::black_box(&source)));
    reading(elapsed, rounds, len, format!("memcpy {}", memory.name()))
}

/// Widens each byte to a float32 of the same number: the least that any decoder must do. `Reading::bytes` counts values.
pub fn widen_rate(memory: Memory) -> Reading {
    let (len, rounds) = memory.extent();
    let (source, mut out) = (noise(len), vec![1f32; len + 16]);
    let start = out.as_ptr().align_offset(64);
    let kernel = kernels::best(memory);
    let elapsed = timed(rounds, || {
        (kernel.widen)(std::hint::black_box(&source), &mut std::hint::black_box(&mut out)[start..start + len]);
    });
    reading(elapsed, rounds, len, format!("byte to float32, {}, {}", kernel.name, memory.name()))
}

/// Decodes rows of `row_bytes` as a gather does, one after the other. `Reading::bytes` counts values.
///
/// `None` if the format has no rows of that size.
pub fn decode_rate(decoder: &Decoder, row_bytes: usize, memory: Memory) -> Option<Reading> {
    let format = decoder.format();
    let dim = format.dim_of(row_bytes)?;
    let (len, rounds) = memory.extent();
    let rows = len / row_bytes;
    let (source, mut out) = (noise(rows * row_bytes), vec![1f32; rows * dim + 16]);
    let start = out.as_ptr().align_offset(64);
    let value_bytes = format.value_bytes(dim);
    let elapsed = timed(rounds, || {
        let out = &mut std::hint::black_box(&mut out)[start..start + rows * dim];
        let parts = source.chunks_exact(row_bytes).map(|row| row.split_at(value_bytes));
        match memory {
            Memory::Cache => {
                for ((values, scales), out) in parts.zip(out.chunks_exact_mut(dim)) {
                    decoder.decode(values, scales, out);
                }
            }
            // As a table does for an output that leaves the caches.
            Memory::Main => {
                let mut stream = decoder.stream(dim, out);
                for (position, (values, scales)) in parts.enumerate() {
                    stream.decode(position, values, scales);
                }
            }
        }
    });
    let call = match memory {
        Memory::Cache => "Decoder::decode",
        Memory::Main => "Decoder::stream",
    };
    let path = format!("{call}, {}, rows of {row_bytes} bytes, {}", format.name(), memory.name());
    Some(reading(elapsed, rounds, rows * dim, path))
}

/// Widening loops by instruction set. Unsafe code lives here.
mod kernels {
    use super::Memory;

    pub(super) struct Kernel {
        pub(super) name: &'static str,
        pub(super) widen: fn(&[u8], &mut [f32]),
    }

    /// The fastest that the CPU has; streaming stores where the output leaves the caches.
    pub(super) fn best(memory: Memory) -> Kernel {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx512f") {
            return match memory {
                // SAFETY: AVX-512F was detected.
                Memory::Cache => Kernel { name: "AVX-512", widen: |bytes, out| unsafe { widen_avx512(bytes, out) } },
                Memory::Main => Kernel {
                    name: "AVX-512 streaming",
                    // SAFETY: AVX-512F was detected.
                    widen: |bytes, out| unsafe { widen_avx512_streaming(bytes, out) },
                },
            };
        }
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: AVX2 was detected.
            return Kernel { name: "AVX2", widen: |bytes, out| unsafe { widen_avx2(bytes, out) } };
        }
        let _ = memory;
        Kernel { name: "portable", widen }
    }

    /// Compiled once per instruction set, for which the compiler vectorises it.
    #[inline(always)]
    fn widen(bytes: &[u8], out: &mut [f32]) {
        for (out, &byte) in out.iter_mut().zip(bytes) {
            *out = f32::from(byte);
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    fn widen_avx512(bytes: &[u8], out: &mut [f32]) {
        widen(bytes, out);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn widen_avx2(bytes: &[u8], out: &mut [f32]) {
        widen(bytes, out);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    fn widen_avx512_streaming(bytes: &[u8], out: &mut [f32]) {
        use std::arch::x86_64::{
            _mm_loadu_si128, _mm_sfence, _mm512_cvtepi32_ps, _mm512_cvtepu8_epi32, _mm512_stream_ps,
        };
        assert!(out.as_ptr().align_offset(64) == 0, "streaming stores need an aligned output");
        for (bytes, out) in bytes.chunks_exact(16).zip(out.chunks_exact_mut(16)) {
            // SAFETY: both chunks have 16 elements, and 16 float32 are 64 bytes, so every chunk of the output is aligned as its
            // first.
            unsafe {
                let values = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(bytes.as_ptr().cast())));
                _mm512_stream_ps(out.as_mut_ptr(), values);
            }
        }
        _mm_sfence();
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn every_kernel_widens_alike() {
            let bytes: Vec<u8> = (0..4096).map(|i| (i * 7 % 256) as u8).collect();
            for memory in [Memory::Cache, Memory::Main] {
                let mut out = vec![0f32; bytes.len() + 16];
                let start = out.as_ptr().align_offset(64);
                let out = &mut out[start..start + bytes.len()];
                (best(memory).widen)(&bytes, out);
                assert!(bytes.iter().zip(out.iter()).all(|(&byte, &value)| f32::from(byte) == value));
            }
        }
    }
}
