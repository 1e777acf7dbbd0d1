//! Name lookup. The client connects to exactly the addresses that passed the check: there is no second lookup that
//! could return others.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use toolpost_model::BoxFuture;

use super::target::{AddressReach, TargetRefusal};

/// Resolves names. The host uses the system's lookup unless its settings bring another one.
pub trait NameLookup: Send + Sync + 'static {
    /// All addresses of `name`. The caller removes those that may not be reached.
    fn lookup(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The system's lookup.
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

/// A client's resolver with the address check. If one address of a name is refused, the whole name is. If the client
/// went on with the other addresses, the owner of the name could find out, by mixing public and private addresses,
/// which private hosts exist.
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
