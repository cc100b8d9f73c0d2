//! Frames from one connection's bytes to the other's output.

use ringmain_codec::split_frame;

/// The largest frame that is forwarded.
const FRAME_BYTES_MAX: u32 = 1024 * 1024;

/// What one direction keeps between reads.
#[derive(Debug, Default)]
pub struct Direction {
    /// The front of a frame that isn't all there yet.
    partial: Vec<u8>,
}

impl Direction {
    /// Appends the whole frames of `bytes` to `out`, and keeps the rest. False if they aren't frames.
    pub fn forward(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> bool {
        if self.partial.is_empty() {
            let Some(rest) = copy_frames(bytes, out) else { return false };
            self.partial.extend_from_slice(rest);
            return true;
        }
        self.partial.extend_from_slice(bytes);
        let Some(rest) = copy_frames(&self.partial, out) else { return false };
        let done = self.partial.len() - rest.len();
        self.partial.drain(..done);
        true
    }
}

/// Copies frame by frame, as somebody must who decides for each where it goes.
fn copy_frames<'b>(bytes: &'b [u8], out: &mut Vec<u8>) -> Option<&'b [u8]> {
    let mut rest = bytes;
    loop {
        match split_frame(rest, FRAME_BYTES_MAX) {
            Ok(Some((_, after))) => {
                out.extend_from_slice(&rest[..rest.len() - after.len()]);
                rest = after;
            }
            Ok(None) => return Some(rest),
            Err(_) => return None,
        }
    }
}

/// The other connection of a pair.
pub const fn partner(index: usize) -> usize {
    index ^ 1
}

#[cfg(test)]
mod tests {
    use super::{Direction, partner};

    #[test]
    fn frames_arrive_whole_however_they_come() {
        let frame = |length: u8| {
            let mut bytes = vec![0, 0, 0, length, 2, 0, 0, 7];
            bytes.resize(usize::from(length), length);
            bytes
        };
        let all = [frame(8), frame(100), frame(9), frame(255)].concat();
        for step in 1..all.len() {
            let (mut direction, mut out) = (Direction::default(), Vec::new());
            for part in all.chunks(step) {
                assert!(direction.forward(part, &mut out));
            }
            assert_eq!(out, all);
        }
        let mut out = Vec::new();
        assert!(Direction::default().forward(&all[..50], &mut out));
        assert_eq!(out, frame(8));
        assert!(!Direction::default().forward(&[0, 0, 0, 1, 2, 0, 0, 0], &mut out));
    }

    #[test]
    fn pairs_are_fixed() {
        assert_eq!([partner(0), partner(1), partner(6), partner(7)], [1, 0, 7, 6]);
    }
}
