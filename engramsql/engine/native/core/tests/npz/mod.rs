//! Golden data: a JSON that describes the arrays of an NPZ beside it.

#![allow(dead_code)] // Not every test binary uses every helper.

use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;

/// Path of a golden file.
pub fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../../tests/golden").join(name)
}

pub fn json(name: &str) -> Value {
    let path = golden(name);
    let text = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&text).unwrap()
}

/// An integer array of any width, widened.
#[derive(Debug, Clone)]
pub struct Array {
    pub shape: Vec<usize>,
    pub values: Vec<i64>,
}

impl Array {
    pub fn bools(&self) -> Vec<bool> {
        self.values.iter().map(|&v| v != 0).collect()
    }

    /// Rows along the first axis.
    pub fn rows(&self) -> Vec<&[i64]> {
        let width: usize = self.shape[1..].iter().product();
        (0..self.shape[0]).map(|i| &self.values[i * width..(i + 1) * width]).collect()
    }

    /// `values[t, layer, :]` of a `[tokens, layers, columns]` array.
    pub fn layer(&self, layer: usize) -> Vec<i64> {
        let [tokens, layers, columns] = self.shape[..] else { panic!("not three axes: {:?}", self.shape) };
        (0..tokens).flat_map(|t| self.values[(t * layers + layer) * columns..][..columns].to_vec()).collect()
    }
}

/// The integer arrays of an NPZ; arrays of other types must not be asked for.
pub struct Npz(HashMap<String, Array>);

impl Npz {
    pub fn open(name: &str) -> Npz {
        let bytes = std::fs::read(golden(name)).unwrap();
        Npz(entries(&bytes).map(|(name, npy)| (name.trim_end_matches(".npy").to_owned(), array(&npy))).collect())
    }

    pub fn get(&self, key: &str) -> &Array {
        self.0.get(key).unwrap_or_else(|| panic!("no array {key}"))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The array a case names `short`, if it names one.
    pub fn of(&self, case: &Value, short: &str) -> Option<&Array> {
        case["arrays"][short].as_str().map(|key| self.get(key))
    }
}

fn u16_at(b: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([b[at], b[at + 1]]))
}

fn u32_at(b: &[u8], at: usize) -> usize {
    u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]) as usize
}

/// Names and contents of a ZIP without ZIP64 offsets, by its central directory.
fn entries(zip: &[u8]) -> impl Iterator<Item = (String, Vec<u8>)> + '_ {
    let end =
        (0..zip.len() - 21).rev().find(|&at| zip[at..].starts_with(b"PK\x05\x06")).expect("end of central directory");
    let mut at = u32_at(zip, end + 16);
    (0..u16_at(zip, end + 10)).map(move |_| {
        let (method, packed, size) = (u16_at(zip, at + 10), u32_at(zip, at + 20), u32_at(zip, at + 24));
        let (name, extra, comment) = (u16_at(zip, at + 28), u16_at(zip, at + 30), u16_at(zip, at + 32));
        let local = u32_at(zip, at + 42);
        let label = String::from_utf8(zip[at + 46..at + 46 + name].to_vec()).unwrap();
        let start = local + 30 + u16_at(zip, local + 26) + u16_at(zip, local + 28);
        let data = &zip[start..start + packed];
        let data = match method {
            0 => data.to_vec(),
            8 => miniz_oxide::inflate::decompress_to_vec(data).unwrap(),
            other => panic!("compression method {other}"),
        };
        assert_eq!(data.len(), size);
        at += 46 + name + extra + comment;
        (label, data)
    })
}

fn array(npy: &[u8]) -> Array {
    assert!(npy.starts_with(b"\x93NUMPY\x01\x00"));
    let header = std::str::from_utf8(&npy[10..10 + u16_at(npy, 8)]).unwrap();
    assert!(header.contains("'fortran_order': False"));
    let field = |from: &str, to: char| {
        let rest = &header[header.find(from).unwrap() + from.len()..];
        &rest[..rest.find(to).unwrap()]
    };
    let shape: Vec<usize> = field("'shape': (", ')').split(',').filter_map(|n| n.trim().parse().ok()).collect();
    let data = &npy[10 + header.len()..];
    let values: Vec<i64> = match field("'descr': '", '\'') {
        "|u1" => data.iter().map(|&b| i64::from(b)).collect(),
        "<u2" => data.chunks_exact(2).map(|b| u16_at(b, 0) as i64).collect(),
        "<u4" => data.chunks_exact(4).map(|b| u32_at(b, 0) as i64).collect(),
        "<i8" => data.chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect(),
        other => panic!("dtype {other}"),
    };
    assert_eq!(values.len(), shape.iter().product::<usize>());
    Array { shape, values }
}

/// Integers of a JSON list, nested lists flattened.
pub fn ints(value: &Value) -> Vec<i64> {
    match value {
        Value::Array(items) => items.iter().flat_map(ints).collect(),
        other => vec![other.as_i64().unwrap_or_else(|| panic!("not an integer: {other}"))],
    }
}

pub fn cases(doc: &Value) -> &[Value] {
    doc["cases"].as_array().unwrap()
}

/// A config with fields set or replaced.
pub fn with(config: &Value, fields: Value) -> Value {
    let mut config = config.clone();
    for (key, value) in fields.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}
