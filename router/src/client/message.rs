//! The message that `ringmain send` sends.

use super::options::SendOptions;
use ringmain_codec::{Encode, Full, Header, Properties, SectionKind, Symbol, Value, Writer};

/// How much of a message is offered to the engine at once: many frames, so that the last one of each
/// piece, which is short, doesn't matter.
const CHUNK_BYTES: usize = 256 * 1024;

/// What the body of `--size` consists of.
const FILLING: u8 = b'x';

/// An encoded message: its beginning, which is all of it if it is small, then a filling over and over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Payload {
    head: Vec<u8>,
    filling: Vec<u8>,
    /// How many bytes of filling follow the head.
    filling_bytes: u64,
}

impl Payload {
    /// The message that the options describe.
    pub(super) fn new(options: &SendOptions) -> Self {
        // Each text needs at most a constructor and four bytes of length; the rest is fixed.
        let texts = [&options.subject, &options.reply_to, &options.correlation_id, &options.content_type];
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        let properties: usize = options.properties.iter().map(|p| p.key.len() + p.value.len() + 16).sum();
        let body = options.size.map_or(options.body.len(), |_| 0);
        let mut buffer = vec![0; texts + properties + body + options.target.address.len() + 1024];
        let mut writer = Writer::new(&mut buffer);
        sections(options, &mut writer).expect("the buffer was measured for what is written");
        let length = writer.len();
        buffer.truncate(length);
        // A small message goes in one frame.
        let size = options.size.unwrap_or(0);
        let in_head = size.min(CHUNK_BYTES as u64);
        buffer.resize(length + usize::try_from(in_head).unwrap_or(CHUNK_BYTES), FILLING);
        let filling_bytes = size - in_head;
        let filling = vec![FILLING; if filling_bytes == 0 { 0 } else { CHUNK_BYTES }];
        Self { head: buffer, filling, filling_bytes }
    }

    /// Its length in bytes.
    pub(super) fn len(&self) -> u64 {
        self.head.len() as u64 + self.filling_bytes
    }

    /// The bytes from `offset` on, as many as lie together, and whether any follow them.
    pub(super) fn chunk(&self, offset: u64) -> (&[u8], bool) {
        let chunk = match usize::try_from(offset) {
            Ok(offset) if offset < self.head.len() => &self.head[offset..],
            Ok(_) | Err(_) => {
                let rest = usize::try_from(self.len().saturating_sub(offset)).unwrap_or(usize::MAX);
                &self.filling[..rest.min(self.filling.len())]
            }
        };
        (chunk, offset + (chunk.len() as u64) < self.len())
    }
}

/// Writes the sections that the options ask for, up to the filling.
fn sections(options: &SendOptions, writer: &mut Writer<'_>) -> Result<(), Full> {
    let header = Header {
        durable: options.durable,
        priority: options.priority.unwrap_or(Header::default().priority),
        ttl: options.ttl,
        ..Header::default()
    };
    if header != Header::default() {
        writer.put(&header)?;
    }
    let mut id_buffer = vec![0; options.correlation_id.as_ref().map_or(0, String::len) + 8];
    let correlation_id = options.correlation_id.as_deref().map(|text| encoded(text, &mut id_buffer));
    let properties = Properties {
        to: options.anonymous.then_some(options.target.address.as_str()),
        subject: options.subject.as_deref(),
        reply_to: options.reply_to.as_deref(),
        correlation_id,
        content_type: options.content_type.as_deref().map(Symbol),
        ..Properties::default()
    };
    if properties != Properties::default() {
        writer.put(&properties)?;
    }
    if !options.properties.is_empty() {
        writer.described(SectionKind::ApplicationProperties.descriptor().code, |writer| {
            writer.map(|writer| {
                options.properties.iter().try_for_each(|property| {
                    writer.put(property.key.as_str())?;
                    writer.put(property.value.as_str())
                })
            })
        })?;
    }
    match options.size {
        Some(size) => data_header(size, writer),
        None => writer.described(SectionKind::AmqpValue.descriptor().code, |writer| {
            options.body.as_str().encode(writer)
        }),
    }
}

