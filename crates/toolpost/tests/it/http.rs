//! A blocking client of half a page: one connection, requests with a token, answers as bytes.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

/// Far beyond anything that works: turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// Something bytes go over.
trait Wire: Read + Write + Send {}

impl<T: Read + Write + Send> Wire for T {}

/// A connection to a served host.
pub(crate) struct Http {
    wire: BufReader<Box<dyn Wire>>,
    token: String,
    /// The headers of the last answer.
    headers: String,
}

/// Status and body of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

impl Http {
    pub(crate) fn connect(address: SocketAddr, token: &str) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            wire: BufReader::new(Box::new(stream)),
            token: token.to_owned(),
            headers: String::new(),
        })
    }

    /// Over the socket that is an operator's.
    pub(crate) fn over_socket(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self {
            wire: BufReader::new(Box::new(stream)),
            token: "none".to_owned(),
            headers: String::new(),
        })
    }

    pub(crate) fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.send("GET", path, "", "")
    }

    pub(crate) fn post(&mut self, path: &str, body: &str) -> io::Result<Answer> {
        self.send("POST", path, "", body)
    }

    pub(crate) fn delete(&mut self, path: &str) -> io::Result<Answer> {
        self.send("DELETE", path, "", "")
    }

    /// The last request of a connection, and it says so.
    pub(crate) fn once(mut self, method: &str, path: &str, body: &str) -> io::Result<Answer> {
        self.send(method, path, "Connection: close\r\n", body)
    }

    /// A POST in a session.
    pub(crate) fn post_in(&mut self, session: &str, path: &str, body: &str) -> io::Result<Answer> {
        self.send(
            "POST",
            path,
            &format!("Toolpost-Session: {session}\r\n"),
            body,
        )
    }

    /// A POST that can be repeated.
    pub(crate) fn post_with_key(
        &mut self,
        path: &str,
        key: &str,
        body: &str,
    ) -> io::Result<Answer> {
        self.send("POST", path, &format!("Idempotency-Key: {key}\r\n"), body)
    }

    /// Sends a POST and leaves the answer.
    pub(crate) fn begin(&mut self, path: &str, body: &str) -> io::Result<()> {
        self.write("POST", path, "", body)
    }

    /// The same with one that can be repeated.
    pub(crate) fn begin_with_key(&mut self, path: &str, key: &str, body: &str) -> io::Result<()> {
        self.write("POST", path, &format!("Idempotency-Key: {key}\r\n"), body)
    }

    /// Sends a GET and leaves the answer.
    pub(crate) fn begin_get(&mut self, path: &str) -> io::Result<()> {
        self.write("GET", path, "", "")
    }

    /// A header of the last answer.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.headers.lines().filter_map(|line| line.split_once(':'));
        lines
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    }

    /// Sends these bytes as they are.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.wire.get_mut().write_all(bytes)
    }

    /// Some of the bytes that are there, at most so many.
    pub(crate) fn read_some(&mut self, most: usize) -> io::Result<usize> {
        self.wire.get_mut().read(&mut vec![0; most])
    }

    /// A request, with headers of its own behind the usual ones, each with its line end.
    pub(crate) fn send(
        &mut self,
        method: &str,
        path: &str,
        more: &str,
        body: &str,
    ) -> io::Result<Answer> {
        self.write(method, path, more, body)?;
        self.receive()
    }

    fn write(&mut self, method: &str, path: &str, more: &str, body: &str) -> io::Result<()> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n{more}\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.token,
            body.len(),
        );
        self.wire.get_mut().write_all(request.as_bytes())
    }

    /// The answer to what was begun.
    pub(crate) fn receive(&mut self) -> io::Result<Answer> {
        let cut = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let mut line = String::new();
        self.wire.read_line(&mut line)?;
        let status = line
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .ok_or_else(cut)?;
        let mut length = None;
        let mut is_chunked = false;
        self.headers.clear();
        loop {
            line.clear();
            self.wire.read_line(&mut line)?;
            if !line.ends_with("\r\n") {
                return Err(cut());
            }
            let Some((name, value)) = line.trim_end().split_once(':') else {
                break;
            };
            self.headers += &line;
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().ok();
            }
            is_chunked |= name.eq_ignore_ascii_case("transfer-encoding");
        }
        let mut body = Vec::new();
        match length {
            // What has no content has no length.
            _ if matches!(status, 204 | 304) => {}
            None if is_chunked => while self.read_chunk(&mut body)? {},
            None => return Err(cut()),
            Some(length) => {
                body.resize(length, 0);
                self.wire.read_exact(&mut body)?;
            }
        }
        Ok(Answer {
            status,
            body: String::from_utf8(body).expect("answers are text"),
        })
    }

    /// Reads one chunk of a body. `false`: it was the last, which is empty.
    fn read_chunk(&mut self, body: &mut Vec<u8>) -> io::Result<bool> {
        let mut line = String::new();
        self.wire.read_line(&mut line)?;
        let size = usize::from_str_radix(line.trim(), 16)
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        let before = body.len();
        body.resize(before + size, 0);
        self.wire.read_exact(&mut body[before..])?;
        self.wire.read_exact(&mut [0; 2])?;
        Ok(size > 0)
    }
}
