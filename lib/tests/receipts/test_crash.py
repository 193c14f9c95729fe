"""A write that is killed, has no room, or has a rival leaves every receipt whole and every row kept."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from lanelab.errors import BadFile, NoSpace
from lanelab.receipts import Journal, Store, store, verify
from lanelab.receipts.journal import BadKey, JournalBusy
from lanelab.receipts.store import AlreadyWritten

from .conftest import decode_row, made

# Writes rows to a journal and receipts (every third with Parquet) until it is killed; says each row once it is kept.
WRITER = """
import sys
from pathlib import Path
from lanelab.receipts import Journal, Receipt, Store, store
store.INLINE_LIMIT_BYTES = 300
folder = Path(sys.argv[1])
row = {"size": "3K", "streams": 1, "stream": 0, "repeat": 0, "status": "ok"}
journal = Journal(folder, "key")
journal.begin({"workload": "decode"})
number = len(journal.rows)
while True:
    journal.append({**row, "repeat": number})
    print(number, flush=True)
    receipt = Receipt(id=f"decode-{number:06}", kind="decode", origin="measured", campaign="camp",
                      rows=[row] * (1 + 4 * (number % 3 == 0)))
    try:
        Store(folder).write(receipt)
    except store.AlreadyWritten:
        pass
    number += 1
"""


def test_sigkill_at_any_moment(campaign_dir: Path) -> None:
    """Killed several times at random moments: receipts verify, said rows are there, the next process goes on."""
    chance, kills = random.Random(7), 6
    said = -1
    for _ in range(kills):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(campaign_dir)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        first = b"".join(writer.stdout.readline() for _ in range(chance.randint(2, 8)))  # it works: any moment will do
        time.sleep(chance.random() * 0.05)
        writer.send_signal(signal.SIGKILL)
        lines = (first + writer.stdout.read()).decode().split("\n")
        writer.wait()
        numbers = [int(line) for line in lines[:-1]]
        assert numbers[0] == said + 1 or numbers[0] == said + 2  # goes on; a kept row may not have been said
        said = numbers[-1]
        report = verify.campaigns([campaign_dir])
        assert report.errors == []
        kept = [json.loads(line) for line in (campaign_dir / "journal" / "key.jsonl").read_bytes().split(b"\n")[:-1]]
        assert [entry["value"]["repeat"] for entry in kept[1:]][: said + 1] == list(range(said + 1))
    with Journal(campaign_dir, "key") as journal:
        assert [row["repeat"] for row in journal.rows][: said + 1] == list(range(said + 1))
        assert journal.header == {"workload": "decode"}
    assert report.receipts >= said + 1 - kills and said > kills  # a kill can fall between a row and its receipt


def test_a_torn_line_goes_and_a_spoilt_one_is_named(campaign_dir: Path) -> None:
    with Journal(campaign_dir, "key") as journal:
        journal.append({"a": 1})
        path = journal.path
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"entry":"row","val')
    with Journal(campaign_dir, "key") as journal:
        assert journal.rows == [{"a": 1}]
        journal.append({"a": 2})
    assert path.read_bytes().count(b"\n") == 2
    for spoilt in (
        b"\x00\x00\n",
        b"[]\n",
        b'{"entry":"hymn","value":{}}\n',
        b"[" * 100_000 + b"\n",
        b'{"entry":"row","value":3}\n',
    ):
        path.write_bytes(whole + spoilt + whole)
        with pytest.raises(BadFile) as refused:
            Journal(campaign_dir, "key")
        assert f"{path}:2" in str(refused.value) and "\n" not in str(refused.value)
    Journal(campaign_dir, "key", resume=False).close(done=True)  # begin anew, whatever was there
    assert list(path.parent.iterdir()) == []


def test_one_writer_a_journal(campaign_dir: Path) -> None:
    with Journal(campaign_dir, "key"):
        with pytest.raises(JournalBusy, match=rf"process {os.getpid()} measures the same thing"):
            Journal(campaign_dir, "key")
        Journal(campaign_dir, "another").close(done=True)
    Journal(campaign_dir, "key").close(done=True)


def test_the_lock_dies_with_its_process(campaign_dir: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(campaign_dir)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    with pytest.raises(JournalBusy) as refused:
        Journal(campaign_dir, "key")
    assert refused.value.data["pid"] == holder.pid
    holder.kill()
    holder.wait()
    Journal(campaign_dir, "key").close(done=True)


@pytest.mark.parametrize("key", ["", "../escape", "a/b", ".hidden", "x" * 300, "a\n"])
def test_a_key_is_a_file_name(campaign_dir: Path, key: str) -> None:
    with pytest.raises(BadKey):
        Journal(campaign_dir, key)


FULL = """
import json, resource, secrets, signal, sys
from pathlib import Path
from lanelab.errors import NoSpace
from lanelab.receipts import Journal, Receipt, Store, store
folder, limit = Path(sys.argv[1]), int(sys.argv[2])
if limit:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
store.INLINE_LIMIT_BYTES = 20_000
row = {"size": "3K", "streams": 1, "stream": 0, "repeat": 0, "status": "ok"}
journal, kept, said = Journal(folder, "key"), 0, {}
try:
    while True:
        journal.append({**row, "error_kind": "x" * 700})
        kept += 1
