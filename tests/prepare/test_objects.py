"""prepare.py from outside: JSON arrays, CSV and other files of objects.

Usage:

    PREPARE=input/prepare.py python3 test_objects.py
"""

import gzip
import importlib.util
import json
import sys
import unittest

from prepare_case import PREPARE, Prepared, documents, run


class ObjectFiles(Prepared):
    def put(self, name, data):
        path = self.folder / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def texts(self, path, *options):
        run(path, "-o", self.out, "--vocab", 257, "--validation", 0, "--force", *options)
        return self.split(self.read("train"))

    def refused(self, name, data, *parts, options=()):
        said = run(self.put(name, data), "-o", self.folder / "none", "--vocab", 257, *options, code=4)
        for part in parts:
            self.assertIn(part, said)
        self.assertEqual(said.count("\n"), 1, said)


class Arrays(ObjectFiles):
    def test_arrays_are_read_like_lines(self):
        values = [{"text": text, "n": [i, {"]": "["}]} for i, text in enumerate(documents(self.text, 60))]
        texts = [value["text"] for value in values]
        lines = self.put("a.jsonl", "".join(json.dumps(value) + "\n" for value in values))
        self.assertEqual(self.texts(lines), texts)
        for name, data in (
            ("one_line.json", json.dumps(values)),
            ("pretty.json", "\ufeff \n" + json.dumps(values, indent=4, ensure_ascii=False) + "\n\n"),
            ("tight.jsonl", json.dumps(values, separators=(",", ":"))),
            ("packed.json.gz", gzip.compress(json.dumps(values).encode())),
            ("crlf.json", json.dumps(values, indent=1).replace("\n", "\r\n")),
        ):
            with self.subTest(name):
                self.assertEqual(self.texts(self.put(name, data)), texts)
        self.assertEqual(self.texts(self.put("lines.json", lines.read_bytes())), texts)

    def test_elements_across_blocks(self):
        texts = ["a" * (1 << 20), "b\\\"\u00e9" * 300_000, "c", "d" * (3 << 20), "\u4e2d" * 400_000]
        for indent in (None, 1):
            path = self.put(
                "long.json", json.dumps([{"text": text} for text in texts], indent=indent, ensure_ascii=indent is None)
            )
            self.assertEqual(self.texts(path), texts)

    def test_bad_arrays_are_named_once(self):
        good = '[{"text": "a"},\n'
        self.refused("a.json", good + '{"text": "b" "c"}]', "a.json[1]: is not JSON: Expecting ',' delimiter (line 2)")
        self.refused("a.json", good + '{"text": "b', "a.json[1]: is not JSON: Unterminated string starting at (line 2)")
        self.refused("a.json", good + '{"text": ', "a.json[1]: is not JSON: Expecting value (line 2)")
        self.refused("a.json", good + "]", "a.json[1]: is not JSON: Expecting value (line 2)")
        self.refused("a.json", good + '{"text": "b"} {"text": "c"}]', 'a.json: line 2: has "{" where , or ] is needed')
        self.refused("a.json", good + '{"text": "b"}', "a.json: line 2: ends where , or ] is needed")
        self.refused("a.json", '[{"text": "a"}]\n\n[{"text": "b"}]', "a.json: line 3: more follows after the array")
        self.refused("a.json", good + "7]", "a.json[1]: is not a JSON object but 7")
        self.refused("a.json", good + '{"body": "b"}]', "a.json[1]: has no text, only body")
        self.refused("a.json", good + "[" * 100_000, "a.json[1]: nests too deep")
        self.refused("a.json", good + "1" * 5000 + "]", "a.json[1]: is not JSON: ")
        self.refused("a.json", b'[{"text": "\xff"}]', "a.json: is not UTF-8: byte 11 is 0xff")
        self.refused("a.json", b'[{"text": "\\ud800"}]', "a.json[0]: its text has half a surrogate pair")
        self.refused("a.json", "[]", "a.json: there is no text")
        self.refused("a.json", '[{"text": "' + "b" * (65 << 20), "a.json[0]: is not JSON or has more than 64 Mi characters")
        pretty = json.dumps({"data": [{"text": "a"}]}, indent=2)
        self.refused("a.json", pretty, "a.json: its first object has several lines, but ", "(jq -c '.KEY[]' FILE takes ")


class Tables(ObjectFiles):
    def test_columns_by_name(self):
        table = 'id,text\r\n1,"one, and\r\n""two"""\r\n\r\n2,\u4e2d\u6587\r\n3,\r\n'
        texts = ['one, and\r\n"two"', "\u4e2d\u6587"]
        self.assertEqual(self.texts(self.put("a.csv", table)), texts)
        self.assertEqual(self.texts(self.put("a.csv", "\ufeff" + table), "--suffix", "csv"), texts)
        self.assertEqual(self.texts(self.put("a.tsv", "text\tid\nx y\t1\n")), ["x y"])
        self.assertEqual(self.texts(self.put("a.csv.gz", gzip.compress(table.encode())), "--text-key", "id"), ["1", "2", "3"])
        self.assertEqual(
            self.texts(self.put("l.csv", "text\ncaf\u00e9\n".encode("latin-1")), "--encoding", "latin-1"), ["caf\u00e9"]
        )
        long = "word " * 100_000  # more than the csv module reads by default
        self.assertEqual(self.texts(self.put("long.csv", f"text\n{long}\n")), [long])

    def test_bad_tables(self):
        self.refused("a.csv", "id;text\n1;a\n", "a.csv:2: has no text, only id;text; its text is needed (--text-key")
        self.refused("a.csv", "id,text\n1,a\n2\n", "a.csv:3: has 1 fields, but the table has 2 columns")
        self.refused("a.csv", 'id,text\n1,"a" b\n', "a.csv:2: ',' expected after '\"'")
        self.refused("a.csv", 'id,text\n1,"a', "a.csv:2: unexpected end of data")
        self.refused("a.csv", "text,text\na,b\n", "a.csv:1: two columns have one name: text, text")
        self.refused("a.csv", b"text\n\xff\n", "a.csv: is not UTF-8: ", "--encoding NAME reads another encoding")
        self.refused("a.csv", "", "a.csv: there is no text")

    def test_parquet_rows_are_objects(self):
        if importlib.util.find_spec("pyarrow") is None:
            self.skipTest("no pyarrow")
        import pyarrow.parquet

        rows = [{"ctx": "a", "endings": ["b", "c"], "label": 1}] * 2
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), self.folder / "a.parquet")
        run(self.lines(), "-o", self.out, "--vocab", 300)
        self.assertIn("2 examples in ", run(self.folder / "a.parquet", "-o", self.out, "--choices"))


if __name__ == "__main__":
    if importlib.util.find_spec("tokenizers") is None:
        print(f"{sys.executable} has no tokenizers: bash cmake/debian.sh installs it in .deps/venv")
        sys.exit(77)
    assert PREPARE.is_file()
    unittest.main()
