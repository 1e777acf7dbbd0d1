"""The table that the Rust side of results is held against, held against the real package."""

import json
import pathlib
import unittest

from amplifier_core.models import ToolResult

TABLE = pathlib.Path(__file__).parents[3] / "amplifier" / "tests" / "it" / "results.json"


class Results(unittest.TestCase):
    def test_the_table_says_what_the_package_does(self):
        rows = json.loads(TABLE.read_text())
        self.assertGreater(len(rows), 250)
        for row in rows:
            with self.subTest(row["given"]):
                try:
                    result = ToolResult(**json.loads(row["given"]))
                except ValueError:
                    self.assertTrue(row.get("refused"), "the package refuses it")
                    continue
                self.assertFalse(row.get("refused"), "the package takes it")
                self.assertEqual(row["text"], result.get_serialized_output())
                if "str" in row:
                    self.assertEqual(row["str"], str(result))
                if "dump" in row:
                    self.check_dump(row["dump"], result.model_dump_json())
                    # What we write is taken back, and means the same.
                    self.assertEqual(result, ToolResult.model_validate_json(row["dump"]))

    def check_dump(self, ours, theirs):
        # The package writes the three keys of an image's source in another order at each start.
        if '"source"' in ours:
            self.assertEqual(json.loads(ours), json.loads(theirs))
        else:
            self.assertEqual(ours, theirs)


if __name__ == "__main__":
    unittest.main()
