//! A second reader of sources, which shares nothing with the first: it proves rows after a build.
//!
//! Headers are parsed by the `safetensors` crate, tensors found by their names alone, rows read one by one with plain
//! positional reads. Row files of stores are found by dividing the row id.

use super::error::BuildError;
use crate::source::SourceKind;
use safetensors::tensor::Metadata;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Longest header that the format allows.
const MOST_HEADER: u64 = 100_000_000;

/// Rows back to back in one file.
struct Piece {
    first_row: u64,
    rows: u64,
    file: PathBuf,
    offset: u64,
}

/// A part of every row: all of it, its values or its scales.
struct Part {
    width: u64,
    pieces: Vec<Piece>,
}

/// The rows of a source.
pub(crate) struct SecondReader {
    parts: Vec<Part>,
}

/// Per part, the piece read last and its file: rows are asked for in order, and files are many.
#[derive(Default)]
pub(crate) struct OpenFiles(Vec<Option<(usize, File)>>);

type Result<T> = std::result::Result<T, BuildError>;

fn refuse(path: &Path, what: impl ToString) -> BuildError {
    BuildError::SecondReader { path: path.to_owned(), what: what.to_string() }
}

impl SecondReader {
    /// The rows of hash layer `layer` of the source at `path`, which have `row_bytes` bytes.
    pub(crate) fn open(path: &Path, kind: SourceKind, layer: Option<u32>, row_bytes: u64) -> Result<SecondReader> {
        let parts = match (kind, layer) {
            (SourceKind::Checkpoint, Some(layer)) => Tensors::list(path)?.parts(layer)?,
            (SourceKind::Checkpoint, None) => return Err(refuse(path, "a checkpoint without a hash layer")),
            (SourceKind::Store, _) => vec![row_files(path, row_bytes)?],
        };
        let reader = SecondReader { parts };
        let found: u64 = reader.parts.iter().map(|part| part.width).sum();
        if found != row_bytes {
            return Err(refuse(path, format!("it finds rows of {found} bytes, not {row_bytes}")));
        }
        if let Some(other) = reader.parts.iter().find(|part| part.rows() != reader.rows()) {
            return Err(refuse(path, format!("it finds {} values and {} scales", reader.rows(), other.rows())));
        }
        Ok(reader)
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> u64 {
        self.parts.first().map_or(0, Part::rows)
    }

    /// First and last row of every stretch that lies in one piece.
    pub(super) fn boundaries(&self) -> impl Iterator<Item = u64> {
        let pieces = self.parts.iter().flat_map(|part| &part.pieces);
        pieces.flat_map(|piece| [piece.first_row, piece.first_row + piece.rows - 1])
    }

    /// The bytes of row `row`.
    pub(crate) fn read(&self, row: u64, files: &mut OpenFiles, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        files.0.resize_with(self.parts.len(), || None);
        self.parts.iter().zip(&mut files.0).try_for_each(|(part, open)| part.read(row, open, out))
    }
}

impl Part {
    fn rows(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.rows).sum()
    }

    fn push(&mut self, file: PathBuf, offset: u64, rows: u64) {
        let first_row = self.rows();
        if rows > 0 {
            self.pieces.push(Piece { first_row, rows, file, offset });
        }
    }

    fn read(&self, row: u64, open: &mut Option<(usize, File)>, out: &mut Vec<u8>) -> Result<()> {
        let index = self.pieces.partition_point(|piece| piece.first_row <= row).saturating_sub(1);
        let Some(piece) = self.pieces.get(index) else {
            return Err(refuse(Path::new("."), format!("there is no row {row}")));
        };
        let io = |error| refuse(&piece.file, error);
        let file = match open.take() {
            Some((of, file)) if of == index => file,
            _ => File::open(&piece.file).map_err(io)?,
        };
        let at = out.len();
        out.resize(at + self.width as usize, 0);
        file.read_exact_at(&mut out[at..], piece.offset + (row - piece.first_row) * self.width).map_err(io)?;
        *open = Some((index, file));
        Ok(())
    }
}

