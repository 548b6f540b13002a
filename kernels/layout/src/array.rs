//! An array that does not change while it is shared: with elements of its own, or a view of bytes
//! that somebody else keeps. Knows neither files nor other processes.

use bytemuck::{Pod, try_cast_slice};
use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Bytes that do not change as long as anybody has them, such as those of a sealed file.
pub type Region = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// An array of which frames, devices and processes share the elements. Cheap to clone.
pub struct Array<T>(Arc<Held<T>>);

struct Held<T> {
    /// The elements, where there is no view.
    items: Vec<T>,
    view: Option<View>,
}

/// A range of bytes.
#[derive(Clone)]
struct View {
    region: Region,
    start: usize,
    end: usize,
}

impl View {
    /// The elements that the bytes are; None where these bytes are not there, or not aligned.
    fn items<T: Pod>(&self) -> Option<&[T]> {
        let bytes = (*self.region).as_ref().get(self.start..self.end)?;
        try_cast_slice(bytes).ok()
    }
}

impl<T> Array<T> {
    /// Whether both are one array, and not only equal.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: Pod + Send + Sync> Array<T> {
    /// The `count` elements whose bytes begin at `start` of a region. None where the region does
    /// not have them, or they are not aligned there.
    pub fn view(region: &Region, start: usize, count: usize) -> Option<Self> {
        let end = start.checked_add(count.checked_mul(size_of::<T>())?)?;
        let view = View { region: Arc::clone(region), start, end };
        view.items::<T>()?;
        Some(Self(Arc::new(Held { items: Vec::new(), view: Some(view) })))
    }

    /// What is the same for clones of this array alone, and keeps it in memory.
    pub fn identity(&self) -> Arc<dyn Any + Send + Sync> {
        let held: Arc<Held<T>> = Arc::clone(&self.0);
        held
    }
}

impl<T: Pod> Array<T> {
    /// The elements, to be changed. Copies them first where somebody else has them too, or they
    /// are a view.
    pub fn make_mut(&mut self) -> &mut Vec<T> {
        let held = Arc::make_mut(&mut self.0);
        if let Some(view) = held.view.take() {
            held.items = view.items().unwrap_or_default().to_vec();
        }
        &mut held.items
    }
}

impl<T: Pod> Deref for Held<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.view {
            None => &self.items,
            // There when the view was made, and regions do not change.
            Some(view) => view.items().unwrap_or_default(),
        }
    }
}

impl<T: Pod> Clone for Held<T> {
    /// A copy of the elements, whoever has them.
    fn clone(&self) -> Self {
        Self { items: self.to_vec(), view: None }
    }
}

impl<T: Pod> Deref for Array<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> Clone for Array<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Array<T> {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl<T> From<Vec<T>> for Array<T> {
    fn from(items: Vec<T>) -> Self {
        Self(Arc::new(Held { items, view: None }))
    }
}

impl<T> FromIterator<T> for Array<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::from(Vec::from_iter(items))
    }
}

impl<T: Pod + PartialEq> PartialEq for Array<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Pod + fmt::Debug> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BvhNode8;

    /// Bytes that begin at a multiple of 64.
    #[repr(align(64))]
    struct Page([u8; 1024]);

    impl AsRef<[u8]> for Page {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    fn region() -> Region {
        Arc::new(Page(std::array::from_fn(|at| at as u8)))
    }

    #[test]
    fn a_view_has_the_elements_of_its_bytes() {
        let region = region();
        let view = Array::<u32>::view(&region, 8, 2).unwrap();
        assert_eq!(*view, [0x0b0a_0908, 0x0f0e_0d0c]);
        assert_eq!(view, Array::from(view.to_vec()));
        assert!(std::ptr::addr_eq(view.as_ptr(), &raw const (*region).as_ref()[8]), "no copy");
        assert_eq!(Arc::strong_count(&region), 2);
        drop(view);
        assert_eq!(Arc::strong_count(&region), 1);
    }

    #[test]
    fn views_of_other_bytes_are_refused() {
        let region = region();
        assert!(Array::<u32>::view(&region, 1020, 1).is_some());
        assert!(Array::<u32>::view(&region, 1024, 0).is_some());
        assert!(Array::<u32>::view(&region, 1020, 2).is_none(), "too long");
        assert!(Array::<u32>::view(&region, 2, 1).is_none(), "not aligned");
        assert!(Array::<BvhNode8>::view(&region, 64, 1).is_some());
        assert!(Array::<BvhNode8>::view(&region, 32, 1).is_none(), "not aligned");
        assert!(Array::<u32>::view(&region, 0, usize::MAX).is_none());
        assert!(Array::<u32>::view(&region, usize::MAX, 1).is_none());
    }

    #[test]
    fn clones_are_one_array_until_one_is_changed() {
        let own = Array::from(vec![1u32, 2]);
        let mut other = own.clone();
        assert!(other.ptr_eq(&own) && Arc::ptr_eq(&other.identity(), &own.identity()));
        assert!(!own.ptr_eq(&Array::from(vec![1, 2])), "equal is not the same");
        other.make_mut().push(3);
        assert_eq!((&*own, &*other), (&[1, 2][..], &[1, 2, 3][..]));
        assert!(!other.ptr_eq(&own));
        let place = other.as_ptr();
        other.make_mut()[0] = 9;
        assert_eq!(other.as_ptr(), place, "an array of its own is changed in place");
        let mut view = Array::<u32>::view(&region(), 0, 1).unwrap();
        view.make_mut()[0] += 1;
        assert_eq!(*view, [0x0302_0101]);
    }
}
