//! Links (AMQP 1.0 §2.6): their life, their credit, the delivery that is under way.

use super::event::LinkRef;
use super::violation::Violation;
use crate::base::id::{Key, Serial};
use ringmain_codec::{Condition, Flow, ReceiverSettleMode, Role, SenderSettleMode, Transfer};
use std::rc::Rc;

/// The life of a link endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkState {
    /// The peer's attach came; its answer is due.
    AttachReceived,
    /// Our attach went; the peer's answer is due.
    AttachSent,
    /// Both attaches were exchanged.
    Attached,
    /// Our detach went; the peer's is due. Until then the handle is in use and its frames are ignored.
    DetachSent,
}

/// The right to send one delivery. It can only be had from the link's credit, and not be copied.
#[must_use]
#[derive(Debug)]
pub struct Credit(());

/// A delivery of which some, but not all, frames have come.
#[derive(Clone, Copy, Debug)]
pub struct Receiving {
    /// Its number in the session.
    pub delivery_id: Serial,
    /// Whether any frame so far said so (§2.7.5: true once set).
    pub settled: bool,
    /// The bytes so far.
    pub bytes: u64,
    /// The format given with the first frame.
    pub message_format: u32,
    /// When we settle it, by the first frame or the link.
    pub rcv_settle_mode: ReceiverSettleMode,
}

/// A delivery of which some, but not all, frames have gone.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// Its number in the session.
    pub delivery_id: Serial,
    /// Whether it goes settled.
    pub settled: bool,
    /// Whether its first frame has gone.
    pub started: bool,
    /// The format for the first frame.
    pub message_format: u32,
    /// The tag for the first frame.
    pub tag: [u8; 8],
}

/// One end of a link.
#[derive(Debug)]
pub struct Link {
    /// The link's name.
    pub name: Rc<str>,
    /// Our role.
    pub role: Role,
    /// Where it is in its life.
    pub state: LinkState,
    /// The peer's handle, once its attach has come.
    pub remote_handle: Option<u32>,
    /// Whether the peer's detach has come: it says nothing more on this link.
    pub detach_received: bool,
    /// The sender's delivery-count as we know it (§2.6.7).
    pub delivery_count: Serial,
    /// The link-credit that is left.
    pub credit: u32,
    /// As receiver: the delivery-count up to which the sender may have been promised credit. Credit that was
    /// lowered since may have been used before the sender heard of that (§2.6.10).
    promised: Serial,
    /// As receiver: how many deliveries beyond the credit are put up with until there is new credit. None,
    /// unless the user says so.
    pub(super) overdraft: u32,
    /// As receiver: how many have come since there was new credit.
    overdrawn: u32,
    /// Whether the receiver asked to use or give up the credit at once.
    pub drain: bool,
    /// As sender: credit that the receiver granted behind a drain that isn't answered yet.
    pub credit_behind_drain: u32,
    /// Whether the peer asked for our flow state.
    pub echo: bool,
    /// What the sender says it has to send.
    pub available: u32,
    /// The settle mode of the sender, as both agreed.
    pub snd_settle_mode: SenderSettleMode,
    /// The settle mode of the receiver, as both agreed; of single deliveries the sender may say another.
    pub rcv_settle_mode: ReceiverSettleMode,
    /// As receiver: deliveries that came and aren't settled.
    pub unsettled: u32,
    /// The largest message that our side takes (as receiver) or the peer takes (as sender); 0: any.
    pub max_message_size: u64,
    /// What the engine's user keeps with it.
    pub user: Option<Key>,
    /// As receiver: the delivery under way.
    pub receiving: Option<Receiving>,
    /// As sender: the delivery under way.
    pub sending: Option<Sending>,
}

