"""Text from files, servers and names is printed without control characters."""

import json

from workloads.errors import InputError, printable


def test_control_characters_are_escaped_and_text_stays():
    assert printable("a\x1b[31mred\x9b0m\x07") == "a\\u001b[31mred\\u009b0m\\u0007"
    assert printable("zwölf Jobs, 日本語 µs ±") == "zwölf Jobs, 日本語 µs ±"
    assert printable("a\nb\tc\r") == "a\\u000ab\\u0009c\\u000d"
    assert printable("a\nb\tc\r", keep="\n\t") == "a\nb\tc\\u000d"


def test_what_turns_text_round_or_hides_it_is_escaped():
    assert printable("trace\u202egnp.exe\u200b\ufeff") == "trace\\u202egnp.exe\\u200b\\ufeff"


def test_a_name_that_is_not_utf_8_can_be_printed():
    assert printable("a\udcff.tr") == "a\\udcff.tr"
    printable("a\udcff.tr").encode()


def test_json_stays_json():
    text = json.dumps({"name": "a\x9b\x1b\u202e"}, ensure_ascii=False)
    assert json.loads(printable(text)) == json.loads(text)


def test_errors_are_one_line_without_escapes():
    error = InputError("no \x1b]0;title\x07 such\nfield", file="a\x1b[2J\n.tr", line=1, field="\x9bx")
    assert str(error).isprintable()
    assert "\\u001b[2J" in str(error)


def test_an_error_is_not_endless():
    assert len(str(InputError("x" * 10_000_000))) < 3000
