//! Which receiver gets a delivery.

/// How busy a candidate is, for the balanced treatment.
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

/// The closest treatment among candidates that are equally near: each in turn, whatever its load, as often as
/// its weight says. Returns the place of the chosen one.
#[must_use]
pub fn closest(weights: impl Iterator<Item = u32> + Clone, turn: &mut usize) -> Option<usize> {
    let total = weights.clone().map(|weight| weight as usize).sum::<usize>();
    if total == 0 {
        return None;
    }
    let mut left = *turn % total;
    *turn = left + 1;
    weights.enumerate().find_map(|(place, weight)| {
        let weight = weight as usize;
        let chosen = left < weight;
        left = left.wrapping_sub(weight);
        chosen.then_some(place)
    })
}

/// The balanced treatment: the candidate with the fewest outstanding deliveries that still has room for
/// one; if none has, the one with the fewest. The first that is idle is taken at once, and the next round
/// begins behind it. Returns the place of the chosen one.
#[must_use]
pub fn balanced(candidates: usize, turn: &mut usize, mut load: impl FnMut(usize) -> Load) -> Option<usize> {
    if candidates <= 1 {
        return (candidates == 1).then_some(0);
    }
    let start = *turn % candidates;
    let mut best: Option<(bool, u32, usize)> = None;
    for place in (start..candidates).chain(0..start) {
        let load = load(place);
        if load.outstanding == 0 {
            *turn = place + 1;
            return Some(place);
        }
        if best.is_none_or(|(full, outstanding, _)| (load.is_full(), load.outstanding) < (full, outstanding))
        {
            best = Some((load.is_full(), load.outstanding, place));
        }
    }
    best.map(|(_, _, place)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closest_takes_each_in_turn_by_its_weight() {
        let mut turn = 0;
        let mut chosen = |weights: &[u32]| -> Vec<usize> {
            (0..6).map(|_| closest(weights.iter().copied(), &mut turn).unwrap()).collect()
        };
        assert_eq!(chosen(&[1, 1, 1]), [0, 1, 2, 0, 1, 2]);
        assert_eq!(chosen(&[1, 2]), [0, 1, 1, 0, 1, 1]);
        assert_eq!(closest(std::iter::empty(), &mut turn), None);
    }

    #[test]
    fn balanced_prefers_the_least_busy_and_turns_among_the_idle() {
        let mut turn = 0;
        let load =
            |outstanding: [u32; 3]| move |place: usize| Load { outstanding: outstanding[place], capacity: 5 };
        assert_eq!(balanced(3, &mut turn, load([2, 1, 3])), Some(1));
        assert_eq!(balanced(3, &mut turn, load([9, 7, 8])), Some(1), "all full");
        let chosen: Vec<usize> = (0..4).map(|_| balanced(3, &mut turn, load([0, 0, 0])).unwrap()).collect();
        assert_eq!(chosen, [0, 1, 2, 0]);
        assert_eq!(balanced(0, &mut turn, load([0, 0, 0])), None);
    }
}