/// The row files of a store, in the order of their numbers.
fn row_files(path: &Path, row_bytes: u64) -> Result<Part> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(path).map_err(|error| refuse(path, error))? {
        let entry = entry.map_err(|error| refuse(path, error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let digits = name.strip_prefix("shard_").or_else(|| name.strip_prefix("badge_"));
        let digits = digits.and_then(|rest| rest.strip_suffix(".bin")).filter(|digits| digits.len() >= 3);
        if let Some(number) = digits.and_then(|digits| digits.parse::<u32>().ok()) {
            files.insert(number, entry.path());
        }
    }
    let manifest = std::fs::read(path.join("manifest.json")).ok();
    let manifest: Option<Value> = manifest.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let said = |name: &str| manifest.as_ref()?.get("layout")?.get(name)?.as_u64();
    let mut left = said("total_rows");
    let mut part = Part { width: row_bytes, pieces: Vec::new() };
    for file in files.into_values() {
        let bytes = std::fs::metadata(&file).map_err(|error| refuse(&file, error))?.len();
        // A padded file ends where the manifest says that its rows end.
        let rows = (bytes / row_bytes).min(said("rows_per_shard").unwrap_or(u64::MAX)).min(left.unwrap_or(u64::MAX));
        left = left.map(|left| left - rows);
        part.push(file, 0, rows);
    }
    Ok(part)
}

/// Tensor names and the files that an index or their only file gives for them.
struct Tensors {
    path: PathBuf,
    files: BTreeMap<String, PathBuf>,
    headers: HashMap<PathBuf, (u64, Metadata)>,
}

/// A tensor of rows.
struct Rows {
    file: PathBuf,
    offset: u64,
    rows: u64,
    width: u64,
    packed: bool,
}

impl Tensors {
    fn list(path: &Path) -> Result<Tensors> {
        let index = path.join("model.safetensors.index.json");
        let mut tensors = Tensors { path: path.to_owned(), files: BTreeMap::new(), headers: HashMap::new() };
        if let Ok(bytes) = std::fs::read(&index) {
            let index_json: Value = serde_json::from_slice(&bytes).map_err(|error| refuse(&index, error))?;
            let map = index_json.get("weight_map").and_then(Value::as_object);
            for (name, file) in map.ok_or_else(|| refuse(&index, "it has no weight_map"))? {
                let file = file.as_str().ok_or_else(|| refuse(&index, "a file name is no text"))?;
                tensors.files.insert(name.clone(), path.join(file));
            }
            return Ok(tensors);
        }
        let mut file = path.join("model.safetensors");
        if !file.exists() {
            let entries = std::fs::read_dir(path).map_err(|error| refuse(path, error))?;
            let mut others = entries.flatten().map(|entry| entry.path());
            let found = others.find(|path| path.extension().is_some_and(|extension| extension == "safetensors"));
            file = found.ok_or_else(|| refuse(path, "it has no safetensors file"))?;
        }
        for name in tensors.header(&file)?.1.offset_keys() {
            tensors.files.insert(name, file.clone());
        }
        Ok(tensors)
    }

    /// Begin of the data and header of a file.
    fn header(&mut self, file: &Path) -> Result<&(u64, Metadata)> {
        if !self.headers.contains_key(file) {
            let io = |error| refuse(file, error);
            let open = File::open(file).map_err(io)?;
            let mut length = [0; 8];
            open.read_exact_at(&mut length, 0).map_err(io)?;
            let length = u64::from_le_bytes(length);
            if length > MOST_HEADER {
                return Err(refuse(file, format!("its header would have {length} bytes")));
            }
            let mut header = vec![0; length as usize];
            open.read_exact_at(&mut header, 8).map_err(io)?;
            let header: Metadata = serde_json::from_slice(&header).map_err(|error| refuse(file, error))?;
            self.headers.insert(file.to_owned(), (8 + length, header));
        }
        self.headers.get(file).ok_or_else(|| refuse(file, "its header is lost"))
    }

    /// What follows `prefix` in a name, whatever precedes it.
    fn under(&self, prefix: &str) -> Vec<(String, String)> {
        let rest = |name: &String| {
            let at = name.find(prefix).filter(|&at| at == 0 || name[..at].ends_with('.'))?;
            Some((name[at + prefix.len()..].to_owned(), name.clone()))
        };
        self.files.keys().filter_map(rest).collect()
    }

    fn rows(&mut self, name: &str) -> Result<Rows> {
        let missing = |path: &Path| refuse(path, format!("tensor '{name}' is not there"));
        let file = self.files.get(name).ok_or_else(|| missing(&self.path))?.clone();
        let (data, header) = self.header(&file)?;
        let info = header.info(name).ok_or_else(|| missing(&file))?;
        let rows = info.shape.first().copied().unwrap_or(0) as u64;
        let bytes = (info.data_offsets.1 - info.data_offsets.0) as u64;
        let offset = data + info.data_offsets.0 as u64;
        let width = bytes.checked_div(rows).unwrap_or(0);
        let packed = info.dtype == safetensors::Dtype::U8;
        Ok(Rows { file, offset, rows, width, packed })
    }

    /// The parts of the rows of a hash layer: one tensor or many, scales beside them or not.
    fn parts(mut self, layer: u32) -> Result<Vec<Part>> {
        let engram = self.under(&format!("layers.{layer}.engram."));
        let one_of = |names: &[&str]| engram.iter().find(|(rest, _)| names.contains(&&rest[..])).map(|(_, name)| name);
        let values = one_of(&["embed.weight", "embed_tokens.weight"]);
        let scales = one_of(&["embed.scale", "embed.weight_scale_inv", "embed_tokens.weight_scale_inv"]);
        if let (Some(values), Some(scales)) = (values, scales) {
            return Ok(vec![self.part(std::slice::from_ref(values))?, self.part(std::slice::from_ref(scales))?]);
        }
        let ple = self.under(&format!("layers.{layer}.ple.ple_embedding.ngram_embedding."));
        let numbered = |suffix: &str| -> BTreeMap<u32, String> {
            let number = |rest: &str| rest.strip_prefix("shard_")?.strip_suffix(suffix)?.parse::<u32>().ok();
            ple.iter().filter_map(|(rest, name)| Some((number(rest)?, name.clone()))).collect()
        };
        let mut values: Vec<String> = numbered(".weight").into_values().collect();
        if values.is_empty() {
            values.extend(ple.iter().find(|(rest, _)| rest == "weight").map(|(_, name)| name.clone()));
        }
        let Some(first) = values.first() else {
            return Err(refuse(&self.path, format!("it finds no rows of layer {layer}")));
        };
        // Bytes are packed values, two each, and their scales lie beside them.
        if !self.rows(first)?.packed {
            return Ok(vec![self.part(&values)?]);
        }
        let scales: Vec<String> = numbered(".weight_scale").into_values().collect();
        Ok(vec![self.part(&values)?, self.part(&scales)?])
    }

    fn part(&mut self, names: &[String]) -> Result<Part> {
        let mut part = Part { width: 0, pieces: Vec::new() };
        for name in names {
            let Rows { file, offset, rows, width, .. } = self.rows(name)?;
            if rows > 0 && part.width != 0 && part.width != width {
                return Err(refuse(&file, format!("rows of tensor '{name}' have {width} bytes, not {}", part.width)));
            }
            if rows > 0 {
                part.width = width;
            }
            part.push(file, offset, rows);
        }
        Ok(part)
    }
}
