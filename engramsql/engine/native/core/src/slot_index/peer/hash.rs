//! Which bucket a key belongs to.

/// How a key's bytes choose its bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerHash {
    /// 64-bit FNV-1a.
    Fnv1a64,
    /// BLAKE2b with a digest of 8 bytes and no key, read little endian.
    Blake2b,
}

/// Offset basis and prime of 64-bit FNV-1a (Fowler, Noll, Vo).
const FNV_OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
const FNV_PRIME: u64 = 0x100_0000_01B3;

impl PeerHash {
    /// As `index.json` names it.
    pub fn name(self) -> &'static str {
        match self {
            PeerHash::Fnv1a64 => "fnv1a-64",
            PeerHash::Blake2b => "blake2b",
        }
    }

    /// The hash of that name.
    pub fn from_name(name: &str) -> Option<PeerHash> {
        [PeerHash::Fnv1a64, PeerHash::Blake2b].into_iter().find(|hash| hash.name() == name)
    }

    /// The hash of the stored row ids of a key.
    pub fn of(self, key: &[u8]) -> u64 {
        match self {
            PeerHash::Fnv1a64 => {
                key.iter().fold(FNV_OFFSET, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
            }
            PeerHash::Blake2b => {
                let digest = blake2b_simd::Params::new().hash_length(8).hash(key);
                digest.as_bytes().first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
            }
        }
    }
}
