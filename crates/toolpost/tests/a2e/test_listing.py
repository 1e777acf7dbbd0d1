"""Listing and searching: which tools are shown, and in a shape the client can read."""

from case import FixtureCase, HostCase
from client import message

FILES = {
    "read_file",
    "write_file",
    "edit_file",
    "apply_patch",
    "move_file",
    "delete_file",
    "list_directory",
}
PROCESSES = {"shell", "process_status", "process_read", "process_write", "process_kill"}
SEARCH = {"glob", "grep"}
RESULTS = {"read_result", "search_result"}
SHOWN = FILES | PROCESSES | SEARCH | RESULTS | {"echo", "http_request", "fetch_page", "run_code"}
DEFERRED = "file_info"
ALL_DEFERRED = {DEFERRED, "call_result", "call_cancel"}


class Listing(HostCase):
    def setUp(self):
        super().setUp()
        self.client = self.connected()

    def check(self, expected, **filters):
        with self.subTest(**filters):
            self.assertEqual(set(self.client.list(**filters)), set(expected))

    def test_deferred_tools_are_shown_only_when_asked_for(self):
        self.check(SHOWN)
        self.check(SHOWN, include_deferred=False)
        self.check(SHOWN | ALL_DEFERRED, include_deferred=True)
        tools = self.client.list(include_deferred=True)
        deferred = [name for name, tool in tools.items() if tool.get("defer_loading", False)]
        self.assertEqual(set(deferred), ALL_DEFERRED)

    def test_search_finds_names_descriptions_and_tags_in_any_case(self):
        self.check({"echo"}, query="ECHO")
        # Other tools that have one of the words may follow.
        self.assertEqual(list(self.client.list(query="message back"))[0], "echo")
        self.assertLessEqual({"read_file", "list_directory"}, set(self.client.list(query="files")))
        self.check(set(), query="zzzqqq wwwxxx")

    def test_search_skips_deferred_tools_unless_they_are_asked_for(self):
        self.assertNotIn(DEFERRED, self.client.list(query=DEFERRED))
        found = list(self.client.list(query=DEFERRED, include_deferred=True))
        self.assertEqual(found[0], DEFERRED)

    def test_tags_must_all_be_there_with_and_without_a_query(self):
        self.check({"read_file", "list_directory"} | SEARCH, filter_tags=["files", "read"])
        self.check({"read_file", "list_directory"} | SEARCH, filter_tags=["FILES", "Read"])
        self.check(
            {"write_file", "edit_file", "apply_patch", "move_file", "delete_file"}, filter_tags=["write"]
        )
        self.check(set(), filter_tags=["files", "no such tag"])
        self.check(SHOWN, filter_tags=[])
        found = list(self.client.list(query="read_file", filter_tags=["files", "read"]))
        self.assertEqual(found[0], "read_file")
        self.assertLessEqual(set(found), {"read_file", "list_directory"} | SEARCH)
        self.check(set(), query="echo", filter_tags=["files"])

    def test_kinds(self):
        self.check(FILES | SEARCH, filter_kind="file")
        self.check(SHOWN, filter_kind="")

    def test_a_limit(self):
        self.assertEqual(len(self.client.list(limit=1)), 1)
        self.assertEqual(len(self.client.list(query="file", limit=1)), 1)

    def test_the_order_stays(self):
        first = list(self.client.list())
        for _ in range(5):
            self.assertEqual(list(self.client.list()), first)

    def test_tools_say_what_they_are(self):
        tools = self.client.list()
        for name, tool in tools.items():
            with self.subTest(tool=name):
                self.assertTrue(tool["description"])
                self.assertTrue(tool.get("tags"))
        self.assertEqual(tools["read_file"].get("toolkit"), "files")
        self.assertTrue(tools["read_file"].get("idempotent", False))
        self.assertFalse(tools["write_file"].get("idempotent", False))

    def test_parameters(self):
        tool = self.client.list()["read_file"]
        parameters = {one["name"]: one for one in tool["input_parameters"]}
        self.assertEqual(set(parameters), {"path", "offset", "limit", "line_numbers"})
        self.assertEqual(
            {name: (one["type"], one.get("required", False)) for name, one in parameters.items()},
            {"path": ("string", True), "offset": ("integer", False), "limit": ("integer", False), "line_numbers": ("boolean", False)},
        )
        self.assertTrue(all(one["description"] for one in parameters.values()))

    def test_a_type_that_may_be_null_is_one_word(self):
        parameters = {one["name"]: one for one in self.client.list()["write_file"]["input_parameters"]}
        self.assertEqual(parameters["expected_sha256"]["type"], "string")
        self.assertFalse(parameters["expected_sha256"].get("required", False))

    def test_ill_typed_filters_are_told_so(self):
        for fields in (
            {"filter_tags": None},
            {"filter_tags": "read"},
            {"filter_tags": [5]},
            {"query": 5},
            {"query": None},
            {"filter_kind": []},
            {"include_deferred": "perhaps"},
            {"limit": "many"},
        ):
            with self.subTest(**fields):
                answer = self.client.start(message("tool/list/req", **fields)).wait(10)
                self.assertEqual((answer["type"], answer.get("code")), ("error", "schema_violation"))
                self.assertIn(*fields, answer["detail"]["field"])


class DeferredTools(HostCase):
    def test_a_call_before_it_was_shown_says_so_and_works_after(self):
        self.place.write("notes.txt", "hello")
        client = self.connected()
        self.assert_failed(client.call(DEFERRED, {"path": "notes.txt"}), "schema_not_loaded")
        client.list(query=DEFERRED, include_deferred=True)
        self.assertTrue(client.call(DEFERRED, {"path": "notes.txt"})["success"])

    def test_what_one_session_was_shown_is_not_shown_to_another(self):
        self.place.write("notes.txt", "hello")
        first, second = self.connected(), self.connected()
        first.list(include_deferred=True)
        self.assertTrue(first.call(DEFERRED, {"path": "notes.txt"})["success"])
        self.assert_failed(second.call(DEFERRED, {"path": "notes.txt"}), "schema_not_loaded")


def all_parameters(parameters):
    """Parameters and what lies within them."""
    for one in parameters:
        yield one
        yield from all_parameters((one.get("properties") or {}).values())


class Shapes(FixtureCase):
    """Schemas the client's own shape has no room for."""

    def setUp(self):
        super().setUp()
        nested = self.connected().list(include_deferred=True)["nested"]
        self.parameters = list(all_parameters(nested["input_parameters"]))

    def test_nested_properties_are_keyed_by_name(self):
        nested = [one["properties"] for one in self.parameters if one.get("properties")]
        self.assertTrue(nested, "`nested` has an object parameter with properties")
        for properties in nested:
            self.assertEqual([*properties], [inner["name"] for inner in properties.values()])

    def test_enums_of_numbers_come_as_text(self):
        numbers = [one["enum"] for one in self.parameters if one.get("enum") and one["type"] in ("integer", "number")]
        self.assertTrue(numbers, "`nested` has an enum of numbers")
        for values in numbers:
            for value in values:
                float(value)

    def test_every_type_is_one_known_word(self):
        known = {"string", "number", "integer", "boolean", "object", "array", "null"}
        for one in self.parameters:
            self.assertIn(one["type"], known, one)
