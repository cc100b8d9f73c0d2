//! Messages to send.

use ringmain_codec::{Encode, Properties, Writer};

/// What `write` encodes.
pub fn encoded(write: impl Fn(&mut Writer<'_>) -> Result<(), ringmain_codec::Full>) -> Vec<u8> {
    let mut room = vec![0; 4096];
    loop {
        let mut writer = Writer::new(&mut room);
        if write(&mut writer).is_ok() {
            return writer.written().to_vec();
        }
        room = vec![0; room.len() * 4];
    }
}

/// The encoding of one value.
pub fn value<T: Encode + ?Sized>(value: &T) -> Vec<u8> {
    encoded(|writer| writer.put(value))
}

/// A message of one data section with these bytes.
pub fn data(bytes: &[u8]) -> Vec<u8> {
    let mut message = vec![0x00, 0x53, 0x75, 0xb0];
    message.extend(u32::try_from(bytes.len()).expect("a test's message isn't that long").to_be_bytes());
    message.extend_from_slice(bytes);
    message
}

/// A message of `size` bytes in all, one data section whose bytes depend on `seed`.
pub fn sized(size: usize, seed: u8) -> Vec<u8> {
    const SECTION_HEADER: usize = 8;
    let bytes = size.checked_sub(SECTION_HEADER).expect("a message has at least a section header");
    let mut state = u32::from(seed).wrapping_mul(0x9e37_79b9) | 1;
    let body: Vec<u8> = (0..bytes)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state.to_le_bytes()[0]
        })
        .collect();
    data(&body)
}

/// A message to an address, as anonymous senders send it.
pub fn addressed(to: &str, bytes: &[u8]) -> Vec<u8> {
    let mut message = value(&Properties { to: Some(to), ..Properties::default() });
    message.extend(data(bytes));
    message
}
