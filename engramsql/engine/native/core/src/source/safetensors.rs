//! The safetensors header: read, checked against the file, never trusted.
//!
//! Only the header is read. Every extent is proven to lie inside the file and to equal shape x dtype; tensors must tile
//! the data area from its first byte to the file's last, as the reference library demands. Stricter than the
//! library: a duplicate name is refused.

use super::error::SourceError;
use super::stamp::FileStamp;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Largest header the reference library accepts, in bytes.
const MAX_HEADER: u64 = 100_000_000;

/// One tensor of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Name.
    pub name: String,
    /// dtype as written (`F8_E4M3`, `BF16`, ...).
    pub dtype: String,
    /// Shape; `[]` is a scalar with one element.
    pub shape: Vec<u64>,
    /// Byte offset in the file (header included).
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
}

/// The checked header of one file.
#[derive(Debug, Clone)]
pub struct Header {
    /// The file.
    pub path: PathBuf,
    /// The file as it was when its header was read.
    pub stamp: FileStamp,
    /// Its tensors, in data order.
    pub tensors: Vec<Tensor>,
}

impl Header {
    /// Reads and checks the header of `path`.
    pub fn read(path: &Path) -> Result<Header, SourceError> {
        let io = |e| SourceError::io(path, e);
        FileStamp::of(path).map_err(io)?;
        let mut file = File::open(path).map_err(io)?;
        let stamp = FileStamp::of_file(&file).map_err(io)?;
        let file_bytes = stamp.bytes();
        if file_bytes == 0 {
            return Err(SourceError::EmptyFile { path: path.to_owned() });
        }
        let mut head = Vec::with_capacity(64);
        file.by_ref().take(64).read_to_end(&mut head).map_err(io)?;
        refuse_impostor(path, &head)?;
        let length = head.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes));
        let length = match length {
            Some(length) if length <= MAX_HEADER && length <= file_bytes - 8 => length,
            length => {
                return Err(SourceError::BadHeaderLength {
                    path: path.to_owned(),
                    length: length.unwrap_or(0),
                    file_bytes,
                });
            }
        };
        let mut json = vec![0; length as usize];
        file.read_exact_at(&mut json, 8).map_err(io)?;
        let entries: Entries = serde_json::from_slice(&json)
            .map_err(|e| SourceError::BadJson { path: path.to_owned(), detail: format!("safetensors header: {e}") })?;
        let tensors = check(path, entries.0, 8 + length, file_bytes)?;
        Ok(Header { path: path.to_owned(), stamp, tensors })
    }

    /// The tensor called `name`.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }

    /// The bytes of a small tensor.
    pub fn read_tensor(&self, tensor: &Tensor) -> Result<Vec<u8>, SourceError> {
        let mut bytes = vec![0; tensor.bytes as usize];
        let file = File::open(&self.path).map_err(|e| SourceError::io(&self.path, e))?;
        file.read_exact_at(&mut bytes, tensor.offset).map_err(|e| SourceError::io(&self.path, e))?;
        Ok(bytes)
    }
}

/// What often lies where a shard should: a Git LFS pointer, or the page of a failed download.
pub(super) fn refuse_impostor(path: &Path, head: &[u8]) -> Result<(), SourceError> {
    if head.starts_with(b"version https://git-lfs") {
        return Err(SourceError::LfsPointer { path: path.to_owned() });
    }
    let text = head.trim_ascii_start().to_ascii_lowercase();
    if text.starts_with(b"<!doctype") || text.starts_with(b"<html") || text.starts_with(b"<?xml") {
        return Err(SourceError::HtmlPage { path: path.to_owned() });
    }
    Ok(())
}