/// The text as a value.
fn encoded<'b>(text: &str, buffer: &'b mut [u8]) -> Value<'b> {
    let mut writer = Writer::new(buffer);
    writer.put(text).expect("the buffer is longer than the text and its constructor");
    Value::from_encoded(writer.into_written()).expect("what was encoded decodes")
}

/// A data section up to its first byte of data: descriptor, and the constructor and size of a binary
/// (AMQP 1.0 §1.6.19, §3.2.6).
fn data_header(size: u64, writer: &mut Writer<'_>) -> Result<(), Full> {
    const VBIN8: u8 = 0xa0;
    const VBIN32: u8 = 0xb0;
    writer.described(SectionKind::Data.descriptor().code, |writer| match u8::try_from(size) {
        Ok(size) => writer.extend(&[VBIN8, size]),
        Err(_) => {
            let size = u32::try_from(size).map_err(|_| Full)?;
            writer.push(VBIN32)?;
            writer.extend(&size.to_be_bytes())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::Payload;
    use crate::cli::{Cli, Command};
    use ringmain_codec::{Header, Properties, SectionKind, Sections};

    fn whole(line: &str) -> Vec<u8> {
        let cli = Cli::parse_arguments(line.split(' ')).unwrap();
        let Some(Command::Send(options)) = cli.command else { panic!("not send") };
        let payload = Payload::new(&options);
        let mut bytes = Vec::new();
        loop {
            let (chunk, more) = payload.chunk(bytes.len() as u64);
            bytes.extend_from_slice(chunk);
            if !more {
                assert_eq!(bytes.len() as u64, payload.len());
                return bytes;
            }
        }
    }

    /// AMQP 1.0 §3.2.8: an amqp-value section is descriptor 0x77 and a value; §1.6.20: 0xa1 is str8.
    #[test]
    fn a_plain_message_is_one_value() {
        assert_eq!(whole("ringmain send amqp://h/a"), b"\0\x53\x77\xa1\x05Hello");
    }

    #[test]
    fn every_option_has_its_place() {
        let bytes = whole(
            "ringmain send amqp://h/an/address --durable --priority 7 --ttl 1000 --subject s --reply-to r \
             --correlation-id c --content-type text/plain --anonymous -p a=b -p c=d --body B",
        );
        let mut sections = Sections::new(&bytes);
        let header = Header::from_section(&sections.next().unwrap().unwrap()).unwrap();
        assert_eq!((header.durable, header.priority, header.ttl), (true, 7, Some(1000)));
        let section = sections.next().unwrap().unwrap();
        let properties = Properties::from_section(&section).unwrap();
        assert_eq!(properties.to, Some("an/address"));
        assert_eq!((properties.subject, properties.reply_to), (Some("s"), Some("r")));
        assert_eq!(properties.correlation_id.unwrap().as_str(), Some("c"));
        assert_eq!(properties.content_type.unwrap().0, "text/plain");
        let section = sections.next().unwrap().unwrap();
        assert_eq!(section.kind, SectionKind::ApplicationProperties);
        assert_eq!(section.value.get("c").unwrap().as_str(), Some("d"));
        let section = sections.next().unwrap().unwrap();
        assert_eq!((section.kind, section.value.as_str()), (SectionKind::AmqpValue, Some("B")));
        assert_eq!(sections.next().unwrap(), None);
    }

    #[test]
    fn sizes_are_the_sizes_of_the_data() {
        for size in [0, 1, 255, 256, 65_536, 262_143, 262_144, 262_145, 1_000_000] {
            let bytes = whole(&format!("ringmain send amqp://h/a --size {size}"));
            let mut sections = Sections::new(&bytes);
            let section = sections.next().unwrap().unwrap();
            assert_eq!(section.kind, SectionKind::Data);
            assert_eq!(section.value.as_binary().map(<[u8]>::len), Some(size));
            assert_eq!(sections.next().unwrap(), None);
        }
    }
}
