//! Lexer of CQL: words, values and symbols.

/// The smallest piece that means something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    Word(String),
    Text(String),
    Number(i64),
    Symbol(&'static str),
}

const SYMBOLS: [&str; 17] = [
    ">=", "<=", "?", "(", ")", "{", "}", "<", ">", "=", ",", ".", ":", ";", "*", "-", "+",
];

/// All pieces of a statement. The error says what none can begin with.
pub fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first == '\'' || first == '"' {
            let (content, length) = quoted(rest, first).ok_or_else(|| format!("a quote is not closed: {rest:.40}"))?;
            tokens.push(if first == '\'' {
                Token::Text(content)
            } else {
                Token::Word(content)
            });
            length
        } else if first.is_ascii_digit() {
            let length = rest
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '-')
                .unwrap_or(rest.len());
            // A number, or a uuid, which only table options have.
            tokens.push(
                rest[..length]
                    .parse()
                    .map_or_else(|_| Token::Text(rest[..length].into()), Token::Number),
            );
            length
        } else if first.is_alphabetic() || first == '_' {
            let length = rest
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..length].to_lowercase()));
            length
        } else {
            let symbol = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol));
            let symbol = symbol.ok_or_else(|| format!("unexpected {first:?}"))?;
            tokens.push(Token::Symbol(symbol));
            symbol.len()
        };
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

/// Content and whole length of a quoted piece; a doubled quote stands for one.
fn quoted(text: &str, quote: char) -> Option<(String, usize)> {
    let mut content = String::new();
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if character != quote {
            content.push(character);
        } else if characters.next_if(|(_, next)| *next == quote).is_some() {
            content.push(quote);
        } else {
            return Some((content, at + 1));
        }
    }
    None
}
