"""The coordinator: where modules mount what they bring, and find what others brought."""

from .cancellation import CancellationToken
from .models import HookResult

_TABLES = ("providers", "tools")
_SINGLES = ("orchestrator", "context", "module-source-resolver")


class ModuleCoordinator:
    def __init__(self, session=None, approval_system=None, display_system=None):
        self._session = session
        self.mount_points = {**dict.fromkeys(_SINGLES), **{point: {} for point in _TABLES}, "hooks": None}
        self.session_state = {}
        self.channels = {}
        self.cancellation = CancellationToken()
        self.approval_system = approval_system
        self.display_system = display_system
        self.loader = None
        self.injection_size_limit = None
        self.injection_budget_per_turn = None
        self._capabilities = {}

    @property
    def config(self):
        return self._session.config if self._session is not None else {}

    async def mount(self, mount_point, module, name=None):
        self._known(mount_point)
        if mount_point == "hooks":
            raise ValueError("handlers are registered with `hooks.register`, not mounted")
        if mount_point in _SINGLES:
            self.mount_points[mount_point] = module
            return
        name = name or getattr(module, "name", None)
        if not name:
            raise ValueError(f"Name required for {mount_point}")
        self.mount_points[mount_point][name] = module

    async def unmount(self, mount_point, name=None):
        self._known(mount_point)
        if mount_point in _SINGLES:
            self.mount_points[mount_point] = None
        else:
            self.mount_points[mount_point].pop(name, None)

    def get(self, mount_point, name=None):
        self._known(mount_point)
        mounted = self.mount_points[mount_point]
        return mounted.get(name) if mount_point in _TABLES and name is not None else mounted

    def _known(self, mount_point):
        if mount_point not in self.mount_points:
            raise ValueError(f"Unknown mount point: {mount_point}")

    def register_capability(self, name, value):
        self._capabilities[name] = value

    def get_capability(self, name):
        return self._capabilities.get(name)

    def register_contributor(self, channel, name, callback):
        self.channels.setdefault(channel, []).append({"name": name, "callback": callback})

    def request_cancel(self, immediate=False):
        return self.cancellation.request_immediate() if immediate else self.cancellation.request_graceful()

    def reset_turn(self):
        pass

    def to_dict(self):
        return {
            "session_id": self.session_id,
            "tools": list(self.mount_points["tools"]),
            "capabilities": list(self._capabilities),
        }

    async def process_hook_result(self, result, event, hook_name="unknown"):
        """Does what a hook's result asks for: shows its message, asks its question."""
        if result.user_message and self.display_system is not None:
            source = result.user_message_source or hook_name
            self.display_system.show_message(result.user_message, result.user_message_level, source)
        if result.action != "ask_user":
            return result
        if self.approval_system is None:
            return HookResult(action="deny", reason="No approval system available")
        prompt = result.approval_prompt or "Allow this operation?"
        from .approval import ApprovalTimeoutError

        try:
            answer = await self.approval_system.request_approval(
                prompt, result.approval_options or ["Allow", "Deny"], result.approval_timeout, result.approval_default
            )
        except ApprovalTimeoutError:
            answer = result.approval_default
        if str(answer).lower() in ("allow", "allow once", "allow always"):
            return HookResult(action="continue")
        return HookResult(action="deny", reason=f"User denied: {prompt}")