except NoSpace as error:
    said["journal"] = str(error)
journal.close(done=False)
try:
    for number in range(10_000):
        rows = [{**row, "error_kind": secrets.token_hex(300)} for _ in range(1 + number * 9)]  # nothing to compress
        Store(folder).write(Receipt(id=f"decode-{number:05}", kind="decode", origin="measured", campaign="camp", rows=rows))
except NoSpace as error:
    said["store"] = str(error)
print(json.dumps({"kept": kept, **said}))
"""


def _fills_up(campaign_dir: Path, limit: int) -> None:
    before = (campaign_dir / "receipts" / "decode" / "decode-early.json").read_bytes()
    ended = subprocess.run(
        [sys.executable, "-c", FULL, str(campaign_dir), str(limit)], capture_output=True, text=True, check=True
    )
    said = json.loads(ended.stdout)
    assert "\n" not in said["journal"] and "cannot write" in said["journal"] and "cannot write" in said["store"]
    report = verify.campaigns([campaign_dir])
    assert report.problems == []  # nothing torn, no temporary left
    assert report.receipts > 1
    assert (campaign_dir / "receipts" / "decode" / "decode-early.json").read_bytes() == before
    lines = (campaign_dir / "journal" / "key.jsonl").read_bytes().split(b"\n")
    assert lines[-1] == b"" and len(lines) - 1 == said["kept"] > 0


def test_a_file_that_may_not_grow(campaign_dir: Path) -> None:
    Store(campaign_dir).write(made("decode-early"))
    _fills_up(campaign_dir, 40_000)


@pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="needs root to mount a tmpfs")
def test_a_full_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "none", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("this machine lets nobody mount a tmpfs")
    try:
        Store(disk / "camp").write(made("decode-early"))
        filler = disk / "filler"
        filler.write_bytes(b"x" * 150_000)
        ended = subprocess.run(
            [sys.executable, "-c", FULL, str(disk / "camp"), "0"], capture_output=True, text=True, check=True
        )
        said = json.loads(ended.stdout)
        assert "No space left" in said["journal"] and said["kept"] > 0
        assert verify.campaigns([disk / "camp"]).errors == []
        filler.unlink()  # room again: the journal goes on where it was
        with Journal(disk / "camp", "key") as journal:
            assert len(journal.rows) == said["kept"]
            journal.append(decode_row())
        Store(disk / "camp").write(made("decode-late"))
        assert verify.campaigns([disk / "camp"]).errors == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_receipt_is_never_edited(campaign_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "INLINE_LIMIT_BYTES", 10)
    Store(campaign_dir).write(made("decode-a"))
    folder = campaign_dir / "receipts" / "decode"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(AlreadyWritten, match="decode-a"):
        Store(campaign_dir).write(made("decode-a", rows=[decode_row(repeat=3)]))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before and len(before) == 2


def test_a_file_where_a_folder_should_be(campaign_dir: Path) -> None:
    (campaign_dir / "receipts").write_text("oops")
    with pytest.raises(NoSpace, match="cannot write"):
        Store(campaign_dir).write(made("decode-a"))
    (campaign_dir / "journal").write_text("oops")
    with pytest.raises(NoSpace, match="cannot write"):
        Journal(campaign_dir, "key")


def test_writers_side_by_side(campaign_dir: Path) -> None:
    script = textwrap.dedent("""
        import sys
        from pathlib import Path
        from lanelab.receipts import Receipt, Store, store
        won = 0
        for number in range(25):
            try:
                Store(Path(sys.argv[1])).write(Receipt(id=f"decode-{number:03}", kind="decode", origin="measured",
                                                       campaign="camp", lane=sys.argv[2], rows=[]))
                won += 1
            except store.AlreadyWritten:
                pass
        print(won)
    """)
    writers = [subprocess.Popen([sys.executable, "-c", script, str(campaign_dir), name], stdout=subprocess.PIPE, text=True)
               for name in ("a", "b", "c")]  # fmt: skip
    assert sum(int(writer.communicate()[0]) for writer in writers) == 25
    assert verify.campaigns([campaign_dir]).problems == []


def test_resource_limits_are_the_childs_alone() -> None:
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
