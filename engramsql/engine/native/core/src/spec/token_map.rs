//! The frozen map from token ids to compressed ids, and its file.

use super::{SpecError, tokenizer};
use std::path::Path;

/// Token id -> compressed id, for every id of a tokenizer, added tokens included.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenMap {
    map: Vec<u32>,
    compressed: u32,
}

impl std::fmt::Debug for TokenMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TokenMap({} -> {})", self.tokens(), self.compressed)
    }
}

const MAGIC: &[u8; 8] = b"ENGRAMTM";
const VERSION: u32 = 1;
/// Magic, version, reserved, tokens, compressed size.
const HEADER: usize = 8 + 4 + 4 + 8 + 8;
/// BLAKE3 of everything before.
const DIGEST: usize = blake3::OUT_LEN;

impl TokenMap {
    /// The map of a Hugging Face `tokenizer.json`.
    ///
    /// # Errors
    /// A file that is missing or no tokenizer; a gap in its token ids.
    pub fn from_tokenizer_json(path: impl AsRef<Path>) -> Result<TokenMap, SpecError> {
        tokenizer::token_map(path.as_ref())
    }

    /// A map given as one compressed id per token id. Compressed ids must be 0, 1, ... without a gap, in any order.
    pub fn from_vec(map: Vec<u32>) -> Result<TokenMap, SpecError> {
        let refuse = |reason: String| SpecError::BadTokenMap { reason };
        let Some(&largest) = map.iter().max() else {
            return Err(refuse("it holds no token ids".to_owned()));
        };
        // Without a gap there are at least as many entries as compressed ids; this also bounds the memory below.
        if largest as usize >= map.len() {
            return Err(refuse(format!(
                "compressed id {largest} in a map of {} token ids; compressed ids count from 0 without a gap",
                map.len()
            )));
        }
        let mut used = vec![false; largest as usize + 1];
        for &id in &map {
            used[id as usize] = true;
        }
        if let Some(gap) = used.iter().position(|&used| !used) {
            return Err(refuse(format!(
                "no token id maps to compressed id {gap}, but one maps to {largest}; compressed ids count from 0 without a gap"
            )));
        }
        let compressed =
            largest.checked_add(1).ok_or_else(|| refuse("more than 2^32 - 1 compressed ids".to_owned()))?;
        Ok(Self { map, compressed })
    }

    /// The map of `tokens` ids that are compressed already.
    pub fn identity(tokens: u32) -> Result<TokenMap, SpecError> {
        Self::from_vec((0..tokens).collect())
    }

    /// Number of token ids: valid ids are `0..tokens()`.
    pub fn tokens(&self) -> u64 {
        self.map.len() as u64
    }

    /// Number of compressed ids.
    pub fn compressed_size(&self) -> u64 {
        u64::from(self.compressed)
    }

    /// Compressed id of each token id.
    pub fn map(&self) -> &[u32] {
        &self.map
    }

    /// The multipliers depend on the compressed size, so a map of another size belongs to another model.
    pub(super) fn check_compressed_size(&self, field: &'static str, expected: u64) -> Result<(), SpecError> {
        if self.compressed_size() == expected {
            return Ok(());
        }
        Err(SpecError::CompressedSize { field, expected, found: self.compressed_size() })
    }

