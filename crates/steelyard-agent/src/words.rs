//! Words to a running `load`: standard input, read in a thread of its own, one JSON line each.

use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use steelyard_wire::Word;

/// Most words of a load.
const MOST_WORDS: u32 = 10_000;
/// Most bytes of a word; longer lines are no words.
const LONGEST_WORD: u64 = 1 << 20;
const LONGEST_QUOTE: usize = 200;

/// Starts to read words; they, or what is wrong with one, come out of the channel. `stop` is set by the word `stop`, by anything
/// that is no word and by the end of the input without one; nothing is read after that.
pub fn read(input: impl Read + Send + 'static, stop: &Arc<AtomicBool>) -> Receiver<Result<Word, String>> {
    let (sender, words) = mpsc::channel();
    let stop = Arc::clone(stop);
    thread::spawn(move || {
        let mut lines = BufReader::new(input);
        for number in 0.. {
            let word = match next(&mut lines) {
                Ok(_) if number == MOST_WORDS => Err(format!("words: more than {MOST_WORDS}")),
                word => word,
            };
            let last = !matches!(word, Ok(Word::Go { .. } | Word::Phase { .. }));
            // Nobody takes it only if the load has ended.
            if sender.send(word).is_err() || last {
                stop.store(true, Ordering::Relaxed);
                return;
            }
        }
    });
    words
}

/// Starts to read one word, the `go` of an order that waits for it; nothing is read after it.
pub fn read_one(input: impl Read + Send + 'static) -> Receiver<Result<Word, String>> {
    let (sender, words) = mpsc::channel();
    thread::spawn(move || {
        // Nobody takes it only if the load has ended.
        let _ = sender.send(next(&mut BufReader::new(input)));
    });
    words
}

fn next(lines: &mut impl BufRead) -> Result<Word, String> {
    let mut line = Vec::new();
    lines
        .take(LONGEST_WORD)
        .read_until(b'\n', &mut line)
        .map_err(|error| format!("words: standard input: {error}"))?;
    if line.is_empty() {
        return Err("words: standard input was closed before the last word".to_owned());
    }
    serde_json::from_slice(&line).map_err(|error| {
        let quote = String::from_utf8_lossy(&line[..line.len().min(LONGEST_QUOTE)]);
        format!("words: {:?} is not a valid word: {error}", quote.trim_end())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &'static str) -> (Vec<Result<Word, String>>, bool) {
        let stop = Arc::new(AtomicBool::new(false));
        let words = read(text.as_bytes(), &stop).into_iter().collect();
        (words, stop.load(Ordering::Relaxed))
    }

    #[test]
    fn the_example_is_all_words_and_ends_with_stop() {
        let (words, stopped) = all(include_str!("../../../schema/words.example.jsonl"));
        let words: Vec<Word> = words.into_iter().map(Result::unwrap).collect();
        assert!(matches!(
            words.as_slice(),
            [Word::Go { .. }, Word::Phase { .. }, Word::Phase { .. }, Word::Stop {}]
        ));
        assert!(stopped);
    }

    #[test]
    fn an_input_that_ends_or_holds_anything_else_stops_the_load_and_says_why() {
        for (text, message) in [
            ("", "closed before the last word"),
            ("{\"word\":\"go\"}\n", "closed before the last word"),
            ("{\"word\":\"halt\"}\n", "unknown variant `halt`"),
            ("{\"word\":\"go\",\"at\":1}\n", "unknown field `at`"),
            ("gibberish\n", "\"gibberish\" is not a valid word"),
        ] {
            let (words, stopped) = all(text);
            let error = words.into_iter().find_map(Result::err).unwrap();
            assert!(error.contains(message), "{error}");
            assert!(stopped);
        }
    }

    #[test]
    fn one_word_is_one_word() {
        let one = |text: &'static str| read_one(text.as_bytes()).into_iter().collect::<Vec<_>>();
        assert_eq!(
            one("{\"word\":\"go\",\"in_s\":0.5}\nnothing\n"),
            [Ok(Word::Go { in_s: 0.5 })]
        );
        assert!(one("")[0].as_ref().unwrap_err().contains("closed before the last word"));
    }

    #[test]
    fn nothing_is_read_after_stop() {
        let (words, _) = all("{\"word\":\"stop\"}\n{\"word\":\"go\"}\n");
        assert_eq!(words, [Ok(Word::Stop {})]);
    }
}
