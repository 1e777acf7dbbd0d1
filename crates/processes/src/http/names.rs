//! From names to addresses. The client connects to exactly the addresses that passed here: there is no second
//! lookup that could answer otherwise.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use toolpost_model::BoxFuture;

use super::target::{AddressReach, TargetRefusal};

/// Turns names into addresses. The host asks the system unless its settings bring another lookup.
pub trait NameLookup: Send + Sync + 'static {
    /// All addresses of `name`. Those that may not be reached are sorted out by the caller.
    fn lookup(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// As the system does it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SystemNames;

impl NameLookup for SystemNames {
    fn lookup(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// A client's resolver: one answer that may not be reached spoils all of them. To take the others would let
/// whoever owns the name find out, by trying, what is behind the wall.
pub(super) struct GuardedNames {
    pub(super) names: Arc<dyn NameLookup>,
    pub(super) reach: AddressReach,
}

impl Resolve for GuardedNames {
    fn resolve(&self, name: Name) -> Resolving {
        let names = self.names.clone();
        let reach = self.reach;
        Box::pin(async move {
            let name = name.as_str().to_owned();
            let found = names.lookup(name.clone()).await?;
            for &address in &found {
                reach.check_answer(&name, address)?;
            }
            if found.is_empty() {
                return Err(TargetRefusal::NoAddress { host: name }.into());
            }
            // Port 0 stands for the port of the URL.
            let addresses: Addrs =
                Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}
