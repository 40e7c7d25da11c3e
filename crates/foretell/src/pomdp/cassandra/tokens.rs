//! Words, colons and stars of a `.POMDP` text, with their lines.

use crate::error::Error;

/// The smallest pieces of the format. Spaces and line ends only separate them; `#` begins a
/// comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Colon,
    Star,
    Word(&'a str),
}

/// A heading such as `states:`, `T:` or `start include:`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heading<'a> {
    pub word: &'a str,
    pub line: u64,
}

/// A text to be read from left to right.
pub(super) struct Tokens<'a> {
    file: &'a str,
    tokens: Vec<(Token<'a>, u64)>,
    at: usize,
    lines: u64,
}

impl<'a> Tokens<'a> {
    pub fn new(text: &'a str, file: &'a str) -> Self {
        let mut tokens = Vec::new();
        let mut lines = 0;
        for line in text.lines() {
            lines += 1;
            let code = line.split('#').next().unwrap_or_default();
            for word in code.split_whitespace() {
                // `split_inclusive` leaves a colon or star at the end of each piece but perhaps the
                // last.
                for piece in word.split_inclusive([':', '*']) {
                    let name = piece.trim_end_matches([':', '*']);
                    if !name.is_empty() {
                        tokens.push((Token::Word(name), lines));
                    }
                    match piece.as_bytes().last() {
                        Some(b':') => tokens.push((Token::Colon, lines)),
                        Some(b'*') => tokens.push((Token::Star, lines)),
                        _ => {}
                    }
                }
            }
        }
        Tokens { file, tokens, at: 0, lines }
    }

    /// The line of the next token; the last line at the end.
    pub fn line(&self) -> u64 {
        self.tokens.get(self.at).map_or(self.lines.max(1), |&(_, line)| line)
    }

    pub fn peek(&self) -> Option<Token<'a>> {
        self.ahead(0)
    }

    pub fn next(&mut self) -> Option<Token<'a>> {
        let token = self.peek();
        self.at += 1;
        token
    }

    /// Takes the next token if it is this one.
    pub fn take(&mut self, token: Token<'_>) -> bool {
        let is = self.peek() == Some(token);
        self.at += usize::from(is);
        is
    }

    /// The heading at this position, if there is one.
    pub fn peek_heading(&self) -> Option<Heading<'a>> {
        let heading = |word| Some(Heading { word, line: self.line() });
        match (self.ahead(0)?, self.ahead(1)?) {
            (Token::Word(word), Token::Colon) => heading(word),
            (Token::Word("start"), Token::Word("include")) if self.ahead(2) == Some(Token::Colon) => heading("start include"),
            (Token::Word("start"), Token::Word("exclude")) if self.ahead(2) == Some(Token::Colon) => heading("start exclude"),
            _ => None,
        }
    }

    /// Takes a heading that [`peek_heading`](Tokens::peek_heading) saw.
    pub fn skip(&mut self, heading: Heading<'_>) {
        self.at += heading.word.split(' ').count() + 1;
    }

    /// Takes all words up to the next heading, star or colon.
    pub fn words(&mut self) -> Vec<&'a str> {
        let mut words = Vec::new();
        while self.peek_heading().is_none()
            && let Some(Token::Word(word)) = self.peek()
        {
            words.push(word);
            self.at += 1;
        }
        words
    }

    /// Takes a number; its sign may stand alone before it.
    pub fn number(&mut self) -> Option<f64> {
        let Some(Token::Word(word)) = self.peek() else { return None };
        if let Some(number) = number(word) {
            self.at += 1;
            return Some(number);
        }
        let sign = match word {
            "+" => 1.0,
            "-" => -1.0,
            _ => return None,
        };
        let Some(Token::Word(word)) = self.ahead(1) else { return None };
        let number = number(word).filter(|_| !word.starts_with(['+', '-']))?;
        self.at += 2;
        Some(sign * number)
    }

    /// The next token, for messages.
    pub fn found(&self) -> String {
        match self.peek() {
            Some(Token::Word(word)) => format!("{word:?}"),
            Some(Token::Colon) => "\":\"".to_string(),
            Some(Token::Star) => "\"*\"".to_string(),
            None => "the end of the file".to_string(),
        }
    }

    /// An error at the next token.
    pub fn error(&self, problem: impl Into<String>, remedy: impl Into<String>) -> Error {
        self.error_at(self.line(), problem, remedy)
    }

    pub fn error_at(&self, line: u64, problem: impl Into<String>, remedy: impl Into<String>) -> Error {
        Error::input(self.file, Some(line), problem, remedy)
    }

    fn ahead(&self, k: usize) -> Option<Token<'a>> {
        self.tokens.get(self.at + k).map(|&(token, _)| token)
    }
}

/// A finite number; `inf`, `nan` and the like are words.
pub(super) fn number(word: &str) -> Option<f64> {
    let digits = word.strip_prefix(['+', '-']).unwrap_or(word);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    word.parse().ok().filter(|x: &f64| x.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colons_and_stars_need_no_spaces() {
        let mut tokens = Tokens::new("T:go:* : s # note : *\n\n- 2", "x");
        let expected =
            [Token::Word("T"), Token::Colon, Token::Word("go"), Token::Colon, Token::Star, Token::Colon, Token::Word("s")];
        for token in expected {
            assert_eq!((tokens.line(), tokens.next()), (1, Some(token)));
        }
        assert_eq!((tokens.line(), tokens.number()), (3, Some(-2.0)));
        assert_eq!(tokens.next(), None);
    }

    #[test]
    fn a_list_of_words_ends_before_a_heading() {
        let mut tokens = Tokens::new("start T up\nstart include: up", "x");
        assert_eq!(tokens.words(), ["start", "T", "up"]);
        let heading = tokens.peek_heading().unwrap();
        assert_eq!(heading, Heading { word: "start include", line: 2 });
        tokens.skip(heading);
        assert_eq!(tokens.words(), ["up"]);
    }

    #[test]
    fn numbers_are_finite_and_words_are_not_numbers() {
        assert_eq!(["1e-3", "-.5", "+2", "7."].map(number), [0.001, -0.5, 2.0, 7.0].map(Some));
        assert_eq!(["inf", "nan", "-inf", "1e999", "e5", "", "+", "0x1"].map(number), [None; 8]);
    }
}
