//! Opening, finding and closing sessions.

use std::{sync::Arc, time::Duration};

use toolpost_model::{
    InvocationId, Principal, PrincipalRole, SessionId, SurfaceRequest, SurfaceScope,
};

use super::{Host, HostInner};
use crate::{
    invocation::CancelReason,
    record::{
        body::SessionOpenedBody,
        journal::{AppendStrength, JournalError, Record, RecordKind},
    },
    session::{Session, SessionOrigin},
};

/// Why a session is unavailable.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// There is no such session, or it belongs to another principal. The error does not reveal which.
    #[error("no session `{0}` is open for this caller")]
    Unknown(SessionId),
    /// The default session of a principal cannot be closed.
    #[error("a caller's own session cannot be closed")]
    Default,
    /// All sessions are in use.
    #[error("all {0} sessions are in use (setting `limits.sessions`)")]
    Full(usize),
    /// The surface request is too large. Sessions keep their request in memory.
    #[error("the surface request has {0} bytes; the limit is {SURFACE_BYTES}")]
    SurfaceTooLarge(usize),
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// The largest surface request, in bytes of JSON.
const SURFACE_BYTES: usize = 64 << 10;

/// The prefix of the ids of default sessions.
const DEFAULT: &str = "default:";

/// Whether a session is the default session of a principal, which is neither opened nor closed.
pub(crate) fn is_default(id: &SessionId) -> bool {
    id.as_str().starts_with(DEFAULT)
}

/// The principal of a default session.
fn default_owner(id: &SessionId) -> Option<Principal> {
    let (role, name) = id.as_str().strip_prefix(DEFAULT)?.split_once(':')?;
    let role = [PrincipalRole::Agent, PrincipalRole::Operator]
        .into_iter()
        .find(|known| known.as_str() == role)?;
    match role {
        _ if name.is_empty() => None,
        PrincipalRole::Agent => Some(Principal::agent(name)),
        PrincipalRole::Operator => Some(Principal::operator(name)),
    }
}

impl HostInner {
    /// The principal of a session in memory.
    pub(super) fn principal_of(&self, session: Option<&SessionId>) -> Option<Principal> {
        let sessions = self.state.sessions.read();
        sessions
            .get(session?)
            .map(|session| session.principal().clone())
    }

    /// Closes the sources of a session and notifies the witnesses.
    pub(super) fn let_go(&self, session: &Session) {
        session.close();
        self.witnesses.session_closed(session.id());
    }

    fn known(&self, id: &SessionId) -> Option<Arc<Session>> {
        self.state.sessions.read().get(id).cloned()
    }

    /// Keeps a session, or returns the one that another task kept at the same time.
    fn keep(&self, session: Session) -> Arc<Session> {
        let mut sessions = self.state.sessions.write();
        Arc::clone(
            sessions
                .entry(session.id().clone())
                .or_insert_with(|| Arc::new(session)),
        )
    }

    /// Makes room for one more session of `principal`. An evicted session is still on record and is restored when its
    /// id is used again, so an idle one can go. The longest idle session of the same principal goes first, so that one
    /// principal cannot evict the sessions of others.
    fn make_room(&self, principal: &Principal) -> Result<(), SessionError> {
        let limit = self.limits.sessions;
        let mut sessions = self.state.sessions.write();
        if sessions.len() < limit {
            return Ok(());
        }
        let idle = sessions
            .values()
            .filter(|session| session.is_idle_for(Duration::ZERO));
        let oldest =
            idle.max_by_key(|session| (session.principal() == principal, session.idle_time()));
        let Some(oldest) = oldest.map(|session| session.id().clone()) else {
            return Err(SessionError::Full(limit));
        };
        if let Some(session) = sessions.remove(&oldest) {
            self.let_go(&session);
        }
        let idle = self.limits.session_idle;
        sessions.retain(|_, session| {
            let stays = !session.is_idle_for(idle);
            if !stays {
                self.let_go(session);
            }
            stays
        });
        Ok(())
    }

    /// The session of a recorded call, restored from the record or created.
    pub(crate) async fn session_or_new(
        &self,
        id: &SessionId,
        principal: &Principal,
    ) -> Arc<Session> {
        match self.find(id, principal).await {
            Ok(session) => session,
            Err(_) => {
                let request = self.of_tenant(principal, SurfaceRequest::default());
                self.keep(Session::new(
                    id.clone(),
                    principal.clone(),
                    request,
                    self.sources.list.len(),
                    SessionOrigin::Earlier,
                ))
            }
        }
    }

