//! A Hugging Face checkpoint directory: its config, its index, and the headers of the files that matter.

use super::error::SourceError;
use super::safetensors::{Header, Tensor};
use super::stamp::FileStamp;
use crate::spec;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;

const INDEX: &str = "model.safetensors.index.json";
const SINGLE: &str = "model.safetensors";
/// Most bytes that are read of a tensor at registration; hash constants and scales have a few hundred.
const MAX_SMALL: u64 = 1 << 20;

/// An opened checkpoint directory. Headers are read when a tensor of the file is asked for, each once.
pub struct Checkpoint {
    /// The directory.
    pub path: PathBuf,
    /// The parsed `config.json`.
    pub config: Value,
    /// Tensor name to file name, from the index or from the single file's header.
    weight_map: BTreeMap<String, String>,
    headers: RefCell<HashMap<String, Rc<Header>>>,
}

/// A tensor and the file it lies in.
#[derive(Clone)]
pub struct Located {
    /// The file's header.
    pub header: Rc<Header>,
    /// The tensor.
    pub tensor: Tensor,
}

impl Located {
    /// The file.
    pub fn file(&self) -> &Path {
        &self.header.path
    }

    /// The file, as it was when its header was read.
    pub fn stamped(&self) -> (&Path, FileStamp) {
        (&self.header.path, self.header.stamp)
    }

    /// The tensor's bytes (small tensors only).
    pub fn read(&self) -> Result<Vec<u8>, SourceError> {
        self.header.read_tensor(&self.tensor)
    }

    /// The tensor as a list of I64.
    pub fn read_i64(&self) -> Result<Vec<i64>, SourceError> {
        self.require_dtype(&["I64"], "hash constants are I64")?;
        if self.tensor.bytes > MAX_SMALL {
            return Err(self.wrong_shape("at most a few thousand hash constants"));
        }
        Ok(self.read()?.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect())
    }

    /// The tensor's only element, widened exactly to float32.
    pub fn read_scalar(&self) -> Result<f32, SourceError> {
        self.require_dtype(&["BF16", "F16", "F32"], "a scale is BF16, F16 or F32")?;
        if !self.tensor.shape.iter().all(|&n| n == 1) {
            return Err(self.wrong_shape("[1] or []: one scale for the whole table"));
        }
        let scale = match self.read()?[..] {
            [a, b] if self.tensor.dtype == "BF16" => half::bf16::from_le_bytes([a, b]).to_f32(),
            [a, b] => half::f16::from_le_bytes([a, b]).to_f32(),
            [a, b, c, d] => f32::from_le_bytes([a, b, c, d]),
            _ => return Err(self.wrong_shape("[1] or []: one scale for the whole table")),
        };
        if !scale.is_finite() || scale == 0.0 {
            return Err(SourceError::BadTensor {
                path: self.file().to_owned(),
                tensor: self.tensor.name.clone(),
                detail: format!("its value {scale} cannot be a scale"),
            });
        }
        Ok(scale)
    }

    /// Refuses a dtype that is not one of `allowed`.
    pub fn require_dtype(&self, allowed: &[&str], supported: &'static str) -> Result<(), SourceError> {
        if allowed.contains(&self.tensor.dtype.as_str()) {
            return Ok(());
        }
        Err(SourceError::UnsupportedDtype {
            path: self.file().to_owned(),
            tensor: self.tensor.name.clone(),
            dtype: self.tensor.dtype.clone(),
            supported,
        })
    }

    /// The error for a shape that is not `expected`.
    pub fn wrong_shape(&self, expected: impl Into<String>) -> SourceError {
        SourceError::WrongShape {
            path: self.file().to_owned(),
            tensor: self.tensor.name.clone(),
            found: self.tensor.shape.clone(),
            expected: expected.into(),
        }
    }
}

impl Checkpoint {
    /// Reads `config.json` and the index (or the single file's header).
    pub fn open(path: &Path) -> Result<Checkpoint, SourceError> {
        let config = read_json(&path.join("config.json"))?;
        let index = path.join(INDEX);
        let mut headers = HashMap::new();
        let weight_map = if index.exists() {
            read_index(&index)?
        } else {
            let name = single_file(path)?;
            let header = Rc::new(Header::read(&path.join(&name))?);
            let map = header.tensors.iter().map(|tensor| (tensor.name.clone(), name.clone())).collect();
            headers.insert(name, header);
            map
        };
        Ok(Checkpoint { path: path.to_owned(), config, weight_map, headers: RefCell::new(headers) })
    }

