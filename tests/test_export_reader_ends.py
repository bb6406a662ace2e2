"""Streams of records that do not end as usual: failed, dropped, forked, out of memory, or kept in part."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from golden_data import GOLDEN
from helpers import run_python

import engramsql
from engramsql.errors import ClosedError, TokenIdError

PLE = str(GOLDEN / "ckpt_qwen4_exp_fp8")
SETUP = """
    import gc, os, sys, threading
    import numpy as np
    import engramsql
    from engramsql.errors import ClosedError
    from engramsql.bench.memory import own_bytes
    db = engramsql.connect()
    db.register("ple", sys.argv[1])

    def working():
        return [thread.name for thread in threading.enumerate() if thread.name.startswith("engramsql-export")]
"""


@pytest.fixture(scope="module")
def ple() -> Any:
    with engramsql.connect() as db:
        db.register("ple", PLE)
        yield db


def run(code: str, **how: Any) -> str:
    return run_python(SETUP + code, args=[PLE], timeout=90, **how).stdout


def test_a_stream_that_failed_does_not_seem_complete_afterwards(ple: Any) -> None:
    corpus = np.zeros(3_000_000, np.int64)
    corpus[2_900_000] = 512
    reader = ple.arrow_reader("ple", tokens=corpus, columns=["token"])
    with pytest.raises(TokenIdError, match="token id 512"):
        reader.read_all()
    for read in (reader.read_next_batch, reader.read_all):
        with pytest.raises(ClosedError, match="ended early .TokenIdError: .* token id 512 .*; begin a new one"):
            read()


def test_neither_does_one_that_ctrl_c_ended(ple: Any) -> None:
    def interrupted(*step: Any) -> None:
        raise KeyboardInterrupt

    reader = ple.arrow_reader("ple", tokens=np.zeros(5000, np.int64), progress=interrupted)
    with pytest.raises(KeyboardInterrupt):
        reader.read_next_batch()
    with pytest.raises(ClosedError, match="ended early .KeyboardInterrupt."):
        reader.read_next_batch()


def test_a_stream_that_was_read_to_its_end_is_empty(ple: Any) -> None:
    reader = ple.arrow_reader("ple", tokens=np.zeros(5000, np.int64))
    assert [reader.read_all().num_rows for _ in range(2)] == [5000, 0]


def test_threads_share_a_stream(ple: Any) -> None:
    count = 60_000
    reader = ple.arrow_reader("ple", tokens=np.arange(count) % 512, columns=["token", "e_t"])
    found: list[int] = []
    failed: list[BaseException] = []

    def read() -> None:
        try:
            for batch in reader:
                found.extend(batch.column("token").to_pylist())
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sorted(found) == list(range(count))


def test_who_asks_for_a_batch_while_it_is_made_is_refused(ple: Any) -> None:
    readers: list[Any] = []

    def asks(*step: Any) -> None:
        readers[0].read_next_batch()

    readers.append(ple.arrow_reader("ple", tokens=np.zeros(5000, np.int64), progress=asks))
    with pytest.raises(ValueError, match="already executing"):
        readers[0].read_next_batch()


def test_one_batch_that_is_kept_does_not_keep_the_memory_of_others() -> None:
    code = """
    before = own_bytes()
    reader = db.arrow_reader("ple", tokens=np.zeros(60_000, np.int64), columns=["e_t"])
    batches = list(reader)
    assert own_bytes() - before > 60_000 * 2560 * 4
    row = batches[5].column("e_t").slice(7, 1)
    del batches
    # What is ready to be used again.
    print((own_bytes() - before) // (150 << 20))
    del reader
    print((own_bytes() - before) // (120 << 20))
    assert np.array_equal(row.flatten().to_numpy(), db.table("ple").e_t([0, 0, 0, 0])[3])
    """
    assert run(code).split() == ["0", "0"]


def test_memory_does_not_grow_with_the_number_of_readers() -> None:
    code = """
    tokens = np.zeros(30_000, np.int64)
    wrong = np.concatenate([tokens, [512]])

    def use():
        reader = db.arrow_reader("ple", tokens=tokens, columns=["e_t"])
        reader.read_next_batch()
        del reader
        for corpus, progress in ((wrong, None), (tokens, lambda *step: 1 / 0)):
            try:
                db.arrow_reader("ple", tokens=corpus, progress=progress).read_all()
            except (ValueError, ZeroDivisionError):
                continue
            raise SystemExit("no error")

    use()
    gc.disable()
    before = own_bytes()
    for _ in range(25):
        use()
    print((own_bytes() - before) // (64 << 20), working())
    """
    assert run(code) == "0 []\n"


def test_no_memory_is_an_error() -> None:
    """The thread that asked for it has to say so: whoever reads would wait for ever."""
    code = """
    import resource
    reader = db.arrow_reader("ple", tokens=np.zeros(60_000, np.int64))
    kept = [reader.read_next_batch()]
    with open("/proc/self/statm") as statm:
        pages = int(statm.read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (40 << 20), -1))
    try:
        kept.extend(reader)
    except OSError as error:
        print(error)
    print(working())
    """
    said, threads = run(code).splitlines()
    assert "Cannot allocate memory" in said
    assert threads == "[]"


def test_a_stream_is_of_the_process_that_began_it() -> None:
    """A forked process has none of the threads, and would wait for them for ever."""
    code = """
    import signal
    reader = db.arrow_reader("ple", tokens=np.zeros(60_000, np.int64))
    read = reader.read_next_batch().num_rows
    for what in ("read", "drop"):
        process = os.fork()
        if process == 0:
            signal.alarm(60)
            try:
                if what == "read":
                    reader.read_all()
                del reader
                print("dropped", flush=True)
            except ClosedError as error:
                print(error, flush=True)
            finally:
                os._exit(0)
        assert os.waitpid(process, 0)[1] == 0
    print(read + reader.read_all().num_rows)
    """
    assert run(code).splitlines() == [
        "the stream belongs to the process that began it; begin one in this process",
        "dropped",
        "60000",
    ]


def test_a_reader_that_is_collected_in_a_thread_of_its_own() -> None:
    """No thread can wait for itself."""
    code = """
    import faulthandler
    faulthandler.dump_traceback_later(60, exit=True)
    kept, collected, left = [], [], threading.Event()

    def corpus():
        for sequence in range(1000):
            # In the second piece of the corpus, which a thread asks for while the reader is in a cycle.
            if sequence == 250:
                left.wait()
                gc.collect()
                collected.append(threading.current_thread().name)
            yield [1] * 5000

    gc.disable()
    reader = db.arrow_reader("ple", tokens=corpus(), columns=["token"])
    reader.read_next_batch()
    cycle = [reader]
    cycle.append(cycle)
    del reader, cycle
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("engramsql-export")]
    left.set()
    for thread in threads:
        thread.join()
    print(collected[0][:16], working())
    """
    assert run(code) == "engramsql-export []\n"


ENDS = {
    "a thread that outlives the main thread": (
        """
    def read():
        threading.main_thread().join()
        print(rest())
    threading.Thread(target=read).start()
    """,
        "60000",
    ),
    "what is done at exit": (
        """
    import atexit
    atexit.register(lambda: print(rest()))
    """,
        "60000",
    ),
    "an object that goes with its module": (
        """
    class Late:
        def __del__(self):
            try:
                rest()
            except engramsql.errors.ClosedError as error:
                print(error)
    late = Late()
    """,
        "the program is ending, and with it the threads that compute batches",
    ),
}


@pytest.mark.parametrize("what", ENDS)
def test_reading_while_the_program_ends(what: str) -> None:
    code, expected = ENDS[what]
    begin = """
    import engramsql.errors
    reader = db.arrow_reader("ple", tokens=np.zeros(60_000, np.int64))
    count = reader.read_next_batch().num_rows

    def rest(reader=reader, count=count):
        return count + sum(batch.num_rows for batch in reader)
    """
    assert run(begin + code) == expected + "\n"
