//! Iterators over what a compound value holds.

use core::fmt;
use core::iter::FusedIterator;

use crate::constructor::{Constructor, Type, code};
use crate::skip;
use crate::value::{Value, View, view_bare};

/// The elements of a list, or the keys and values of a map in turn.
#[derive(Clone, Copy)]
pub struct Items<'b> {
    pub(super) rest: &'b [u8],
    pub(super) remaining: u32,
}

impl<'b> Iterator for Items<'b> {
    type Item = Value<'b>;

    fn next(&mut self) -> Option<Value<'b>> {
        self.remaining = self.remaining.checked_sub(1)?;
        let (value, rest) = Value::split_checked(self.rest);
        self.rest = rest;
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining as usize, Some(self.remaining as usize))
    }
}

impl ExactSizeIterator for Items<'_> {}
impl FusedIterator for Items<'_> {}

/// The entries of a map, in its order.
#[derive(Clone, Copy)]
pub struct MapEntries<'b> {
    pub(super) items: Items<'b>,
}

impl<'b> Iterator for MapEntries<'b> {
    type Item = (Value<'b>, Value<'b>);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.items.next()?, self.items.next()?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let entries = self.items.len() / 2;
        (entries, Some(entries))
    }
}

impl ExactSizeIterator for MapEntries<'_> {}
impl FusedIterator for MapEntries<'_> {}

/// The elements of an array. They share one constructor, so they are no [`Value`]s of their own but
/// [`View`]s; the descriptors of an array of described values stand beside them, in
/// [`descriptors`](Self::descriptors).
#[derive(Clone, Copy)]
pub struct ArrayItems<'b> {
    /// `0x00 descriptor` as often as elements are described.
    pub(super) descriptors: &'b [u8],
    pub(super) format_code: u8,
    pub(super) rest: &'b [u8],
    pub(super) remaining: u32,
}

impl<'b> ArrayItems<'b> {
    /// From the checked bytes after an array's count.
    pub(super) fn new(remaining: u32, content: &'b [u8]) -> Self {
        let mut at = 0;
        while content[at] == code::DESCRIBED {
            at += 1;
            at += skip::span(&content[at..]);
        }
        let (descriptors, elements) = content.split_at(at);
        Self { descriptors, format_code: elements[0], rest: &elements[1..], remaining }
    }

    /// The type of all elements.
    pub fn primitive(&self) -> Type {
        Constructor::of(self.format_code).expect("checked when the value was decoded").primitive
    }

    /// What describes each of the elements, outermost first; nothing for most arrays.
    pub fn descriptors(&self) -> impl Iterator<Item = Value<'b>> + use<'b> {
        let mut rest = self.descriptors;
        core::iter::from_fn(move || {
            let (_, descriptor) = rest.split_first()?;
            let (value, after) = Value::split_checked(descriptor);
            rest = after;
            Some(value)
        })
    }
}

impl<'b> Iterator for ArrayItems<'b> {
    type Item = View<'b>;

    fn next(&mut self) -> Option<View<'b>> {
        self.remaining = self.remaining.checked_sub(1)?;
        let view = view_bare(self.format_code, self.rest);
        self.rest = &self.rest[skip::bare_span(self.format_code, self.rest)..];
        Some(view)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining as usize, Some(self.remaining as usize))
    }
}

impl ExactSizeIterator for ArrayItems<'_> {}
impl FusedIterator for ArrayItems<'_> {}

impl fmt::Debug for Items<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}

impl fmt::Debug for MapEntries<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(*self).finish()
    }
}

impl fmt::Debug for ArrayItems<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}
