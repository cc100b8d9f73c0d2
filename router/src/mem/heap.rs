//! Memory that a burst of connections took goes back to the system.

/// Gives free memory of the heap back to the system. It takes about a millisecond for each few megabytes: for when
/// a shard has lost its last client, not for every turn.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: `malloc_trim` may be called at any time, from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}
