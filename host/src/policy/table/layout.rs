//! Values as the canonical ABI lays them out in linear memory.
//!
//! A value has a size and an alignment; text and lists are an address and a length, and what they mean stands elsewhere
//! in the image. Numbers are little-endian. Bytes between fields are zero.

use std::collections::HashMap;

use serde_json::Value;

use crate::model::{Cascade, DurationMs, FieldKind, SameStatus};

/// What a value takes, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Its size, a multiple of the alignment.
    pub(super) size: usize,
    /// What its address is a multiple of.
    pub(super) alignment: usize,
}

impl Shape {
    /// Of a number of so many bytes.
    const fn number(bytes: usize) -> Self {
        Self {
            size: bytes,
            alignment: bytes,
        }
    }

    /// Of an address and a length.
    const PAIR: Self = Self { size: 8, alignment: 4 };

    /// Of fields in this order.
    pub(super) fn record(fields: impl IntoIterator<Item = Self>) -> Self {
        let (mut size, mut alignment) = (0_usize, 1);
        for field in fields {
            size = size.next_multiple_of(field.alignment) + field.size;
            alignment = alignment.max(field.alignment);
        }
        Self {
            size: size.next_multiple_of(alignment),
            alignment,
        }
    }
}

/// Memory as it is when a component starts.
#[derive(Debug, Default)]
pub(super) struct Image {
    bytes: Vec<u8>,
    /// Where a text already stands: most words of a descriptor occur more than once.
    texts: HashMap<Vec<u8>, usize>,
}

impl Image {
    /// Everything that was written.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Room at the end for so many values, and its address.
    fn reserve(&mut self, shape: Shape, count: usize) -> usize {
        let address = self.bytes.len().next_multiple_of(shape.alignment);
        self.bytes.resize(address + shape.size * count, 0);
        address
    }

    /// Writes a value into room of its own, and gives its address.
    pub(super) fn place(&mut self, value: &impl Flat) -> usize {
        let address = self.reserve(shape_of(value), 1);
        value.store(self, address);
        address
    }

    fn write(&mut self, address: usize, bytes: &[u8]) {
        self.bytes[address..address + bytes.len()].copy_from_slice(bytes);
    }

    /// An address and a length. Addresses have 32 bits; an image that outgrows them is refused before it is used.
    fn write_pair(&mut self, address: usize, [start, length]: [usize; 2]) {
        for (word, place) in [start, length].into_iter().zip([address, address + 4]) {
            self.write(place, &u32::try_from(word).unwrap_or(u32::MAX).to_le_bytes());
        }
    }

    fn write_text(&mut self, address: usize, text: &str) {
        let start = match self.texts.get(text.as_bytes()) {
            Some(start) => *start,
            None => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(text.as_bytes());
                self.texts.insert(text.as_bytes().to_vec(), start);
                start
            }
        };
        self.write_pair(address, [start, text.len()]);
    }
}

/// A value of a type that WIT has.
pub(super) trait Flat {
    /// What it takes.
    fn shape() -> Shape;

    /// Writes it where room for it was made.
    fn store(&self, image: &mut Image, address: usize);
}

/// The shape of a value's type.
pub(super) fn shape_of<T: Flat>(_: &T) -> Shape {
    T::shape()
}

/// The shape of the type of a field, of which no value is at hand.
pub(super) fn shape_through<R, T: Flat>(_: impl Fn(&R) -> &T) -> Shape {
    T::shape()
}

/// Writes a field at the first fitting address from `at` on, and says where the next one may begin.
pub(super) fn store_field<T: Flat>(field: &T, image: &mut Image, at: usize) -> usize {
    let shape = T::shape();
    let address = at.next_multiple_of(shape.alignment);
    field.store(image, address);
    address + shape.size
}

impl Flat for bool {
    fn shape() -> Shape {
        Shape::number(1)
    }

    fn store(&self, image: &mut Image, address: usize) {
        image.write(address, &[u8::from(*self)]);
    }
}

impl Flat for i64 {
    fn shape() -> Shape {
        Shape::number(8)
    }

    fn store(&self, image: &mut Image, address: usize) {
        image.write(address, &self.to_le_bytes());
    }
}

impl Flat for DurationMs {
    fn shape() -> Shape {
        i64::shape()
    }

    fn store(&self, image: &mut Image, address: usize) {
        self.as_ms().store(image, address);
    }
}

impl Flat for (i64, i64) {
    fn shape() -> Shape {
        Shape::record([i64::shape(), i64::shape()])
    }

    fn store(&self, image: &mut Image, address: usize) {
        let second = store_field(&self.0, image, address);
        store_field(&self.1, image, second);
    }
}

impl Flat for String {
    fn shape() -> Shape {
        Shape::PAIR
    }

    fn store(&self, image: &mut Image, address: usize) {
        image.write_text(address, self);
    }
}

/// JSON is text there.
impl Flat for Value {
    fn shape() -> Shape {
        Shape::PAIR
    }

    fn store(&self, image: &mut Image, address: usize) {
        image.write_text(address, &self.to_string());
    }
}

/// What is a word there and one of a few values here.
macro_rules! words {
    ($($type:ty),+) => {
        $(impl Flat for $type {
            fn shape() -> Shape {
                Shape::PAIR
            }

            fn store(&self, image: &mut Image, address: usize) {
                image.write_text(address, self.word());
            }
        })+
    };
}

words!(Cascade, FieldKind, SameStatus);

impl<T: Flat> Flat for Vec<T> {
    fn shape() -> Shape {
        Shape::PAIR
    }

    fn store(&self, image: &mut Image, address: usize) {
        let shape = T::shape();
        let start = image.reserve(shape, self.len());
        image.write_pair(address, [start, self.len()]);
        for (index, element) in self.iter().enumerate() {
            element.store(image, start + index * shape.size);
        }
    }
}

/// One byte says whether there is one; the value follows it.
impl<T: Flat> Flat for Option<T> {
    fn shape() -> Shape {
        Shape::record([Shape::number(1), T::shape()])
    }

    fn store(&self, image: &mut Image, address: usize) {
        let after = store_field(&self.is_some(), image, address);
        if let Some(value) = self {
            store_field(value, image, after);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Flat>(value: &T, size: usize, alignment: usize) {
        assert_eq!(shape_of(value), Shape { size, alignment });
        assert!(size.is_multiple_of(alignment));
    }

    #[test]
    fn a_value_takes_what_the_canonical_abi_says() {
        check(&true, 1, 1);
        check(&0_i64, 8, 8);
        check(&String::new(), 8, 4);
        check(&vec![0_i64], 8, 4);
        check(&(0_i64, 0_i64), 16, 8);
        check(&None::<bool>, 2, 1);
        check(&None::<String>, 12, 4);
        check(&None::<(i64, i64)>, 24, 8);
    }

    #[test]
    fn what_is_none_is_all_zero() {
        let mut image = Image::default();
        let address = image.place(&None::<(i64, i64)>);
        assert_eq!((address, image.into_bytes()), (0, vec![0; 24]));
    }

    #[test]
    fn a_list_points_at_its_elements_and_equal_texts_stand_once() {
        let mut image = Image::default();
        image.place(&vec!["ab".to_owned(), "ab".to_owned()]);
        let list = [8, 0, 0, 0, 2, 0, 0, 0];
        let text = [24, 0, 0, 0, 2, 0, 0, 0];
        assert_eq!(image.into_bytes(), [list.as_slice(), &text, &text, b"ab"].concat());
    }
}
