"""The house rules that no linter checks: rooms, layers, names, constructors, and what a command loads."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src" / "recrawl"
ROOMS = {
    "cli", "core", "crawl", "engine", "history", "insight", "models", "papers", "plan", "policies", "replay", "report", "sources", "synth",
    "web", "world",
}  # fmt: skip
MAX_POSITIONAL = 5


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(SRC.rglob("*.py")):
        yield path.relative_to(SRC), ast.parse(path.read_text())


def test_the_package_is_rooms_and_three_modules() -> None:
    modules = {path.stem for path in SRC.glob("*.py")}
    assert modules == {"__init__", "errors", "testing"}
    assert {path.name for path in SRC.iterdir() if path.is_dir() and path.name != "__pycache__"} == ROOMS


def test_the_import_rule_has_at_most_eleven_layers_and_no_exceptions() -> None:
    (layers, *others) = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert len(layers["layers"]) <= 11
    named = {
        part.strip().removeprefix("recrawl.") for line in layers["layers"] for part in line.replace(":", "|").split("|")
    }
    assert named == ROOMS | {"errors", "testing"}
    assert not any("ignore_imports" in contract for contract in (layers, *others))


def test_policies_base_holds_the_protocol_and_nothing_else() -> None:
    classes = [
        node.name for node in ast.parse((SRC / "policies/base.py").read_text()).body if isinstance(node, ast.ClassDef)
    ]
    assert classes == ["Policy"]


def test_public_class_names_are_unique() -> None:
    places = defaultdict(list)
    for path, tree in trees():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_no_constructor_takes_more_than_five_values_by_position() -> None:
    wrong = []
    for path, tree in trees():
        ours = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)} | {"cls"}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("recrawl"):
                ours |= {
                    alias.asname or alias.name for alias in node.names if (alias.asname or alias.name)[:1].isupper()
                }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and len(node.args) > MAX_POSITIONAL:
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                if name in ours or name == "__init__":
                    wrong.append(f"{path}:{node.lineno} {name} with {len(node.args)}")
    assert wrong == []


def test_no_policy_is_told_apart_outside_its_room() -> None:
    """No isinstance of a policy, and no look at what one has learnt."""
    from recrawl.policies import ALL

    names = {policy.__name__ for policy in ALL} | {"LinksAndContent", "ByModel", "Hinted"}
    wrong = []
    for path, tree in trees():
        if path.parts[0] == "policies":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                kinds = {each.id for each in ast.walk(node.args[1]) if isinstance(each, ast.Name)}
                wrong += [f"{path}:{node.lineno}" for _ in kinds & names]
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "policy":
                wrong += (
                    [f"{path}:{node.lineno} {node.attr}"]
                    if node.attr.endswith("_") and not node.attr.endswith("__")
                    else []
                )
    assert wrong == []


def test_every_error_is_in_the_one_tree() -> None:
    import recrawl.errors as errors

    wrong = []
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and str(path) != "errors.py":
                bases = {getattr(base, "id", "") for base in node.bases}
                wrong += [f"{path}: {node.name}" for base in bases if isinstance(getattr(errors, base, None), type)]
    assert wrong == []
    drawn = (errors.__doc__ or "").split()
    missing = [name for name, value in vars(errors).items() if isinstance(value, type) and name not in drawn]
    assert missing == []


def loaded_by(code: str) -> set[str]:
    """The top-level packages that a program has loaded when it ends."""
    program = f"{code}\nimport sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split("\n")[-2].split())


def test_importing_recrawl_loads_nothing_else() -> None:
    heavy = {"numpy", "pyarrow", "numba", "scipy", "sklearn", "typer", "rich", "deltalake"}
    assert loaded_by("import recrawl") & heavy == set()