impl Link {
    pub(super) fn new(name: Rc<str>, role: Role, state: LinkState) -> Self {
        Self {
            name,
            role,
            state,
            remote_handle: None,
            detach_received: false,
            delivery_count: Serial(0),
            credit: 0,
            promised: Serial(0),
            overdraft: 0,
            overdrawn: 0,
            drain: false,
            credit_behind_drain: 0,
            echo: false,
            available: 0,
            snd_settle_mode: SenderSettleMode::Mixed,
            rcv_settle_mode: ReceiverSettleMode::First,
            unsettled: 0,
            max_message_size: 0,
            user: None,
            receiving: None,
            sending: None,
        }
    }

    /// As sender: spends one credit, if there is one.
    pub(super) fn take_credit(&mut self) -> Option<Credit> {
        self.credit = self.credit.checked_sub(1)?;
        self.delivery_count = self.delivery_count.next();
        Some(Credit(()))
    }

    /// As sender: takes over what the receiver's flow says (§2.6.7).
    ///
    /// The credit is what the receiver granted beyond what we have sent since; a flow that crossed our
    /// transfers may leave less than nothing, which means none. A drain stays due until it is answered, also
    /// if a flow without it follows at once: a receiver that waits for the answer waits for ever otherwise.
    /// What that flow grants beyond the drained credit is kept for afterwards.
    pub(super) fn recv_receiver_flow(&mut self, flow: &Flow<'_>) {
        if let Some(granted) = flow.link_credit {
            // Without a delivery-count the receiver hasn't seen our attach yet: it counts from our initial
            // count, which is zero.
            let counted = Serial(flow.delivery_count.unwrap_or(0));
            // Also a count ahead of ours is taken as it is: the receiver may count on a drain.
            let sent_since = i64::from(self.delivery_count.distance_from(counted));
            // Serial numbers reach half-way round: a larger grant is as good as that.
            let credit = (i64::from(granted) - sent_since).clamp(0, i64::from(i32::MAX)) as u32;
            if self.drain && !flow.drain {
                self.credit_behind_drain = credit.saturating_sub(self.credit);
                self.credit = self.credit.min(credit);
            } else {
                self.credit_behind_drain = 0;
                self.credit = credit;
            }
        }
        self.drain |= flow.drain;
        self.echo |= flow.echo;
    }

    /// As receiver: takes over what the sender's flow says (§2.6.7): how far its delivery-count is, be it
    /// by transfers or by giving up credit, and what it has available.
    ///
    /// # Errors
    /// If the sender counts beyond the credit that it had.
    pub(super) fn recv_sender_flow(&mut self, link: LinkRef, flow: &Flow<'_>) -> Result<(), Violation> {
        if let Some(count) = flow.delivery_count {
            let advance = u32::try_from(Serial(count).distance_from(self.delivery_count)).unwrap_or(0);
            let promised = u32::try_from(self.promised.distance_from(self.delivery_count)).unwrap_or(0);
            if advance > promised {
                return Err(Violation::link(
                    link,
                    Condition::TRANSFER_LIMIT_EXCEEDED,
                    format!("flow.delivery-count {count} is beyond the link-credit"),
                ));
            }
            self.delivery_count = self.delivery_count.plus(advance);
            self.credit = self.credit.saturating_sub(advance);
        }
        self.available = flow.available.unwrap_or(0);
        self.echo |= flow.echo;
        Ok(())
    }

    /// As sender, once a drain is answered: goes on with what was granted behind it. Tells whether that is
    /// anything.
    pub(super) fn end_drain(&mut self) -> bool {
        self.drain = false;
        self.credit = std::mem::take(&mut self.credit_behind_drain);
        self.credit > 0
    }

    /// As receiver: takes over the sender's first delivery-count; what was promised before counts from there.
    pub(super) fn recv_initial_delivery_count(&mut self, count: Serial) {
        #[allow(clippy::cast_sign_loss)] // it never lies before the count
        let promised = self.promised.distance_from(self.delivery_count) as u32;
        self.delivery_count = count;
        self.promised = count.plus(promised);
    }

