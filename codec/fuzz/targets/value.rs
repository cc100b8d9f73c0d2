//! One value of any type: whatever decodes can be looked into, compared and printed.
#![no_main]

use std::fmt::Write;

use libfuzzer_sys::fuzz_target;
use ringmain_codec::{Cursor, Decode, MalformedKind, Value, View};

/// Counts what is printed instead of keeping it.
struct Length(usize);

impl Write for Length {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

/// Visits everything inside, in proportion to the bytes.
fn walk(view: View<'_>, visited: &mut usize) {
    *visited += 1;
    match view {
        View::List(items) | View::Map(items) => items.for_each(|item| walk(item.view(), visited)),
        View::Array(items) => {
            items.descriptors().for_each(|descriptor| walk(descriptor.view(), visited));
            items.for_each(|item| walk(item, visited));
        }
        View::Described { descriptor, value } => {
            walk(descriptor.view(), visited);
            walk(value.view(), visited);
        }
        _ => {}
    }
}

fuzz_target!(|input: &[u8]| {
    let mut cursor = Cursor::new(input);
    match Value::decode(&mut cursor, "") {
        Ok(value) => {
            assert_eq!(value.encoded().len(), cursor.offset());
            let mut visited = 0;
            walk(value.view(), &mut visited);
            // An array of 256 elements without bytes takes four.
            assert!(visited <= 100 * input.len());
            let mut length = Length(0);
            write!(length, "{value}{value:?}").unwrap();
            let again = Value::from_encoded(value.encoded()).unwrap();
            assert!(again.view() == value.view());
            // Cut short it is a beginning.
            let cut = Value::from_encoded(&value.encoded()[..value.encoded().len() - 1]);
            assert_eq!(cut.unwrap_err().kind, MalformedKind::UnexpectedEnd);
        }
        Err(malformed) => {
            assert!(malformed.offset <= input.len());
            assert!(!malformed.condition().as_str().is_empty());
        }
    }
});
