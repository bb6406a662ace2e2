//! Tables against each other: equal whatever their sources, and every difference told exactly.

mod built;

use built::{Random, Shape, content, golden, shard, write_store};
use engram_engine::catalog::Session;
use engram_engine::verify::{Comparison, Difference, compare};
use engram_engine::{Error, ErrorKind, Progress, Table};
use std::path::Path;
use std::sync::Arc;

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn open(path: &Path) -> Arc<Table> {
    Session::in_memory().table(path.to_str().unwrap()).unwrap()
}

fn store(directory: &Path, shape: Shape, bytes: &[u8]) -> Arc<Table> {
    write_store(directory, shape, bytes);
    open(directory)
}

#[test]
fn random_differences_are_told_exactly() {
    let home = temporary();
    // Shards that end at different rows, and rows that no block of reads is a multiple of.
    let shape = Shape { rows: 30_011, rows_per_shard: 7000, width: 117 };
    let bytes = content(shape, 1);
    let a = store(&home.path().join("a"), shape, &bytes);
    let mut random = Random(5);
    for (round, count) in [0, 1, 500, 40_000].into_iter().enumerate() {
        let mut changed = bytes.clone();
        for _ in 0..count {
            let at = random.below(changed.len());
            changed[at] ^= 1 + random.below(255) as u8;
        }
        let b = store(&home.path().join(format!("b{round}")), Shape { rows_per_shard: 11_003, ..shape }, &changed);
        let expected: Vec<Difference> = (0..)
            .zip(bytes.chunks_exact(shape.width).zip(changed.chunks_exact(shape.width)))
            .filter_map(|(rowid, (a, b))| {
                let byte = (0..shape.width).find(|&byte| a[byte] != b[byte])?;
                Some(Difference { rowid, byte: byte as u64, a: a[byte], b: b[byte] })
            })
            .collect();
        let mut all = Vec::new();
        let progress = Progress::new();
        let mut take = |difference| {
            all.push(difference);
            Ok(())
        };
        let found = compare(&a, &b, 7, &progress, Some(&mut take)).unwrap();
        let different = expected.len() as u64;
        let first = expected[..expected.len().min(7)].to_vec();
        let rows = shape.rows as u64;
        assert_eq!(found, Comparison { rows, equal: rows - different, different, first });
        assert_eq!(all, expected);
        let read = 2 * (shape.rows * shape.width) as u64;
        assert_eq!(progress.snapshot(), ("compare", read, read));
        assert_eq!(compare(&a, &b, 0, &Progress::new(), None).unwrap(), Comparison { first: Vec::new(), ..found });
    }
    // A caller that has enough ends it.
    let b = open(&home.path().join("b3"));
    let mut enough = |_| Err(Error::Cancelled);
    assert!(matches!(compare(&a, &b, 0, &Progress::new(), Some(&mut enough)), Err(Error::Cancelled)));
}

#[test]
fn a_packed_store_equals_the_checkpoint_it_came_from() {
    let home = temporary();
    for layer in [1, 3] {
        let checkpoint = open(Path::new(&format!("{}#l{layer}", golden("ckpt_deepseek_v41").display())));
        // Values and scales lie in two tensors of several shards there, side by side here.
        let ids: Vec<i64> = (0..checkpoint.rows() as i64).collect();
        let mut rows = vec![0; ids.len() * checkpoint.row_bytes()];
        checkpoint.fetch_into(&ids, &mut rows).unwrap();
        let shape = Shape { rows: ids.len(), rows_per_shard: 50, width: checkpoint.row_bytes() };
        let packed = store(&home.path().join(format!("l{layer}")), shape, &rows);
        for (a, b) in [(&*checkpoint, &*packed), (&*packed, &*checkpoint), (&*packed, &*packed)] {
            let found = compare(a, b, 5, &Progress::new(), None).unwrap();
            assert_eq!((found.rows, found.equal, found.different), (ids.len() as u64, ids.len() as u64, 0));
        }
        // The last byte of the last row: a scale.
        *rows.last_mut().unwrap() ^= 0x80;
        let changed = store(&home.path().join(format!("c{layer}")), shape, &rows);
        let found = compare(&checkpoint, &changed, 5, &Progress::new(), None).unwrap();
        let (rowid, byte) = (shape.rows as u64 - 1, shape.width as u64 - 1);
        let b = rows[rows.len() - 1];
        assert_eq!(found.first, [Difference { rowid, byte, a: b ^ 0x80, b }]);
    }
}

#[test]
fn tables_of_other_shapes_are_refused_by_name() {
    let home = temporary();
    let shape = Shape { rows: 40, rows_per_shard: 15, width: 12 };
    let table = |name: &str, shape: Shape| store(&home.path().join(name), shape, &content(shape, 3));
    let a = table("first", shape);
    for (other, figures) in [
        (table("shorter", Shape { rows: 39, ..shape }), ["40 rows", "39"]),
        (table("wider", Shape { width: 13, ..shape }), ["12 bytes", "13"]),
    ] {
        let error = compare(&a, &other, 1, &Progress::new(), None).unwrap_err();
        let text = error.to_string();
        assert_eq!(error.kind(), ErrorKind::Argument);
        let names = [a.name(), other.name()];
        assert!(names.iter().chain(&figures).all(|part| text.contains(part)) && !text.contains('\n'), "{text}");
    }
}

#[test]
fn a_file_that_changes_meanwhile_and_a_cancellation_end_it() {
    let home = temporary();
    let shape = Shape { rows: 4000, rows_per_shard: 1000, width: 1000 };
    let bytes = content(shape, 3);
    let (a, b) = (home.path().join("a"), home.path().join("b"));
    write_store(&a, shape, &bytes);
    write_store(&b, shape, &bytes);
    for (first, second) in [(&a, &b), (&b, &a)] {
        let (first, second) = (open(first), open(second));
        let progress = Progress::new();
        progress.cancel();
        assert!(matches!(compare(&first, &second, 1, &progress, None), Err(Error::Cancelled)));
        let path = shard(&b, 2);
        let kept = std::fs::read(&path).unwrap();
        std::fs::write(&path, &kept[..5]).unwrap();
        let error = compare(&first, &second, 1, &Progress::new(), None).unwrap_err();
        assert!(error.to_string().contains("shard_002.bin"), "{error}");
        std::fs::write(&path, &kept).unwrap();
    }
}