    /// As receiver: sets the credit that the sender has from now on. What it was promised before stays
    /// promised, since it may use that until it has heard of a lower one.
    pub(super) fn promise(&mut self, credit: u32) {
        // Serial numbers reach half-way round: a larger promise is as good as that.
        self.credit = credit.min(i32::MAX as u32);
        let promised = self.delivery_count.plus(self.credit);
        if promised > self.promised {
            self.promised = promised;
            self.overdrawn = 0;
        }
    }

    /// As receiver: counts a delivery of the sender; `false` if it was never promised credit for it.
    fn recv_delivery(&mut self) -> bool {
        if self.delivery_count >= self.promised && self.overdrawn < self.overdraft {
            self.overdrawn += 1;
            self.promised = self.delivery_count.next();
        }
        let promised = self.delivery_count < self.promised;
        if promised {
            self.delivery_count = self.delivery_count.next();
            self.credit = self.credit.saturating_sub(1);
        }
        promised
    }

    /// As sender, in answer to a drain: gives up the credit that is left.
    pub(super) fn give_up_credit(&mut self) {
        self.delivery_count = self.delivery_count.plus(self.credit);
        self.credit = 0;
    }

    /// As receiver: takes one transfer frame over, and tells what is known of its delivery now.
    ///
    /// # Errors
    /// What the frame does wrong on this link (§2.6.7, §2.7.3, §2.7.5).
    pub(super) fn recv_transfer(
        &mut self,
        link: LinkRef,
        transfer: &Transfer<'_>,
        payload: usize,
    ) -> Result<Receiving, Violation> {
        if transfer.resume {
            return Err(Violation::link(
                link,
                Condition::NOT_IMPLEMENTED,
                "resuming deliveries isn't supported",
            ));
        }
        let mut receiving = match self.receiving {
            Some(receiving) => {
                if transfer.delivery_id.is_some_and(|id| Serial(id) != receiving.delivery_id) {
                    return Err(Violation::session(
                        link.channel,
                        Condition::NOT_ALLOWED,
                        format!(
                            "transfer.delivery-id on link '{}': delivery {} isn't complete yet",
                            self.name, receiving.delivery_id
                        ),
                    ));
                }
                receiving
            }
            None => self.recv_first_transfer(link, transfer)?,
        };
        receiving.settled |= transfer.settled.unwrap_or(false);
        receiving.bytes += payload as u64;
        if self.max_message_size != 0 && receiving.bytes > self.max_message_size {
            return Err(Violation::link(
                link,
                Condition::MESSAGE_SIZE_EXCEEDED,
                format!("a message is larger than max-message-size, {} bytes", self.max_message_size),
            ));
        }
        self.receiving = (transfer.more && !transfer.aborted).then_some(receiving);
        Ok(receiving)
    }

    fn recv_first_transfer(
        &mut self,
        link: LinkRef,
        transfer: &Transfer<'_>,
    ) -> Result<Receiving, Violation> {
        let invalid = |text| Err(Violation::link(link, Condition::INVALID_FIELD, text));
        match transfer.delivery_tag {
            None => return invalid("transfer.delivery-tag is missing in the first frame of a delivery"),
            Some(tag) if tag.len() > 32 => return invalid("transfer.delivery-tag is longer than 32 bytes"),
            Some(_) => {}
        }
        if transfer.rcv_settle_mode == Some(ReceiverSettleMode::Second)
            && self.rcv_settle_mode == ReceiverSettleMode::First
        {
            return invalid("transfer.rcv-settle-mode is second, and the link's is first");
        }
        if !self.recv_delivery() {
            return Err(Violation::link(
                link,
                Condition::TRANSFER_LIMIT_EXCEEDED,
                format!("a delivery beyond the link-credit, delivery-count {}", self.delivery_count),
            ));
        }
        Ok(Receiving {
            delivery_id: Serial(transfer.delivery_id.unwrap_or(0)),
            settled: false,
            bytes: 0,
            message_format: transfer.message_format.unwrap_or(0),
            rcv_settle_mode: transfer.rcv_settle_mode.unwrap_or(self.rcv_settle_mode),
        })
    }
}
