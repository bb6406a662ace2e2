"""The seam between Python and the compiled engine: nothing unwrapped, nothing mutable, nothing untyped."""

import ast
import re
from pathlib import Path

import pytest

import engramsql
from engramsql import engine, errors
from engramsql.engine import _native

PACKAGE = Path(engramsql.__file__).parent
REPOSITORY = Path(__file__).parent.parent


def public(namespace: object) -> set[str]:
    return {name for name in dir(namespace) if not name.startswith("_")}


def test_every_native_name_is_wrapped():
    assert public(_native) == set(engine.__all__)


def test_only_the_seam_imports_the_native_module():
    importers = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(r"^\s*(from|import) .*_native", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert importers == ["engine/__init__.py"]


def stub_names(body: list[ast.stmt]) -> set[str]:
    names = set()
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return {name for name in names if not name.startswith("_")}


def test_stub_and_module_have_the_same_names():
    stub = ast.parse((PACKAGE / "engine" / "_native.pyi").read_text(encoding="utf-8"))
    assert stub_names(stub.body) == public(_native)
    for node in stub.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            assert stub_names(node.body) == public(getattr(_native, node.name)), node.name


def test_every_native_class_is_frozen():
    sources = REPOSITORY / "engramsql" / "engine" / "native" / "python" / "src"
    classes = [
        attributes
        for path in sources.glob("*.rs")
        for attributes in re.findall(r"#\[pyclass\(([^)]*)\)", path.read_text())
    ]
    assert classes
    assert all("frozen" in attributes for attributes in classes)


def test_every_use_of_the_session_is_guarded_and_detached():
    source = (REPOSITORY / "engramsql" / "engine" / "native" / "python" / "src" / "session.rs").read_text()
    methods = source.split("#[pymethods]")[1].split("\n}\n")[0]
    bodies = re.split(r"\n    (?=fn )", methods)[1:]
    users = [body for body in bodies if "self.inner" in body]
    assert len(users) >= 8
    # The session's lock may be held by a thread that waits for the interpreter.
    assert all(
        "guard(py, ||" in body and re.search(r"detach|running::run|(building|verification)::", body) for body in users
    )


def test_every_public_native_name_has_a_docstring():
    undocumented = [
        f"{name}.{member}"
        for name in engine.__all__
        if isinstance(getattr(engine, name), type)
        for member in public(getattr(engine, name))
        if not getattr(getattr(engine, name), member).__doc__
    ]
    assert not undocumented


def test_every_error_derives_from_the_one_base():
    for name in errors.__all__:
        cls = getattr(errors, name)
        if cls is not errors.EngramWarning:
            assert issubclass(cls, errors.EngramError)


def test_every_error_kind_of_the_engine_has_its_class():
    source = (REPOSITORY / "engramsql" / "engine" / "native" / "python" / "src" / "errors.rs").read_text()
    classes = re.findall(r'ErrorKind::\w+ => "(\w+)"', source)
    assert len(classes) >= 10
    assert set(classes) <= set(errors.__all__)


@pytest.mark.parametrize(
    ("cls", "builtin"),
    [
        (errors.RowIdError, IndexError),
        (errors.RowIdTypeError, TypeError),
        (errors.TokenIdError, ValueError),
        (errors.UnknownTableError, LookupError),
        (errors.ReadError, OSError),
        (errors.ArgumentError, ValueError),
        (errors.ArgumentTypeError, TypeError),
    ],
)
def test_an_error_is_also_the_builtin_a_caller_expects(cls: type[Exception], builtin: type[Exception]):
    assert issubclass(cls, builtin)
    assert str(cls("one line")) == "one line"
