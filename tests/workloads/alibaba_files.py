"""Small hand-made files of Alibaba's trace of 2018."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from workloads.errors import InputError
from workloads.readers.alibaba_2018 import convert_alibaba_2018

# Job-A of the trace's own description: task 1; 2 and 3 after it; 4 after 2; 5 after 3 and 4.
JOB_A = """\
M1,2,j_7,1,Terminated,100,110,100.0,0.5
M2_1,1,j_7,1,Terminated,110,130,50.0,0.25
M3_1,1,j_7,1,Terminated,110,115,50.0,0.25
R4_2,1,j_7,1,Terminated,130,131,200.0,1
M5_3_4,3,j_7,1,Terminated,131,161,,
"""
INSTANCES_A = """\
ins_3,M1,j_7,1,Terminated,101,110,m_1,1,1,10,20,0.1,0.2
ins_1,M1,j_7,1,Terminated,100,104,m_2,1,1,10,20,0.1,0.2
ins_2,M2_1,j_7,1,Terminated,110,130,m_2,1,1,,,,
ins_5,M3_1,j_7,1,Terminated,110,115,m_2,1,1,10,20,0.1,0.2
ins_6,R4_2,j_7,1,Terminated,130,131,m_2,1,1,10,20,0.1,0.2
ins_19,M5_3_4,j_7,1,Terminated,131,161,m_2,1,1,10,20,0.1,0.2
ins_8,M5_3_4,j_7,1,Terminated,131,151,m_2,1,1,10,20,0.1,0.2
ins_9,M5_3_4,j_7,1,Terminated,131,141,m_2,1,1,10,20,0.1,0.2
"""
MACHINES = "m_2,0,1,7,96,100,USING\nm_1,0,1,7,96,50,USING\nm_1,60,1,7,96,101,\n,60,1,7,96,100,USING\n"
CUT = "R5_1" + "_7" * 22 + "_2"
"""A name as the trace cuts it off: what follows the last _ may be the beginning of a longer number."""
assert len(CUT) == 50


def folder_of(path: Path, tasks: str, instances: str | None = None, machines: str | None = None) -> Path:
    path.mkdir(exist_ok=True)
    for name, text in (("batch_task", tasks), ("batch_instance", instances), ("machine_meta", machines)):
        if text is not None:
            (path / f"{name}.csv").write_text(text)
    return path


def tables(source: Path, to: Path, **options) -> dict[str, dict[str, list]]:
    convert_alibaba_2018(source, to, **options)
    return {path.stem: pq.read_table(path).to_pydict() for path in to.iterdir()}


def stage(job: str, name: str, status="Terminated", start=100, end=110, number=1, cpu="100", memory="1"):
    return f"{name},{number},{job},1,{status},{start},{end},{cpu},{memory}\n"


def attempt(job: str, name: str, status="Terminated", start=100, end=110, seq=1, of=1, instance="ins_1"):
    return f"{instance},{name},{job},1,{status},{start},{end},m_1,{seq},{of},1,1,1,1\n"


def archive(path: Path, files: dict[str, str]) -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, text in files.items():
                packed.writestr(name, text)
        return path
    with tarfile.open(path, "w:gz") as packed:
        for name, text in files.items():
            header = tarfile.TarInfo(name)
            header.size = len(text)
            packed.addfile(header, io.BytesIO(text.encode()))
    return path


def refused(source: Path, to: Path, **options) -> str:
    with pytest.raises(InputError) as caught:
        convert_alibaba_2018(source, to, **options)
    text = str(caught.value)
    assert text.isprintable()
    assert not to.exists()
    assert not [p for p in to.parent.iterdir() if p.name.startswith(".")]
    return text
