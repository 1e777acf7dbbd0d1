"""What holds in either dialect, told by the official client of each."""

import uuid

import hosting
from neutral import events_of_items, events_of_task, said, state, types
from waiting import until

URI = "https://mentionable.dev/ns/a2a-tool-events/v0.1"
OLDER_URI = "https://mentionable.dev/spec/a2a-tool-events/v0.1"
PATIENCE = 15


def call(tool, arguments, call_id="c1"):
    return {"data": {"type": "tool-call", "toolCallId": call_id, "toolName": tool, "input": arguments}}


class Suite:
    """Mixed into a case of the dialect, which says what `peer` is."""

    peer = None

    @classmethod
    def setUpClass(cls):
        cls.host = hosting.start(cls)
        cls.base = f"http://127.0.0.1:{cls.host.port}"
        cls.operator = hosting.Operator(cls.host.place)

    async def asyncSetUp(self):
        self.client = await self.enterAsyncContext(self.peer(self.base, self.host.token))

    async def task(self, *parts, **options):
        kind, task = await self.client.send(*parts, **options)
        self.assertEqual(kind, "task")
        return task

    async def items(self, stream):
        return [item async for item in stream]

    def napping(self):
        """A call that lasts, and the word by which its process is found."""
        word = f"9{uuid.uuid4().int % 10**9}"
        return call("shell", {"command": f"sleep {word}", "timeout": 600}), word

    async def until_running(self, stream, word):
        """Reads a stream up to the call's event; gives what was read. The process is there then, or soon."""
        read = []
        async for item in stream:
            read.append(item)
            if types(events_of_items(read)) == ["tool-call"]:
                until(lambda: hosting.running(word), PATIENCE, "the process runs")
                return read
        self.fail(f"the stream ended early: {read}")

    # The card.

    async def test_the_card_names_the_tools_and_the_extension(self):
        card = self.client.card
        self.assertIn("top_lines", [skill.id for skill in card.skills])
        self.assertIn("read_file", [skill.id for skill in card.skills])
        self.assertEqual([extension.uri for extension in card.capabilities.extensions], [URI])
        raw = (await self.client.http.get(f"{self.base}/.well-known/agent-card.json")).json()
        self.assertEqual(raw["a2a"]["capabilities"]["extensions"], raw["capabilities"]["extensions"])

    async def test_a_stranger_sees_a_card_without_tools(self):
        async with self.peer(self.base) as stranger:
            [skill] = stranger.card.skills
            self.assertNotIn(skill.id, [known.id for known in self.client.card.skills])

    async def test_the_extended_card_has_every_tool(self):
        card = await self.client.extended_card()
        self.assertIn("top_lines", [skill.id for skill in card.skills])

    # Messages.

    async def test_a_call_is_run_and_its_task_tells_all_of_it(self):
        task = await self.task(call("top_lines", {"count": 2}))
        self.assertEqual(state(task), "completed")
        begun, ended = events_of_task(task)
        self.assertEqual((begun["type"], ended["type"]), ("tool-call", "tool-result"))
        self.assertEqual((begun["toolCallId"], ended["toolCallId"]), ("c1", "c1"))
        self.assertEqual((begun["toolName"], begun["input"]), ("top_lines", {"count": 2}))
        self.assertRegex(begun["startedAt"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertGreaterEqual(ended["durationMs"], 0)
        self.assertIn("two", str(ended["output"]))
        self.assertNotIn("three", str(ended["output"]))
        [artifact] = task["artifacts"]
        self.assertIn("one", str(artifact["parts"]))

    async def test_a_whole_number_may_arrive_with_a_point(self):
        task = await self.task(call("top_lines", {"count": 1.0}))
        self.assertEqual((state(task), types(events_of_task(task))), ("completed", ["tool-call", "tool-result"]))

    async def test_a_stream_tells_the_call_as_it_happens(self):
        items = await self.items(self.client.stream(call("top_lines", {"count": 2}), extensions=[URI]))
        kinds = [kind for kind, _ in items]
        self.assertEqual(kinds[0], "task")
        self.assertEqual(kinds.count("artifact"), 1)
        self.assertEqual(types(events_of_items(items)), ["tool-call", "tool-result"])
        kind, last = items[-1]
        self.assertEqual((kind, state(last)), ("status", "completed"))
        carriers = [body["status"]["message"] for kind, body in items if kind == "status" and events_of_items([(kind, body)])]
        self.assertEqual([carrier["extensions"] for carrier in carriers], [[URI], [URI]])

    async def test_several_calls_are_one_task(self):
        task = await self.task(call("top_lines", {"count": 1}, "a"), call("read_file", {"path": "lines.txt"}, "b"))
        self.assertEqual(state(task), "completed")
        ended = {event["toolCallId"] for event in events_of_task(task) if event["type"] == "tool-result"}
        self.assertEqual(ended, {"a", "b"})
        self.assertEqual(len(task["artifacts"]), 2)

    async def test_text_alone_is_told_what_the_host_takes(self):
        kind, message = await self.client.send({"text": "hello?"})
        self.assertEqual(kind, "message")
        self.assertIn("tool-call", said(message))

    async def test_a_message_sent_twice_runs_once(self):
        ids = {"message_id": str(uuid.uuid4()), "context_id": "twice"}
        first = await self.task(call("top_lines", {"count": 1}), **ids)
        again = await self.task(call("top_lines", {"count": 1}), **ids)
        self.assertEqual(first["id"], again["id"])

    # Calls that do not succeed.

    async def assert_fails(self, part, word):
        task = await self.task(part)
        self.assertEqual(state(task), "failed")
        *_, ended = events_of_task(task)
        self.assertEqual(ended["type"], "tool-error")
        self.assertIn(word, ended["error"]["message"])
        items = await self.items(self.client.stream(part))
        self.assertEqual(types(events_of_items(items))[-1], "tool-error")
        self.assertEqual(state(items[-1][1]), "failed")

    async def test_a_tool_that_fails(self):
        await self.assert_fails(call("read_file", {"path": "absent.txt"}), "absent.txt")

    async def test_a_tool_that_is_unknown(self):
        await self.assert_fails(call("no_such_tool", {}), "no_such_tool")

    async def test_arguments_that_do_not_fit(self):
        await self.assert_fails(call("top_lines", {"count": 1.5}), "count")

    # Tasks.

    async def test_a_task_can_be_asked_for_again(self):
        task = await self.task(call("top_lines", {"count": 1}))
        again = await self.client.get(task["id"])
        self.assertEqual((state(again), again["artifacts"]), ("completed", task["artifacts"]))
        self.assertEqual(events_of_task(again), events_of_task(task))
        self.assertEqual((await self.client.get(task["id"], history=0)).get("history", []), [])
        self.assertEqual(len((await self.client.get(task["id"], history=1))["history"]), 1)

    async def test_a_task_that_is_not_there(self):
        for ask in (self.client.get, self.client.cancel):
            with self.assertRaises(self.peer.NOT_FOUND):
                await ask(str(uuid.uuid4()))

    async def test_a_canceled_task_leaves_no_process(self):
        part, word = self.napping()
        stream = self.client.stream(part)
        [(_, task), *_] = read = await self.until_running(stream, word)
        canceled = await self.client.cancel(task["id"])
        read += await self.items(stream)
        self.assertEqual(state(read[-1][1]), "canceled")
        self.assertEqual(types(events_of_items(read)), ["tool-call", "tool-error"])
        until(lambda: not hosting.running(word), PATIENCE, "the process is gone")
        self.assertEqual(canceled["id"], task["id"])
        self.assertEqual(state(await self.client.get(task["id"])), "canceled")
        with self.assertRaises(self.peer.NOT_CANCELABLE):
            await self.client.cancel(task["id"])

    async def test_a_task_goes_on_without_its_stream_and_can_be_followed_again(self):
        part, word = self.napping()
        stream = self.client.stream(part)
        [(_, task), *_] = await self.until_running(stream, word)
        await stream.aclose()
        self.assertTrue(hosting.running(word))
        again = self.client.subscribe(task["id"])
        kind, snapshot = await anext(again)
        self.assertEqual((kind, snapshot["id"], state(snapshot)), ("task", task["id"], "working"))
        await self.client.cancel(task["id"])
        items = await self.items(again)
        self.assertEqual(state(items[-1][1]), "canceled")
        until(lambda: not hosting.running(word), PATIENCE, "the process is gone")

    async def test_an_answer_at_once_is_a_task_under_way(self):
        part, word = self.napping()
        task = await self.task(part, at_once=True)
        self.assertIn(state(task), ["submitted", "working"])
        until(lambda: hosting.running(word), PATIENCE, "the process runs")
        await self.client.cancel(task["id"])
        until(lambda: not hosting.running(word), PATIENCE, "the process is gone")

    async def test_a_task_that_has_ended_takes_no_more_messages(self):
        task = await self.task(call("top_lines", {"count": 1}))
        with self.assertRaises(self.peer.UNSUPPORTED):
            await self.client.send({"text": "more"}, task_id=task["id"], context_id=task["contextId"])

    # Questions.

    async def question(self, path):
        """A task that waits for an operator, and the id of its question."""
        task = await self.task(call("write_file", {"path": path, "content": "x"}))
        self.assertEqual(state(task), "input-required")
        message = task["status"]["message"]
        self.assertIn("write_file", said(message))
        return task, message["metadata"]["approvalId"]

    def written(self, path):
        return (self.host.place.workspace / path).exists()

    async def test_a_question_waits_for_the_operator(self):
        path = f"{uuid.uuid4()}.txt"
        task, approval = await self.question(path)
        told = await self.client.send({"text": "yes"}, task_id=task["id"], context_id=task["contextId"])
        self.assertEqual((told[0], state(told[1])), ("task", "input-required"))
        self.assertIn("operator", said(told[1]["status"]["message"]))
        self.assertFalse(self.written(path))
        follow = self.client.subscribe(task["id"])
        self.assertEqual(state((await anext(follow))[1]), "input-required")
        self.operator.decide(approval, "allow")
        items = await self.items(follow)
        self.assertEqual(state(items[-1][1]), "completed")
        self.assertTrue(self.written(path))

    async def test_an_operator_may_answer_in_the_conversation(self):
        for word, expected in (("yes", "completed"), ("no", "failed")):
            path = f"{uuid.uuid4()}.txt"
            async with self.peer("http://localhost", socket=self.operator.socket) as operator:
                kind, task = await operator.send(call("write_file", {"path": path, "content": "x"}))
                self.assertEqual((kind, state(task)), ("task", "input-required"))
                kind, task = await operator.send({"text": word}, task_id=task["id"], context_id=task["contextId"])
                self.assertEqual((kind, state(task)), ("task", expected))
                self.assertEqual(self.written(path), word == "yes")

    # The extension.

    async def test_the_answer_names_the_extension_in_the_words_of_the_dialect(self):
        for uri in (URI, OLDER_URI):
            await self.client.send(call("top_lines", {"count": 1}), extensions=[uri, "https://example.com/other"])
            self.assertEqual(self.client.answers[-1].headers.get(self.peer.EXTENSIONS), URI)
            self.assertNotIn(self.peer.OTHER_EXTENSIONS, self.client.answers[-1].headers)
            await self.items(self.client.stream(call("top_lines", {"count": 1}), extensions=[uri]))
            self.assertEqual(self.client.answers[-1].headers.get(self.peer.EXTENSIONS), URI)
