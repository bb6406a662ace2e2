//! Which instructions the decode and hash kernels may use: detected once, at run time.
//!
//! Nothing is compiled for the machine that builds. The environment variable `ENGRAMSQL_KERNEL` holds every kernel to
//! one level, to compare them or to rule one out; results are the same bits at each.

use std::fmt;
use std::sync::OnceLock;

/// Environment variable that names the level.
pub const VARIABLE: &str = "ENGRAMSQL_KERNEL";

/// A set of instructions; its name is what `ENGRAMSQL_KERNEL` accepts and reports show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// What every processor of the target has: the code that the others are held against.
    Portable,
    /// 64-bit ARM.
    Neon,
    /// x86-64 since Haswell and Zen: AVX2, FMA, F16C.
    Avx2,
    /// x86-64 since Ice Lake and Zen 4: AVX-512 F, BW, DQ, VL, VBMI, IFMA. Older AVX-512 counts as AVX2.
    Avx512,
}

/// Why no kernel may run.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CpuError {
    /// `ENGRAMSQL_KERNEL` names no level.
    #[error("{VARIABLE} is '{name}'; known kernel levels: {known}", known = names(&Level::ALL))]
    Unknown {
        /// The name given.
        name: String,
    },
    /// A level that this processor lacks.
    #[error(
        "kernel level '{level}' needs instructions that this processor lacks; it has: {available} (unset {VARIABLE} for the fastest)",
        available = names(&available())
    )]
    Unavailable {
        /// The level asked for.
        level: Level,
    },
}

impl Level {
    /// All of them, slowest first.
    pub const ALL: [Level; 4] = [Level::Portable, Level::Neon, Level::Avx2, Level::Avx512];

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Level::Portable => "portable",
            Level::Neon => "neon",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }

    /// The level of that name.
    pub fn from_name(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == name)
    }

    /// Whether this processor (and operating system) has the instructions.
    pub fn is_available(self) -> bool {
        match self {
            Level::Portable => true,
            // Part of the base architecture.
            Level::Neon => cfg!(all(target_arch = "aarch64", target_endian = "little")),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => {
                is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c")
            }
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => {
                Level::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512vbmi")
                    && is_x86_feature_detected!("avx512ifma")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Level::Avx2 | Level::Avx512 => false,
        }
    }

    /// The level itself, or the error that names those there are.
    pub fn require(self) -> Result<Level, CpuError> {
        if self.is_available() { Ok(self) } else { Err(CpuError::Unavailable { level: self }) }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The levels of this processor, slowest first.
pub fn available() -> Vec<Level> {
    Level::ALL.into_iter().filter(|level| level.is_available()).collect()
}

/// The level that kernels run at: the one `ENGRAMSQL_KERNEL` names, else the fastest there is.
///
/// The variable is read once per process. Specs, value formats and tables refuse to be made while it names no level
/// that can run.
pub fn level() -> Result<Level, CpuError> {
    static LEVEL: OnceLock<Result<Level, CpuError>> = OnceLock::new();
    LEVEL
        .get_or_init(|| choose(std::env::var_os(VARIABLE).as_deref().map(|name| name.to_string_lossy()).as_deref()))
        .clone()
}

/// An empty name counts as none, as it does for the shell that cannot unset a variable for one command.
fn choose(name: Option<&str>) -> Result<Level, CpuError> {
    match name {
        None | Some("") => Ok(available().last().copied().unwrap_or(Level::Portable)),
        Some(name) => Level::from_name(name).ok_or_else(|| CpuError::Unknown { name: name.to_owned() })?.require(),
    }
}

fn names(levels: &[Level]) -> String {
    levels.iter().map(|level| level.name()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_taken_by_name_or_refused_by_name() {
        assert_eq!(choose(Some("portable")), Ok(Level::Portable));
        assert_eq!(choose(None), choose(Some("")));
        assert!(choose(None).unwrap().is_available());
        let error = choose(Some("AVX512")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "ENGRAMSQL_KERNEL is 'AVX512'; known kernel levels: portable, neon, avx2, avx512"
        );
        let absent: Vec<Level> = Level::ALL.into_iter().filter(|level| !level.is_available()).collect();
        // No processor has both NEON and AVX.
        assert!(!absent.is_empty());
        for level in absent {
            let error = choose(Some(level.name())).unwrap_err();
            assert_eq!(error, CpuError::Unavailable { level });
            assert!(error.to_string().contains("it has: portable"), "{error}");
        }
    }
}
