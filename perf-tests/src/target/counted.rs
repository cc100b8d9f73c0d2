//! The router with a counting allocator and counting locks: what the shards allocate, and where they might wait for others.
//!
//! Counted are allocations, the router's own locks, and futex calls: all locks that somebody else held, and wake-ups.

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

/// The allocations and the locks of all shards so far.
///
/// # Errors
/// The router doesn't answer, or has no shards.
pub fn counts(socket: &Path) -> Result<(u64, u64)> {
    let mut text = String::new();
    UnixStream::connect(socket).context("the counts can't be had")?.read_to_string(&mut text)?;
    sum(&text).context("the router has no threads named shard-N")
}

/// Sums up the lines of shards; `None` if there are none.
fn sum(text: &str) -> Option<(u64, u64)> {
    let shard = |line: &str| {
        let mut counts = line.strip_prefix(SHARD)?.split(' ').skip(1).map(|count| count.parse().ok());
        Some((counts.next()??, counts.next()??))
    };
    text.lines().filter_map(shard).reduce(|(allocations, locks): (u64, u64), (more, more_locks)| {
        (allocations + more, locks + more_locks)
    })
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
        assert_eq!(sum("ringmain 100 9\nshard-0 7 1\nshard-1 5 2\ncounts 3 8\n"), Some((12, 3)));
        assert_eq!(sum("ringmain 100 9\n"), None);
    }
}
