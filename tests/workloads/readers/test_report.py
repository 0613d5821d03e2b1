from hypothesis import given
from hypothesis import strategies as st

from workloads.readers.report import Report


def test_lines_are_in_the_order_read_repaired_dropped():
    report = Report()
    report.dropped("tasks that never ended", 3)
    report.read("rows of a.csv", 1000)
    report.repaired("end before start: taken as 0 s long", 1)
    report.read("rows of a.csv", 234)
    report.read("rows of b.csv", 0)
    assert report.lines() == [
        "read 1,234 rows of a.csv",
        "read 0 rows of b.csv",
        "repaired 1: end before start: taken as 0 s long",
        "dropped 3: tasks that never ended",
    ]
    assert report.notes() == tuple(report.lines())
    assert report.as_metadata() == {
        "read": "1,234 rows of a.csv; 0 rows of b.csv",
        "repaired": "1 end before start: taken as 0 s long",
        "dropped": "3 tasks that never ended",
    }


def test_what_was_only_read_is_no_note():
    report = Report()
    assert (report.lines(), report.notes(), report.as_metadata()) == ([], (), {})
    report.read("jobs", 2)
    report.repaired("gaps", 0)
    report.dropped("rows", 0)
    assert (report.lines(), report.notes(), report.as_metadata()) == (["read 2 jobs"], (), {"read": "2 jobs"})


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9)), max_size=20))
def test_counts_of_the_same_words_add_up(counts):
    report = Report()
    for what, count in counts:
        report.dropped(what, count)
    sums = {what: sum(c for w, c in counts if w == what) for what in "ab"}
    assert sorted(report.lines()) == sorted(f"dropped {sums[what]:,}: {what}" for what in "ab" if sums[what])
