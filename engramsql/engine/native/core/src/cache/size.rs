//! Sizes as users write them, and the budget when they write none.

use super::memory::physical_memory;
use std::path::Path;

/// Environment variable that sets the budget of the process's cache: a size for [`parse_bytes`].
pub const BUDGET_VARIABLE: &str = "ENGRAMSQL_RAM_BUDGET";

/// What the cache refuses.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CacheError {
    /// Text that is no size.
    #[error("'{text}' is not a size: {why}; write it like 8GB, 512MiB or 0")]
    Size {
        /// The text.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A budget that holds no row.
    #[error("a RAM budget of {bytes} bytes is too small to keep rows; give 8MB or more, or 0 to keep none")]
    TooSmall {
        /// Bytes given.
        bytes: u64,
    },
    /// The environment variable holds no size.
    #[error("{BUDGET_VARIABLE}: {0}")]
    Variable(Box<CacheError>),
}

/// Units as DuckDB reads them in `memory_limit`: powers of 1000, with an "i" powers of 1024.
const UNITS: [(&str, u64); 10] = [
    ("", 1),
    ("B", 1),
    ("KB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KIB", 1 << 10),
    ("MIB", 1 << 20),
    ("GIB", 1 << 30),
    ("TIB", 1 << 40),
];

/// Bytes of a size: a number, decimal point allowed, and a unit (B, KB, MB, GB, TB = powers of 1000; KiB, MiB, GiB, TiB
/// = powers of 1024; none = bytes), in any case.
pub fn parse_bytes(text: &str) -> Result<u64, CacheError> {
    let refuse = |why| CacheError::Size { text: text.to_owned(), why };
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let unit = unit.trim_start();
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || (number.contains('.') && fraction.is_empty()) || fraction.contains('.') {
        return Err(refuse("it does not begin with a number"));
    }
    let Some((_, scale)) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) else {
        return Err(refuse("its unit is none of B, KB, MB, GB, TB, KiB, MiB, GiB, TiB"));
    };
    let too_large = || refuse("it is too large");
    let whole: u64 = whole.parse().map_err(|_| too_large())?;
    let fraction = fraction.trim_end_matches('0');
    let part = match fraction.len() {
        0 => 0,
        digits @ 1..=18 => {
            let divisor = 10u128.pow(digits as u32);
            let scaled = fraction.parse::<u128>().map_err(|_| too_large())? * u128::from(*scale);
            if scaled % divisor != 0 {
                return Err(refuse("it is not a whole number of bytes"));
            }
            (scaled / divisor) as u64
        }
        _ => return Err(refuse("it is not a whole number of bytes")),
    };
    whole.checked_mul(*scale).and_then(|bytes| bytes.checked_add(part)).ok_or_else(too_large)
}

/// The smallest budget but none: a few slabs, so that there is room for rows beside their index.
const LEAST: u64 = 8_000_000;

/// A budget that keeps rows, or 0.
pub fn check_budget(bytes: u64) -> Result<u64, CacheError> {
    if bytes == 0 || bytes >= LEAST { Ok(bytes) } else { Err(CacheError::TooSmall { bytes }) }
}

/// The budget of the process's cache and whether somebody asked for it: the environment's, or else [`default_budget`].
pub(super) fn configured_budget() -> Result<(u64, bool), CacheError> {
    match std::env::var_os(BUDGET_VARIABLE) {
        Some(text) if !text.is_empty() => match parse_bytes(&text.to_string_lossy()).and_then(check_budget) {
            Ok(bytes) => Ok((bytes, true)),
            Err(error) => Err(CacheError::Variable(Box::new(error))),
        },
        _ => Ok((default_budget(), false)),
    }
}

/// One eighth of [`usable_memory`].
pub fn default_budget() -> u64 {
    usable_memory() / 8
}

/// Bytes of memory that the process may use: physical memory, or its control group's limit if that is lower. 0 where the
/// system tells neither.
pub fn usable_memory() -> u64 {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limit = group_limit(Path::new("/sys/fs/cgroup"), &groups);
    physical_memory().into_iter().chain(limit).min().unwrap_or(0)
}

/// The lowest memory limit among the control groups (v2 and v1) in `groups`, the text of `/proc/self/cgroup`, and their
/// ancestors. Inside a container the path may not exist below `root`; the ancestors that do are what counts there.
fn group_limit(root: &Path, groups: &str) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let (mount, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            list if list.split(',').any(|name| name == "memory") => (root.join("memory"), "memory.limit_in_bytes"),
            _ => return None,
        };
        // "max", and any other text that is no number, is no limit.
        let read = |group: &Path| std::fs::read_to_string(group.join(file)).ok()?.trim().parse::<u64>().ok();
        let path = mount.join(path.trim_start_matches('/'));
        path.ancestors().take_while(|group| group.starts_with(&mount)).filter_map(read).min()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_every_unit() {
        for (text, bytes) in [
            ("0", 0),
            ("17", 17),
            ("17 B", 17),
            ("8GB", 8_000_000_000),
            (" 512MiB ", 512 << 20),
            ("1.5 KiB", 1536),
            ("2.25kb", 2250),
            ("1.000GB", 1_000_000_000),
            ("3tib", 3 << 40),
            ("4TB", 4_000_000_000_000),
            ("5Mb", 5_000_000),
            ("6giB", 6 << 30),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused_by_name() {
        for (text, why) in [
            ("", "does not begin with a number"),
            ("GB", "does not begin with a number"),
            ("-1GB", "does not begin with a number"),
            (".5GB", "does not begin with a number"),
            ("1.GB", "does not begin with a number"),
            ("1.2.3GB", "does not begin with a number"),
            ("8G", "unit is none of"),
            ("80%", "unit is none of"),
            ("8 GB!", "unit is none of"),
            ("1e9", "unit is none of"),
            ("0.5", "not a whole number of bytes"),
            ("0.0001KB", "not a whole number of bytes"),
            ("18446744073709551616", "too large"),
            ("99999999TB", "too large"),
        ] {
            let error = parse_bytes(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("'{text}' is not a size: ")) && error.contains(why), "{error}");
        }
    }

    #[test]
    fn the_lowest_limit_of_all_groups_counts() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert_eq!(group_limit(root.path(), "0::/a/b\n"), None);
        write("a/b/memory.max", "max\n");
        assert_eq!(group_limit(root.path(), "0::/a/b\n"), None);
        write("a/memory.max", "3000\n");
        write("a/b/memory.max", "5000\n");
        assert_eq!(group_limit(root.path(), "0::/a/b\n"), Some(3000));
        assert_eq!(group_limit(root.path(), "0::/a/gone/deep\n"), Some(3000));
        write("memory/job/memory.limit_in_bytes", "2000\n");
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        let groups = "5:cpu:/\n4:memory,hugetlb:/job\n0::/a/b\n";
        assert_eq!(group_limit(root.path(), groups), Some(2000));
        assert_eq!(group_limit(root.path(), "4:memory:/else\n"), Some(9223372036854771712));
    }

    #[test]
    fn the_default_is_an_eighth_of_what_there_is() {
        let physical = physical_memory().unwrap();
        assert!((1..=physical / 8).contains(&default_budget()));
    }
}
