//! SPDY/3.1 as far as Kubernetes speaks it: several streams over one connection, without flow control.
//! <https://www.chromium.org/spdy/spdy-protocol/spdy-protocol-draft3-1/> and KEP-4006 for how it travels in a WebSocket.

use std::collections::BTreeMap;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// A frame that is longer is no frame of a well-behaved client.
const FRAME_BYTES_MAX: usize = 1024 * 1024;
/// The headers of a stream, unpacked.
const HEADERS_BYTES_MAX: usize = 64 * 1024;
/// Two bytes of zlib's own, and the checksum of the dictionary.
const HEAD_BYTES: usize = 6;
const VERSION: u16 = 3;
/// The last frame of a stream in this direction.
const FIN: u8 = 1;

mod kind {
    pub const SYN_STREAM: u16 = 1;
    pub const SYN_REPLY: u16 = 2;
    pub const RST_STREAM: u16 = 3;
    pub const PING: u16 = 6;
    pub const GOAWAY: u16 = 7;
}

/// What the other side sends.
#[derive(Debug, PartialEq)]
pub enum Frame {
    /// A new stream, with its headers in lower case.
    Open {
        stream: u32,
        headers: BTreeMap<String, String>,
    },
    Data {
        stream: u32,
        bytes: Vec<u8>,
        /// Nothing more comes on this stream.
        is_last: bool,
    },
    Reset {
        stream: u32,
    },
    Ping {
        id: u32,
    },
    /// It opens no more streams.
    GoAway,
}

/// One end of a connection, without the connection: bytes that came go in, frames come out, and frames to be sent
/// become bytes.
pub struct Spdy {
    received: Vec<u8>,
    /// Without the head of a zlib stream, which tells no more than which dictionary is used.
    inflate: Decompress,
    is_behind_head: bool,
    deflate: Compress,
}

impl Spdy {
    pub fn new() -> Spdy {
        let (mut inflate, mut deflate) = (Decompress::new(false), Compress::new(Compression::best(), true));
        // Dictionaries are refused only once something has been read or written.
        let _ = (inflate.set_dictionary(&dictionary()), deflate.set_dictionary(&dictionary()));
        Spdy { received: Vec::new(), inflate, is_behind_head: false, deflate }
    }

    pub fn receive(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
    }

    /// The next frame that has come as a whole; frames that say nothing here are passed over.
    ///
    /// # Errors
    /// What is no SPDY, after which nothing more can be understood.
    pub fn next(&mut self) -> Result<Option<Frame>, String> {
        loop {
            let Some((head, rest)) = self.received.split_first_chunk::<8>() else { return Ok(None) };
            let length = u32::from_be_bytes([0, head[5], head[6], head[7]]) as usize;
            if length > FRAME_BYTES_MAX {
                return Err(format!("a frame of {length} bytes, more than {FRAME_BYTES_MAX}"));
            }
            if rest.len() < length {
                return Ok(None);
            }
            let (first, flags) = (u32::from_be_bytes([head[0], head[1], head[2], head[3]]), head[4]);
            let payload = rest[..length].to_vec();
            self.received.drain(..8 + length);
            let is_control = first >> 31 == 1;
            let frame = if is_control {
                self.control(first, &payload)?
            } else {
                Some(Frame::Data { stream: first, bytes: payload, is_last: flags & FIN != 0 })
            };
            if frame.is_some() {
                return Ok(frame);
            }
        }
    }

