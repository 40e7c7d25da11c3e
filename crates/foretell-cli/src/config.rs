//! Parameters of learning in TOML files, for people to read and edit.

use std::fs;
use std::path::Path;

use anyhow::anyhow;
use foretell::{LearnOverrides, LearnParams};

/// Changes to a recipe, from a file.
pub fn read(path: &Path) -> anyhow::Result<LearnOverrides> {
    let bytes = fs::read(path).map_err(foretell::Error::io("read", path))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| anyhow!("{} is not a text file; give a TOML file, such as `foretell search` writes", path.display()))?;
    toml::from_str(&text).map_err(|e| {
        let line = e.span().map(|span| format!(" line {}", text[..span.start.min(text.len())].matches('\n').count() + 1));
        let problem = e.message().replace('\n', ", ");
        anyhow!(
            "{}{}: {problem}; keys are the flags of `foretell learn` with underscores, such as test_dim = 256",
            path.display(),
            line.unwrap_or_default()
        )
    })
}

/// All parameters, after comments.
pub fn text(comments: &[String], params: &LearnParams) -> anyhow::Result<String> {
    let comments: Vec<String> = comments.iter().map(|line| format!("# {}", line.replace(char::is_control, " "))).collect();
    Ok(format!("{}\n\n{}", comments.join("\n"), toml::to_string(params)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> anyhow::Result<LearnOverrides> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("best.toml");
        fs::write(&path, text).unwrap();
        read(&path)
    }

    #[test]
    fn parameters_come_back_as_they_were() {
        let paper = LearnParams { mix: 0.1 + 0.2, tolerance: 1e-300, seed: i64::MAX as u64, ..LearnParams::paper() };
        for params in [LearnParams::default(), LearnParams { observe_reward: true, ..paper }] {
            let text = text(&["by me\nrank = 7".into()], &params).unwrap();
            for preset in [LearnParams::default(), LearnParams::paper()] {
                assert_eq!(read_text(&text).unwrap().apply(preset), params, "{text}");
            }
        }
    }

    #[test]
    fn a_file_may_say_little() {
        let overrides = read_text("# mine\nrank = 7\n").unwrap();
        assert_eq!(overrides, LearnOverrides { rank: Some(7), ..LearnOverrides::default() });
        assert_eq!(read_text("").unwrap(), LearnOverrides::default());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let said = |text: &str| read_text(text).unwrap_err().to_string();
        for (text, line, word) in [
            ("rank = 7\nrnak = 8\n", "line 2: ", "unknown field `rnak`"),
            ("\n\nrank = \"many\"\n", "line 3: ", "invalid type"),
            ("rank = -3", "line 1: ", "invalid value"),
            ("test_projection = \"cubic\"", "line 1: ", "unknown variant `cubic`"),
            ("rank = 7\nrank = 8", "line 2: ", "duplicate key"),
            ("rank 7", "line 1: ", "best.toml"),
        ] {
            let said = said(text);
            assert!(said.contains(line) && said.contains(word) && !said.contains('\n'), "{said}");
        }
        let said = read(Path::new("no-such.toml")).unwrap_err().to_string();
        assert_eq!(said, "cannot read no-such.toml: No such file or directory (os error 2)");
    }
}
