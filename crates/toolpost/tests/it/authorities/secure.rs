//! A policy endpoint behind TLS. The certificates in `tests/tls` are for 127.0.0.1 and good for a hundred years; nothing
//! but these tests trusts them.

use std::{
    io::{BufRead as _, BufReader, Read, Write},
    net::TcpListener,
    sync::Arc,
    thread,
};

use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};

use super::Office;
use crate::home::Ran;

const SERVER: &[u8] = include_bytes!("../../tls/server.pem");
const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls/authority.pem");

/// Starts an endpoint that allows everything, and gives its port. Its thread ends with the test's process.
fn start() -> u16 {
    let certificates = CertificateDer::pem_slice_iter(SERVER)
        .map(Result::unwrap)
        .collect();
    let key = PrivateKeyDer::from_pem_slice(SERVER).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            // A caller that does not like the certificate breaks off.
            let _ = serve(BufReader::new(StreamOwned::new(connection, stream)));
        }
    });
    port
}

fn serve<S: Read + Write>(mut stream: BufReader<S>) -> std::io::Result<()> {
    let mut line = String::new();
    let mut length = 0;
    while stream.read_line(&mut line)? > 2 {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    stream.read_exact(&mut vec![0; length])?;
    let answer = r#"{"result": true}"#;
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
        answer.len()
    );
    write!(stream.get_mut(), "{head}Connection: close\r\n\r\n{answer}")
}

#[test]
fn an_endpoint_behind_tls_decides_where_its_certificate_is_trusted_and_for_its_name() {
    let port = start();
    for (host, trusted, code) in [
        ("127.0.0.1", true, 0),
        ("127.0.0.1", false, 3),
        ("localhost", true, 3),
    ] {
        let office = Office::asking(
            &format!("https://{host}:{port}/v1/data/toolpost/decision"),
            "",
        );
        let mut command = office.command(&["call", "echo", "message=hello", "--no-prompt"]);
        if trusted {
            command.env("SSL_CERT_FILE", AUTHORITY);
        }
        let ran = Ran::from(command.output().unwrap()).expect(code);
        let vote = office.decision()["delegated"][0].clone();
        assert_eq!(
            vote["behavior"],
            if code == 0 { "allow" } else { "deny" },
            "{vote}"
        );
        if code != 0 {
            let fault = vote["fault"].as_str().unwrap();
            assert!(
                fault.starts_with("it cannot be reached") && fault.contains("certificate"),
                "{fault}"
            );
            assert!(ran.stderr.contains("gave no decision"), "{}", ran.stderr);
        }
    }
}