    fn control(&mut self, first: u32, payload: &[u8]) -> Result<Option<Frame>, String> {
        let (version, kind) = ((first >> 16) as u16 & 0x7fff, first as u16);
        if version != VERSION {
            return Err(format!("SPDY/{version} is not spoken here"));
        }
        let number = || payload.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)).ok_or("a frame is too short");
        Ok(match kind {
            kind::SYN_STREAM => {
                let packed = payload.get(10..).ok_or("a frame is too short")?;
                let headers = self.headers(packed)?;
                Some(Frame::Open { stream: number()? & 0x7fff_ffff, headers })
            }
            kind::RST_STREAM => Some(Frame::Reset { stream: number()? & 0x7fff_ffff }),
            kind::PING => Some(Frame::Ping { id: number()? }),
            kind::GOAWAY => Some(Frame::GoAway),
            _ => None,
        })
    }

    /// All headers of a connection are one compressed text, so none may be left out.
    fn headers(&mut self, packed: &[u8]) -> Result<BTreeMap<String, String>, String> {
        let mut text = Vec::with_capacity(1024);
        let head = if self.is_behind_head { 0 } else { HEAD_BYTES };
        let mut rest = packed.get(head..).ok_or("headers: too short")?;
        self.is_behind_head = true;
        while !rest.is_empty() || text.len() == text.capacity() {
            text.reserve(1024);
            let before = (self.inflate.total_in(), text.len());
            match self.inflate.decompress_vec(rest, &mut text, FlushDecompress::Sync) {
                Ok(Status::StreamEnd) => return Err("headers: they end where more must come".into()),
                Ok(_) if (self.inflate.total_in(), text.len()) == before => return Err("headers: no text".into()),
                Ok(_) => {}
                Err(error) => return Err(format!("headers: {error}")),
            }
            rest = &rest[(self.inflate.total_in() - before.0) as usize..];
            if text.len() >= HEADERS_BYTES_MAX {
                return Err(format!("headers of more than {HEADERS_BYTES_MAX} bytes"));
            }
        }
        read_headers(&text).ok_or_else(|| "headers end too early".to_owned())
    }

    /// Takes a stream on. It has no headers of its own.
    pub fn reply(&mut self, stream: u32) -> Vec<u8> {
        let mut packed = Vec::with_capacity(64);
        // No headers: their number, in four bytes. There is room for all that comes of them.
        let _ = self.deflate.compress_vec(&0_u32.to_be_bytes(), &mut packed, FlushCompress::Sync);
        let mut payload = stream.to_be_bytes().to_vec();
        payload.append(&mut packed);
        control(kind::SYN_REPLY, &payload)
    }
}

/// Bytes on a stream.
pub fn data(stream: u32, bytes: &[u8]) -> Vec<u8> {
    frame(stream, 0, bytes)
}

/// Nothing more will come on a stream.
pub fn last(stream: u32) -> Vec<u8> {
    frame(stream, FIN, &[])
}

/// The answer to a ping.
pub fn pong(id: u32) -> Vec<u8> {
    control(kind::PING, &id.to_be_bytes())
}

/// Refuses a stream.
pub fn reset(stream: u32) -> Vec<u8> {
    const REFUSED_STREAM: u32 = 3;
    control(kind::RST_STREAM, &[stream.to_be_bytes(), REFUSED_STREAM.to_be_bytes()].concat())
}

fn control(kind: u16, payload: &[u8]) -> Vec<u8> {
    frame(1 << 31 | u32::from(VERSION) << 16 | u32::from(kind), 0, payload)
}

