//! A received frame.

use ringmain_codec::{
    Attach, Begin, Close, Detach, Disposition, End, Flow, Open, Performative, SaslFrame, Transfer,
};
use std::fmt;
use std::time::Instant;

/// One frame as it came.
#[derive(Clone)]
pub struct Frame {
    /// The channel.
    pub channel: u16,
    /// All bytes of the frame, header included.
    pub size: usize,
    /// When it came.
    pub at: Instant,
    /// Whether it is of the SASL layer.
    pub sasl: bool,
    pub(super) body: Vec<u8>,
}

/// Accessors that expect one performative each.
macro_rules! performatives {
    ($($name:ident $variant:ident,)+) => {
        $(
            #[doc = concat!("The `", stringify!($name), "` in it; panics if it has another performative.")]
            #[track_caller]
            pub fn $name(&self) -> $variant<'_> {
                match self.performative() {
                    Some((Performative::$variant(performative), _)) => performative,
                    _ => panic!(concat!("expected ", stringify!($name), ", got {:?}"), self),
                }
            }
        )+
    };
}

impl Frame {
    /// Whether it only shows that the router lives.
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// The performative and the payload behind it; `None` for an empty frame.
    pub fn performative(&self) -> Option<(Performative<'_>, &[u8])> {
        if self.is_empty() || self.sasl {
            return None;
        }
        Some(Performative::decode(&self.body).expect("the router's frames are well-formed"))
    }

    /// The name of the performative; "empty" where there is none.
    pub fn name(&self) -> &'static str {
        if self.sasl {
            return self.sasl().name();
        }
        self.performative().map_or("empty", |(performative, _)| performative.name())
    }

    /// The frame of the SASL layer; panics if it isn't one.
    #[track_caller]
    pub fn sasl(&self) -> SaslFrame<'_> {
        assert!(self.sasl, "expected a frame of the SASL layer, got {self:?}");
        SaslFrame::decode(&self.body).expect("the router's frames are well-formed")
    }

    /// What follows the performative.
    pub fn payload(&self) -> &[u8] {
        self.performative().map_or(&[], |(_, payload)| payload)
    }

    performatives! {
        open Open,
        begin Begin,
        attach Attach,
        flow Flow,
        transfer Transfer,
        disposition Disposition,
        detach Detach,
        end End,
        close Close,
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.performative() {
            None => write!(f, "[{}] {}", self.channel, self.name()),
            Some((performative, payload)) => {
                write!(f, "[{}] {performative:?} + {} bytes", self.channel, payload.len())
            }
        }
    }
}
