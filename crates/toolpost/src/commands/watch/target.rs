//! The stream to watch, from the command line: the running host or a URL.

use anyhow::Context;
use reqwest::Url;
use toolpost_store::DataDir;

use super::{
    WatchArgs, WatchStartPoint,
    stream::{HostSocket, StreamAddress},
};
use crate::{environment, exit::UsageError, reach, settings};

/// Finds the stream to watch.
pub(super) async fn find_address(arguments: &WatchArgs) -> anyhow::Result<StreamAddress> {
    let Some(url) = arguments.url.as_deref() else {
        if arguments.token_file.is_some() {
            return Err(UsageError("`--token-file` requires a URL".to_owned()).into());
        }
        return running(arguments).await;
    };
    let scheme = url
        .split_once("://")
        .map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        Some("http" | "https") => {}
        Some(_) => {
            let message = format!(
                "`{url}` cannot be watched: the address must begin with http:// or https://"
            );
            return Err(UsageError(message).into());
        }
        None => return Err(not_a_url(url).into()),
    }
    Ok(StreamAddress {
        url: session_url(url, arguments.session.as_deref(), arguments.from)?,
        token: environment::given_token(arguments.token_file.as_deref())?,
        socket: None,
    })
}

/// Earlier versions read files and standard input.
fn not_a_url(word: &str) -> UsageError {
    UsageError(format!(
        "`{word}` is not a URL\n\
         hint: `watch` does not read files or pipes; `toolpost a2a normalize` does"
    ))
}

/// The host that runs on the workspace, through its socket.
async fn running(arguments: &WatchArgs) -> anyhow::Result<StreamAddress> {
    let place = settings::locate(&arguments.place)?;
    if reach::running(&place.data_dir).await?.is_none() {
        anyhow::bail!(
            "no host runs on `{}`\n\
             hint: start it with `toolpost serve`, or name a URL; past calls are in `toolpost journal tail`",
            place.workspace.display()
        );
    }
    let socket = DataDir::at(&place.data_dir)?.socket_path();
    let path = match &arguments.session {
        Some(session) => session_path(session),
        None => EVERYTHING.to_owned(),
    };
    let mut url = Url::parse("http://localhost").context("the address of the host")?;
    url.set_path(&path);
    begin_at(&mut url, arguments.from);
    let socket = HostSocket {
        path: socket,
        session: arguments.session.clone(),
    };
    Ok(StreamAddress {
        url,
        token: None,
        socket: Some(socket),
    })
}

/// The path of a host's stream of all sessions.
const EVERYTHING: &str = "/events";

fn session_path(session: &str) -> String {
    format!("/sessions/{}/events", reach::escape(session))
}

/// The URL of the stream: the given one, or the stream of a session if it only names a host.
fn session_url(
    text: &str,
    session: Option<&str>,
    from: Option<WatchStartPoint>,
) -> anyhow::Result<Url> {
    let mut url =
        Url::parse(text).map_err(|error| UsageError(format!("`{text}` is not a URL: {error}")))?;
    let is_host = url.path() == "/" && url.query().is_none();
    match session {
        None if is_host => url.set_path(&session_path("default")),
        None => {}
        Some(session) if is_host => url.set_path(&session_path(session)),
        Some(_) => {
            let message = format!("`{text}` already names a stream, so `--session` cannot be used");
            return Err(UsageError(message).into());
        }
    }
    begin_at(&mut url, from);
    Ok(url)
}

fn begin_at(url: &mut Url, from: Option<WatchStartPoint>) {
    if let Some(from) = from {
        url.query_pairs_mut().append_pair("from", from.as_str());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_url_means() {
        let host = "http://127.0.0.1:8765";
        for (text, session, from, expected) in [
            (
                host,
                None,
                None,
                "http://127.0.0.1:8765/sessions/default/events",
            ),
            (
                "http://127.0.0.1:8765/",
                Some("a:b/c"),
                None,
                "http://127.0.0.1:8765/sessions/a%3Ab%2Fc/events",
            ),
            (
                host,
                Some("s"),
                Some(WatchStartPoint::Start),
                "http://127.0.0.1:8765/sessions/s/events?from=start",
            ),
            (
                "https://example.org/tasks/7:subscribe",
                None,
                None,
                "https://example.org/tasks/7:subscribe",
            ),
            (
                "http://localhost:1/sessions/s/events?vocabulary=ai-sdk",
                None,
                Some(WatchStartPoint::Now),
                "http://localhost:1/sessions/s/events?vocabulary=ai-sdk&from=now",
            ),
        ] {
            assert_eq!(session_url(text, session, from).unwrap().as_str(), expected);
        }
        for (text, session) in [("http://", None), ("http://h/sessions/s/events", Some("t"))] {
            assert!(session_url(text, session, None).is_err(), "{text}");
        }
    }
}
