//! Messages with a number in them, so that each can be told from all others wherever it turns up.

use ringmain_codec::{Header, Properties, Writer};

/// A message that is to be sent.
#[derive(Clone, Debug)]
pub struct Message {
    pub number: u64,
    /// The length of its body.
    pub size: usize,
    /// Where it goes, if its link doesn't say.
    pub to: Option<String>,
    pub presettled: bool,
    /// The priority in its header, if it has one.
    pub priority: Option<u8>,
}

impl Message {
    /// The message as it goes over the wire.
    pub fn encode(&self) -> Vec<u8> {
        let mut room = vec![0; self.size + 400];
        let mut writer = Writer::new(&mut room);
        if let Some(priority) = self.priority {
            writer.put(&Header { priority, ..Header::default() }).expect("it fits");
        }
        if let Some(to) = &self.to {
            writer.put(&Properties { to: Some(to), ..Properties::default() }).expect("it fits");
        }
        let body = self.body();
        writer.described(0x75, |writer| writer.put(&body[..])).expect("it fits");
        writer.written().to_vec()
    }

    fn body(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.size + 16);
        body.extend(self.number.to_be_bytes());
        body.extend((self.size as u64).to_be_bytes());
        body.extend(
            (0..self.size).map(|at| (self.number.wrapping_mul(31) as usize + at * 7 + at / 251) as u8),
        );
        body
    }

    /// The number of an encoded message: it stands behind the header of its body.
    pub fn number_in(encoded: &[u8]) -> u64 {
        let mut sections = ringmain_codec::Sections::new(encoded);
        loop {
            let section = sections.next().expect("a message is made of sections").expect("it has a body");
            if section.kind == ringmain_codec::SectionKind::Data {
                let body = section.value.as_binary().expect("data is binary");
                return u64::from_be_bytes(body[..8].try_into().expect("it begins with a number"));
            }
        }
    }
}
