//! Lengths of functions: Rust by its syntax, C++ by its braces.

use crate::{files, none, shown};
use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use std::collections::BTreeMap;
use syn::visit::Visit;

/// Lines of a function at most, from its `fn` to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;

/// Functions that may be longer, and why.
const LONG: &[(&str, &str, &str)] = &[(
    "kernels/ptx/src/run/straight.rs",
    "straight",
    "one match over the instructions; any cut of it would hide that every one is handled",
)];

/// Functions of one file by their first line: name and length.
#[derive(Default)]
struct Functions(BTreeMap<usize, (String, usize)>);

impl Functions {
    fn add(&mut self, name: String, start: Span, end: Span) {
        let (first, last) = (start.start().line, end.end().line);
        self.0.insert(first, (name, last + 1 - first));
    }

    /// Functions among the tokens of a macro, which has no syntax of its own.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (index, token) in tokens.iter().enumerate() {
            if let TokenTree::Group(group) = token {
                self.add_tokens(group.stream());
            }
            let TokenTree::Ident(word) = token else { continue };
            if *word != "fn" || !matches!(tokens.get(index + 1), Some(TokenTree::Ident(_))) {
                continue;
            }
            let end = tokens[index..].iter().find(|token| match token {
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                TokenTree::Punct(punct) => punct.as_char() == ';',
                _ => false,
            });
            if let Some(body @ TokenTree::Group(_)) = end {
                self.add(tokens[index + 1].to_string(), word.span(), body.span());
            }
        }
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        let brace = function.block.brace_token.span.close();
        self.add(function.sig.ident.to_string(), function.sig.fn_token.span, brace);
        syn::visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        let brace = function.block.brace_token.span.close();
        self.add(function.sig.ident.to_string(), function.sig.fn_token.span, brace);
        syn::visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            let brace = block.brace_token.span.close();
            self.add(function.sig.ident.to_string(), function.sig.fn_token.span, brace);
        }
        syn::visit::visit_trait_item_fn(self, function);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.add_tokens(call.tokens.clone());
    }
}

fn rust_functions(text: &str) -> Result<Functions, syn::Error> {
    let mut functions = Functions::default();
    functions.visit_file(&syn::parse_file(text)?);
    Ok(functions)
}

/// C++ without comments, strings and preprocessor lines; lines stay where they are.
fn plain_cpp(text: &str) -> String {
    let mut plain = String::new();
    let (mut in_comment, mut in_directive) = (false, false);
    for line in text.lines() {
        in_directive |= line.trim_start().starts_with('#');
        let mut rest = if in_directive { "" } else { line };
        in_directive &= line.ends_with('\\');
        while let Some(next) = rest.chars().next() {
            if in_comment {
                in_comment = !rest.contains("*/");
                rest = rest.split_once("*/").map_or("", |(_, after)| after);
            } else if rest.starts_with("//") {
                rest = "";
            } else if rest.starts_with("/*") {
                in_comment = true;
                rest = &rest[2..];
            } else if next == '"' {
                rest = rest[1..].split_once('"').map_or("", |(_, after)| after);
            } else {
                plain.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
        plain.push('\n');
    }
    plain
}

/// Functions of a C++ file: a brace after a head with parentheses, outside of any function.
fn cpp_functions(text: &str) -> Vec<(usize, String, usize)> {
    let mut found = Vec::new();
    let (mut line, mut depth, mut head) = (1, 0_usize, String::new());
    let mut open: Option<(usize, usize, String)> = None;
    for character in plain_cpp(text).chars() {
        match character {
            '\n' => line += 1,
            '{' => {
                let words = ["struct", "class", "enum", "union", "namespace"];
                let is_type = head.split_whitespace().any(|word| words.contains(&word));
                if open.is_none() && head.contains('(') && !is_type {
                    let name = head.split('(').next().unwrap_or_default();
                    let name = name.split_whitespace().last().unwrap_or_default().to_owned();
                    let first = line - head.trim_start().matches('\n').count();
                    open = Some((depth, first, name));
                }
                depth += 1;
                head.clear();
            }
            '}' => {
                depth = depth.saturating_sub(1);
                if let Some((at, first, name)) = open.take_if(|(at, ..)| *at == depth) {
                    debug_assert_eq!(at, depth);
                    found.push((first, name, line + 1 - first));
                }
                head.clear();
            }
            ';' => head.clear(),
            _ => {}
        }
        if !matches!(character, '{' | '}' | ';') {
            head.push(character);
        }
    }
    found
}

#[test]
fn functions_are_short() {
    let mut findings = Vec::new();
    let mut unused: Vec<(&str, &str)> = LONG.iter().map(|(path, name, _)| (*path, *name)).collect();
    for path in files(&["rs", "h", "cu", "cpp"]) {
        let text = std::fs::read_to_string(&path).expect("a source file is UTF-8");
        let shown = shown(&path);
        let functions = if path.extension().is_some_and(|extension| extension == "rs") {
            let functions =
                rust_functions(&text).unwrap_or_else(|error| panic!("{shown}: {error}"));
            functions.0.into_iter().map(|(line, (name, length))| (line, name, length)).collect()
        } else {
            cpp_functions(&text)
        };
        for (line, name, length) in functions {
            if length <= FUNCTION_LINES_MAX {
                continue;
            }
            match unused.iter().position(|listed| *listed == (shown.as_str(), name.as_str())) {
                Some(index) => drop(unused.remove(index)),
                None => findings.push(format!("{shown}:{line}: {name}: {length} lines")),
            }
        }
    }
    findings
        .extend(unused.iter().map(|(path, name)| format!("{path}: {name}: listed for nothing")));
    none("functions above 70 lines", findings);
}

#[test]
fn functions_of_every_kind_are_measured() {
    let rust = "pub(crate) fn a() {\n}\nimpl X {\n    pub(super) fn b(&self) -> u8 {\n1\n}\n}\n\
                trait T {\n    fn c() {\n\n\n}\n fn d();\n}\n\
                macro_rules! m { () => { fn e() {\n} } }\n\
                fn outer() {\n fn inner() {\n}\n}\ntype P = fn(u8);\n";
    let found = rust_functions(rust).expect("this is Rust").0;
    let names: Vec<(&str, usize)> = found.values().map(|(name, n)| (name.as_str(), *n)).collect();
    let wanted = [("a", 2), ("b", 3), ("c", 4), ("e", 2), ("outer", 4), ("inner", 2)];
    assert_eq!(names, wanted);
    let cpp = "namespace n {\nstruct S {\n  int f() const { // {\n  }\n};\n\
               template <class T>\nTS_FN float g(\n  float x) {\n  if (x > 0) {\n  }\n}\n}\n";
    let names: Vec<(String, usize)> =
        cpp_functions(cpp).into_iter().map(|(_, name, length)| (name, length)).collect();
    assert_eq!(names[0], ("f".to_owned(), 2));
    assert_eq!(names.len(), 2, "{names:?}");
}