    /// Writes the map to a file: complete under its name, or not there at all.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), SpecError> {
        let path = path.as_ref();
        crate::publish::publish(path, &self.to_bytes()).map_err(|source| SpecError::Io {
            action: "write",
            path: path.to_owned(),
            source,
        })
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + 4 * self.map.len() + DIGEST);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&0_u32.to_le_bytes());
        bytes.extend_from_slice(&self.tokens().to_le_bytes());
        bytes.extend_from_slice(&self.compressed_size().to_le_bytes());
        for id in &self.map {
            bytes.extend_from_slice(&id.to_le_bytes());
        }
        let digest = blake3::hash(&bytes);
        bytes.extend_from_slice(digest.as_bytes());
        bytes
    }

    /// Reads a map that [`write`](Self::write) wrote; every byte is verified.
    pub fn read(path: impl AsRef<Path>) -> Result<TokenMap, SpecError> {
        let path = path.as_ref();
        let bytes =
            std::fs::read(path).map_err(|source| SpecError::Io { action: "read", path: path.to_owned(), source })?;
        Self::from_bytes(&bytes).map_err(|reason| SpecError::TokenMapFile { path: path.to_owned(), reason })
    }

    fn from_bytes(bytes: &[u8]) -> Result<TokenMap, String> {
        let rebuild = "build it again from tokenizer.json";
        let Some((magic, rest)) = bytes.split_first_chunk::<8>() else {
            return Err(format!("{} bytes are too few for a token map; {rebuild}", bytes.len()));
        };
        if magic != MAGIC {
            return Err("not a token map file (it does not start with ENGRAMTM)".to_owned());
        }
        // The version decides how to read the rest, so it is judged first.
        let version = rest.first_chunk().map_or(0, |b| u32::from_le_bytes(*b));
        if version > VERSION {
            return Err(format!(
                "format version {version} is newer than this program reads ({VERSION}); update engramsql"
            ));
        }
        let Some((body, digest)) = bytes.split_last_chunk::<DIGEST>().filter(|(body, _)| body.len() >= HEADER) else {
            return Err(format!("{} bytes are too few for a token map; {rebuild}", bytes.len()));
        };
        if blake3::hash(body).as_bytes() != digest {
            return Err(format!("the checksum does not match its contents; {rebuild}"));
        }
        let word = |at: usize| body[at..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
        let reserved = body[12..].first_chunk().map_or(0, |b| u32::from_le_bytes(*b));
        if version != VERSION || reserved != 0 {
            return Err(format!("unknown format version {version} or reserved value {reserved}; {rebuild}"));
        }
        let (tokens, compressed) = (word(16), word(24));
        let ids = &body[HEADER..];
        if tokens.checked_mul(4) != Some(ids.len() as u64) {
            return Err(format!("{} bytes of ids do not hold {tokens} token ids; {rebuild}", ids.len()));
        }
        let ids = ids.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        let map = TokenMap::from_vec(ids.collect()).map_err(|e| e.to_string())?;
        if map.compressed_size() != compressed {
            return Err(format!(
                "the header says {compressed} compressed ids, the map has {}; {rebuild}",
                map.compressed_size()
            ));
        }
        Ok(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(bytes: &[u8]) -> String {
        TokenMap::from_bytes(bytes).unwrap_err()
    }

    fn signed(mut body: Vec<u8>) -> Vec<u8> {
        let digest = blake3::hash(&body);
        body.extend_from_slice(digest.as_bytes());
        body
    }

    #[test]
    fn a_file_reads_back_and_every_flipped_byte_is_noticed() {
        let map = TokenMap::from_vec(vec![0, 1, 1, 2, 0]).unwrap();
        let bytes = map.to_bytes();
        assert_eq!(TokenMap::from_bytes(&bytes).unwrap(), map);
        for at in 0..bytes.len() {
            let mut broken = bytes.clone();
            broken[at] ^= 1;
            assert!(TokenMap::from_bytes(&broken).is_err(), "byte {at}");
            assert!(TokenMap::from_bytes(&bytes[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn newer_versions_and_lying_headers_are_refused_by_name() {
        let map = TokenMap::identity(3).unwrap();
        let bytes = map.to_bytes();
        let body = bytes[..bytes.len() - DIGEST].to_vec();
        let with = |at: usize, value: u8| {
            let mut changed = body.clone();
            changed[at] = value;
            signed(changed)
        };
        assert!(reason(&with(8, 2)).contains("version 2 is newer"));
        assert!(reason(&with(8, 0)).contains("version 0"));
        assert!(reason(&with(12, 1)).contains("reserved value 1"));
        assert!(reason(&with(16, 4)).contains("do not hold 4 token ids"));
        assert!(reason(&with(24, 2)).contains("says 2 compressed ids"));
        assert!(reason(b"short").contains("too few"));
        assert!(reason(&[0; 100]).contains("ENGRAMTM"));
    }

    #[test]
    fn gaps_and_empty_maps_are_refused() {
        for (map, part) in [
            (vec![], "no token ids"),
            (vec![0, 2, 2], "compressed id 1"),
            (vec![5, 0], "compressed id 5"),
            (vec![u32::MAX], "compressed id 4294967295"),
        ] {
            assert!(TokenMap::from_vec(map).unwrap_err().to_string().contains(part), "{part}");
        }
        assert!(TokenMap::identity(0).is_err());
    }

    #[test]
    fn writing_replaces_the_whole_file_or_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token_map.bin");
        TokenMap::identity(5).unwrap().write(&path).unwrap();
        let map = TokenMap::from_vec(vec![0, 1, 0, 2]).unwrap();
        map.write(&path).unwrap();
        assert_eq!(TokenMap::read(&path).unwrap(), map);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
        assert!(matches!(map.write(folder.path().join("no/such")), Err(SpecError::Io { .. })));
        assert!(matches!(TokenMap::read(folder.path().join("none")), Err(SpecError::Io { .. })));
    }
}
