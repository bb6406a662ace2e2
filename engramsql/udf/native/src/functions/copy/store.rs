//! A store that appears whole or not at all.

use crate::error::{Error, Result};
use engram_engine::format::ValueFormat;
use engram_engine::spec::Spec;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// What a store says of itself.
pub struct StoreDescription {
    pub format: Option<ValueFormat>,
    pub spec: Option<Spec>,
    pub source: String,
}

/// Stand-in.
pub struct StoreWriter {
    building: PathBuf,
    target: PathBuf,
    file: File,
    shard: u32,
    in_shard: u64,
    rows: u64,
    rows_per_shard: u64,
    width: usize,
    done: bool,
    description: StoreDescription,
}

impl StoreWriter {
    pub fn create(target: &Path, width: usize, shard_bytes: u64, description: StoreDescription) -> Result<StoreWriter> {
        let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let building = target.with_file_name(format!(".{name}.building"));
        fs::create_dir(&building).map_err(|e| io(&building, e))?;
        let path = building.join("shard_000.bin");
        let file = File::create(&path).map_err(|e| io(&path, e))?;
        let rows_per_shard = (shard_bytes / width as u64).max(1);
        Ok(StoreWriter {
            building,
            target: target.to_owned(),
            file,
            shard: 0,
            in_shard: 0,
            rows: 0,
            rows_per_shard,
            width,
            done: false,
            description,
        })
    }

    pub fn write_rows(&mut self, rows: &[u8]) -> Result<()> {
        for row in rows.chunks(self.width) {
            if self.in_shard == self.rows_per_shard {
                self.shard += 1;
                let path = self.building.join(format!("shard_{:03}.bin", self.shard));
                self.file = File::create(&path).map_err(|e| io(&path, e))?;
                self.in_shard = 0;
            }
            self.file.write_all(row).map_err(|e| io(&self.building, e))?;
            self.in_shard += 1;
            self.rows += 1;
        }
        Ok(())
    }

    pub fn finish(mut self) -> Result<()> {
        let layout = format!(
            "{{\"layout\": {{\"shards\": {}, \"rows_per_shard\": {}, \"width\": {}, \"elem_bytes\": 1, \"total_rows\": {}}}, \"source\": \"{}\"}}",
            self.shard + 1,
            self.rows_per_shard,
            self.width,
            self.rows,
            self.description.source
        );
        let _ = (&self.description.format, &self.description.spec);
        let path = self.building.join("manifest.json");
        fs::write(&path, layout).map_err(|e| io(&path, e))?;
        fs::rename(&self.building, &self.target).map_err(|e| io(&self.target, e))?;
        self.done = true;
        Ok(())
    }
}

impl Drop for StoreWriter {
    fn drop(&mut self) {
        if !self.done {
            let _ = fs::remove_dir_all(&self.building);
        }
    }
}

fn io(path: &Path, error: std::io::Error) -> Error {
    Error::argument(format!("{}: {error}", path.display()))
}