    /// The hash family of the model.
    pub fn family(&self) -> Result<&'static str, SourceError> {
        spec::family_of(&self.config).ok_or_else(|| SourceError::UnknownModel {
            path: self.path.join("config.json"),
            model_type: self.config.get("model_type").and_then(Value::as_str).unwrap_or("(none)").to_owned(),
        })
    }

    /// Names of the tensors whose name is `suffix` or ends with `.suffix`; prefixes differ between exports.
    pub fn names_ending<'a>(&'a self, suffix: &'a str) -> impl Iterator<Item = &'a str> {
        self.weight_map.keys().map(String::as_str).filter(move |name| ends_with_path(name, suffix))
    }

    /// Names of all tensors.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.weight_map.keys().map(String::as_str)
    }

    /// The one tensor that ends with `suffix`, or `None`.
    pub fn find(&self, suffix: &str) -> Result<Option<Located>, SourceError> {
        let mut names = self.names_ending(suffix);
        let Some(first) = names.next() else { return Ok(None) };
        if let Some(second) = names.next() {
            return Err(SourceError::AmbiguousTensor {
                path: self.path.clone(),
                first: first.to_owned(),
                second: second.to_owned(),
            });
        }
        self.locate(first).map(Some)
    }

    /// The tensor called `name`, checked against the header of its file.
    pub fn locate(&self, name: &str) -> Result<Located, SourceError> {
        let missing =
            || SourceError::MissingTensor { path: self.path.clone(), tensor: name.to_owned(), remedy: String::new() };
        let file = self.weight_map.get(name).ok_or_else(missing)?;
        let header = self.header(file)?;
        let tensor = header.tensor(name).cloned().ok_or_else(|| SourceError::StaleIndex {
            index: self.path.join(INDEX),
            tensor: name.to_owned(),
            file: file.clone(),
        })?;
        Ok(Located { header, tensor })
    }

    /// Refuses if files that hold any of `names` are missing, naming them all.
    pub fn require_files<'a>(&self, names: impl Iterator<Item = &'a str>) -> Result<(), SourceError> {
        let mut files: Vec<String> = names
            .filter_map(|name| self.weight_map.get(name))
            .filter(|file| !self.path.join(file).exists())
            .cloned()
            .collect();
        files.sort();
        files.dedup();
        if files.is_empty() {
            return Ok(());
        }
        Err(SourceError::MissingFiles { index: self.path.join(INDEX), files })
    }

    /// Files of the checkpoint, and safetensors files in the directory that no index names.
    pub fn files(&self) -> Result<(Vec<String>, Vec<String>), SourceError> {
        let mut named: Vec<String> = self.weight_map.values().cloned().collect();
        named.sort();
        named.dedup();
        let stray = safetensors_files(&self.path)?.into_iter().filter(|file| !named.contains(file)).collect();
        Ok((named, stray))
    }

    fn header(&self, file: &str) -> Result<Rc<Header>, SourceError> {
        if let Some(header) = self.headers.borrow().get(file) {
            return Ok(header.clone());
        }
        let header = Rc::new(Header::read(&self.path.join(file))?);
        self.headers.borrow_mut().insert(file.to_owned(), header.clone());
        Ok(header)
    }
}

/// Whether `name` is `suffix` or ends with it after a dot.
fn ends_with_path(name: &str, suffix: &str) -> bool {
    name.strip_suffix(suffix).is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('.'))
}

fn read_index(path: &Path) -> Result<BTreeMap<String, String>, SourceError> {
    let bad = |detail: &str| SourceError::BadJson { path: path.to_owned(), detail: detail.to_owned() };
    let index = read_json(path)?;
    let map = index.get("weight_map").and_then(Value::as_object).ok_or_else(|| bad("it has no weight_map object"))?;
    let mut weight_map = BTreeMap::new();
    for (tensor, file) in map {
        let file = file.as_str().ok_or_else(|| bad("weight_map has a value that is not a file name"))?;
        // An index is data from outside: it may name files beside it, never elsewhere.
        if Path::new(file).components().any(|part| !matches!(part, std::path::Component::Normal(_))) {
            return Err(bad(&format!("weight_map names '{file}', which is not inside the checkpoint")));
        }
        weight_map.insert(tensor.clone(), file.to_owned());
    }
    Ok(weight_map)
}

fn safetensors_files(path: &Path) -> Result<Vec<String>, SourceError> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(|e| SourceError::io(path, e))? {
        let entry = entry.map_err(|e| SourceError::io(path, e))?;
        if let Ok(name) = entry.file_name().into_string()
            && name.ends_with(".safetensors")
        {
            files.push(name);
        }
    }
    files.sort();
    Ok(files)
}

fn single_file(path: &Path) -> Result<String, SourceError> {
    if path.join(SINGLE).exists() {
        return Ok(SINGLE.to_owned());
    }
    let mut files = safetensors_files(path)?;
    match files.len() {
        1 => Ok(files.remove(0)),
        0 => Err(SourceError::NoIndex { path: path.to_owned(), found: "no .safetensors file".to_owned() }),
        n => Err(SourceError::NoIndex { path: path.to_owned(), found: format!("{n} .safetensors files") }),
    }
}

/// Reads a small JSON file, recognising what is often there instead.
pub(crate) fn read_json(path: &Path) -> Result<Value, SourceError> {
    FileStamp::of(path).map_err(|e| SourceError::io(path, e))?;
    parse_json(path, &std::fs::read(path).map_err(|e| SourceError::io(path, e))?)
}

/// The same for bytes that were read from `path`.
pub(crate) fn parse_json(path: &Path, bytes: &[u8]) -> Result<Value, SourceError> {
    if bytes.is_empty() {
        return Err(SourceError::EmptyFile { path: path.to_owned() });
    }
    super::safetensors::refuse_impostor(path, bytes)?;
    serde_json::from_slice(bytes).map_err(|e| SourceError::BadJson { path: path.to_owned(), detail: e.to_string() })
}
