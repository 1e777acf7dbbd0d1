//! A source whose tools change while agents are connected.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use toolpost_a2e::{Client, ConnectOptions, HostNotice, HostTransport, ListOptions, ToolApi};
use toolpost_model::{
    BoxFuture, Declaration, EffectOrigin, SessionScope, Source, SourceError, SourceFeed,
    SourceNotice, SourceSession, WireNaming,
};

use super::{super::client::within, embedded};
use crate::running::Place;

/// Has one tool, and a second one once it grew.
#[derive(Clone, Default)]
struct Growing {
    grew: Arc<AtomicBool>,
    feed: Arc<OnceLock<SourceFeed>>,
}

impl Growing {
    fn grow(&self) {
        self.grew.store(true, Ordering::SeqCst);
        self.feed.get().unwrap().notify(SourceNotice::ToolsChanged);
    }
}

impl Source for Growing {
    fn name(&self) -> &str {
        "growing"
    }

    fn origin(&self) -> EffectOrigin {
        EffectOrigin::HostCode
    }

    fn naming(&self) -> WireNaming {
        WireNaming::Bare
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>> {
        let names: &[&str] = if self.grew.load(Ordering::SeqCst) {
            &["old.first", "new.second"]
        } else {
            &["old.first"]
        };
        let tools = names
            .iter()
            .map(|name| Declaration::new(name.parse().unwrap(), "A tool"))
            .collect();
        Box::pin(std::future::ready(Ok(tools)))
    }

    fn open<'a>(
        &'a self,
        _: &'a SessionScope,
    ) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>> {
        let reason = "nothing here is called".to_owned();
        Box::pin(std::future::ready(Err(SourceError {
            origin: "growing".to_owned(),
            reason,
        })))
    }

    fn connect(&self, feed: SourceFeed) {
        let _ = self.feed.set(feed);
    }
}

#[tokio::test]
async fn agents_that_asked_are_told_and_list_anew() {
    let source = Growing::default();
    let running = Place::without_native_tools()
        .start_with(|builder| builder.source(source.clone()))
        .await;
    let url = format!("http://{}", running.server.address().unwrap());
    let options = ConnectOptions::new("test").token(running.token());
    let over_http = within(Client::connect(HostTransport::http(url), options))
        .await
        .unwrap();
    let clients = [embedded(&running.server).await, over_http];
    let mut listening = Vec::new();
    for client in &clients {
        let api = ToolApi::new(client);
        assert_eq!(
            within(api.list(&ListOptions::all())).await.unwrap().len(),
            1
        );
        listening.push((api, client.notices()));
    }
    source.grow();
    for (api, notices) in &mut listening {
        within(async {
            while !matches!(notices.next().await, Some(HostNotice::ToolListChanged)) {}
        })
        .await;
        assert_eq!(
            within(api.list(&ListOptions::all())).await.unwrap().len(),
            2
        );
    }
}
