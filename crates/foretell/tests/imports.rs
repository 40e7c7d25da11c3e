//! Imports go one way: a module uses only those that stand above it in the `mod` lines of its folder, the library's own or a room's.

use std::fs;
use std::path::Path;

/// The modules of a folder, in the order of its `mod` lines.
fn order(list: &Path) -> Vec<String> {
    let text = fs::read_to_string(list).unwrap();
    let name = |line: &str| {
        let declared = line.trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        Some(declared.strip_prefix("mod ")?.strip_suffix(';')?.to_string())
    };
    text.lines().filter_map(name).collect()
}

/// The code of a file, without comments and tests.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The names that follow a prefix such as `crate::`.
fn names<'t>(code: &'t str, prefix: &'t str) -> impl Iterator<Item = &'t str> {
    let rest = code.match_indices(prefix).map(move |(at, _)| &code[at + prefix.len()..]);
    rest.map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap())
}

/// Back edges of all files below `path`, which belongs to the `at`-th of `order`, by imports that begin with `prefix`.
fn back_edges(path: &Path, order: &[String], at: usize, prefix: &str, found: &mut Vec<String>) {
    let is_test = path.file_stem().is_some_and(|name| name == "tests" || name == "definitions");
    if path.is_dir() && !is_test {
        fs::read_dir(path).unwrap().for_each(|file| back_edges(&file.unwrap().path(), order, at, prefix, found));
    } else if path.extension().is_some_and(|e| e == "rs") && !is_test {
        let code = code(path);
        let is_back = |name: &&str| order.iter().position(|module| module == name).is_some_and(|of| of > at);
        // Names of the root hide where they come from.
        let is_root = |name: &&str| prefix == "crate::" && name.starts_with(char::is_uppercase);
        found.extend(
            names(&code, prefix)
                .filter(|name| is_back(name) || is_root(name))
                .map(|name| format!("{} uses {prefix}{name}", path.display())),
        );
    }
}

fn check(folder: &Path, list: &Path, prefix: &str) -> Vec<String> {
    let (order, mut found) = (order(list), Vec::new());
    for (at, module) in order.iter().enumerate() {
        for path in [folder.join(module), folder.join(format!("{module}.rs"))] {
            if path.exists() && (prefix == "crate::" || path.is_file()) {
                back_edges(&path, &order, at, prefix, &mut found);
            }
        }
    }
    found
}

#[test]
fn a_module_imports_only_from_those_above_it() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = check(&src, &src.join("lib.rs"), "crate::");
    for room in order(&src.join("lib.rs")).iter().map(|room| src.join(room)).filter(|room| room.is_dir()) {
        found.extend(check(&room, &room.join("mod.rs"), "super::"));
    }
    assert!(found.is_empty(), "imports that go back:\n{}", found.join("\n"));
}
