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

/// Why a session cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// No such session, or another principal's: which of the two is nobody's business.
    #[error("no session `{0}` is open for this caller")]
    Unknown(SessionId),
    /// A caller's own session is there as long as the caller.
    #[error("a caller's own session cannot be closed")]
    Default,
    /// Too many.
    #[error("all {0} sessions are in use (setting `limits.sessions`)")]
    Full(usize),
    /// A session holds its request as long as it lives, and there may be many sessions.
    #[error("the surface request has {0} bytes; at most {SURFACE_BYTES} are taken")]
    SurfaceTooLarge(usize),
    /// The journal cannot take it.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// The most that a surface request may have, as JSON.
const SURFACE_BYTES: usize = 64 << 10;

/// How the ids of sessions begin that nobody opened.
const DEFAULT: &str = "default:";

/// Whether a session is one that nobody opened, and nobody closes.
pub(crate) fn is_default(id: &SessionId) -> bool {
    id.as_str().starts_with(DEFAULT)
}

/// Whose such a session is.
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
    /// Whose a session in memory is.
    pub(super) fn principal_of(&self, session: Option<&SessionId>) -> Option<Principal> {
        let sessions = self.state.sessions.read();
        sessions
            .get(session?)
            .map(|session| session.principal().clone())
    }

    /// Ends what is kept for a session: by its sources, and by whoever hears of every call.
    pub(super) fn let_go(&self, session: &Session) {
        session.close();
        self.witnesses.session_closed(session.id());
    }

    fn known(&self, id: &SessionId) -> Option<Arc<Session>> {
        self.state.sessions.read().get(id).cloned()
    }

    /// Keeps a session, or returns the one somebody else kept in the same moment.
    fn keep(&self, session: Session) -> Arc<Session> {
        let mut sessions = self.state.sessions.write();
        Arc::clone(
            sessions
                .entry(session.id().clone())
                .or_insert_with(|| Arc::new(session)),
        )
    }

    /// Makes room for one more session of `principal`. What leaves memory here is still on record and comes back
    /// when its id is used again, so the longest unused one may go: first of the same caller's, so that nobody
    /// pushes the others out.
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

    /// The session of a recorded call, brought back from the record or made anew.
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

    /// The request with the tenant that the operator gave this principal, whatever the caller wrote: a surface of the
    /// tenant where there is one and the caller asks for nothing narrower than a session.
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
        // No record tells of it, since nobody opened it: it is there as long as its owner.
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
    /// Opens a session and puts it on record.
    pub async fn open_session(
        &self,
        principal: Principal,
        request: SurfaceRequest,
    ) -> Result<Arc<Session>, SessionError> {
        // The same unguessable time-ordered ids as invocations: 74 random bits, and the token guards the rest.
        self.open_session_as(
            SessionId::new(InvocationId::new().to_string()),
            principal,
            request,
            None,
        )
        .await
    }

    /// Opens a session under an id that its face made and never used before. `credential` is a mark, not a secret,
    /// of what its caller came in with; [`resume_session`](Self::resume_session) tells it again.
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

    /// Finds a session, or opens it: for faces that make the id out of what callers say, so that it may have been used
    /// before. One that was closed, or that is another principal's, stays unknown.
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
                // Somebody of the same name but another role may have opened it in the same moment.
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

    /// Finds a session, in memory or on record, for a face whose caller proved by other means that it is its own;
    /// the face says whether that caller would still be let in.
    pub async fn resume_session(
        &self,
        id: &SessionId,
        still_admitted: impl Fn(&Principal, Option<&str>) -> bool,
    ) -> Result<Arc<Session>, SessionError> {
        let session = self.inner.find_for(id, still_admitted).await?;
        session.touch();
        Ok(session)
    }

    /// The session a principal has without opening one.
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

    /// Finds a session, in memory or on record. Agents find their own only.
    pub async fn session(
        &self,
        id: &SessionId,
        principal: &Principal,
    ) -> Result<Arc<Session>, SessionError> {
        let session = self.inner.find(id, principal).await?;
        session.touch();
        Ok(session)
    }

    /// Closes a session: its calls are canceled, its sources told, its id never valid again.
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
        // After the calls know: one that keeps something for its session from now on must not leave it behind.
        self.inner.let_go(session);
        // Last: what it ran is to stop even where the journal cannot be written.
        let closed = self.session_record(RecordKind::SessionClosed, session.id(), "{}".to_owned());
        let recorded = self.inner.append(closed, AppendStrength::Committed).await;
        // Known as ended until its end is on record: who does not find it here looks there, and would bring it back.
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
