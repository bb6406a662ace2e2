//! The probes deliver exactly the bytes that were asked for, whoever reads them.

use super::*;
use crate::source::FileStamp;
use std::io::Write;

/// A table of two shards and two parts (160 and 8 bytes) at odd offsets, and its rows.
struct Written {
    _directory: tempfile::TempDir,
    extents: Vec<ProbeExtent>,
    rows: Vec<Vec<u8>>,
}

fn table(parts: &[usize]) -> Written {
    let directory = tempfile::tempdir().unwrap();
    let mut state = 1u64;
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 40) as u8
    };
    let shards = [700u64, 411];
    let mut rows: Vec<Vec<u8>> = vec![Vec::new(); shards.iter().sum::<u64>() as usize];
    let mut extents = Vec::new();
    for (part, &width) in parts.iter().enumerate() {
        let mut first_row = 0;
        for (shard, &count) in shards.iter().enumerate() {
            let path = directory.path().join(format!("part{part}-shard{shard}"));
            let offset = 13 * (shard as u64 + 1);
            let mut content = vec![0xAA; offset as usize];
            for row in &mut rows[first_row as usize..(first_row + count) as usize] {
                let bytes: Vec<u8> = (0..width).map(|_| byte()).collect();
                content.extend(&bytes);
                row.extend(bytes);
            }
            std::fs::File::create(&path).unwrap().write_all(&content).unwrap();
            let bytes = count * width as u64;
            extents.push(ProbeExtent { file: path, shard: shard as u32, first_row, rows: count, offset, bytes });
            first_row += count;
        }
    }
    Written { _directory: directory, extents, rows }
}

impl Written {
    fn extents(&self) -> Extents {
        Extents::new(&self.extents).unwrap()
    }

    /// `None`, and a printed reason, where the file system has no direct reads.
    #[expect(clippy::print_stderr)]
    fn direct(&self) -> Option<Direct> {
        match Direct::open(self.extents()) {
            Err(error @ ProbeError::NoDirect { .. }) => {
                eprintln!("skipped: {error}");
                None
            }
            opened => Some(opened.unwrap()),
        }
    }

    /// All ids out of order, some twice, and the bytes of their rows.
    fn batch(&self) -> (Vec<i64>, Vec<u8>) {
        let total = self.rows.len() as i64;
        let ids: Vec<i64> = (0..total + 50).map(|i| i * 389 % total).chain([0, total - 1, 0]).collect();
        let bytes = ids.iter().flat_map(|&id| self.rows[id as usize].clone()).collect();
        (ids, bytes)
    }
}

#[test]
fn random_reads_deliver_the_rows() {
    for parts in [&[160usize][..], &[256, 8], &[700]] {
        let table = table(parts);
        let Some(direct) = table.direct() else { return };
        let (ids, expected) = table.batch();
        for sector in [direct.sector(), 4096] {
            for depth in [1, 7, 128] {
                for executor in [None, Some(Executor::Threads)] {
                    let mut out = vec![0; expected.len()];
                    let reading = direct.random(&ids, &mut out, sector, depth, executor).unwrap();
                    assert!(out == expected, "{}", reading.path);
                    assert_eq!(reading.reads, (ids.len() * parts.len()) as u64);
                    assert!(reading.bytes >= sector * reading.reads && reading.bytes % sector == 0);
                    assert_eq!(reading.path.contains("thread"), executor.is_some() || reading.path.contains("refused"));
                }
            }
        }
    }
}

#[test]
fn gather_delivers_the_rows() {
    for parts in [&[160usize][..], &[256, 8], &[7]] {
        let table = table(parts);
        let mapped = MappedRows::open(table.extents(), u64::MAX).unwrap();
        let (ids, expected) = table.batch();
        for threads in [1, 2, 3] {
            let mut out = vec![0; expected.len()];
            mapped.gather(&ids, &mut out, threads).unwrap();
            assert!(out == expected);
        }
    }
}

