"""The configuration file and the history, without a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engramsql.errors import ArgumentError
from engramsql.shell import config
from engramsql.shell.history import HistoryFile
from engramsql.shell.settings import SETTINGS, Settings

# Configuration


def test_what_the_command_writes_can_be_read_and_says_what_holds(tmp_path: Path):
    settings = Settings()
    settings.set("mode", "json")
    settings.set("maxrows", "7")
    settings.set("timer", "on")
    path = tmp_path / "new" / "config.ini"
    config.write(path, settings)
    text = path.read_text()
    assert "\nmode = json\n" in text
    # Every setting is there with its comment; what is the default is one too.
    for setting in SETTINGS.values():
        assert setting.summary[1:] in text
        assert f"{setting.name} = " in text
    assert "\n# pager = on\n" in text
    again = Settings()
    assert config.load(path, again) == []
    assert [again.text(name) for name in SETTINGS] == [settings.text(name) for name in SETTINGS]
    with pytest.raises(ArgumentError, match="exists already"):
        config.write(path, Settings())
    assert path.read_text() == text


@pytest.mark.parametrize(
    "text, warning",
    [
        ("[shell]\nmxrows = 3\n", "no setting 'mxrows'; did you mean 'maxrows'?"),
        ("[shell]\nmode = jsn\n", "mode: no mode 'jsn'; did you mean 'json'?"),
        ("[shel]\nmode = json\n", "no section 'shel', write [shell]"),
        ("mode = json\n", "not read: File contains no section headers."),
        ("[shell]\nmode = json\nmode = csv\n", "not read:"),
        ("[shell]\nmode\n", "not read:"),
        ("[shell]\nmode = \xff\n", "not read:"),
    ],
)
def test_what_is_wrong_is_one_warning(tmp_path: Path, text: str, warning: str):
    path = tmp_path / "config.ini"
    path.write_bytes(text.encode("latin-1"))
    settings = Settings()
    (problem,) = config.load(path, settings)
    assert problem.startswith(f"{path}: ")
    assert warning in problem
    assert "\n" not in problem
    assert settings.mode == "box"


def test_several_problems_are_one_warning_and_the_rest_holds(tmp_path: Path):
    path = tmp_path / "config.ini"
    path.write_text("[shell]\nfoo = 1\ntimer = on # always\nmaxrows = none\n")
    settings = Settings()
    (problem,) = config.load(path, settings)
    assert "'foo'" in problem
    assert "'none'" in problem
    assert settings.timer


def test_no_configuration_is_no_problem(tmp_path: Path):
    assert config.load(tmp_path / "nowhere", Settings()) == []
    (problem,) = config.load(tmp_path, Settings())
    assert "Is a directory" in problem


def test_where_the_files_are(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    for variable in ("ENGRAMSQL_CONFIG", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    assert config.config_path() == Path("/home/somebody/.config/engramsql/config.ini")
    assert config.history_path() == Path("/home/somebody/.local/state/engramsql/history")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/config")
    monkeypatch.setenv("XDG_STATE_HOME", "not/absolute")
    assert config.config_path() == Path("/config/engramsql/config.ini")
    assert config.history_path() == Path("/home/somebody/.local/state/engramsql/history")
    monkeypatch.setenv("ENGRAMSQL_CONFIG", "/elsewhere")
    assert config.config_path() == Path("/elsewhere")


# History


def test_entries_come_back_as_they_were(tmp_path: Path):
    entries = ["SELECT 1;", "SELECT\n  '+#';\n", "", "# no comment", "größe 数据", "a\n\n\nb"]
    history = HistoryFile(tmp_path / "deep" / "history", 100)
    for entry in entries:
        history.append(entry)
    assert history.load() == entries


def test_the_oldest_go_when_there_are_half_as_many_more(tmp_path: Path):
    path = tmp_path / "history"
    history = HistoryFile(path, 10)
    for number in range(15):
        history.append(f"SELECT {number};")
    before = path.read_bytes()
    assert history.load() == [f"SELECT {number};" for number in range(5, 15)]
    assert path.read_bytes() == before
    history.append("SELECT\n15;")
    assert history.load()[-2:] == ["SELECT 14;", "SELECT\n15;"]
    assert path.stat().st_size < len(before)
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(HistoryFile(path, 1000).load()) == 10
    assert sorted(file.name for file in tmp_path.iterdir()) == ["history"]


def test_invalid_bytes_stay_in_the_file(tmp_path: Path):
    path = tmp_path / "history"
    path.write_bytes(b"\xff\n+\xfe\x00\n\n+b\n")
    history = HistoryFile(path, 5)
    assert history.load() == ["\ufffd\x00", "b"]
    history.append("c")
    assert path.read_bytes().startswith(b"\xff\n+\xfe\x00\n\n+b\n")


def test_processes_that_write_at_a_time_lose_nothing(tmp_path: Path):
    """Also while one of them makes the file shorter."""
    path = tmp_path / "history"
    code = (
        "import sys; from pathlib import Path; from engramsql.shell.history import HistoryFile; name = sys.argv[2];"
        "history = HistoryFile(Path(sys.argv[1]), 400);"
        "[(history.append(f'{name} {number}\\n' + 'x' * 3000), number % 50 or history.load()) for number in range(100)]"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in "abc"]
    assert [writer.wait(120) for writer in writers] == [0, 0, 0]
    entries = HistoryFile(path, 400).load()
    for name in "abc":
        mine = [entry for entry in entries if entry.startswith(name)]
        assert mine == [f"{name} {number}\n" + "x" * 3000 for number in range(100)]


def test_a_history_that_cannot_be_written_says_so(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="Not a directory"):
        HistoryFile(tmp_path / "file" / "engramsql" / "history", 10).append("SELECT 1;")
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        with pytest.raises(OSError, match="Permission denied"):
            HistoryFile(tmp_path / "history", 10).append("SELECT 1;")
        tmp_path.chmod(0o700)


def test_a_history_that_is_a_pipe_is_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "history")
    history = HistoryFile(tmp_path / "history", 10)
    with pytest.raises(OSError, match="it is a pipe"):
        history.load()
    with pytest.raises(OSError, match="it is a pipe"):
        history.append("SELECT 1")


def test_a_history_may_be_nowhere(tmp_path: Path):
    (tmp_path / "history").symlink_to("/dev/null")
    history = HistoryFile(tmp_path / "history", 10)
    history.append("SELECT 1")
    assert history.load() == []