    /// Sets the tenant that the operator configured for the principal, and ignores the caller's. With a tenant, the
    /// scope is `tenant`, unless the caller requests a scope narrower than a session.
    fn of_tenant(&self, principal: &Principal, mut request: SurfaceRequest) -> SurfaceRequest {
        request.tenant = self.tenants.get(&principal.name).cloned();
        request.scope = match (request.scope, &request.tenant) {
            (SurfaceScope::Session | SurfaceScope::Tenant, Some(_)) => SurfaceScope::Tenant,
            (SurfaceScope::Session | SurfaceScope::Tenant, None) => SurfaceScope::Session,
            (
                narrower @ (SurfaceScope::Turn
                | SurfaceScope::Task
                | SurfaceScope::Skill
                | SurfaceScope::ModelRequest),
                _,
            ) => narrower,
        };
        request
    }

    async fn find(
        &self,
        id: &SessionId,
        principal: &Principal,
    ) -> Result<Arc<Session>, SessionError> {
        let may_have =
            |owner: &Principal| owner == principal || principal.role == PrincipalRole::Operator;
        // A default session is not on record. It exists as long as its principal.
        if let Some(owner) = default_owner(id).filter(may_have)
            && self.known(id).is_none()
        {
            self.make_room(&owner)?;
            let request = self.of_tenant(&owner, SurfaceRequest::default());
            let sources = self.sources.list.len();
            return Ok(self.keep(Session::new(
                id.clone(),
                owner,
                request,
                sources,
                SessionOrigin::Earlier,
            )));
        }
        self.find_for(id, |owner, _| may_have(owner)).await
    }

    async fn find_for(
        &self,
        id: &SessionId,
        may_have: impl Fn(&Principal, Option<&str>) -> bool,
    ) -> Result<Arc<Session>, SessionError> {
        let unknown = || SessionError::Unknown(id.clone());
        if let Some(session) = self.known(id) {
            let may_have =
                !session.is_ended() && may_have(session.principal(), session.credential());
            return if may_have {
                Ok(session)
            } else {
                Err(unknown())
            };
        }
        let row = self
            .record
            .journal
            .find_session(id)
            .await?
            .ok_or_else(unknown)?;
        if row.record.kind != RecordKind::SessionOpened {
            return Err(unknown());
        }
        let body: SessionOpenedBody = row.record.read_body().map_err(|_| unknown())?;
        let owner = Principal {
            name: body.principal,
            role: body.role,
        };
        if !may_have(&owner, body.credential.as_deref()) {
            return Err(unknown());
        }
        self.make_room(&owner)?;
        let surface = self.of_tenant(&owner, body.surface);
        let sources = self.sources.list.len();
        let session = Session::new(id.clone(), owner, surface, sources, SessionOrigin::Earlier);
        Ok(self.keep(session.with_credential(body.credential)))
    }
}

impl Host {
    /// Opens a session and records it.
    pub async fn open_session(
        &self,
        principal: Principal,
        request: SurfaceRequest,
    ) -> Result<Arc<Session>, SessionError> {
        // Time-ordered ids with 74 random bits, like invocation ids. They are not the only protection: requests also
        // need a token.
        self.open_session_as(
            SessionId::new(InvocationId::new().to_string()),
            principal,
            request,
            None,
        )
        .await
    }

    /// Opens a session under an id that its face created and never used before. `credential` is a fingerprint of the
    /// caller's credential, not the secret; [`resume_session`](Self::resume_session) passes it to the check.
    pub async fn open_session_as(
        &self,
        id: SessionId,
        principal: Principal,
        request: SurfaceRequest,
        credential: Option<String>,
    ) -> Result<Arc<Session>, SessionError> {
        let size = serde_json::to_string(&request).map_or(0, |request| request.len());
        if size > SURFACE_BYTES {
            return Err(SessionError::SurfaceTooLarge(size));
        }
        self.inner.make_room(&principal)?;
        let request = self.inner.of_tenant(&principal, request);
        let body = SessionOpenedBody {
            principal: principal.name.clone(),
            role: principal.role,
            surface: request.clone(),
            credential: credential.clone(),
        };
        let opened = self.session_record(
            RecordKind::SessionOpened,
            &id,
            serde_json::to_string(&body).unwrap_or_default(),
        );
        self.inner.append(opened, AppendStrength::Committed).await?;
        let sources = self.inner.sources.list.len();
        let session = Session::new(id, principal, request, sources, SessionOrigin::Opened);
        Ok(self.inner.keep(session.with_credential(credential)))
    }

