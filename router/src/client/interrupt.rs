//! Ctrl-C and SIGTERM, as bytes on a socket that a poll can wait for.

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;

use tokio::signal::unix::{SignalKind, signal};

/// A socket that gives one byte for each SIGINT or SIGTERM. Reading it doesn't block.
///
/// # Errors
/// The system refuses the socket, the thread that waits for signals, or the signals.
pub(super) fn interrupts() -> io::Result<UnixStream> {
    let (reader, mut writer) = UnixStream::pair()?;
    reader.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut interrupt, mut terminate) = {
        let _entered = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                // The client is gone when nobody reads any more.
                if writer.write_all(b"!").is_err() {
                    return;
                }
            }
        });
    })?;
    Ok(reader)
}
