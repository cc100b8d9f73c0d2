//! The router with a counting allocator: what the shards allocate, and where they wait for others.
//!
//! Counted are allocations, and futex calls: locks that somebody else held, and wake-ups. A lock that was free
//! leaves no trace that could be counted from outside.

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The environment variable that tells it where to give the counts.
pub const SOCKET_VARIABLE: &str = "RINGMAIN_COUNTS";

/// The names of threads that carry messages begin so.
const SHARD: &str = "shard-";

/// Where the counts are asked for, of a router whose files are in `folder`.
pub fn socket(folder: &Path) -> PathBuf {
    folder.join("counts.socket")
}

/// The allocations of all shards so far.
///
/// # Errors
/// The router doesn't answer, or has no shards.
pub fn allocations(socket: &Path) -> Result<u64> {
    let mut text = String::new();
    UnixStream::connect(socket).context("the counts can't be had")?.read_to_string(&mut text)?;
    sum(&text).context("the router has no threads named shard-N")
}

/// Sums up the lines of shards; `None` if there are none.
fn sum(text: &str) -> Option<u64> {
    let shard = |line: &str| line.strip_prefix(SHARD)?.rsplit_once(' ')?.1.parse::<u64>().ok();
    text.lines().filter_map(shard).fold(None, |sum, count| Some(sum.unwrap_or(0) + count))
}

/// The threads of shards.
pub fn shards(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks
        .filter(|task| {
            std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.starts_with(SHARD))
        })
        .filter_map(|task| task.file_name().to_str()?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::sum;

    #[test]
    fn only_shards_count() {
        assert_eq!(sum("ringmain 100\nshard-0 7\nshard-1 5\ncounts 3\n"), Some(12));
        assert_eq!(sum("ringmain 100\n"), None);
    }
}
