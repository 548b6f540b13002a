//! Array files of these tests: written for inputs, read from results.

use tessera_protocol::compute::{Element, npy};

/// A type of values.
pub(crate) trait Value: Copy {
    const ELEMENT: Element;
    fn bytes(self) -> Vec<u8>;
    fn of(bytes: &[u8]) -> Self;
}

macro_rules! values {
    ($($type:ty => $element:ident),+) => {
        $(impl Value for $type {
            const ELEMENT: Element = Element::$element;
            fn bytes(self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
            fn of(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().unwrap())
            }
        })+
    };
}

values!(f32 => F32, f64 => F64, u32 => U32);

/// The bytes of an array file.
pub(crate) fn file<T: Value>(shape: &[u64], values: &[T]) -> Vec<u8> {
    assert_eq!(shape.iter().product::<u64>(), values.len() as u64);
    let mut bytes = npy::header_bytes(T::ELEMENT, shape);
    bytes.extend(values.iter().flat_map(|value| value.bytes()));
    bytes
}

/// The values of an array file of this shape.
pub(crate) fn values<T: Value>(bytes: &[u8], shape: &[u64]) -> Vec<T> {
    let header = npy::Header::read(bytes, bytes.len() as u64).unwrap();
    assert_eq!((header.element, header.shape.as_slice()), (T::ELEMENT, shape));
    bytes[header.data_offset..].chunks_exact(T::ELEMENT.bytes()).map(T::of).collect()
}
