//! Lines out of a stream of bytes, with a limit on what one line may cost.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest line that is read, in bytes, without its newline.
pub const MAX_LINE: usize = 4 * 1024 * 1024;

/// How much is asked of the stream at a time. What an idle connection costs is mostly this.
const CHUNK: usize = 8 * 1024;

/// What [`Lines`] found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    /// A line without its newline. It may be empty, and it may be no UTF-8.
    Line(Bytes),
    /// A line that was longer than the limit. It was dropped while it came in.
    TooLong,
}

/// Reads lines. [`Lines::next`] may be dropped at any point without losing a byte, since all that was read lies here.
pub struct Lines<R> {
    stream: R,
    buffer: BytesMut,
    /// How far the buffer is known to hold no newline, so that a slow line is not searched again and again.
    searched: usize,
    /// The line in progress is over the limit: drop all of it.
    skipping: bool,
    limit: usize,
    ended: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of up to [`MAX_LINE`].
    pub fn new(stream: R) -> Self {
        Self::with_limit(stream, MAX_LINE)
    }

    /// Lines of up to `limit` bytes.
    pub fn with_limit(stream: R, limit: usize) -> Self {
        Self { stream, buffer: BytesMut::new(), searched: 0, skipping: false, limit, ended: false }
    }

    /// The stream, for looking at it.
    pub fn stream(&self) -> &R {
        &self.stream
    }

    /// The next line; `None` when the stream has ended. A last line without a newline counts.
    pub async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some(frame) = self.buffered() {
                return Ok(Some(frame));
            }
            if self.ended {
                return Ok(self.rest());
            }
            self.buffer.reserve(CHUNK);
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                self.ended = true;
            }
        }
    }

    /// A frame that is here already, without reading on.
    pub fn buffered(&mut self) -> Option<Frame> {
        let newline = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n').map(|at| at + self.searched);
        match newline {
            Some(at) => {
                let mut line = self.buffer.split_to(at);
                self.buffer.advance(1);
                self.searched = 0;
                let too_long = std::mem::take(&mut self.skipping) || line.len() > self.limit;
                if line.last() == Some(&b'\r') {
                    line.truncate(line.len() - 1);
                }
                Some(if too_long { Frame::TooLong } else { Frame::Line(line.freeze()) })
            }
            None => {
                if self.skipping || self.buffer.len() > self.limit {
                    self.skipping = true;
                    // A new buffer and not a cleared one: the old one may have grown to the limit.
                    self.buffer = BytesMut::new();
                }
                self.searched = self.buffer.len();
                None
            }
        }
    }

    fn rest(&mut self) -> Option<Frame> {
        if std::mem::take(&mut self.skipping) {
            return Some(Frame::TooLong);
        }
        self.searched = 0;
        let rest = std::mem::take(&mut self.buffer);
        (!rest.is_empty()).then(|| Frame::Line(rest.freeze()))
    }

    /// How much is held back, in bytes.
    #[cfg(test)]
    fn held(&self) -> usize {
        self.buffer.capacity()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use proptest::prelude::*;
    use tokio::io::ReadBuf;

    use super::*;

    /// Gives its chunks one by one, and says "not yet" between them.
    struct Chunks {
        chunks: VecDeque<Vec<u8>>,
        pause: bool,
    }

    impl AsyncRead for Chunks {
        fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            self.pause = !self.pause;
            if self.pause {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if let Some(mut chunk) = self.chunks.pop_front() {
                let rest = chunk.split_off(chunk.len().min(into.remaining()));
                into.put_slice(&chunk);
                if !rest.is_empty() {
                    self.chunks.push_front(rest);
                }
            }
            Poll::Ready(Ok(()))
        }
    }

    /// Reads all frames, dropping the future at every "not yet".
    fn frames(chunks: Vec<Vec<u8>>, limit: usize) -> Vec<Frame> {
        let chunks = chunks.into_iter().filter(|chunk| !chunk.is_empty()).collect();
        let mut lines = Lines::with_limit(Chunks { chunks, pause: false }, limit);
        let mut frames = Vec::new();
        let mut context = Context::from_waker(std::task::Waker::noop());
        loop {
            let polled = std::pin::pin!(lines.next()).poll(&mut context);
            assert!(lines.held() <= 2 * (limit + CHUNK), "{} bytes held", lines.held());
            match polled {
                Poll::Pending => {}
                Poll::Ready(Ok(Some(frame))) => frames.push(frame),
                Poll::Ready(Ok(None)) => return frames,
                Poll::Ready(Err(error)) => panic!("{error}"),
            }
        }
    }

    /// The same by the plainest means.
    fn expected(text: &[u8], limit: usize) -> Vec<Frame> {
        let mut pieces: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        let last = pieces.pop().unwrap_or_default();
        let mut frames: Vec<Frame> = pieces
            .into_iter()
            .map(|piece| match piece.len() > limit {
                true => Frame::TooLong,
                false => Frame::Line(Bytes::copy_from_slice(piece.strip_suffix(b"\r").unwrap_or(piece))),
            })
            .collect();
        match last.len() {
            0 => {}
            n if n > limit => frames.push(Frame::TooLong),
            _ => frames.push(Frame::Line(Bytes::copy_from_slice(last))),
        }
        frames
    }

    #[test]
    fn lines_end_at_newlines_and_at_the_end() {
        fn check(chunks: &[&str], expect: &[Option<&str>]) {
            let chunks = chunks.iter().map(|chunk| chunk.as_bytes().to_vec()).collect();
            let expect: Vec<Frame> = expect
                .iter()
                .map(|line| line.map_or(Frame::TooLong, |line| Frame::Line(Bytes::copy_from_slice(line.as_bytes()))))
                .collect();
            assert_eq!(frames(chunks, 8), expect);
        }
        check(&[], &[]);
        check(&["a\nb\n"], &[Some("a"), Some("b")]);
        check(&["a", "b\r", "\nc"], &[Some("ab"), Some("c")]);
        check(&["\n\n"], &[Some(""), Some("")]);
        check(&["12345678\n"], &[Some("12345678")]);
        check(&["123456789\nx\n"], &[None, Some("x")]);
        check(&["123456789", "0123456789", "\nx"], &[None, Some("x")]);
        check(&["123456789", "0123456789"], &[None]);
    }

    proptest! {
        #[test]
        fn cutting_the_bytes_elsewhere_changes_nothing_and_memory_stays_bounded(
            lines in prop::collection::vec(prop::collection::vec(prop_oneof![Just(b'\r'), Just(b'x'), any::<u8>()], 0..40), 0..12),
            newline_at_the_end in any::<bool>(),
            cuts in prop::collection::vec(0usize..400, 0..20),
        ) {
            let mut text = lines.join(&b'\n');
            if newline_at_the_end {
                text.push(b'\n');
            }
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut < text.len()).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts {
                chunks.push(text[from..cut].to_vec());
                from = cut;
            }
            chunks.push(text[from..].to_vec());
            prop_assert_eq!(frames(chunks, 16), expected(&text, 16));
        }
    }
}
