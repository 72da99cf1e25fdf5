//! Texts of agents and pages, made fit to stand beside the app's own words.

/// The text on one line, without characters that show nothing or turn the direction of what follows, and no longer than
/// this many characters. Seal it first: cut off, a secret may no longer be known as one.
pub fn one_line(text: &str, longest: usize) -> String {
    let visible: String = text.chars().map(|c| if c.is_control() || is_invisible(c) { ' ' } else { c }).collect();
    let joined = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    match joined.char_indices().nth(longest) {
        None => joined,
        // The last character makes room for the sign that something is missing.
        Some(_) => joined.chars().take(longest.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Characters that show nothing or turn the direction of what follows: they would make one label look like another.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hides_and_nothing_is_too_long() {
        fn check(text: &str, expect: &str) {
            assert_eq!(one_line(text, 12), expect, "{text:?}");
        }
        check("Example", "Example");
        check("  two\n lines\t", "two lines");
        check("\u{202e}moc.live\u{200b}", "moc.live");
        check("exactly twel", "exactly twel");
        check("more than twelve", "more than t…");
        check("漢字", "漢字");
        check("", "");
    }
}