fn frame(first: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u32;
    let mut frame = Vec::with_capacity(8 + payload.len());
    frame.extend_from_slice(&first.to_be_bytes());
    frame.extend_from_slice(&(u32::from(flags) << 24 | length).to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// Pairs of texts, each behind its length, all behind their number.
fn read_headers(mut text: &[u8]) -> Option<BTreeMap<String, String>> {
    let count = take_number(&mut text)?;
    let mut headers = BTreeMap::new();
    for _ in 0..count {
        let name = take_word(&mut text)?;
        headers.insert(name.to_lowercase(), take_word(&mut text)?);
    }
    Some(headers)
}

fn take_number(text: &mut &[u8]) -> Option<usize> {
    let (number, rest) = text.split_first_chunk()?;
    *text = rest;
    Some(u32::from_be_bytes(*number) as usize)
}

fn take_word(text: &mut &[u8]) -> Option<String> {
    let length = take_number(text)?;
    let (word, rest) = text.split_at_checked(length)?;
    *text = rest;
    Some(String::from_utf8_lossy(word).into_owned())
}

/// Words that headers often have, each behind its length, which both sides know beforehand.
const WORDS: &str = "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age \
    allow authorization cache-control connection content-base content-encoding content-language content-length \
    content-location content-md5 content-range content-type date etag expect expires from host if-match \
    if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma \
    proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade \
    user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie \
    keep-alive origin";

/// What follows them as it stands.
const TEXT: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 \
    Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not \
    Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov \
    Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,\
    application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=\
    iso-8859-1,utf-,*,enq=0.";

fn dictionary() -> Vec<u8> {
    let mut dictionary = Vec::with_capacity(1423);
    for word in WORDS.split(' ') {
        // The one phrase among the words.
        let word = word.replace('_', " ");
        dictionary.extend_from_slice(&(word.len() as u32).to_be_bytes());
        dictionary.extend_from_slice(word.as_bytes());
    }
    dictionary.extend_from_slice(TEXT.as_bytes());
    dictionary
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Headers as a client packs them: all of a connection in one compressed text.
    struct Client(Compress);

    impl Client {
        fn new() -> Client {
            let mut deflate = Compress::new(Compression::best(), true);
            deflate.set_dictionary(&dictionary()).unwrap();
            Client(deflate)
        }

        fn open(&mut self, stream: u32, headers: &[(&str, &str)]) -> Vec<u8> {
            let mut text = (headers.len() as u32).to_be_bytes().to_vec();
            for word in headers.iter().flat_map(|(name, value)| [name, value]) {
                text.extend_from_slice(&(word.len() as u32).to_be_bytes());
                text.extend_from_slice(word.as_bytes());
            }
            let mut packed = Vec::with_capacity(1024);
            self.0.compress_vec(&text, &mut packed, FlushCompress::Sync).unwrap();
            let head = [stream.to_be_bytes().as_slice(), &[0; 6]].concat();
            control(kind::SYN_STREAM, &[head, packed].concat())
        }
    }

    fn frames(spdy: &mut Spdy) -> Vec<Frame> {
        std::iter::from_fn(|| spdy.next().unwrap()).collect()
    }

    #[test]
    fn the_dictionary_is_the_one_that_clients_have() {
        assert_eq!(dictionary().len(), 1423);
        assert_eq!(Compress::new(Compression::best(), true).set_dictionary(&dictionary()).unwrap(), 0xe3c6_a7c2);
    }

    #[test]
    fn streams_come_in_pieces_of_any_size() {
        let mut client = Client::new();
        let sent = [
            client.open(1, &[("Streamtype", "error"), ("port", "80")]),
            client.open(3, &[("streamtype", "data"), ("port", "80")]),
            data(3, b"GET /"),
            last(1),
            pong(7),
        ]
        .concat();
        let headers =
            |kind: &str| BTreeMap::from([("streamtype", kind), ("port", "80")].map(|(a, b)| (a.into(), b.into())));
        let expected = [
            Frame::Open { stream: 1, headers: headers("error") },
            Frame::Open { stream: 3, headers: headers("data") },
            Frame::Data { stream: 3, bytes: b"GET /".to_vec(), is_last: false },
            Frame::Data { stream: 1, bytes: Vec::new(), is_last: true },
            Frame::Ping { id: 7 },
        ];
        for size in [1, 7, sent.len()] {
            let mut spdy = Spdy::new();
            let mut seen = Vec::new();
            for piece in sent.chunks(size) {
                spdy.receive(piece);
                seen.append(&mut frames(&mut spdy));
            }
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn what_is_no_spdy_is_told() {
        let told = |bytes: &[u8]| {
            let mut spdy = Spdy::new();
            spdy.receive(bytes);
            spdy.next().unwrap_err()
        };
        assert_eq!(told(b"GET / HTTP/1.1\r\n\r\n"), "a frame of 2115668 bytes, more than 1048576");
        assert_eq!(told(&frame(1 << 31 | 2 << 16 | 6, 0, &[0; 4])), "SPDY/2 is not spoken here");
        assert_eq!(told(&control(kind::PING, &[])), "a frame is too short");
        assert!(told(&control(kind::SYN_STREAM, &[9; 30])).starts_with("headers: "));
    }
}
