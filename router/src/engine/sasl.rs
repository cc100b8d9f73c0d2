//! The SASL layer (AMQP 1.0 §5.3), either side. The one mechanism is ANONYMOUS (RFC 4505).

use super::settings::Side;
use super::violation::{Fault, Violation};
use super::write;
use crate::base::buffer::Output;
use ringmain_codec::{
    Condition, SaslCode, SaslFrame, SaslInit, SaslMechanisms, SaslOutcome, Symbol, Symbols,
};

/// The mechanisms that we offer and use.
pub const MECHANISMS: &[&str] = &["ANONYMOUS"];

/// What the next SASL frame must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SaslState {
    /// As acceptor: the peer's init.
    ExpectInit,
    /// As initiator: the peer's mechanisms.
    ExpectMechanisms,
    /// As initiator: the peer's outcome.
    ExpectOutcome,
}

/// Where the layer is after a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SaslStep {
    /// More frames are to come.
    Continue(SaslState),
    /// The peer is who it says; AMQP follows.
    Done,
    /// It failed, which was told; nothing follows.
    Failed(Fault),
}

/// Starts the layer behind its protocol header.
pub(super) fn start(side: Side, out: &mut Output) -> SaslState {
    match side {
        Side::Acceptor => {
            write::sasl(out, &SaslMechanisms { sasl_server_mechanisms: Symbols::Slice(MECHANISMS) });
            SaslState::ExpectInit
        }
        Side::Initiator => SaslState::ExpectMechanisms,
    }
}

/// Takes one frame of the peer.
pub(super) fn recv(
    state: SaslState,
    body: &[u8],
    hostname: Option<&str>,
    out: &mut Output,
) -> Result<SaslStep, Violation> {
    let frame = SaslFrame::decode(body)?;
    match (state, frame) {
        (SaslState::ExpectInit, SaslFrame::Init(init)) => Ok(recv_init(&init, out)),
        (SaslState::ExpectMechanisms, SaslFrame::Mechanisms(mechanisms)) => {
            let offered = mechanisms.sasl_server_mechanisms;
            if !offered.contains("ANONYMOUS") {
                let offered: Vec<&str> = offered.iter().collect();
                return Ok(SaslStep::Failed(Fault::describe(
                    Condition::UNAUTHORIZED_ACCESS,
                    format!(
                        "the peer offers [{}] and not ANONYMOUS, which is all that is supported",
                        offered.join(" ")
                    ),
                )));
            }
            write::sasl(
                out,
                &SaslInit { mechanism: Symbol("ANONYMOUS"), initial_response: Some(b"anonymous"), hostname },
            );
            Ok(SaslStep::Continue(SaslState::ExpectOutcome))
        }
        (SaslState::ExpectOutcome, SaslFrame::Outcome(outcome)) => Ok(match outcome.code {
            SaslCode::Ok => SaslStep::Done,
            SaslCode::Auth => failed("the peer didn't accept the credentials"),
            SaslCode::Sys => failed("the peer's authentication failed because of a system error"),
            SaslCode::SysPerm => {
                failed("the peer's authentication failed for good because of a system error")
            }
            SaslCode::SysTemp => failed("the peer's authentication failed for now because of a system error"),
        }),
        (
            SaslState::ExpectInit | SaslState::ExpectMechanisms | SaslState::ExpectOutcome,
            SaslFrame::Init(_)
            | SaslFrame::Mechanisms(_)
            | SaslFrame::Challenge(_)
            | SaslFrame::Response(_)
            | SaslFrame::Outcome(_),
        ) => Err(Violation::connection(
            Condition::NOT_ALLOWED,
            format!("{} came where the SASL exchange expects something else", frame.name()),
        )),
    }
}

fn recv_init(init: &SaslInit<'_>, out: &mut Output) -> SaslStep {
    if init.mechanism.0 == "ANONYMOUS" {
        write::sasl(out, &SaslOutcome { code: SaslCode::Ok, additional_data: None });
        return SaslStep::Done;
    }
    // §5.3.3.2: a mechanism that wasn't offered is an authentication failure, and the connection closes.
    write::sasl(out, &SaslOutcome { code: SaslCode::Auth, additional_data: None });
    SaslStep::Failed(Fault::describe(
        Condition::UNAUTHORIZED_ACCESS,
        format!("the peer chose the SASL mechanism '{}', which wasn't offered", init.mechanism.0),
    ))
}

fn failed(description: &'static str) -> SaslStep {
    SaslStep::Failed(Fault::new(Condition::UNAUTHORIZED_ACCESS, description))
}