#[test]
fn an_output_at_any_address_gets_the_rows() {
    let table = table(&[160]);
    let mapped = MappedRows::open(table.extents(), u64::MAX).unwrap();
    let (ids, expected) = table.batch();
    let mut out = vec![0; expected.len() + 64];
    let start = out.as_ptr().align_offset(32);
    // The loop that was found fastest for the aligned output must not be taken for the next.
    for from in [start, start + 1, start + 16, start] {
        let out = &mut out[from..from + expected.len()];
        for threads in [1, 2] {
            out.fill(0);
            mapped.gather(&ids, out, threads).unwrap();
            assert!(*out == *expected);
        }
    }
}

#[test]
fn sequential_reads_count_whole_blocks() {
    let table = table(&[160]);
    let Some(direct) = table.direct() else { return };
    for executor in [None, Some(Executor::Threads)] {
        let reading = direct.sequential(8192, 20_000, 4096, 4, executor).unwrap();
        assert_eq!((reading.reads, reading.bytes), (5, 5 * 4096));
        // No block is read twice: 112,000 bytes from 13 and 65,760 from 26 hold 26 and 15 aligned blocks.
        assert_eq!(direct.sequential(0, u64::MAX, 4096, 4, executor).unwrap().reads, 26 + 15);
    }
    assert!(direct.sequential(0, 1, 1 << 20, 4, None).is_err());
}

#[test]
fn arguments_without_meaning_are_refused() {
    let table = table(&[160]);
    let mapped = MappedRows::open(table.extents(), u64::MAX).unwrap();
    let last = table.rows.len() as i64;
    for ids in [[-1], [last]] {
        let error = mapped.gather(&ids, &mut [0; 160], 1).unwrap_err().to_string();
        assert!(error.contains(&ids[0].to_string()), "{error}");
    }
    assert!(mapped.gather(&[0], &mut [0; 159], 1).is_err());
    assert!(mapped.gather(&[0], &mut [0; 160], 0).is_err());
    let Some(direct) = table.direct() else { return };
    assert!(direct.random(&[0], &mut [0; 160], 100, 1, None).is_err());
    assert!(direct.random(&[0], &mut [0; 160], 4096, 0, None).is_err());
    assert!(Extents::new(&[]).is_err());
    let hole = ProbeExtent { first_row: 1, ..table.extents[0].clone() };
    assert!(Extents::new(&[hole]).is_err());
    let odd = ProbeExtent { bytes: 700 * 160 + 1, ..table.extents[0].clone() };
    assert!(Extents::new(&[odd]).is_err());
}

#[test]
fn a_file_that_is_too_short_is_named() {
    let table = table(&[160]);
    let path = &table.extents[1].file;
    let opened = table.direct();
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(5000).unwrap();
    let named = |error: ProbeError| assert!(error.to_string().contains("shard1"), "{error}");
    named(MappedRows::open(table.extents(), u64::MAX).err().unwrap());
    let Some(direct) = opened else { return };
    for executor in [None, Some(Executor::Threads)] {
        named(direct.random(&[900, 1, 2, 1000], &mut [0; 640], 4096, 2, executor).unwrap_err());
    }
    // The probe only reads.
    assert_eq!(FileStamp::of(path).unwrap().bytes(), 5000);
}

#[test]
fn rates_have_a_path_and_a_count() {
    let decoder = crate::format::Decoder::new(crate::format::ValueFormat::Fp8E4m3 { scale: 0.5 });
    for reading in
        [copy_rate(Memory::Cache), widen_rate(Memory::Cache), decode_rate(&decoder, 160, Memory::Cache).unwrap()]
    {
        assert!(reading.bytes > 0 && reading.path.contains("L2"), "{reading:?}");
    }
    let nvfp4 = crate::format::Decoder::new(crate::format::ValueFormat::Nvfp4 { scale_2: 1.0 });
    assert!(decode_rate(&nvfp4, 1, Memory::Cache).is_none());
}
