//! The front of a message (AMQP 1.0 §3.2): the little of it that routing looks at.
//!
//! # Cost
//! For a message without header and annotations: one look at three bytes.

use crate::engine::Fault;
use ringmain_codec::{Condition, Header, Malformed, Properties, SectionError, SectionKind, Sections};
use std::ops::Range;

/// The priority of a message whose header has none (§3.2.1).
pub const DEFAULT_PRIORITY: u8 = 4;

/// How far into the message routing must look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depth {
    /// Header and annotations.
    Annotations,
    /// The properties too, for their `to` and `user-id`.
    Properties,
}

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub enum Front<'p> {
    /// All that routing needs.
    Ready(Found<'p>),
    /// It isn't there yet: more of the message must come.
    Incomplete,
    /// It isn't a message: reject it.
    Invalid(Fault),
}

/// What routing needs to know of a message.
#[derive(Debug, PartialEq, Eq)]
pub struct Found<'p> {
    /// The priority, 0 to 9.
    pub priority: u8,
    /// The `to` of the properties, if they were looked at.
    pub to: Option<&'p str>,
    /// The `user-id` of the properties, if they were looked at.
    pub user_id: Option<&'p [u8]>,
    /// Where the message-annotations lie, if there are annotations of routers in them.
    pub router_annotations: Option<Range<usize>>,
}

/// Whether a key of the message-annotations belongs to routers, not to their clients.
fn is_router_key(key: &str) -> bool {
    key.starts_with("x-opt-qd.")
}

fn invalid(malformed: Malformed) -> Fault {
    Fault::describe(Condition::DECODE_ERROR, format!("invalid message format: {malformed}"))
}

/// Looks at the part of a message that has come; `whole` says that nothing more will.
#[must_use]
pub fn scan(payload: &[u8], whole: bool, depth: Depth) -> Front<'_> {
    match try_scan(payload, depth) {
        Ok(Some(found)) => Front::Ready(found),
        Ok(None) | Err(SectionError::Incomplete) if !whole => Front::Incomplete,
        Ok(None) if payload.is_empty() => Front::Invalid(Fault::new(
            Condition::DECODE_ERROR,
            "invalid message format: the message is empty",
        )),
        Ok(None) => {
            // It ends before any body: what was looked for isn't in it.
            match try_scan_to_end(payload) {
                Ok(found) => Front::Ready(found),
                Err(SectionError::Incomplete) => Front::Invalid(truncated()),
                Err(SectionError::Malformed(malformed)) => Front::Invalid(invalid(malformed)),
            }
        }
        Err(SectionError::Incomplete) => Front::Invalid(truncated()),
        Err(SectionError::Malformed(malformed)) => Front::Invalid(invalid(malformed)),
    }
}

fn truncated() -> Fault {
    Fault::new(Condition::DECODE_ERROR, "invalid message format: the message ends within a section")
}

/// `None`: the payload ends where a section could follow that matters.
fn try_scan(payload: &[u8], depth: Depth) -> Result<Option<Found<'_>>, SectionError> {
    let mut sections = Sections::new(payload);
    let mut found = Found { priority: DEFAULT_PRIORITY, to: None, user_id: None, router_annotations: None };
    loop {
        let Some(kind) = sections.peek()? else { return Ok(None) };
        match kind {
            SectionKind::Header | SectionKind::DeliveryAnnotations | SectionKind::MessageAnnotations => {
                take(&mut sections, &mut found)?;
            }
            SectionKind::Properties if depth == Depth::Properties => {
                take(&mut sections, &mut found)?;
                return Ok(Some(found));
            }
            SectionKind::Properties
            | SectionKind::ApplicationProperties
            | SectionKind::Data
            | SectionKind::AmqpSequence
            | SectionKind::AmqpValue
            | SectionKind::Footer => return Ok(Some(found)),
        }
    }
}

fn try_scan_to_end(payload: &[u8]) -> Result<Found<'_>, SectionError> {
    let mut sections = Sections::new(payload);
    let mut found = Found { priority: DEFAULT_PRIORITY, to: None, user_id: None, router_annotations: None };
    while sections.peek()?.is_some() {
        take(&mut sections, &mut found)?;
    }
    Ok(found)
}

/// Takes the next section and what it says.
fn take<'p>(sections: &mut Sections<'p>, found: &mut Found<'p>) -> Result<(), SectionError> {
    let start = sections.offset();
    let Some(section) = sections.next()? else { return Ok(()) };
    match section.kind {
        SectionKind::Header => {
            let header = Header::from_section(&section).map_err(SectionError::Malformed)?;
            found.priority = header.priority.min(9);
        }
        SectionKind::MessageAnnotations => {
            let mut entries = section.value.entries().into_iter().flatten();
            if entries.any(|(key, _)| key.as_symbol().is_some_and(|key| is_router_key(key.0))) {
                found.router_annotations = Some(start..sections.offset());
            }
        }
        SectionKind::Properties => {
            let properties = Properties::from_section(&section).map_err(SectionError::Malformed)?;
            (found.to, found.user_id) = (properties.to, properties.user_id);
        }
        SectionKind::DeliveryAnnotations
        | SectionKind::ApplicationProperties
        | SectionKind::Data
        | SectionKind::AmqpSequence
        | SectionKind::AmqpValue
        | SectionKind::Footer => {}
    }
    Ok(())
}

/// The payload without what routers put into the message-annotations at `annotations`. A section that has
/// nothing else in it is left out.
#[must_use]
pub fn strip(payload: &[u8], annotations: &Range<usize>) -> Vec<u8> {
    let mut stripped = Vec::with_capacity(payload.len());
    stripped.extend_from_slice(&payload[..annotations.start]);
    let section = Sections::new(&payload[annotations.clone()]).next();
    if let Ok(Some(section)) = section {
        let mut room = vec![0; section.encoded.len() + 16];
        let mut writer = ringmain_codec::Writer::new(&mut room);
        let mut kept = 0;
        let written = writer.described(0x72, |writer| {
            writer.map(|writer| {
                for (key, value) in section.value.entries().into_iter().flatten() {
                    if !key.as_symbol().is_some_and(|key| is_router_key(key.0)) {
                        kept += 1;
                        writer.put(&key)?;
                        writer.put(&value)?;
                    }
                }
                Ok(())
            })
        });
        if written.is_ok() && kept > 0 {
            stripped.extend_from_slice(writer.written());
        }
    }
    stripped.extend_from_slice(&payload[annotations.end..]);
    stripped
}