    /// Finds a session or opens it, for faces that derive the id from the caller's data, so that it may have been used
    /// before. A session that was closed or belongs to another principal stays unknown.
    pub async fn session_or_open(
        &self,
        id: SessionId,
        principal: &Principal,
        request: SurfaceRequest,
    ) -> Result<Arc<Session>, SessionError> {
        match self.session(&id, principal).await {
            Err(SessionError::Unknown(id)) if self.inner.known(&id).is_none() => {
                if self.inner.record.journal.find_session(&id).await?.is_some() {
                    return Err(SessionError::Unknown(id));
                }
                let session = self
                    .open_session_as(id, principal.clone(), request, None)
                    .await?;
                // A caller of the same name and another role may have opened it at the same time.
                let is_own = session.principal() == principal;
                if is_own {
                    Ok(session)
                } else {
                    Err(SessionError::Unknown(session.id().clone()))
                }
            }
            found => found,
        }
    }

    /// Finds a session, in memory or on record, for a face whose caller has proved its ownership by other means.
    /// `still_admitted` decides whether this caller is still admitted.
    pub async fn resume_session(
        &self,
        id: &SessionId,
        still_admitted: impl Fn(&Principal, Option<&str>) -> bool,
    ) -> Result<Arc<Session>, SessionError> {
        let session = self.inner.find_for(id, still_admitted).await?;
        session.touch();
        Ok(session)
    }

    /// The default session of a principal, which needs no opening.
    pub fn default_session(&self, principal: &Principal) -> Arc<Session> {
        let id = SessionId::new(format!(
            "{DEFAULT}{}:{}",
            principal.role.as_str(),
            principal.name
        ));
        match self.inner.known(&id) {
            Some(session) => session,
            None => {
                let request = self.inner.of_tenant(principal, SurfaceRequest::default());
                let sources = self.inner.sources.list.len();
                self.inner.keep(Session::new(
                    id,
                    principal.clone(),
                    request,
                    sources,
                    SessionOrigin::Earlier,
                ))
            }
        }
    }

    /// Finds a session, in memory or on record. Agents find their own sessions only.
    pub async fn session(
        &self,
        id: &SessionId,
        principal: &Principal,
    ) -> Result<Arc<Session>, SessionError> {
        let session = self.inner.find(id, principal).await?;
        session.touch();
        Ok(session)
    }

    /// Closes a session: cancels its calls, closes its sources and retires its id.
    pub async fn close_session(&self, session: &Session) -> Result<(), SessionError> {
        if is_default(session.id()) {
            return Err(SessionError::Default);
        }
        session.end();
        let running: Vec<_> = self
            .inner
            .state
            .calls
            .running
            .lock()
            .values()
            .cloned()
            .collect();
        for call in running.iter().filter(|call| call.is_of(session.id())) {
            call.cancel(CancelReason::SessionClosed, None);
        }
        // After the cancellations: a call that ends now must not keep anything for a session that is gone.
        self.inner.let_go(session);
        // Recorded last, because the processes of the session must stop even if the journal cannot be written.
        let closed = self.session_record(RecordKind::SessionClosed, session.id(), "{}".to_owned());
        let recorded = self.inner.append(closed, AppendStrength::Committed).await;
        // The session stays in memory, marked as ended, until its end is on record. Removed earlier, a request for its
        // id would find the opening in the journal and restore the session.
        self.inner.state.sessions.write().remove(session.id());
        Ok(recorded?)
    }

    fn session_record(&self, kind: RecordKind, id: &SessionId, body: String) -> Record {
        Record {
            kind,
            at: crate::port::now(),
            invocation_id: None,
            session_id: Some(id.clone()),
            request: None,
            body,
            facets: None,
        }
    }
}