/// A JSON object as a list of pairs, because a map would swallow duplicate names.
struct Entries(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Entries;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Entries(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

fn check(
    path: &Path,
    entries: Vec<(String, Value)>,
    data_start: u64,
    file_bytes: u64,
) -> Result<Vec<Tensor>, SourceError> {
    let mut seen = std::collections::HashSet::with_capacity(entries.len());
    let mut tensors = Vec::with_capacity(entries.len());
    for (name, value) in entries {
        if !seen.insert(name.clone()) {
            return Err(SourceError::DuplicateTensor { path: path.to_owned(), tensor: name });
        }
        if name != "__metadata__" {
            tensors.push(parse_tensor(path, name, &value, data_start)?);
        }
    }
    tensors.sort_by_key(|tensor| (tensor.offset, tensor.bytes));

    let mut end = data_start;
    let mut previous = String::new();
    for tensor in &tensors {
        if tensor.offset < end {
            return Err(SourceError::Overlap { path: path.to_owned(), first: previous, second: tensor.name.clone() });
        }
        if tensor.offset > end {
            // A hole somewhere and an extent beyond the end are one mistake; the tensor that was moved is the one to name.
            if let Some(beyond) = tensors.iter().find(|tensor| tensor.offset > file_bytes) {
                return Err(SourceError::BadTensor {
                    path: path.to_owned(),
                    tensor: beyond.name.clone(),
                    detail: format!("its extent begins at byte {}, the file has {file_bytes}", beyond.offset),
                });
            }
            let bytes = tensor.offset - end;
            return Err(SourceError::Hole { path: path.to_owned(), bytes, before: tensor.name.clone() });
        }
        end = end.saturating_add(tensor.bytes);
        previous.clone_from(&tensor.name);
    }
    let path = path.to_owned();
    if file_bytes < end {
        return Err(SourceError::Truncated { path, missing: end - file_bytes, expected: end, found: file_bytes });
    }
    if file_bytes > end {
        return Err(SourceError::TrailingBytes { path, extra: file_bytes - end, expected: end, found: file_bytes });
    }
    Ok(tensors)
}

fn parse_tensor(path: &Path, name: String, value: &Value, data_start: u64) -> Result<Tensor, SourceError> {
    let bad = |detail: &str| SourceError::BadTensor {
        path: path.to_owned(),
        tensor: name.clone(),
        detail: detail.to_owned(),
    };
    let dtype = value.get("dtype").and_then(Value::as_str).ok_or_else(|| bad("no dtype"))?.to_owned();
    let shape: Option<Vec<u64>> =
        value.get("shape").and_then(Value::as_array).and_then(|shape| shape.iter().map(Value::as_u64).collect());
    let shape = shape.ok_or_else(|| bad("its shape is not a list of non-negative integers"))?;
    let extent = value.get("data_offsets").and_then(Value::as_array).map(Vec::as_slice);
    let (begin, end) = match extent {
        Some([begin, end]) => begin.as_u64().zip(end.as_u64()),
        _ => None,
    }
    .ok_or_else(|| bad("its data_offsets are not two non-negative integers"))?;
    if begin > end {
        return Err(bad("its extent ends before it begins"));
    }
    let offset = data_start.checked_add(begin);
    let last = data_start.checked_add(end);
    let (Some(offset), Some(_)) = (offset, last) else {
        return Err(bad("its extent lies beyond 2^64"));
    };
    let bytes = end - begin;
    // A dtype that nobody knows has no size to check; whoever wants that tensor refuses it by name.
    if let Some(bits) = dtype_bits(&dtype) {
        let expected = shape.iter().try_fold(bits, |bits, &n| bits.checked_mul(n));
        if expected.is_none_or(|bits| bits % 8 != 0 || bits / 8 != bytes) {
            let expected = expected.map_or("more than 2^64".to_owned(), |bits| bits.div_ceil(8).to_string());
            return Err(SourceError::WrongExtent {
                path: path.to_owned(),
                tensor: name,
                shape,
                dtype,
                expected,
                found: bytes,
            });
        }
    }
    Ok(Tensor { name, dtype, shape, offset, bytes })
}

/// Bits per element of the container's dtypes (safetensors 0.8.0).
fn dtype_bits(dtype: &str) -> Option<u64> {
    Some(match dtype {
        "F4" => 4,
        "F6_E2M3" | "F6_E3M2" => 6,
        "BOOL" | "U8" | "I8" | "F8_E4M3" | "F8_E5M2" | "F8_E8M0" | "F8_E4M3FNUZ" | "F8_E5M2FNUZ" => 8,
        "I16" | "U16" | "F16" | "BF16" => 16,
        "I32" | "U32" | "F32" => 32,
        "I64" | "U64" | "F64" | "C64" => 64,
        _ => return None,
    })
}
