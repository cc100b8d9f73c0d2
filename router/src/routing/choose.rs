//! Which receiver gets a delivery.

use crate::base::id::LinkKey;

/// How busy a receiver is, for the balanced treatment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    /// Deliveries that wait for it or that it hasn't settled.
    pub outstanding: u32,
    /// How many are reasonable.
    pub capacity: u32,
}

impl Load {
    fn is_full(self) -> bool {
        self.outstanding >= self.capacity
    }
}

/// The closest treatment among local receivers: each in turn, whatever its load.
#[must_use]
pub fn closest(receivers: &[LinkKey], turn: &mut usize) -> Option<LinkKey> {
    if receivers.is_empty() {
        return None;
    }
    let place = *turn % receivers.len();
    *turn = place + 1;
    Some(receivers[place])
}

/// The balanced treatment: the receiver with the fewest outstanding deliveries that still has room for
/// one; if none has, the one with the fewest. The first that is idle is taken at once, and the next round
/// begins behind it.
#[must_use]
pub fn balanced(
    receivers: &[LinkKey],
    turn: &mut usize,
    mut load: impl FnMut(LinkKey) -> Load,
) -> Option<LinkKey> {
    if let [only] = receivers {
        return Some(*only);
    }
    let start = if receivers.is_empty() { 0 } else { *turn % receivers.len() };
    let mut best: Option<(bool, u32, usize)> = None;
    for offset in 0..receivers.len() {
        let place = (start + offset) % receivers.len();
        let load = load(receivers[place]);
        if load.outstanding == 0 {
            *turn = place + 1;
            return Some(receivers[place]);
        }
        let rank = (load.is_full(), load.outstanding, place);
        if best.is_none_or(|(full, outstanding, _)| (rank.0, rank.1) < (full, outstanding)) {
            best = Some(rank);
        }
    }
    best.map(|(_, _, place)| receivers[place])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::id::Key;

    fn links(count: u32) -> Vec<LinkKey> {
        (0..count).map(|index| LinkKey(Key { index, generation: 0 })).collect()
    }

    #[test]
    fn closest_takes_each_in_turn() {
        let receivers = links(3);
        let mut turn = 0;
        let chosen: Vec<u32> = (0..7).map(|_| closest(&receivers, &mut turn).unwrap().0.index).collect();
        assert_eq!(chosen, [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(closest(&[], &mut turn), None);
    }

    #[test]
    fn balanced_prefers_the_least_busy_and_turns_among_the_idle() {
        let receivers = links(3);
        let mut turn = 0;
        let load = |outstanding: [u32; 3]| {
            move |link: LinkKey| Load { outstanding: outstanding[link.0.index as usize], capacity: 5 }
        };
        assert_eq!(balanced(&receivers, &mut turn, load([2, 1, 3])).unwrap().0.index, 1);
        assert_eq!(balanced(&receivers, &mut turn, load([9, 7, 8])).unwrap().0.index, 1, "all full");
        let chosen: Vec<u32> =
            (0..4).map(|_| balanced(&receivers, &mut turn, load([0, 0, 0])).unwrap().0.index).collect();
        assert_eq!(chosen, [0, 1, 2, 0]);
    }
}
