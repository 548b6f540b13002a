//! Names in a crate: which files its modules are, and which file defines what a path names.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};

/// Texts of a crate's files by their module path. The root is the empty path.
pub(crate) type Texts = BTreeMap<String, String>;

/// Longest chain of imports that is followed.
const IMPORTS_MAX: usize = 8;
/// Words before the name of an item.
const ITEMS: [&str; 8] = ["struct", "enum", "union", "trait", "type", "fn", "const", "static"];

/// One name that a file imports.
struct Import {
    path: Vec<String>,
    /// The name here; `*` for all names of the path.
    name: String,
    is_public: bool,
}

/// What one file says without its tests and comments. A module in braces counts as its file.
#[derive(Default)]
struct File {
    /// Modules that the file declares, each a file of its own.
    children: Vec<String>,
    imports: Vec<Import>,
    /// Names of items that the file defines.
    items: BTreeSet<String>,
    /// Paths in the code, of one name or more.
    paths: Vec<Vec<String>>,
}

fn is_punct(token: Option<&TokenTree>, character: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == character)
}

fn ident(token: Option<&TokenTree>) -> Option<String> {
    match token {
        Some(TokenTree::Ident(ident)) => Some(ident.to_string()),
        _ => None,
    }
}

fn is_word(token: Option<&TokenTree>, word: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if *ident == word)
}

fn group(token: Option<&TokenTree>, delimiter: Delimiter) -> Option<TokenStream> {
    match token {
        Some(TokenTree::Group(group)) if group.delimiter() == delimiter => Some(group.stream()),
        _ => None,
    }
}

/// Whether `::` stands at this token.
fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')
}

/// Whether an attribute is `cfg(test)` or `cfg(all(test, ..))`.
fn is_of_tests(attribute: &TokenStream) -> bool {
    let text = attribute.to_string().replace(' ', "");
    text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

/// The position after an item whose attributes begin here.
fn after_item(tokens: &[TokenTree], mut at: usize) -> usize {
    while at < tokens.len() {
        at += 1;
        let ends = is_punct(tokens.get(at - 1), ';') || is_punct(tokens.get(at - 1), ',');
        if ends || group(tokens.get(at - 1), Delimiter::Brace).is_some() {
            break;
        }
    }
    at
}

/// Imports of one tree after `use`, which ends before the comma or at the end.
fn read_tree(tokens: &[TokenTree], before: &[String], is_public: bool, out: &mut Vec<Import>) {
    let mut path = before.to_vec();
    let mut name = None;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(list) => {
                let list: Vec<TokenTree> = list.stream().into_iter().collect();
                for tree in list.split(|token| is_punct(Some(token), ',')) {
                    read_tree(tree, &path, is_public, out);
                }
                return;
            }
            TokenTree::Punct(punct) if punct.as_char() == '*' => name = Some("*".to_owned()),
            TokenTree::Ident(word) if *word == "as" => {
                name = ident(tokens.get(at + 1));
                break;
            }
            TokenTree::Ident(word) if *word == "self" && !path.is_empty() => {}
            TokenTree::Ident(word) => path.push(word.to_string()),
            _ => {}
        }
    }
    if let Some(name) = name.or_else(|| path.last().cloned()).filter(|_| !tokens.is_empty()) {
        out.push(Import { path, name, is_public });
    }
}

impl File {
    fn of(text: &str) -> Self {
        let mut file = Self::default();
        file.read(text.parse().expect("a source file is made of Rust tokens"));
        file
    }

    fn read(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            at = self.read_at(&tokens, at);
        }
    }

    /// Reads what begins at a token. Returns the position after it.
    fn read_at(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        let next = |ahead: usize| tokens.get(at + ahead);
        if let (true, Some(attribute)) =
            (is_punct(next(0), '#'), group(next(1), Delimiter::Bracket))
        {
            if is_of_tests(&attribute) {
                return after_item(tokens, at + 2);
            }
            self.read(attribute);
            return at + 2;
        }
        if let TokenTree::Group(group) = &tokens[at] {
            self.read(group.stream());
            return at + 1;
        }
        if is_word(next(0), "use") && !is_punct(next(1), '<') {
            let length =
                tokens[at..].iter().take_while(|token| !is_punct(Some(token), ';')).count();
            let before = tokens[..at].iter().rev();
            let is_public = is_word(before.clone().next(), "pub")
                || group(before.clone().next(), Delimiter::Parenthesis).is_some()
                    && is_word(before.clone().nth(1), "pub");
            read_tree(&tokens[at + 1..at + length], &[], is_public, &mut self.imports);
            return at + length;
        }
        if let (true, Some(name)) = (is_word(next(0), "mod"), ident(next(1))) {
            if is_punct(next(2), ';') {
                self.children.push(name);
            } else {
                self.items.insert(name);
            }
            return at + 2;
        }
        self.read_path(tokens, at)
    }

    /// Reads a path or one other token.
    fn read_path(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        let Some(first) = ident(tokens.get(at)) else { return at + 1 };
        let before = |back: usize| at.checked_sub(back).and_then(|at| tokens.get(at));
        // Neither a lifetime (`'static`) nor a pointer (`*const`) begins an item.
        let is_type = is_punct(before(2), '\'') || is_punct(before(2), '*');
        if !is_type && ITEMS.iter().any(|word| is_word(before(1), word)) {
            self.items.insert(first);
            return at + 1;
        }
        let is_member = is_punct(before(1), '.') && !is_punct(before(2), '.');
        let goes_on = is_punct(before(1), ':') && is_punct(before(2), ':');
        let mut path = vec![first];
        let mut end = at + 1;
        while let (true, Some(name)) = (is_colons(tokens, end), ident(tokens.get(end + 2))) {
            path.push(name);
            end += 3;
        }
        if !is_member && !goes_on && !is_punct(before(1), '\'') {
            self.paths.push(path);
        }
        end
    }
}

