"""What `toolpost_testkit` promises, with the real amplifier-core or alone."""

import unittest

from toolpost_testkit import CORE, EventRecorder, HookResult, MockCoordinator, MockTool, ToolResult, wait_for


class MockToolTest(unittest.IsolatedAsyncioTestCase):
    async def test_counts_its_calls(self):
        tool = MockTool(name="greet", output={"said": "hello"})
        self.assertEqual(tool.call_count, 0)
        result = await tool.execute({"name": "you"})
        self.assertTrue(result.success)
        self.assertEqual(result.output, {"said": "hello"})
        self.assertEqual(tool.call_count, 1)
        self.assertEqual(tool.execute.call_args.args, ({"name": "you"},))
        self.assertEqual((tool.description, MockTool().name), ("Mock tool: greet", "mock_tool"))


class MockCoordinatorTest(unittest.IsolatedAsyncioTestCase):
    async def test_mounts_and_remembers(self):
        coordinator, tool = MockCoordinator(), MockTool("greet")
        await coordinator.mount("tools", tool)
        self.assertIs(coordinator.get("tools", "greet"), tool)
        self.assertEqual(list(coordinator.get("tools")), ["greet"])
        self.assertEqual(coordinator.mount_history, [{"mount_point": "tools", "module": tool, "name": "greet"}])
        await coordinator.unmount("tools", "greet")
        self.assertIsNone(coordinator.get("tools", "greet"))
        self.assertEqual(coordinator.session_id, "test-session")

    async def test_refuses_what_the_real_one_refuses(self):
        coordinator = MockCoordinator()
        for point, thing in [("tools", object()), ("hooks", MockTool()), ("nowhere", MockTool())]:
            with self.assertRaises(ValueError):
                await coordinator.mount(point, thing)
        with self.assertRaises(ValueError):
            coordinator.get("nowhere")

    async def test_cleans_up_backwards(self):
        coordinator, order = MockCoordinator(), []

        async def last():
            order.append("registered last")

        coordinator.register_cleanup(lambda: order.append("registered first"))
        coordinator.register_cleanup(last)
        await coordinator.cleanup()
        self.assertEqual(order, ["registered last", "registered first"])

    async def test_carries_capabilities_and_contributions(self):
        coordinator = MockCoordinator(capabilities={"session.working_dir": "/work"})
        coordinator.register_contributor("observability.events", "greet", lambda: ["greet:done"])
        coordinator.register_contributor("observability.events", "other", lambda: None)
        self.assertEqual(coordinator.get_capability("session.working_dir"), "/work")
        self.assertIsNone(coordinator.get_capability("unknown"))
        self.assertEqual(await coordinator.collect_contributions("observability.events"), [["greet:done"]])
        coordinator.todo_state = []


class EventRecorderTest(unittest.IsolatedAsyncioTestCase):
    async def test_hears_what_is_emitted(self):
        coordinator, recorder = MockCoordinator(), EventRecorder()
        coordinator.hooks.register("tool:*", recorder.record)
        await coordinator.hooks.emit("tool:pre", {"tool_name": "greet"})
        await coordinator.hooks.emit("session:start", {})
        self.assertEqual(recorder.names(), ["tool:pre"])
        (event, data), = recorder.get_events("tool:pre")
        self.assertEqual(data["tool_name"], "greet")
        recorder.clear()
        self.assertEqual(recorder.get_events(), [])

    async def test_a_denial_ends_the_round(self):
        coordinator, recorder = MockCoordinator(), EventRecorder()
        coordinator.hooks.register("tool:pre", lambda event, data: HookResult(action="deny", reason="no"), priority=-1)
        coordinator.hooks.register("tool:pre", recorder.record)
        result = await coordinator.hooks.emit("tool:pre", {})
        self.assertEqual((result.action, recorder.names()), ("deny", []))


class ResultTest(unittest.IsolatedAsyncioTestCase):
    def test_a_failure_repeats_its_message(self):
        failed = ToolResult(success=False, error={"message": "no such file"})
        self.assertEqual(failed.output, "no such file")
        with self.assertRaises(ValueError):
            ToolResult(success=False, error="no such file")

    async def test_waits(self):
        self.assertTrue(await wait_for(lambda: True))
        self.assertFalse(await wait_for(lambda: False, timeout=0.05))
        self.assertTrue(CORE)
