//! libslurm's host lists. The second half of these functions is exported but not in slurm.h.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::NonNull;

#[link(name = "slurm")]
unsafe extern "C" {
    fn slurm_hostlist_create(expression: *const c_char) -> *mut c_void;
    fn slurm_hostlist_destroy(list: *mut c_void);
    fn slurm_hostlist_count(list: *mut c_void) -> c_int;
    fn slurm_hostlist_find(list: *mut c_void, name: *const c_char) -> c_int;
    fn slurm_hostlist_push(list: *mut c_void, expression: *const c_char) -> c_int;
    fn slurm_hostlist_push_host(list: *mut c_void, name: *const c_char) -> c_int;
    fn slurm_hostlist_ranged_string_malloc(list: *mut c_void) -> *mut c_char;
    fn slurm_hostlist_shift(list: *mut c_void) -> *mut c_char;
    fn slurm_hostlist_uniq(list: *mut c_void);

    fn slurm_hostlist_delete(list: *mut c_void, expression: *const c_char) -> c_int;
    fn slurm_hostlist_deranged_string(list: *mut c_void, size: isize, buffer: *mut c_char)
    -> isize;
    fn slurm_hostlist_iterator_create(list: *mut c_void) -> *mut c_void;
    fn slurm_hostlist_iterator_destroy(iterator: *mut c_void);
    fn slurm_hostlist_next(iterator: *mut c_void) -> *mut c_char;
    fn slurm_hostlist_sort(list: *mut c_void);
}

/// A list of libslurm's.
pub struct List(NonNull<c_void>);

/// A string that libslurm allocated.
pub struct Text(NonNull<c_char>);

impl Text {
    fn take(text: *mut c_char) -> Option<Self> {
        NonNull::new(text).map(Self)
    }

    pub fn as_str(&self) -> &str {
        // SAFETY: libslurm ends its strings with NUL, and this one lives as long as `self`.
        unsafe { CStr::from_ptr(self.0.as_ptr()) }
            .to_str()
            .expect("libslurm gives back what it was given")
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        // SAFETY: slurm.h says that these strings are the caller's to free.
        unsafe { libc::free(self.0.as_ptr().cast()) }
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: made by slurm_hostlist_create, destroyed once.
        unsafe { slurm_hostlist_destroy(self.0.as_ptr()) }
    }
}

// SAFETY of all calls below: the list is alive, strings end with NUL, buffers have the size they say.
impl List {
    pub fn new(expression: &CString) -> Self {
        let list = unsafe { slurm_hostlist_create(expression.as_ptr()) };
        Self(NonNull::new(list).expect("a valid expression"))
    }

    pub fn of_names(names: &[CString]) -> Self {
        let list = Self::new(&CString::default());
        for name in names {
            unsafe { slurm_hostlist_push_host(list.0.as_ptr(), name.as_ptr()) };
        }
        list
    }

    pub fn count(&self) -> usize {
        usize::try_from(unsafe { slurm_hostlist_count(self.0.as_ptr()) }).expect("a count")
    }

    pub fn find(&self, name: &CString) -> bool {
        unsafe { slurm_hostlist_find(self.0.as_ptr(), name.as_ptr()) >= 0 }
    }

    pub fn push(&self, expression: &CString) {
        unsafe { slurm_hostlist_push(self.0.as_ptr(), expression.as_ptr()) };
    }

    pub fn delete(&self, expression: &CString) {
        unsafe { slurm_hostlist_delete(self.0.as_ptr(), expression.as_ptr()) };
    }

    pub fn uniq(&self) {
        unsafe { slurm_hostlist_uniq(self.0.as_ptr()) }
    }

    pub fn sort(&self) {
        unsafe { slurm_hostlist_sort(self.0.as_ptr()) }
    }

    pub fn folded(&self) -> Text {
        Text::take(unsafe { slurm_hostlist_ranged_string_malloc(self.0.as_ptr()) })
            .expect("a string")
    }

    pub fn into_names(self) -> Vec<Text> {
        std::iter::from_fn(|| Text::take(unsafe { slurm_hostlist_shift(self.0.as_ptr()) }))
            .collect()
    }

    /// Visits every name and frees it at once; the number of bytes.
    pub fn iterate(&self) -> usize {
        let iterator = unsafe { slurm_hostlist_iterator_create(self.0.as_ptr()) };
        let names = std::iter::from_fn(|| Text::take(unsafe { slurm_hostlist_next(iterator) }));
        let bytes = names.map(|name| unsafe { libc::strlen(name.0.as_ptr()) }).sum();
        unsafe { slurm_hostlist_iterator_destroy(iterator) };
        bytes
    }

    /// All names with commas between them.
    pub fn write(&self, buffer: &mut [u8]) -> usize {
        let size = isize::try_from(buffer.len()).expect("a small buffer");
        let written = unsafe {
            slurm_hostlist_deranged_string(self.0.as_ptr(), size, buffer.as_mut_ptr().cast())
        };
        usize::try_from(written).expect("the buffer is large enough")
    }
}