/// A crate without its tests.
pub(crate) struct Crate(BTreeMap<String, File>);

/// The module path of a child of a module.
fn below(module: &str, child: &str) -> String {
    if module.is_empty() { child.to_owned() } else { format!("{module}::{child}") }
}

impl Crate {
    /// Reads the root and all files that are declared from there outside of tests.
    pub(crate) fn of(texts: &Texts) -> Self {
        let mut files = BTreeMap::new();
        let mut next = vec![String::new()];
        while let Some(module) = next.pop() {
            let Some(text) = texts.get(&module) else { panic!("module `{module}` has no file") };
            let file = File::of(text);
            next.extend(file.children.iter().map(|child| below(&module, child)));
            files.insert(module, file);
        }
        Self(files)
    }

    pub(crate) fn modules(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The module whose file defines what a path of a module names. None for what is of another
    /// crate or local, and for a module itself. Follows at most `left` imports.
    fn definer(&self, module: &str, path: &[String], left: usize) -> Option<String> {
        let (mut module, mut rest) = self.start(module, path, left)?;
        while let Some((name, after)) = rest.split_first() {
            let file = &self.0[&module];
            if file.children.contains(name) {
                (module, rest) = (below(&module, name), after);
                continue;
            }
            let left = left.checked_sub(1)?;
            if let Some(import) = file.imports.iter().find(|i| i.name == *name && name != "*") {
                return self.definer(&module, &[&import.path, after].concat(), left);
            }
            let is_of_glob = !file.items.contains(name) && name != "*";
            let globs = file.imports.iter().filter(|import| is_of_glob && import.name == "*");
            let mut definers = globs.filter_map(|glob| {
                let path = [&glob.path[..], std::slice::from_ref(name)].concat();
                self.definer(&module, &path, left)
            });
            let definer = definers.find(|module| self.0[module].items.contains(name));
            return Some(definer.unwrap_or(module));
        }
        None
    }

    /// The module where the lookup of a path begins, and the rest of the path.
    fn start<'a>(
        &self,
        module: &str,
        path: &'a [String],
        left: usize,
    ) -> Option<(String, &'a [String])> {
        let (first, mut rest) = path.split_first()?;
        let mut module = module.to_owned();
        match first.as_str() {
            "crate" => module.clear(),
            "self" => {}
            "super" => {
                module.truncate(module.rfind("::").unwrap_or(0));
                while rest.first().is_some_and(|name| name == "super") {
                    module.truncate(module.rfind("::").unwrap_or(0));
                    rest = &rest[1..];
                }
            }
            name => {
                let file = &self.0[&module];
                // The path of an import itself does not begin with a name out of a glob.
                let is_glob = |import: &Import| import.name == "*" && left == IMPORTS_MAX;
                let is_import = |import: &Import| import.name == name || is_glob(import);
                let is_child = file.children.iter().any(|child| child == name);
                if !is_child && !file.imports.iter().any(is_import) {
                    return None;
                }
                rest = path;
            }
        }
        Some((module, rest))
    }

    /// The other modules whose files define what a module's file names. A declaration of a child
    /// and a re-export name nothing by themselves.
    pub(crate) fn needs(&self, module: &str) -> BTreeSet<String> {
        let file = &self.0[module];
        let private = file.imports.iter().filter(|import| !import.is_public);
        let imported = private.map(|import| match import.name.as_str() {
            "*" => [&import.path[..], &["*".to_owned()]].concat(),
            _ => import.path.clone(),
        });
        let paths = imported.chain(file.paths.iter().cloned());
        let needed = paths.filter_map(|path| self.definer(module, &path, IMPORTS_MAX));
        needed.filter(|needed| needed != module).collect()
    }
}
