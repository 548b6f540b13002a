//! Functions of a Rust file, by its syntax.

use super::function::Function;
use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use std::collections::BTreeMap;
use syn::visit::Visit;

/// Functions of one file by their first line.
#[derive(Default)]
struct Functions(BTreeMap<usize, Function>);

impl Functions {
    fn add(&mut self, name: String, start: Span, end: Span) {
        let (line, last) = (start.start().line, end.end().line);
        self.0.insert(line, Function { line, name, length: last + 1 - line });
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

/// Functions in the order of their lines.
pub(super) fn functions(text: &str) -> Result<Vec<Function>, syn::Error> {
    let mut functions = Functions::default();
    functions.visit_file(&syn::parse_file(text)?);
    Ok(functions.0.into_values().collect())
}

#[test]
fn rust_functions_of_every_kind_are_measured() {
    let text = "pub(crate) fn a() {\n}\nimpl X {\n    pub(super) fn b(&self) -> u8 {\n1\n}\n}\n\
                trait T {\n    fn c() {\n\n\n}\n fn d();\n}\n\
                macro_rules! m { () => { fn e() {\n} } }\n\
                fn outer() {\n fn inner() {\n}\n}\ntype P = fn(u8);\n";
    let found = functions(text).expect("this is Rust");
    let names: Vec<(&str, usize)> = found.iter().map(|f| (f.name.as_str(), f.length)).collect();
    assert_eq!(names, [("a", 2), ("b", 3), ("c", 4), ("e", 2), ("outer", 4), ("inner", 2)]);
}
