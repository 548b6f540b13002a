//! Names of tests: a test that fails says by its name what broke, in few words.

use crate::{files, none, shown};
use syn::visit::Visit;

/// Characters of a test's name at most.
const NAME_MAX: usize = 60;

/// Names of the tests of a file, in order.
#[derive(Default)]
struct Tests(Vec<String>);

impl<'ast> Visit<'ast> for Tests {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        let is_test = function.attrs.iter().any(|attribute| {
            // `#[tokio::test]` too.
            attribute.path().segments.last().is_some_and(|segment| segment.ident == "test")
        });
        if is_test {
            self.0.push(function.sig.ident.to_string());
        }
        syn::visit::visit_item_fn(self, function);
    }
}

fn tests(text: &str) -> Result<Vec<String>, syn::Error> {
    let mut tests = Tests::default();
    tests.visit_file(&syn::parse_file(text)?);
    Ok(tests.0)
}

#[test]
fn names_of_tests_are_short() {
    let (mut findings, mut count) = (Vec::new(), 0);
    for path in files(&["rs"]) {
        let shown = shown(&path);
        let text = std::fs::read_to_string(&path).expect("a source file is UTF-8");
        let tests = tests(&text).unwrap_or_else(|error| panic!("{shown}: {error}"));
        count += tests.len();
        for name in tests {
            let length = name.chars().count();
            if length > NAME_MAX {
                findings.push(format!("{shown}: {name}: {length}"));
            }
        }
    }
    assert!(count > 1000, "{count} tests are found");
    none("names of tests above 60 characters", findings);
}

#[test]
fn tests_are_told_from_other_functions() {
    let text = "#[test]\nfn a() {}\nfn none() {}\nmod tests {\n#[tokio::test(flavor = \"x\")]\n\
                #[should_panic]\nasync fn b() {}\n#[cfg(test)]\nfn helper() {}\n}\n";
    assert_eq!(tests(text).expect("this is Rust"), ["a", "b"]);
}
